"""Cosine transforms against their sums, and mel features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import signal
from tests.ops.directions import check

_X = np.random.default_rng(0).normal(size=(2, 8))


def _sum(kind: int, x: np.ndarray) -> np.ndarray:
    n = x.shape[-1]
    i, k = np.arange(n)[:, None], np.arange(n)
    if kind == 1:
        weights = np.where((i == 0) | (i == n - 1), 1, 2)
        return x @ (weights * np.cos(np.pi * i * k / (n - 1)))
    if kind == 2:
        return x @ (2 * np.cos(np.pi * k * (i + 0.5) / n))
    if kind == 3:
        return x @ (np.where(i == 0, 1, 2) * np.cos(np.pi * i * (k + 0.5) / n))
    return x @ (2 * np.cos(np.pi * (i + 0.5) * (k + 0.5) / n))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_dct_is_its_sum(kind: int) -> None:
    np.testing.assert_allclose(signal.dct(_X, type=kind).numpy(), _sum(kind, _X), atol=1e-12)
    factor = 2 * (8 - (kind == 1))
    back = signal.idct(signal.dct(_X, type=kind), type=kind).numpy()
    np.testing.assert_allclose(back / factor, _X, atol=1e-12)
    check(lambda x: signal.dct(x, type=kind), (2, 5))


@pytest.mark.parametrize("kind", [2, 3, 4])
def test_orthonormal_transforms_keep_lengths(kind: int) -> None:
    made = signal.dct(_X, type=kind, norm="ortho")
    np.testing.assert_allclose(np.linalg.norm(made.numpy(), axis=1), np.linalg.norm(_X, axis=1))
    np.testing.assert_allclose(signal.idct(made, type=kind, norm="ortho").numpy(), _X, atol=1e-12)


def test_lengths() -> None:
    np.testing.assert_allclose(signal.dct(_X, n=5).numpy(), _sum(2, _X[:, :5]), atol=1e-12)
    padded = np.pad(_X, ((0, 0), (0, 3)))
    np.testing.assert_allclose(signal.dct(_X, n=11).numpy(), _sum(2, padded), atol=1e-12)


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("options", [{}, {"window_fn": None}])
def test_mdct_and_back(norm: Any, options: dict[str, Any]) -> None:
    x = np.random.default_rng(0).normal(size=24)
    frames = signal.mdct(x, 8, norm=norm, **options)
    assert frames.shape == [5, 4]
    back = signal.inverse_mdct(frames, norm=norm, **options).numpy()
    np.testing.assert_allclose(back[4:-4], x[4:-4], atol=1e-6)


def test_mel_weights() -> None:
    made = signal.linear_to_mel_weight_matrix(4, 9).numpy()
    assert made.shape == (9, 4) and made.dtype == np.float32
    np.testing.assert_allclose(made[1], [0.8956538, 0.1043461, 0, 0], atol=1e-6)
    cepstrum = signal.mfccs_from_log_mel_spectrograms(_X).numpy()
    np.testing.assert_allclose(cepstrum, _sum(2, _X) / 4.0, atol=1e-12)


@pytest.mark.parametrize("call, error", [
    (lambda: signal.dct(_X, type=5), ValueError), (lambda: signal.dct(_X, n=0), ValueError),
    (lambda: signal.dct(_X, axis=0), NotImplementedError),
    (lambda: signal.dct(_X, type=1, norm="ortho"), ValueError),
    (lambda: signal.dct(_X, norm="unit"), ValueError),
    (lambda: signal.dct(tf.constant([1, 2])), ValueError),
    (lambda: signal.dct(tf.ones(1), type=1), ValueError),
    (lambda: signal.mdct(_X, 6), ValueError), (lambda: signal.inverse_mdct(tf.ones(4)), ValueError),
    (lambda: signal.linear_to_mel_weight_matrix(0), ValueError),
    (lambda: signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0), ValueError),
    (lambda: signal.mfccs_from_log_mel_spectrograms(tf.ones((2, 0))), ValueError)])
def test_refusals(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_namespaces_name_what_they_lack() -> None:
    with pytest.raises(AttributeError, match="did you mean"):
        tf.signal.stfft
    with pytest.raises(AttributeError, match="did you mean"):
        tf.linalg.normalise
    for space in (tf.signal, tf.linalg):
        assert all(callable(getattr(space, name)) for name in space.__all__)
