"""Variables written row by row and slice by slice, TensorArrays and metrics in traced functions."""

import numpy as np
import pytest

import gtape as tf
from tests.compile.frontend.graph_calls import as_graph, trace_of


@pytest.fixture(params=["graph", "function"])
def wrap(request):
    return as_graph if request.param == "graph" else tf.function


def slices(values, rows):
    return tf.IndexedSlices(values, rows)


START = np.arange(12, dtype="f").reshape(4, 3) + 1
WRITES = {
    **{f"scatter_{how}": (lambda v, r, x, how=how: getattr(v, f"scatter_{how}")(slices(x, r)))
       for how in ("update", "add", "sub", "mul", "div", "min", "max")},
    "scatter_nd_update": lambda v, r, x: v.scatter_nd_update(r[:, None], x),
    "scatter_nd_add": lambda v, r, x: v.scatter_nd_add(r[:, None], x),
    "scatter_scalar": lambda v, r, x: v.scatter_add(slices(tf.constant(1.0), r)),
    "row": lambda v, r, x: v[1].assign(x[0]),
    "traced_row": lambda v, r, x: v[r[0]].assign(x[0]),
    "rows": lambda v, r, x: v[[0, 2]].assign_add(x),
    "part": lambda v, r, x: v[1:3, ..., 0].assign_sub(x[:, 0]),
    "column": lambda v, r, x: v[:, 1].assign(7.0),
    "assign": lambda v, r, x: v.assign(v * 2 + x[0]),
    "assign_sub": lambda v, r, x: v.assign_sub(tf.ones((4, 3)) * x[0, 0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name, wrap):
    made = []
    for call_of in (lambda f: f, wrap):
        v = tf.Variable(START)

        def step(rows, values, v=v):
            after = WRITES[name](v, rows, values)
            return after + 0.0, tf.reduce_sum(v)

        call = call_of(step)
        rows, values = tf.constant([3, 1]), tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        made.append([call(rows, values), call(rows, values * 2), v.numpy()])
    for a, b in zip(tf.nest.flatten(made[0]), tf.nest.flatten(made[1])):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_rows_out_of_range_are_found_at_the_call(wrap):
    v = tf.Variable(START)
    call = wrap(lambda r: v.scatter_add(slices(tf.ones((1, 3)), r)) + 0.0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(tf.constant([4]))
    np.testing.assert_array_equal(v, START)
    call(tf.constant([3]))
    assert v.numpy()[3, 0] == START[3, 0] + 1


def test_slices_that_do_not_fit_are_found_while_tracing():
    v = tf.Variable(START)
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        trace_of(lambda x: v[1].assign(x), np.ones(2, "f"))
    with pytest.raises(AttributeError):
        trace_of(lambda x: x[0].assign(1.0), START)


def test_gradients_of_what_is_read_after_a_write(wrap):
    def fn(x):
        v.assign(START)
        with tf.GradientTape() as tape:
            tape.watch(x)
            v.scatter_update(slices(x[None] * 2, [0]))
            y = tf.reduce_sum(v * x)
        return tape.gradient(y, [x, v])

    v = tf.Variable(START)
    x = tf.constant([1.0, 2.0, 3.0])
    for a, b in zip(wrap(fn)(x), fn(x)):
        np.testing.assert_allclose(a, b)


def test_tensor_arrays(wrap):
    def fn(x):
        array = tf.TensorArray(tf.float32, size=3, clear_after_read=False).unstack(x)
        array = array.write(1, x[0] * 2)
        return array.stack(), array.read(2), array.concat(), array.gather([0, 1]), array.size()

    x = tf.constant(START[:3])
    for a, b in zip(wrap(fn)(x), fn(x)):
        np.testing.assert_array_equal(a, b)


METRICS = {
    "Mean": 1, "Sum": 1, "MeanSquaredError": 2, "RootMeanSquaredError": 2, "BinaryAccuracy": 2,
    "AUC": 2, "Precision": 2, "Recall": 2, "TruePositives": 2, "F1Score": 2, "R2Score": 2,
    "CosineSimilarity": 2, "BinaryCrossentropy": 2, "PearsonCorrelation": 2}


@pytest.mark.parametrize("name", METRICS)
def test_metrics(name):
    rng = np.random.default_rng(2)
    one, two = (getattr(tf.keras.metrics, name)() for _ in range(2))

    def step(*args):
        two.update_state(*args)
        return two.result()

    call = as_graph(step)
    for _ in range(3):
        true = rng.integers(0, 2, (8, 2)).astype("f")
        pred = rng.uniform(0, 1, (8, 2)).astype("f")
        args = (pred,) if METRICS[name] == 1 else (true, pred)
        one.update_state(*args)
        np.testing.assert_allclose(call(*args), one.result(), rtol=1e-6)
    np.testing.assert_allclose(two.result(), one.result(), rtol=1e-6)
    two.reset_state()
    as_graph(lambda: one.reset_state())()
    np.testing.assert_array_equal(one.result(), two.result())


def test_a_metric_of_tensor_ops_is_part_of_the_graph():
    class Total(tf.keras.metrics.Metric):
        def __init__(self):
            super().__init__()
            self.total = self.add_weight(shape=(), initializer="zeros", name="total")

        def update_state(self, x):
            self.total.assign_add(tf.reduce_sum(x))

        def result(self):
            return self.total / 2

    metric = Total()
    names = [n.op.name for n in trace_of(metric, np.ones(3, "f")).graph.nodes]
    assert "divide" in names and not any("Total" in n for n in names)


def test_a_weighted_mean():
    one, two = tf.keras.metrics.Mean(), tf.keras.metrics.Mean()
    x, w = tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 0.0, 2.0])
    one.update_state(x, sample_weight=w)
    as_graph(lambda a, b: two.update_state(a, sample_weight=b))(x, w)
    np.testing.assert_array_equal(one.result(), two.result())
