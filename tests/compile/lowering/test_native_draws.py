"""Random numbers drawn by compiled programs: those of eager draws, from the same positions."""

import numpy as np
import pytest

import gtape as tf
from gtape.ops.random.streams import streams
from tests.compile.native_calls import assert_same, hosted

pytestmark = pytest.mark.native
FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
#: Of the inverse distribution's function, in units of a rounding.
ROUNDINGS = {tf.float16: 2e-3, tf.bfloat16: 2e-2, tf.float32: 2e-6, tf.float64: 4e-15}


def compare(function, *args, calls=3, tolerance=0.0):
    """Eager and compiled calls after the same seed, and where the streams are then."""
    compiled = tf.function(function)
    results, positions = [], []
    for call in (function, compiled):
        tf.random.set_seed(3)
        results.append([call(*args) for _ in range(calls)])
        positions.append(streams.kept())
    assert_same(results[1], results[0], tolerance)
    assert positions[0] == positions[1]
    assert not hosted(compiled, *args)
    return results[1]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_uniform_values_are_equal_bit_by_bit(dtype):
    compare(lambda: (tf.random.uniform((257, 3), dtype=dtype), tf.random.uniform((), dtype=dtype),
                     tf.random.uniform((513,), -2.5, 7.25, dtype, seed=5),
                     tf.random.uniform((66,), 3.0, -1.0, dtype)))


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_normal_values_are_equal_bit_by_bit(dtype):
    compare(lambda: (tf.random.normal((100_003,), dtype=dtype), tf.random.normal((1,), dtype=dtype),
                     tf.random.normal((2, 7), 1.5, 0.25, dtype, seed=3)))
    generators = [tf.random.Generator.from_seed(5) for _ in range(2)]
    eager, compiled = (way(lambda g=g: g.normal((1001,), 3.0, 2.5, dtype))
                       for way, g in zip((lambda f: f, tf.function), generators))
    assert_same(compiled(), eager())


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_truncated_normal_values_are_equal_but_for_rounding(dtype):
    compare(lambda: (tf.random.truncated_normal((301,), dtype=dtype),
                     tf.random.truncated_normal((301,), 0.5, 2.0, dtype, seed=9)),
            tolerance=ROUNDINGS[dtype])


@pytest.mark.parametrize("dtype", [tf.int8, tf.int32, tf.uint32, tf.int64, tf.uint64],
                         ids=lambda d: d.name)
def test_integers_are_equal(dtype):
    low = 0 if dtype.is_unsigned else -7

    def draw():
        return (tf.random.uniform((301,), low, 10, dtype),
                tf.random.uniform((65,), 0, int(dtype.max), dtype, seed=4),
                tf.random.stateless_uniform((9,), [1, 2], low, low + 1, dtype))

    compare(draw)


def test_dropout_keeps_the_same_elements_in_both_directions():
    x = tf.constant(np.linspace(1, 2, 37 * 11, dtype="f").reshape(37, 11))

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.dropout(x, 0.4) + tf.nn.dropout(x, 0.3, seed=7)
            z = tf.nn.dropout(x, 0.5, noise_shape=(37, 1))
        return y, z, tape.gradient(tf.reduce_sum(y * y) + tf.reduce_sum(z), x)

    compare(step, x)


def test_large_draws_are_shared_among_threads_without_a_change():
    shape = (1 << 17) + 3

    def draw():
        return (tf.random.uniform((shape,)), tf.random.uniform((shape,), 0, 9, tf.int32),
                tf.random.uniform((shape,), dtype=tf.float64))

    made = compare(draw, calls=1)
    assert abs(float(tf.reduce_mean(made[0][0])) - 0.5) < 0.01


def test_streams_end_up_where_eager_draws_leave_them():
    def draw():
        tf.random.normal((5,))
        return tf.random.uniform((3,), seed=2), tf.random.uniform((4,), 0, 5, tf.int32, seed=-1)

    compare(draw, calls=5)


def test_a_key_with_an_upper_half_is_folded():
    seed = 2 ** 40 + 5
    compare(lambda: (tf.random.uniform((4,), 0, 1000, tf.int32, seed=seed),
                     tf.random.uniform((4,), seed=seed)))


def test_positions_of_generators_and_of_seeds():
    def both(generator):
        return lambda seed: (generator.normal((3,)), generator.uniform((2,)), generator.skip(3),
                             generator.uniform_full_int((2,)), tf.random.fold_in(seed, 3),
                             tf.random.stateless_normal((3,), seed), tf.random.split(seed, 3))

    seed = tf.constant([5, -6])
    one, two = (tf.random.Generator.from_key_counter(7, 2 ** 64 - 2) for _ in range(2))
    compiled = tf.function(both(two))
    for _ in range(3):
        assert_same(compiled(seed), both(one)(seed), 1e-6)
    assert_same(two.state, one.state)
    assert not hosted(compiled, seed)


def test_keras_dropout_has_no_step_in_python():
    layers = [tf.keras.layers.Dropout(0.5, seed=4) for _ in range(2)]
    x = tf.ones((8, 8))
    compiled = tf.function(lambda x: layers[1](x, training=True))
    for _ in range(3):
        assert_same(compiled(x), layers[0](x, training=True))
    assert not hosted(compiled, x)


def test_a_draw_with_infinite_bounds_is_left_to_numpy():
    compiled = tf.function(lambda: tf.random.normal((4,), 0.0, float("inf")))
    assert np.isinf(compiled()).all()


def test_the_comparison_finds_another_stream():
    with pytest.raises(AssertionError):
        compare(lambda: tf.random.uniform((4,)) if tf.executing_eagerly()
                else tf.random.uniform((4,), seed=1))
