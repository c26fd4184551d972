"""Calls that once gave a wrong number, each with the right one; see `test_findings.py`.

They are special points that tables of ordinary inputs pass by: a nan beside finite rows, a
cotangent of 0, the far end of a dtype. `run` gives tensors, `wanted` the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import gtape as tf
from tests.samples.sample import numpy_dtype

sp = pytest.importorskip("scipy.special")

_NAN, _INF = np.nan, np.inf


class Finding(NamedTuple):
    """`run(*inputs)` gives tensors that hold `wanted`, to `near` units of their dtypes."""

    name: str
    run: Callable[..., Any]
    inputs: tuple[Any, ...]
    wanted: tuple[Any, ...]
    near: float = 4


def slopes(function: Callable[..., Any], *inputs: Any, upstream: Any = None) -> list[Any]:
    """The gradients by all inputs."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    if upstream is not None:
        upstream = tf.constant(upstream, y.dtype)
    return tape.gradient(y, list(inputs), output_gradients=upstream)


def findings() -> Iterator[Finding]:
    yield from _matrices()
    yield from _segments()
    yield from _scalars()
    yield from _complex()
    yield from _short()


def _float(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def _matrices() -> Iterator[Finding]:
    nan = np.full((2, 2), _NAN)
    for matrix in ([[_INF, 1.0], [_NAN, 1.0]], [[1.0, 1.0], [1.0, _NAN]]):
        a = np.array(matrix)
        yield Finding("det of nan", lambda a: [tf.linalg.det(a), *slopes(tf.linalg.det, a)], (a,),
                      (_NAN, nan))
        yield Finding("slogdet of nan", lambda a: [*tf.linalg.slogdet(a)], (a,), (_NAN, _NAN))
        yield Finding("inv of nan", lambda a: [tf.linalg.inv(a), *slopes(tf.linalg.inv, a)], (a,),
                      (nan, nan))
    yield Finding("det of nan, 3", lambda a: [tf.linalg.det(a)],
                  (_float([_NAN, 1, 1], [1, 1, 1], [1, 1, 1]),), (_NAN,))
    yield Finding("logarithm of a negative eigenvalue", lambda a: [tf.linalg.logm(a)],
                  (np.array([[1, 2], [2, 1]], np.complex64),),
                  ([[np.log(3) / 2 + np.pi / 2j * -1, np.log(3) / 2 - np.pi / 2 * 1j],
                    [np.log(3) / 2 - np.pi / 2 * 1j, np.log(3) / 2 + np.pi / 2 * 1j]],))
    yield Finding("eigenvalues of a complex matrix", lambda a: [tf.linalg.eigvalsh(a)],
                  (np.array([[2, 1j], [-1j, 2]], np.complex64),), (np.array([1.0, 3.0]) + 0j,))
    yield Finding("tolerances of the rank", lambda a: [tf.linalg.matrix_rank(a, [[0.5], [0.05]])],
                  (_float([[1, 0], [0, 0.1]], [[1, 0], [0, 0.1]]),), (np.int32([1, 2]),))
    yield Finding("window where no window is",
                  lambda x: [x * tf.signal.inverse_stft_window_fn(64)(64)[:1]], (_float(1.0),),
                  (_float(0.0),))


def _segments() -> Iterator[Finding]:
    ids = np.array([0, 0, 1, 1, 2, 3])
    x = np.array([_NAN, 2.0, 3.0, 5.0, _INF, 7.0])
    wanted = [2.0, _NAN, 5.0, 3.0, 1.0, 1.0]
    yield Finding("segment_prod beside nan",
                  lambda x: slopes(lambda x: tf.math.segment_prod(x, ids), x), (x,), (wanted,))
    yield Finding("unsorted_segment_prod beside nan", lambda x: slopes(
        lambda x: tf.math.unsorted_segment_prod(x, ids, 4), x), (x,), (wanted,))


def _scalars() -> Iterator[Finding]:
    yield Finding("clip_by_value with low > high",
                  lambda *x: [tf.clip_by_value(*x), *slopes(tf.clip_by_value, *x)],
                  (_float(0.0, 4.0, 9.0), np.float32(5.0), np.float32(3.0)),
                  (_float(5.0, 5.0, 5.0), _float(0, 0, 0), 3.0, 0.0))
    for name in ("rsqrt", "reciprocal"):
        function = getattr(tf.math, name)
        yield Finding(f"{name} at 0 without a cotangent", lambda x, f=function: slopes(
            f, x, upstream=[0.0, 0.0]), (_float(0.0, 4.0),), (_float(0, 0),))
    yield Finding("norm of a row of zeros without a cotangent", lambda x: slopes(
        lambda x: tf.norm(x, axis=1), x, upstream=[0.0, 1.0]), (_float([0, 0], [3, 4]),),
        (_float([0, 0], [0.6, 0.8]),))
    trigamma = np.pi ** 2 / np.sin(np.pi * -1000.5) ** 2 - sp.polygamma(1, 1001.5)
    yield Finding("slope of digamma far below 0", lambda x: slopes(tf.math.digamma, x),
                  (np.array([-1000.5]),), ([trigamma],), 64)
    yield Finding("slope of igamma where it is nan",
                  lambda a, x: [tf.math.igamma(a, x), slopes(tf.math.igamma, a, x)[0]],
                  (np.array([-1.0]), np.array([1.0])), ([_NAN], [_NAN]))
    yield Finding("Bessel functions at infinity",
                  lambda x: [tf.math.bessel_i0(x), tf.math.bessel_i1(x)],
                  (_float(_INF, -_INF, _NAN),), ([_INF, _INF, _NAN], [_INF, -_INF, _NAN]))
    yield Finding("complex power of a number", lambda x: [tf.reduce_sum(x ** 3), *slopes(
        lambda x: tf.math.real(tf.reduce_sum(x ** 3)), x)],
        (np.array([1j, 2.0]),), (8 - 1j, [-3.0 + 0j, 12.0 + 0j]))
    yield Finding("quotient rounded up to a whole number", lambda a, b: [a // b],
                  (np.array([1.0]), np.array([0.1])), ([10.0],))
    yield Finding("saturate_cast between short floats",
                  lambda x: [tf.saturate_cast(tf.cast(x, tf.bfloat16), tf.float16)],
                  (_float(65536.0, -65536.0),), (_float(65280.0, -65280.0),), 0)


def _complex() -> Iterator[Finding]:
    above, below = np.array([2 + 0j]), np.conj(np.array([2 + 0j]))
    slope = 1j / np.sqrt(3.0)
    # A gradient is the conjugate of the derivative.
    yield Finding("asin on its cut", lambda a, b: [*slopes(tf.asin, a), *slopes(tf.asin, b)],
                  (above, below), ([-slope], [slope]))
    yield Finding("acos on its cut", lambda a, b: [*slopes(tf.acos, a), *slopes(tf.acos, b)],
                  (above, below), ([slope], [-slope]))
    yield Finding("complex log1p near 0", lambda x: [tf.math.log1p(x)],
                  (np.array([1e-20 + 1e-30j]),), ([1e-20 + 1e-30j],))
    yield Finding("length of complex numbers", lambda x: [tf.norm(x)],
                  (np.array([3 + 0j, 4j], np.complex64),), (np.float32(5.0),))


def _short() -> Iterator[Finding]:
    base, power = np.float16([8.0, 8.0]), np.float16([5.2, 5.2])
    value = float(np.float16(8.0 ** float(power[0])))
    yield Finding("slope of pow by its exponent in float16",
                  lambda x, y: slopes(tf.pow, x, y, upstream=[0.0, 0.5])[1:], (base, power),
                  (np.array([0.0, 0.5 * value * np.log(8.0)]),), 2)
    for dtype in ("float16", "bfloat16"):
        x = np.cos(np.arange(5.0 * 37)).reshape(5, 37).astype(numpy_dtype(dtype))
        yield Finding(f"extremes of products in {dtype}", _extremes, (x,),
                      ([True] * 5, [True] * 5, True))


def _extremes(x: Any) -> list[Any]:
    """Whether extremes are among the elements of a product with several readers, all of which must
    see it rounded alike."""
    y = x * x * 1.1
    most = tf.reduce_max(y, -1, keepdims=True)
    return [tf.reduce_any(y == most, 1), tf.reduce_any(tf.where(y >= most, 1, 0) == 1, 1),
            tf.reduce_any(y == tf.reduce_min(y))]
