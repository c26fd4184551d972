"""Frames, short-time transforms and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import signal
from tests.ops.directions import check

_X = np.arange(1.0, 11.0)


def test_frames_with_and_without_the_end() -> None:
    np.testing.assert_array_equal(signal.frame(_X, 4, 3).numpy(), [_X[0:4], _X[3:7], _X[6:10]])
    padded = signal.frame(_X, 4, 3, pad_end=True, pad_value=9).numpy()
    np.testing.assert_array_equal(padded[3], [10, 9, 9, 9])
    assert signal.frame(_X, 12, 3).shape == [0, 12]


@pytest.mark.parametrize("axis, shape", [(0, [3, 2, 3, 4]), (1, [5, 2, 2, 4]), (-1, [5, 3, 2, 2])])
def test_frames_along_an_axis(axis: int, shape: list[int]) -> None:
    x = np.random.default_rng(0).normal(size=(5, 3, 4))
    length, step = (3, 1) if axis == 0 else (2, 1) if axis == 1 else (2, 2)
    made = signal.frame(x, length, step, axis=axis)
    wanted = [np.take(x, range(i, i + length), axis=axis)
              for i in range(0, x.shape[axis] - length + 1, step)]
    np.testing.assert_array_equal(made.numpy(), np.stack(wanted, axis % 3))
    check(lambda v: signal.frame(v, length, step, axis=axis), (5, 3, 4))


@pytest.mark.parametrize("length, step", [(4, 2), (4, 3), (4, 5), (5, 2), (1, 1)])
def test_overlap_and_add(length: int, step: int) -> None:
    frames = np.random.default_rng(0).normal(size=(2, 3, length))
    wanted = np.zeros((2, 2 * step + length))
    for i in range(3):
        wanted[:, i * step:i * step + length] += frames[:, i]
    np.testing.assert_allclose(signal.overlap_and_add(frames, step).numpy(), wanted, atol=1e-14)
    check(lambda v: signal.overlap_and_add(v, step), (2, 3, length))


def test_the_inverse_window_undoes_the_transform() -> None:
    x = np.random.default_rng(0).normal(size=32)
    spectra = signal.stft(x, 8, 4, fft_length=16)
    back = signal.inverse_stft(spectra, 8, 4, fft_length=16,
                               window_fn=signal.inverse_stft_window_fn(4))
    np.testing.assert_allclose(back.numpy()[4:-4], x[4:-4], atol=1e-6)
    assert spectra.dtype == tf.complex128 and spectra.shape == [7, 9]


def test_the_inverse_window_is_zero_where_all_windows_are() -> None:
    window = signal.inverse_stft_window_fn(64)(64)
    forward = signal.hann_window(64)
    assert window[0].numpy() == 0.0
    np.testing.assert_allclose(window[1:] * forward[1:], np.ones(63), rtol=1e-6)


def test_transform_without_window() -> None:
    made = signal.stft(_X, 4, 4, window_fn=None).numpy()
    np.testing.assert_allclose(made[1], np.fft.rfft(_X[4:8]))
    assert signal.stft(_X, 5, 2, pad_end=True).shape == [5, 5]


def test_gradients() -> None:
    check(lambda v: signal.stft(v, 4, 2), (10,))
    check(lambda v: signal.inverse_stft(v, 4, 2), (3, 3), dtype="complex128")


@pytest.mark.parametrize("window, plain", [(signal.hann_window, np.hanning),
                                           (signal.hamming_window, np.hamming)])
def test_periodic_windows(window: Any, plain: Any) -> None:
    np.testing.assert_allclose(window(6, periodic=False).numpy(), plain(6), atol=1e-6)
    np.testing.assert_allclose(window(6).numpy(), plain(7)[:-1], atol=1e-6)
    np.testing.assert_allclose(window(5).numpy(), plain(5), atol=1e-6)
    assert window(1).numpy().tolist() == [1.0]
    assert window(4, dtype=tf.float64).dtype == tf.float64


def test_other_windows() -> None:
    np.testing.assert_allclose(signal.kaiser_window(5).numpy(), np.kaiser(5, 12.0), atol=1e-6)
    for window in (signal.vorbis_window, signal.kaiser_bessel_derived_window):
        squares = window(8).numpy() ** 2
        np.testing.assert_allclose(squares[:4] + squares[4:], 1.0, rtol=1e-5)
    assert signal.kaiser_bessel_derived_window(1).shape == [0]


@pytest.mark.parametrize("call", [
    lambda: signal.frame(_X, 0, 1), lambda: signal.frame(_X, 1, 0), lambda: signal.frame(1.0, 1, 1),
    lambda: signal.frame(_X, 2, 2, axis=3), lambda: signal.overlap_and_add(_X, 2),
    lambda: signal.overlap_and_add(tf.ones((2, 2)), 0), lambda: signal.stft(tf.constant([1]), 1, 1),
    lambda: signal.hann_window(4, dtype=tf.int32), lambda: signal.hann_window(-1)])
def test_refusals(call: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        call()
