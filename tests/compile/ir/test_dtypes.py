"""Dtypes in compiled programs: what NumPy gives, to the last bit where it is exact."""

import numpy as np
import pytest

import gtape as tf
from gtape.core.dtypes import as_dtype
from tests.compile.agreement import agree

pytestmark = pytest.mark.native
RNG = np.random.default_rng(0)
INTEGERS = [t + n for t in ("int", "uint") for n in ("8", "16", "32", "64")]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def whole(dtype, count=12):
    """Numbers of all sizes, the extremes among them."""
    info = np.iinfo(dtype)
    made = RNG.integers(info.min, info.max, size=count, dtype=dtype, endpoint=True)
    made[:4] = info.max, info.min, 0, 1
    return made


def _integer(x, y):
    table = tf.reshape(x, (3, 4))
    made = [x + y, x * y, x - y, tf.square(x), tf.maximum(x, y), x > y, tf.equal(x, y),
            tf.where(x > y, x, y), x // y, x % y, tf.truncatediv(x, y), tf.truncatemod(x, y)]
    made += [how(table, axis) for how in (tf.reduce_sum, tf.reduce_prod, tf.reduce_max,
                                          tf.reduce_min) for axis in (0, 1, (0, 1))]
    made += [tf.bitwise.bitwise_and(x, y), tf.bitwise.invert(x), tf.argmax(x), tf.cumsum(x),
             *(tf.bitwise.left_shift(x, tf.cast(n, x.dtype)) for n in (3, 70)),
             tf.bitwise.right_shift(x, tf.cast(3, x.dtype))]
    return made + [tf.cast(x, d) for d in (*INTEGERS, "bool", "float16", "float32", "float64")]


def test_whole_numbers_wrap_around_and_divide_like_numpy():
    pairs = [(x := whole(d), np.where(y := whole(d), y, 3).astype(x.dtype)) for d in INTEGERS]

    def every(*xs):
        return [_integer(x, y) for x, y in zip(xs[::2], xs[1::2])]

    agree(every, *(x for pair in pairs for x in pair), tolerance=0)


def _floating(x, y):
    table = tf.reshape(x, (3, 3))
    wide = tf.reshape(tf.concat([x, x, x, x], 0), (6, 6))
    made = [x + y, x * y, x / y, x - y, -x, x > y, x >= y, tf.equal(x, y), tf.not_equal(x, y),
            tf.where(x > y, x, y), tf.abs(x), tf.math.is_nan(x), tf.floor(x), tf.round(x), x * 2,
            tf.where(tf.math.is_nan(x), tf.zeros_like(x), x), x * 1.5, 2 - x, x * 0.0]
    if x.dtype != tf.bfloat16:
        made += [how(t, axis) for how in (tf.reduce_max, tf.reduce_min) for t in (table, wide)
                 for axis in (0, 1, (0, 1))]
        made += [tf.argmax(x), tf.argmin(x)]
    return made + [tf.cast(x, d) for d in (*FLOATS, "bool")]


def test_floats_with_nan_and_infinity():
    inf = np.inf
    a = np.array([1.5, -2.25, np.nan, inf, -inf, 0.0, -0.0, 3.0, 7.5])
    b = np.array([2.0, -0.5, 1.0, inf, 0.5, 8.0, 0.25, np.nan, -2.0])
    given = [x.astype(as_dtype(d).as_numpy_dtype) for d in FLOATS for x in (a, b, a[::-1], b)]

    def every(*xs):
        return [_floating(x, y) for x, y in zip(xs[::2], xs[1::2])]

    agree(every, *given, tolerance=0)


def test_sums_of_two_byte_floats():
    x = RNG.normal(size=(30, 70)) + 1.0

    def every(half, short):
        return [[tf.reduce_sum(x, axis) for axis in (0, 1)] + [tf.reduce_mean(x, axis) for axis in (
            0, 1, (0, 1))] + [tf.math.reduce_std(x), tf.nn.softmax(x), tf.nn.softmax(x, 0)]
                for x in (half, short)]

    agree(every, x.astype("f2"), x.astype(as_dtype("bfloat16").as_numpy_dtype), tolerance=2e-2)


def test_the_sign_of_zero_in_constants():
    agree(lambda x: [x * 0.0, x / -0.0, x * -0.0, 1.0 / tf.constant([0.0, -0.0]) + x * 0.0,
                     x * tf.constant([-0.0, 0.0]), tf.constant([0.0, -0.0]) * x],
          np.array([1.0, -2.0], "f"), tolerance=0, signs=True)


def test_constants_of_any_size():
    agree(lambda x: [x * 3.4e38, x * float("inf"), x + float("nan"), x * 1e-30 * 1e-30,
                     tf.constant(np.float32(1e-45)) * x, tf.constant([1e300], tf.float64),
                     tf.constant([2**63 - 1] * 3), tf.constant(-2**63), tf.constant(2**64 - 1,
                                                                                   tf.uint64),
                     tf.constant([2**63] * 3, tf.uint64), tf.fill([2], float("-inf"))],
          np.array([1.0, -2.0], "f"), tolerance=0)


def test_quotients_rounded_down():
    a = (RNG.integers(-50, 50, 400) / 10).astype("f")
    b = RNG.choice(np.array([0.1, -0.1, 0.2, 0.3, 0.5, -0.7], "f"), 400)
    agree(lambda x, y: [x // y, x % y, tf.truncatediv(x, y)], a, b, tolerance=0)


def test_strings_are_left_to_python():
    names = tf.constant(["a", "bc"])

    @tf.function
    def fn(i):
        return tf.gather(names, i), i + 1

    picked, more = fn(tf.constant([1, 0]))
    assert picked.numpy().tolist() == [b"bc", b"a"] and more.numpy().tolist() == [2, 1]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_by_the_extremes(dtype):
    info = np.iinfo(dtype)
    a = np.array([1, 7, info.max - 1, info.max, info.min, 0], dtype)
    for b in (info.max, info.min, dtype.startswith("int") and -1):
        if b:
            agree(lambda x, y: [x // y, x % y, tf.truncatediv(x, y), tf.truncatemod(x, y)],
                  a, np.full(a.shape, b, dtype), tolerance=0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_mean_whose_sum_is_out_of_range(dtype):
    x = tf.cast(tf.fill((300, 3000), 60.0), dtype)
    for axis in (None, 0, 1):
        for mean in (tf.reduce_mean, tf.function(tf.reduce_mean)):
            np.testing.assert_array_equal(tf.cast(mean(x, axis), "float32"), 60.0)


def test_extremes_of_bfloat16():
    x = tf.cast([[1.0, 2.0], [3.0, 0.0]], tf.bfloat16)
    agree(lambda x: [tf.reduce_max(x, 0), tf.reduce_min(x), tf.reduce_max(x[:0], 0),
                     tf.math.unsorted_segment_max(x, [0, 1], 3)], x.numpy(), tolerance=0)


def test_complex_constants_of_one_number_keep_their_ranks():
    one, row = tf.constant(2 + 1j), tf.constant([2 + 1j])
    results = tf.function(lambda x: (one, row, x + row))(tf.constant(1j, tf.complex128))
    assert [r.shape for r in results] == [(), (1,), (1,)]
