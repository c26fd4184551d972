"""Updates inside a traced function equal eager updates."""

import warnings

import numpy as np
import pytest
from graph_calls import as_graph, trace_of

import gtape as tf

optimizers = tf.keras.optimizers
schedules = optimizers.schedules

RULES = {
    "SGD": (lambda **k: optimizers.SGD(0.1, **k)),
    "momentum": (lambda **k: optimizers.SGD(0.1, momentum=0.9, **k)),
    "nesterov": (lambda **k: optimizers.SGD(0.1, momentum=0.9, nesterov=True, **k)),
    "Lion": (lambda **k: optimizers.Lion(0.01, **k)),
    "Adam": (lambda **k: optimizers.Adam(0.05, **k)),
    "amsgrad": (lambda **k: optimizers.Adam(0.05, amsgrad=True, **k)),
    "AdamW": (lambda **k: optimizers.AdamW(0.05, **k)),
    "Adamax": (lambda **k: optimizers.Adamax(0.05, **k)),
    "Nadam": (lambda **k: optimizers.Nadam(0.05, **k)),
    "Adadelta": (lambda **k: optimizers.Adadelta(1.0, **k)),
    "Adagrad": (lambda **k: optimizers.Adagrad(0.1, **k)),
    "RMSprop": (lambda **k: optimizers.RMSprop(0.01, **k)),
    "RMSprop_all": (lambda **k: optimizers.RMSprop(0.01, momentum=0.5, centered=True, **k)),
    "Ftrl": (lambda **k: optimizers.Ftrl(0.1, l1_regularization_strength=0.01, beta=0.1, **k)),
    "Lamb": (lambda **k: optimizers.Lamb(0.01, **k)),
    "Adafactor": (lambda **k: optimizers.Adafactor(0.01, **k)),
    "Muon": (lambda **k: optimizers.Muon(0.01, **k)),
    "ScheduleFree": (lambda **k: optimizers.ScheduleFreeAdamW(0.01, warmup_steps=3, **k)),
}
OPTIONS = {
    "plain": {},
    "clipnorm": {"clipnorm": 0.5},
    "global_clipnorm": {"global_clipnorm": 0.7},
    "clipvalue": {"clipvalue": 0.3},
    "ema": {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 3},
    "scale": {"loss_scale_factor": 4.0},
    "accumulate": {"gradient_accumulation_steps": 2},
    "all": {"gradient_accumulation_steps": 2, "use_ema": True, "ema_overwrite_frequency": 2,
            "global_clipnorm": 0.7, "weight_decay": 0.01},
}


def model(dtype):
    rng = np.random.default_rng(3)
    shapes = [(3, 4), (4,), (), (2, 3, 2)]
    return [tf.Variable(rng.standard_normal(s).astype(dtype), name=f"v{i}")
            for i, s in enumerate(shapes)]


def five_steps(make, options, wrap, dtype="float32", count=5):
    optimizer, variables = make(**options), model(dtype)
    x = tf.constant(np.random.default_rng(4).standard_normal((5, 3)).astype(dtype))

    def step(x):
        with tf.GradientTape() as tape:
            w, b, c, k = variables
            loss = tf.reduce_mean(tf.tanh(x @ w + b) ** 2 * c) + tf.reduce_sum(tf.sin(k))
        grads = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(grads, variables))
        return loss

    call = wrap(step)
    losses = [float(call(x)) for _ in range(count)]
    state = [v.numpy() for v in optimizer.variables]
    return losses, [v.numpy() for v in variables], state


def check(make, options, dtype="float32", rtol=1e-6):
    eager = five_steps(make, options, lambda f: f, dtype)
    graph = five_steps(make, options, as_graph, dtype)
    np.testing.assert_allclose(graph[0], eager[0], rtol=rtol)
    for part in (1, 2):
        for a, b in zip(graph[part], eager[part]):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * 0.1)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_equals_eager(rule, option):
    options = dict(OPTIONS[option])
    check(RULES[rule], options)


@pytest.mark.parametrize("rule", RULES)
def test_float64(rule):
    check(RULES[rule], {}, "float64", 1e-13)


SCHEDULES = {
    "exponential": lambda: schedules.ExponentialDecay(0.1, 3, 0.5),
    "staircase": lambda: schedules.ExponentialDecay(0.1, 3, 0.5, staircase=True),
    "inverse": lambda: schedules.InverseTimeDecay(0.1, 3, 0.5, staircase=True),
    "polynomial": lambda: schedules.PolynomialDecay(0.1, 4, 0.001, power=2.0),
    "cycle": lambda: schedules.PolynomialDecay(0.1, 4, 0.001, cycle=True),
    "piecewise": lambda: schedules.PiecewiseConstantDecay([2, 4], [0.1, 0.05, 0.01]),
    "cosine": lambda: schedules.CosineDecay(0.1, 6, alpha=0.1),
    "warmup": lambda: schedules.CosineDecay(0.0, 6, warmup_target=0.1, warmup_steps=3),
    "restarts": lambda: schedules.CosineDecayRestarts(0.1, 3, m_mul=0.5),
    "even_restarts": lambda: schedules.CosineDecayRestarts(0.1, 3, t_mul=1.0),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule):
    found = SCHEDULES[schedule]()
    rates = as_graph(found)
    for step in range(12):
        at = tf.constant(step, tf.int64)
        np.testing.assert_array_equal(rates(at), found(at))
    def make(**options):
        return optimizers.SGD(SCHEDULES[schedule](), **options)

    eager, graph = five_steps(make, {}, lambda f: f), five_steps(make, {}, as_graph)
    np.testing.assert_allclose(graph[0], eager[0], rtol=1e-6)


def test_a_schedule_of_tensor_ops():
    class Halved(schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.5 ** tf.cast(step + 1, tf.float32)

    v, optimizer = tf.Variable(0.0), optimizers.SGD(Halved())
    step = as_graph(lambda: optimizer.apply_gradients([(tf.constant(1.0), v)]))
    step()
    step()
    assert float(v) == -0.75


def test_the_learning_rate_and_the_counter_are_live():
    v, optimizer = tf.Variable(1.0), optimizers.SGD(0.5)
    step = as_graph(lambda: optimizer.apply_gradients([(tf.constant(1.0), v)]))
    assert int(step()) == 1
    optimizer.learning_rate = 0.25
    assert int(step()) == 2
    assert float(v) == 0.25
    assert int(optimizer.iterations) == 2


def test_the_rate_can_be_set_inside():
    v, optimizer = tf.Variable(0.0), optimizers.SGD(0.5)

    def step(rate):
        optimizer.learning_rate = rate
        optimizer.apply_gradients([(tf.constant(1.0), v)])

    call = as_graph(step)
    call(0.25)
    call(0.5)
    assert (float(v), float(optimizer.learning_rate)) == (-0.75, 0.5)


def test_eager_and_traced_steps_take_turns():
    def run(traced):
        v, optimizer = tf.Variable([1.0, 2.0]), optimizers.Adam(0.1)
        step = as_graph(lambda: optimizer.apply([v * v], [v]))
        for i in range(6):
            if traced and i % 2:
                step()
            else:
                optimizer.apply([v * v], [v])
        return v.numpy(), [s.numpy() for s in optimizer.variables]

    for a, b in zip(run(True), run(False)):
        for x, y in zip(a, b):
            np.testing.assert_allclose(x, y, rtol=1e-6)


def test_state_can_be_read_and_assigned_between_calls():
    v, optimizer = tf.Variable([1.0, 2.0]), optimizers.SGD(1.0, momentum=0.5)
    step = as_graph(lambda: optimizer.apply([tf.ones(2)], [v]))
    step()
    momentum = optimizer.variables[-1]
    np.testing.assert_array_equal(momentum, [-1, -1])
    momentum.assign([2.0, 2.0])
    step()
    np.testing.assert_array_equal(v, [0, 1])
    np.testing.assert_array_equal(momentum, [0, 0])


def test_missing_gradients():
    a, b = tf.Variable([1.0]), tf.Variable([1.0])
    optimizer = optimizers.SGD(1.0, momentum=0.5)
    one = tf.constant([1.0])
    optimizer.apply_gradients([(one, a), (one, b)])
    step = as_graph(lambda: optimizer.apply_gradients([(one, a), (None, b)]))
    with pytest.warns(UserWarning, match="no gradient"):
        step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step()
    np.testing.assert_allclose([a.numpy()[0], b.numpy()[0]], [1 - 1 - 1.5 - 1.75, 0])


def test_sparse_gradients_become_dense():
    def run(wrap):
        table, optimizer = tf.Variable(np.ones((5, 2), "f")), optimizers.Adam(0.1)

        def step(rows):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(table, rows) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, table), table)])

        call = wrap(step)
        for rows in ([0, 1, 1], [3, 0, 0], [1, 1, 1]):
            call(tf.constant(rows))
        return table.numpy()

    np.testing.assert_allclose(run(as_graph), run(lambda f: f), rtol=1e-6)


def test_constraints():
    v = tf.Variable([1.0, -1.0], constraint=tf.nn.relu)
    optimizer = optimizers.SGD(1.0)
    step = as_graph(lambda: optimizer.apply([tf.constant([2.0, 2.0])], [v]))
    step()
    np.testing.assert_array_equal(v, [0, 0])


def test_wrong_gradients():
    v, optimizer = tf.Variable([1.0, 2.0]), optimizers.SGD()
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        trace_of(lambda: optimizer.apply([tf.constant(1.0)], [v]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats(dtype):
    def run(wrap):
        v = tf.cast(tf.constant([1.0, -2.0, 3.0]), dtype)
        v, optimizer = tf.Variable(v), optimizers.Adam(0.125)
        step = wrap(lambda: optimizer.apply([v * v], [v]))
        for _ in range(4):
            step()
        return tf.cast(v, tf.float32).numpy()

    np.testing.assert_allclose(run(as_graph), run(lambda f: f), rtol=1e-2)


def test_a_rule_of_ones_own():
    class Halving(optimizers.Optimizer):
        slots = ("half",)

        def constants(self, real, rate, step):
            return real(float(rate) / step)

        def step(self, k, xp, w, g, half):
            half *= 0.5
            half += xp.where(g > 0, g, -g)
            return half * k

    check(lambda **k: Halving(0.1, **k), {})


def test_several_optimizers():
    def run(wrap):
        a, b = tf.Variable([1.0], name="a"), tf.Variable([2.0], name="b")
        chosen = {"a:0": optimizers.SGD(0.1), "b:0": optimizers.Adam(0.1)}
        optimizer = optimizers.MultiOptimizer(lambda v: chosen[v.name])
        step = wrap(lambda: optimizer.apply([a * a, b * b], [a, b]))
        for _ in range(3):
            step()
        assert int(optimizer.iterations) == 3
        return [a.numpy()[0], b.numpy()[0]]

    np.testing.assert_allclose(run(as_graph), run(lambda f: f), rtol=1e-6)


def test_scaled_losses():
    def run(wrap):
        v = tf.Variable([1.0, 2.0])
        optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.1, momentum=0.5), 8.0, 2)

        def step(x):
            with tf.GradientTape() as tape:
                loss = optimizer.scale_loss(tf.reduce_sum(v * v * x))
            optimizer.apply(tape.gradient(loss, [v]), [v])

        call, seen = wrap(step), []
        for x in (1.0, 1.0, np.inf, 1.0, np.nan, 1.0):
            call(tf.constant(x, tf.float32))
            seen += [optimizer.dynamic_scale, int(optimizer.inner_optimizer.iterations),
                     *v.numpy()]
        assert int(optimizer.iterations) == 6
        return seen

    np.testing.assert_allclose(run(as_graph), run(lambda f: f), rtol=1e-6)


def test_updates_are_elementwise():
    optimizer, variables = optimizers.AdamW(0.1), model("float32")
    grads = [tf.ones_like(v) for v in variables]
    found = trace_of(lambda: optimizer.apply(grads, variables))
    assert all(hasattr(node.op, "expression") or node.op.name == "cast_"
               for node in found.graph.nodes), str(found.graph)


def test_gradients_that_are_limited_together_flow_from_all():
    a, b = tf.Variable(3.0), tf.Variable(4.0)
    optimizer = optimizers.SGD(1.0, global_clipnorm=1.0)
    step = as_graph(lambda x, y: optimizer.apply([x, y], [a, b]))
    step(3.0, 4.0)
    np.testing.assert_allclose([float(a), float(b)], [2.4, 3.2], rtol=1e-6)
    step(np.inf, 1.0)
    assert np.isnan(float(a)) and np.isnan(float(b))


def test_averages_at_the_end():
    v, optimizer = tf.Variable(0.0), optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    step = as_graph(lambda: optimizer.apply([tf.constant(1.0)], [v]))
    step()
    step()
    as_graph(lambda: optimizer.finalize_variable_values([v]))()
    assert float(v) == -1.5
