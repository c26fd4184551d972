"""Random numbers inside traced functions: those that the eager program draws, at every call."""

import numpy as np
import pytest

import gtape as tf
from tests.compile.frontend.graph_calls import as_graph, trace_of

X = np.array([1.0, 2.0, 3.0, 4.0], "f")


@pytest.fixture(params=["graph", "function"])
def wrap(request):
    return as_graph if request.param == "graph" else tf.function


def assert_same(a, b):
    a, b = tf.nest.flatten(a), tf.nest.flatten(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def draws(x):
    return (tf.random.normal((3,)), tf.random.uniform((2,), seed=5), tf.nn.dropout(x, 0.5),
            tf.nn.dropout(x, 0.5, seed=7), tf.random.truncated_normal((2,)),
            tf.random.uniform((2,), 0, 10, tf.int32), tf.random.gamma((2,), x[0] + 1.0),
            tf.random.poisson((2,), x + 1.0), tf.random.categorical(x[None], 4),
            tf.random.shuffle(x), tf.random.normal((2,), x[:2], 2.0),
            tf.random.uniform((4,), 0.0, x), tf.random.normal((2,), dtype=tf.float64))


def test_streams_go_on_in_the_order_of_the_program(wrap):
    made = []
    for call in (draws, wrap(draws)):
        tf.random.set_seed(3)
        made.append([[call(tf.constant(X)), tf.random.normal((2,))] for _ in range(3)])
    assert_same(*made)


def test_a_seed_set_between_calls_counts(wrap):
    call = wrap(lambda: (tf.random.normal((3,)), tf.random.uniform((3,), seed=1)))
    tf.random.set_seed(1)
    first = call()
    assert not np.array_equal(first[0], call()[0])
    tf.random.set_seed(1)
    assert_same(call(), first)


def test_draws_are_never_merged():
    call = as_graph(lambda: (tf.random.normal((4,)), tf.random.normal((4,))))
    a, b = call()
    assert not np.array_equal(a, b)


def test_generators(wrap):
    def both(g):
        return lambda: (g.normal((3,)), g.uniform((2,)), g.uniform_full_int((2,)), g.skip(3),
                        g.make_seeds(2), g.binomial((2,), 5, 0.5), g.key, g.state + 0)

    one, two = (tf.random.Generator.from_seed(4) for _ in range(2))
    call = wrap(both(two))
    for _ in range(3):
        assert_same(both(one)(), call())
    assert_same(one.normal((2,)), two.normal((2,)))
    two.reset_from_seed(4)
    assert_same(tf.random.Generator.from_seed(4).normal((3,)), call()[0])


def test_a_generator_carries_into_the_upper_half(wrap):
    one, two = (tf.random.Generator.from_key_counter(7, 2**64 - 2) for _ in range(2))
    call = wrap(lambda: two.normal((3,)))
    for _ in range(3):
        assert_same(one.normal((3,)), call())
    assert_same(one.state, two.state)


def test_stateless_functions(wrap):
    def fn(seed, step):
        folded = tf.random.fold_in(seed, 3)
        return (tf.random.stateless_normal((3,), seed), tf.random.split(seed, 3), folded,
                tf.random.stateless_uniform((2,), [1, 2]), tf.random.stateless_normal((2,), folded),
                tf.random.stateless_categorical(tf.constant([[0.1, 0.2]]), 3, seed))

    seed = tf.constant([5, 6])
    assert_same(wrap(fn)(seed, 1), fn(seed, 1))
    constant = trace_of(lambda x: x + tf.random.stateless_normal((), [1, 2]), 1.0)
    assert [node.op.name for node in constant.graph.nodes] == ["add"]


def test_gradients_flow_to_location_and_scale(wrap):
    def fn(mean, scale):
        with tf.GradientTape() as tape:
            tape.watch([mean, scale])
            y = tf.random.normal((3,), mean, scale)
        return y, tape.gradient(y, [mean, scale])

    made = []
    for call in (fn, wrap(fn)):
        tf.random.set_seed(5)
        made.append(call(tf.constant(1.0), tf.constant(2.0)))
    assert_same(*made)


def test_initializers_with_a_generator_of_seeds(wrap):
    one, two = (tf.keras.initializers.GlorotUniform(seed=3) for _ in range(2))
    assert_same(wrap(lambda: two((2, 3)))(), one((2, 3)))


def test_random_state_can_be_kept_and_restored_between_calls(tmp_path):
    call = as_graph(lambda: tf.random.normal((3,), seed=9))
    tf.random.set_seed(2)
    call()
    from gtape.ops.random.streams import streams

    kept = streams.kept()
    wanted = call()
    call()
    streams.restore(kept)
    assert_same(call(), wanted)
