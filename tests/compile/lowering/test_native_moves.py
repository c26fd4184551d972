"""Primitives that compiled programs apply without a step in Python: equal to eager."""

import numpy as np
import pytest

import gtape as tf
from tests.compile.native_calls import assert_native, assert_same, hosted

pytestmark = pytest.mark.native
RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(3, 4)).astype("f")
BATCH = RNG.normal(size=(2, 4, 5)).astype("f")
LONG = RNG.normal(size=(4, 5, 300)).astype("f")
IDS = np.array([0, 2, 2, 5, 1, 2], "i4")


def test_repeated_and_moved_elements():
    assert_native(lambda a: (tf.tile(a, [2, 3]), tf.repeat(a, 3, 0), tf.repeat(a, 2, 1),
                             tf.repeat(a, 2)), MATRIX)
    assert_native(lambda a: (tf.roll(a, [1, -2], [0, 1]), tf.roll(a, 5, 0), tf.roll(a, 0, 1),
                             tf.roll(a, [1, 1], [0, 0])), MATRIX)


def test_diagonals_and_bands():
    assert_native(lambda a: [tf.linalg.band_part(a, low, high) for low in (-1, 0, 2)
                             for high in (-1, 0, 2)], BATCH)
    assert_native(lambda a: [tf.linalg.diag_part(a, k=k) for k in (-3, -1, 0, 2, 4)], BATCH)
    assert_native(lambda a: [tf.linalg.diag(a), tf.linalg.diag(a, k=1),
                             tf.linalg.diag(a, k=-2, padding_value=3.0)], MATRIX)
    assert_native(lambda a, d: tf.linalg.set_diag(a * 2.0, d), BATCH, BATCH[:, :, 0])
    assert_native(lambda a: tf.linalg.cross(a, a[::-1]), LONG[0, :, :3])


# ---------------------------------------------------------------- totals and extremes
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "i1"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_sums_are_added_in_order(axis, dtype):
    assert_native(lambda a: [tf.cumsum(a, axis, exclusive, reverse) for exclusive in (False, True)
                             for reverse in (False, True)], (LONG * 3).astype(dtype))


@pytest.mark.parametrize("axis", [0, 2])
def test_running_products_and_log_sums_with_gradients(axis):
    def both(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            product = tf.math.cumprod(a, axis, reverse=True)
            logs = tf.math.cumulative_logsumexp(a, axis)
            total = tf.reduce_sum(product * product + tf.sin(logs))
        return product, logs, tape.gradient(total, a)

    assert_native(both, LONG[:, :, :6], tolerance=2e-4)


def test_log_sums_of_infinities():
    row = np.array([[-np.inf, -np.inf, 1, np.inf, np.inf, 2], [np.nan, 1, 2, 3, 4, 5]], "f")
    assert_native(lambda a: tf.math.cumulative_logsumexp(a, 1), row, tolerance=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1", "?"])
def test_the_first_of_equal_extremes(dtype):
    x = np.round(RNG.normal(size=(7, 6, 70)) * 2).astype("f")
    x[1] = 2
    assert_native(lambda a: [f(a, axis) for f in (tf.argmax, tf.argmin) for axis in (0, 1, 2)],
                  np.abs(x).astype(dtype))


def test_extremes_with_nan_and_zeros():
    x = RNG.normal(size=(33, 1000)).astype("f")
    x[::2, 700] = np.nan
    x[5] = np.where(RNG.random(1000) < 0.5, -0.0, 0.0)
    assert_native(lambda a: (tf.argmax(a, 1), tf.argmin(a, 1, tf.int32), tf.argmax(a, 0)), x)


def test_targets_among_the_largest_scores():
    scores = MATRIX.copy()
    scores[1, 2] = np.inf
    assert_native(lambda t, s: tf.math.in_top_k(t, s, 2), np.array([0, 3, 9], "i4"), scores)


# ---------------------------------------------------------------- picked by index
def test_elements_along_rows():
    def picked(x, places):
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = tf.gather_nd(x, places) * tf.gather_nd(x, places[::-1])
        return made, tape.gradient(made, x)

    assert_native(picked, MATRIX, np.array([[0, 1], [2, 3], [0, 1]], "i4"))
    assert_native(lambda x, n: (tf.reverse_sequence(x, n, 1, 0),
                                tf.reverse_sequence(tf.transpose(x), n, 0, 1)),
                  MATRIX, np.array([0, 3, 4], "i4"))


def test_sorted_rows_pass_gradients_on():
    def total(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sort(x) * tf.range(4.0)) + tf.reduce_sum(tf.math.top_k(x, 2)[0])
        return tape.gradient(y, x)

    assert_same(tf.function(total)(MATRIX), total(tf.constant(MATRIX)))


def test_segments():
    rows = RNG.normal(size=(6, 3)).astype("f")
    rows[3] = -np.inf
    assert_native(lambda x, ids: [f(x, ids, 7) for f in (
        tf.math.unsorted_segment_sum, tf.math.unsorted_segment_mean, tf.math.unsorted_segment_max,
        tf.math.unsorted_segment_min)], rows, IDS)
    assert_native(lambda ids: (tf.math.bincount(ids, minlength=4, maxlength=4),
                               tf.math.confusion_matrix(ids, ids[::-1], 6)), IDS)


def test_many_segments_shared_among_threads():
    rows, ids = RNG.normal(size=(5000, 9)).astype("f"), RNG.integers(-1, 50, 5000).astype("i4")
    assert_native(lambda x, i: (tf.math.unsorted_segment_max(x, i, 52),
                                tf.math.unsorted_segment_sum(x, i, 52)), rows, ids)


def test_shares_of_a_log_sum_over_several_axes():
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.reduce_logsumexp(x, [0, 2]) ** 2)
        return tape.gradient(y, x)

    x = BATCH.copy()
    x[:, 1] = -np.inf
    assert_native(slope, BATCH, tolerance=1e-5)
    assert_same(tf.function(slope)(x), slope(tf.constant(x)), 1e-5)


# ---------------------------------------------------------------- integers
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_division_and_powers_of_integers(dtype):
    limits = np.iinfo(dtype)
    a = RNG.integers(max(limits.min, -1000), min(limits.max, 1000), 51).astype(dtype)
    a[0] = limits.max
    b = np.array([3, 7, 1, 5, 100] + [-2, -1] * (limits.min < 0)).astype(dtype)
    assert_native(lambda a, b: (a[:, None] // b, a[:, None] % b, tf.truncatediv(a[:, None], b),
                                tf.truncatemod(a[:, None], b)), a, b)
    assert_native(lambda a: (a // 3, a % 7, a ** 2, a ** 0, a ** 5), a)


def test_the_lowest_integer_divided_by_minus_one():
    lowest = np.full(3, -2 ** 31, "i4")
    made = tf.function(lambda a, b: (a // b, a % b))(lowest, np.array([-1, 1, 3], "i4"))
    assert_same(made, [np.array([-2 ** 31, -2 ** 31, -715827883], "i4"), np.array([0, 0, 1], "i4")])


def test_division_by_zero_is_an_error_before_anything_is_written():
    variable = tf.Variable(1)

    @tf.function
    def step(x):
        variable.assign_add(1)
        return 5 // x

    assert int(step(tf.constant(2))) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="integer division by zero"):
        step(tf.constant(0))
    assert int(variable) == 2


@pytest.mark.parametrize("wanted", ["int8", "int16", "int32", "int64", "uint8", "uint16"])
@pytest.mark.parametrize("given", ["float16", "bfloat16", "float32", "float64"])
def test_floats_cut_off_to_integers(given, wanted):
    x = np.array([0, -0.0, 1.5, -1.5, 127.9, 128, 255.5, 256, -129, 32768, 65536, 2.0 ** 31 - 1,
                  2.0 ** 31, -2.0 ** 31, -2.0 ** 31 - 1000, 2.0 ** 32 + 5, 2.0 ** 62, 2.0 ** 63,
                  -2.0 ** 63, 1e20, -1e20, np.inf, -np.inf, np.nan])
    inputs = [tf.cast(x, given)]
    compiled = tf.function(lambda x: tf.cast(x, wanted))
    with np.errstate(invalid="ignore"):
        assert_same(compiled(*inputs), tf.cast(inputs[0], wanted))


def test_a_program_that_needs_python_is_told_apart():
    compiled = tf.function(lambda x: tf.linalg.inv(x))
    assert hosted(compiled, tf.eye(3)) == {"inv_"}
    with pytest.raises(AssertionError):
        assert_native(lambda x: tf.linalg.inv(x), np.eye(3, dtype="f"))
