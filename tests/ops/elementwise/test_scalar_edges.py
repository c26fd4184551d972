"""Scalar functions at infinities, signed zeros and shut gates: one number in every mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile.numpy.steps import folded
from gtape.core.op import declared
from gtape.opdef.elementwise import ScalarOp
from gtape.ops.elementwise import scalar_numpy

_INF, _NAN = math.inf, math.nan
Mode = Callable[[Callable[..., Any]], Callable[..., Any]]


@pytest.fixture(params=["eager", "program", pytest.param("native", marks=pytest.mark.native),
                        pytest.param("gpu", marks=pytest.mark.gpu)])
def mode(request: pytest.FixtureRequest) -> Iterator[Mode]:
    """How a function runs: as it is, as a NumPy program, as a native one, on a GPU."""
    with tf.device("GPU:0" if request.param == "gpu" else "CPU:0"):
        yield tf.function if request.param in ("program", "native") else lambda fn: fn


def _same(got: Any, wanted: Any) -> None:
    """Equal, zeros by their signs too."""
    got, wanted = np.asarray(got), np.asarray(wanted, np.asarray(got).dtype)
    np.testing.assert_array_equal(got, wanted)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(wanted[zeros]))


def _pulled(fn: Callable[..., Any]) -> Callable[..., Any]:
    """(g, *inputs) -> the gradients of the inputs of fn for the cotangent g."""
    def pulled(g: Any, *inputs: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = fn(*inputs)
        return tape.gradient(y, inputs, g)

    return pulled


def _constants(dtype: Any, *values: Any) -> list[Any]:
    return [tf.constant(v, dtype) for v in values]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("fn, x, gradient", [
    (tf.nn.relu, [-1, 0, 2, _NAN], [0, 0, _INF, 0]),
    (tf.nn.relu6, [-1, 6, 2, _NAN], [0, 0, _INF, 0])])
def test_a_shut_gate_lets_nothing_through(mode: Mode, dtype: Any, fn: Any, x: Any,
                                          gradient: Any) -> None:
    g, at = _constants(dtype, [_INF, _NAN, _INF, -_INF], x)
    _same(mode(_pulled(fn))(g, at)[0], gradient)


def test_a_shut_gate_of_many_elements() -> None:
    """They are computed block by block."""
    x = tf.constant(np.where(np.arange(100_000) % 3, -1.0, 1.0), tf.float32)
    [got] = _pulled(tf.nn.relu)(tf.fill([100_000], _INF), x)
    np.testing.assert_array_equal(got, np.where(np.arange(100_000) % 3, 0.0, _INF))


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("exponent, powers, slopes", [
    (0.0, [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]),
    (0.5, [_INF, _INF, 0, 0, _NAN, _NAN], [0, 0, _INF, _INF, _NAN, _NAN]),
    (1.0, [_INF, -_INF, -0.0, 0, _NAN, -1], [1, 1, 1, 1, 1, 1]),
    (2.0, [_INF, _INF, 0, 0, _NAN, 1], [_INF, -_INF, -0.0, 0, _NAN, -2]),
    (-1.0, [0, -0.0, -_INF, _INF, _NAN, -1], [-0.0, -0.0, -_INF, -_INF, _NAN, -1])])
def test_powers_with_a_fixed_exponent(mode: Mode, dtype: Any, exponent: float, powers: Any,
                                      slopes: Any) -> None:
    [x] = _constants(dtype, [_INF, -_INF, -0.0, 0.0, _NAN, -1.0])
    _same(mode(lambda x: x ** exponent)(x), powers)
    _same(mode(lambda x, e: x ** e)(x, tf.constant(exponent, dtype)), powers)
    _same(mode(_pulled(lambda x: x ** exponent))(tf.ones_like(x), x)[0], slopes)


@pytest.mark.parametrize("number, sum_", [(0.0, 0.0), (-0.0, -0.0), (0, 0.0)])
def test_nothing_added_to_minus_zero(mode: Mode, number: float, sum_: float) -> None:
    x = tf.constant([-0.0])
    _same(mode(lambda x: x + number)(x), [sum_])
    _same(mode(lambda x: number + x)(x), [sum_])
    _same(mode(lambda x: (x * 1) * 1.0)(x), [-0.0])


def test_bools_are_multiplied(mode: Mode) -> None:
    a, b = _constants(tf.bool, [True, False, True], [True, True, False])
    got = mode(lambda a, b: a * b)(a, b)
    assert got.dtype is tf.bool and got.numpy().tolist() == [True, False, False]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_quotients_are_rounded_down_as_they_are(mode: Mode, dtype: Any) -> None:
    values = [1.0, -1.0, 0.1, -0.1, 0.0, -0.0, _INF, -_INF, _NAN, 5.0, 2.5, 7.0]
    a, b = (np.ravel(v).astype(dtype.as_numpy_dtype) for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        wanted = np.floor(a / b)
    assert 10.0 in wanted
    _same(mode(lambda a, b: a // b)(*_constants(dtype, a, b)), wanted)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("fn, down", [(lambda a, b: a // b, np.floor), (tf.truncatediv, np.trunc)],
                         ids=["floordiv", "truncatediv"])
def test_quotients_of_two_bytes_are_rounded_first(mode: Mode, dtype: Any, fn: Any,
                                                  down: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-200, 200, 2000) * 0.1, rng.integers(1, 40, 2000) * 0.1
    kind = dtype.as_numpy_dtype
    given = [tf.cast(tf.constant(v, tf.float32), dtype) for v in (a, b)]
    wanted = down((a.astype("f4").astype(kind) / b.astype("f4").astype(kind)).astype("f4"))
    _same(tf.cast(mode(fn)(*given), tf.float32), wanted)
    quotient = mode(lambda a: fn(a, 0.1))(given[0])
    _same(tf.cast(quotient, tf.float32),
          down((a.astype("f4").astype(kind) / kind(0.1)).astype("f4")))


@pytest.mark.parametrize("fn", [tf.math.rsqrt, tf.math.reciprocal, tf.sqrt],
                         ids=["rsqrt", "reciprocal", "sqrt"])
def test_a_zero_cotangent_gives_zero(mode: Mode, fn: Any) -> None:
    g, x = _constants(tf.float32, [0.0, 0.0, 1.0], [0.0, -0.0, 0.0])
    [got] = mode(_pulled(fn))(g, x)
    np.testing.assert_array_equal(np.abs(got), [0, 0, _INF])


def test_a_zero_cotangent_of_the_norm_of_a_zero_row(mode: Mode) -> None:
    x = tf.constant([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    [got] = mode(_pulled(lambda x: tf.norm(x, axis=1)))(tf.constant([0.0, 1.0, 1.0]), x)
    np.testing.assert_allclose(got, [[0, 0], [0.6, 0.8], [_NAN, _NAN]], rtol=1e-6)


def test_clipping_between_limits_that_cross(mode: Mode) -> None:
    g, x, low, high = _constants(tf.float32, [1, 2, 3, 4.0], [1, 5, -3, 2.0], 2.0, 0.0)
    y = mode(tf.clip_by_value)(x, low, high)
    assert y.numpy().tolist() == [2, 2, 2, 2]
    found = mode(_pulled(tf.clip_by_value))(g, x, low, high)
    assert [f.numpy().tolist() for f in found] == [[0, 0, 0, 0], 10, 0]


def test_the_gradient_of_a_power_in_halves_by_its_exponent(mode: Mode) -> None:
    # y log x is beyond float16.
    g, x, e = _constants(tf.float16, [0.0, 0.5, 1.0], [3000.0, 3000.0, 10.0], [1.3, 1.16, 2.0])
    [_, got] = mode(_pulled(tf.pow))(g, x, e)
    exact = g.numpy().astype(float) * 3000.0 ** e.numpy().astype(float) * math.log(3000)
    np.testing.assert_allclose(got[:2], exact[:2], rtol=2e-3)


@pytest.mark.parametrize("z", [2 + 0j, complex(2, -0.0), complex(-2, 0.0), complex(-2, -0.0),
                               0.5 + 0.25j, complex(0.0, 3), complex(-0.0, 3)])
@pytest.mark.parametrize("name", ["asin", "acos", "asinh", "acosh"])
def test_inverse_functions_beside_their_cuts(name: str, z: complex) -> None:
    fn = getattr(tf.math, name)
    [got] = _pulled(fn)(tf.constant(1 + 0j, tf.complex128), tf.constant(z, tf.complex128))
    # The slope along the cut, or across it away from the cut, is that of the value's own branch.
    away = z * 1e-6
    both = [fn(tf.constant(complex(z.real + s * away.real, math.copysign(
        abs(z.imag + s * away.imag), z.imag)), tf.complex128)).numpy() for s in (1, -1)]
    if not z.real:
        both = [fn(tf.constant(complex(z.real, z.imag * (1 + s * 1e-6)), tf.complex128)).numpy()
                for s in (1, -1)]
    np.testing.assert_allclose(np.conj(got), (both[0] - both[1]) / (2 * away), rtol=1e-8)


def test_log1p_of_small_complex_numbers() -> None:
    z = np.array([1e-20, 1e-20j, 1e-20 + 1e-20j, -1 + 1e-10j, 1e-10 + 1e-5j, 1e200j, 3 - 4j,
                  1e-300])
    # By 40 digits (mpmath).
    wanted = [1e-20, 1e-20j, 1e-20 + 1e-20j, -23.025850929940457 + 1.5707963267948966j,
              1.499999999825e-10 + 9.999999998666667e-06j,
              460.51701859880914 + 1.5707963267948966j, 1.7328679513998633 - 0.7853981633974483j,
              1e-300]
    got = tf.math.log1p(tf.constant(z)).numpy()
    np.testing.assert_allclose(got.real[[0, 2, 3, 4, 5, 6, 7]],
                               np.real(wanted)[[0, 2, 3, 4, 5, 6, 7]], rtol=1e-14)
    np.testing.assert_allclose(got.imag, np.imag(wanted), rtol=1e-14)


def test_squared_differences_of_complex_numbers() -> None:
    a, b = _constants(tf.complex64, [1 + 2j, 3 - 1j], [2 - 1j, 0.5j])
    y = tf.math.squared_difference(a, b)
    assert y.dtype is tf.complex64 and y.numpy().tolist() == [10, 11.25]
    got = _pulled(tf.math.squared_difference)(tf.constant([1, 1j], tf.complex64), a, b)
    # y is real, so an imaginary cotangent does not reach the inputs.
    np.testing.assert_array_equal(got[0], [-2 + 6j, 0])
    np.testing.assert_array_equal(got[1], [2 - 6j, 0])
    mean, variance = tf.nn.moments(a, 0)
    np.testing.assert_allclose([mean, variance], [2 + 0.5j, 3.25])


def test_norms_of_complex_numbers_are_real() -> None:
    z = tf.constant([3 + 4j, 0j], tf.complex64)
    for order, wanted in (("euclidean", 5), (1, 5), (np.inf, 5), (3, 5)):
        made = tf.norm(z, ord=order)
        assert made.dtype is tf.float32 and made.numpy() == pytest.approx(wanted)
    unit, length = tf.linalg.normalize(z)
    assert unit.dtype is tf.complex64 and length.dtype is tf.float32


@pytest.mark.parametrize("between", ["int32", "int64"])
@pytest.mark.parametrize("wanted", ["float16", "bfloat16", "float32", "float64"])
def test_casts_to_integers_and_back(mode: Mode, between: str, wanted: str) -> None:
    """The integer 0 has no sign, whatever was cut off."""
    def cut(x: Any) -> Any:
        return tf.cast(tf.cast(x, between), wanted), tf.cast(tf.cast(x, between)[None], wanted)

    for made in mode(cut)(tf.constant([-0.3, -0.0, 0.3, -1.5, 2.5] * 4)):
        _same(np.asarray(made).reshape(-1), [0.0, 0.0, 0.0, -1.0, 2.0] * 4)


@pytest.mark.parametrize("given, wanted, x, y", [
    ("bfloat16", "float16", [65536, -65536, _INF, _NAN, 1], [65280, -65280, 65280, _NAN, 1]),
    ("float32", "float16", [1e6, -_INF], [65504, -65504]),
    ("float64", "bfloat16", [1e300], [3.3895313892515355e38]),
    ("float32", "int64", [1e30, -1e30], [2**63 - 2**39, -2**63]),
    ("float16", "int64", [65504, -_INF], [65504, -65504]),
    ("bfloat16", "int32", [1e30, -1e30], [2**31 - 2**23, -2**31]),
    ("float32", "uint8", [300, -5], [255, 0])])
def test_saturated_casts(mode: Mode, given: str, wanted: str, x: Any, y: Any) -> None:
    got = mode(lambda x: tf.saturate_cast(x, wanted))(tf.cast(tf.constant(x, tf.float64), given))
    assert got.dtype.name == wanted
    np.testing.assert_array_equal(got.numpy().astype("float64"), np.array(y, "float64"))


@pytest.mark.parametrize("value", [tf.reduce_any([True]), tf.reduce_all([[True]], 1)[0],
                                   tf.constant(1.0) > 0, tf.math.is_nan(1.0), tf.constant(True)])
def test_single_bools_are_numpys(value: Any) -> None:
    assert type(value.numpy()) is np.bool_


# ---------------------------------------------------------------- numbers in place of tensors
_FLOATS = ("float", "real_float", "real", "number", "product")


@pytest.mark.parametrize("op", [op for op in declared() if isinstance(op, ScalarOp)
                                and op.types in _FLOATS and op.domain],
                         ids=lambda op: op.name)
def test_a_function_of_numbers_alone_is_a_number(op: ScalarOp) -> None:
    """In a program constants are numbers."""
    low, high = op.domain
    at = [low + (0.3 + 0.2 * i) * (high - low) for i in range(len(op.params))]
    with np.errstate(all="ignore"):
        wanted = op.on(np)(*map(np.float64, at))
    assert folded(op, at) == pytest.approx(float(wanted), rel=1e-12)


@pytest.mark.parametrize("name, constants, x", [
    ("igamma", [2.5], 1.2), ("igammac", [2.5], 1.2), ("betainc", [2.5, 1.5], 0.3),
    ("zeta", [3.0], 1.5), ("polygamma", [2.0], 1.5)])
def test_gradients_beside_constants(mode: Mode, name: str, constants: Any, x: float) -> None:
    fn = _pulled(lambda x: getattr(tf.math, name)(*_constants(tf.float64, *constants), x))
    g, at = _constants(tf.float64, [2.0, 0.0], [x, x])
    np.testing.assert_allclose(mode(fn)(g, at)[0], fn(g, at)[0], rtol=1e-13)


def test_the_slope_of_igamma_is_nan_where_its_value_is(mode: Mode) -> None:
    a, x = _constants(tf.float64, [-1.0, 1.0, 0.0, _INF, _NAN, 1.0, _INF, 2.0],
                      [1.0, -1.0, 0.0, _INF, 1.0, _NAN, 3.0, _INF])
    y = tf.math.igamma(a, x).numpy()
    got = mode(_pulled(tf.math.igamma))(tf.ones_like(a), a, x)[0].numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(y))
    assert got[6:].tolist() == [0, 0]


def test_products_of_constants_alone() -> None:
    assert scalar_numpy.multiply_no_nan(np, 2.0, -0.5) == -1.0
    assert scalar_numpy.multiply_no_nan(np, np.inf, 0.0) == 0.0
