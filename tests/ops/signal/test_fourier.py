"""Fourier transforms against NumPy, and gradients through lengths that cut and pad."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import signal
from tests.ops.directions import check

_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(2, 3, 4))
_Z = _X + 1j * _RNG.normal(size=(2, 3, 4))


@pytest.mark.parametrize("name, count", [("fft", 1), ("fft2d", 2), ("fft3d", 3)])
def test_over_the_last_axes(name: str, count: int) -> None:
    axes = tuple(range(-count, 0))
    made = getattr(signal, name)(_Z)
    np.testing.assert_allclose(made.numpy(), np.fft.fftn(_Z, axes=axes), atol=1e-12)
    np.testing.assert_allclose(getattr(signal, "i" + name)(made).numpy(), _Z, atol=1e-12)
    half = getattr(signal, "r" + name)(_X)
    np.testing.assert_allclose(half.numpy(), np.fft.rfftn(_X, axes=axes), atol=1e-12)
    np.testing.assert_allclose(getattr(signal, "ir" + name)(half).numpy(), _X, atol=1e-12)


@pytest.mark.parametrize("length", [2, 4, 5, 7])
def test_lengths_cut_and_pad(length: int) -> None:
    half = signal.rfft(_X, [length])
    np.testing.assert_allclose(half.numpy(), np.fft.rfft(_X, length), atol=1e-12)
    back = signal.irfft(_Z, [length])
    np.testing.assert_allclose(back.numpy(), np.fft.irfft(_Z, length), atol=1e-12)
    check(lambda x: signal.rfft(x, [length]), (2, 4))
    check(lambda x: signal.irfft(x, [length]), (2, 4), dtype="complex128")
    check(lambda x: signal.rfft2d(x, [3, length]), (2, 4))
    check(lambda x: signal.irfft2d(x, [3, length]), (2, 4), dtype="complex128")


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("lengths, axes", [(None, None), (None, [0, 2]), ([3], None),
                                           ([2, 5], [2, 0])])
def test_over_chosen_axes(norm: Any, lengths: Any, axes: Any) -> None:
    named = list(range(-len(lengths), 0)) if lengths and axes is None else axes
    options = {"s": lengths, "axes": named, "norm": norm}
    made = signal.fftnd(_Z, lengths, axes, norm=norm)
    np.testing.assert_allclose(made.numpy(), np.fft.fftn(_Z, **options), atol=1e-12)
    made = tf.ifftnd(_Z, lengths, axes, norm=norm)
    np.testing.assert_allclose(made.numpy(), np.fft.ifftn(_Z, **options), atol=1e-12)
    made = tf.rfftnd(_X, lengths, axes, norm=norm)
    np.testing.assert_allclose(made.numpy(), np.fft.rfftn(_X, **options), atol=1e-12)
    made = tf.irfftnd(_Z, lengths, axes, norm=norm)
    np.testing.assert_allclose(made.numpy(), np.fft.irfftn(_Z, **options), atol=1e-12)


def test_single_precision_stays_single() -> None:
    x = tf.ones((4,))
    assert signal.rfft(x).dtype == tf.complex64
    assert signal.irfft(signal.rfft(x)).dtype == tf.float32
    assert signal.fft(tf.cast(x, tf.complex64)).dtype == tf.complex64


@pytest.mark.parametrize("axes", [None, 0, [0, 1], -1])
@pytest.mark.parametrize("shape", [(2, 5), (1, 4)])
def test_shifts(axes: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape)).reshape(shape)
    np.testing.assert_array_equal(signal.fftshift(x, axes).numpy(), np.fft.fftshift(x, axes))
    np.testing.assert_array_equal(signal.ifftshift(x, axes).numpy(), np.fft.ifftshift(x, axes))


def test_empty() -> None:
    assert signal.rfft(tf.zeros((2, 0))).shape == [2, 0]
    assert signal.rfft(tf.zeros((0, 4))).shape == [0, 3]
    assert signal.irfft(signal.rfft(tf.zeros((0, 4)))).shape == [0, 4]


@pytest.mark.parametrize("call", [
    lambda: signal.fft(tf.ones(3)), lambda: signal.rfft(tf.constant([1, 2])),
    lambda: signal.rfft(_Z), lambda: signal.rfft(tf.constant(1.0)),
    lambda: signal.rfft(tf.ones(4), [2, 3]), lambda: signal.fft3d(_Z[0]),
    lambda: signal.fftnd(_Z, axes=[3]), lambda: signal.fftnd(_Z, norm="unit"),
    lambda: signal.fftnd(_Z, norm={}),
    lambda: signal.fftnd(_Z, [2], [0, 1])])
def test_refusals(call: Any) -> None:
    with pytest.raises(ValueError):
        call()
