"""Initializers: the first values of weights, as functions of shape and dtype.

The random ones are in `random_initializers`. A seed makes the value a function of it alone; an
initializer without one draws a seed when it is made, so it too gives one value for one shape.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype
from gtape.core.tensor import Tensor
from gtape.core.text import shown
from gtape.keras.config import floatx
from gtape.keras.initializer import Initializer
from gtape.keras.lookup import by_class_name, resolve
from gtape.keras.random_initializers import (
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    LecunNormal,
    LecunUniform,
    Orthogonal,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
    random_normal_initializer,
    random_uniform_initializer,
)


def _dtype(dtype: Any) -> DType:
    return as_dtype(floatx() if dtype is None else dtype)


class Zeros(Initializer):
    """All 0."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        from gtape.ops.creation import zeros

        return zeros(tuple(shape), _dtype(dtype))


class Ones(Initializer):
    """All 1."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        from gtape.ops.creation import ones

        return ones(tuple(shape), _dtype(dtype))


class Constant(Initializer):
    """All `value`; an array is broadcast."""

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        wanted = _dtype(dtype)
        full = np.broadcast_to(np.asarray(self.value, dtype=wanted.np_dtype), tuple(shape))
        return convert(full, wanted)


class Identity(Initializer):
    """`gain` times the identity matrix.

    Raises:
        ValueError: the shape is no matrix.
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        if len(shape) != 2:
            raise ValueError(f"the Identity initializer makes matrices; got the shape {shape}")
        wanted = _dtype(dtype)
        made: Any = self.gain * np.eye(*shape)
        return convert(made.astype(wanted.np_dtype), wanted)


class STFT(Initializer):
    """The cosines ('real') or sines ('imag') of a short-time Fourier transform, as a filter.

    Gives [frame_length, 1, fft_length // 2 + 1]: frame_length is shape[0], fft_length follows
    from shape[2].
    """

    def __init__(self, side: str = "real", window: str | None = "hann", scaling: str | None =
                 "density", periodic: bool = False) -> None:
        if side not in ("real", "imag"):
            raise ValueError(f"side must be 'real' or 'imag'; got {shown(side)}")
        self.side, self.window = side, window
        self.scaling, self.periodic = scaling, periodic

    def _window(self, length: int) -> np.ndarray:
        if self.window is None:
            return np.ones(length)
        shapes = {"hann": np.hanning, "hamming": np.hamming, "blackman": np.blackman}
        if self.window not in shapes:
            raise ValueError(f"window must be one of {sorted(shapes)} or None; got "
                             f"{shown(self.window)}")
        make = shapes[self.window]
        return make(length + 1)[:-1] if self.periodic else make(length)

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        frame, _, bins = shape
        fft = (bins - 1) * 2
        turns = np.outer(np.arange(frame), np.arange(bins)) / fft
        window = self._window(frame)
        scale = {"density": np.sqrt(np.sum(window**2)), "spectrum": np.sum(window)}.get(
            self.scaling or "", 1.0)
        angle = 2 * math.pi * turns
        wave = np.cos(angle) if self.side == "real" else -np.sin(angle)
        made = wave * (window / scale)[:, None]
        wanted = _dtype(dtype)
        return convert(made[:, None, :].astype(wanted.np_dtype), wanted)


IdentityInitializer, STFTInitializer, OrthogonalInitializer = Identity, STFT, Orthogonal
zeros, ones, constant, identity = Zeros, Ones, Constant, Identity
glorot_uniform, glorot_normal = GlorotUniform, GlorotNormal
he_uniform, he_normal = HeUniform, HeNormal
lecun_uniform, lecun_normal = LecunUniform, LecunNormal
random_normal, random_uniform = RandomNormal, RandomUniform
truncated_normal, variance_scaling, orthogonal = TruncatedNormal, VarianceScaling, Orthogonal

_TABLE = by_class_name(
    Zeros, Ones, Constant, Identity, STFT, GlorotNormal, GlorotUniform, HeNormal, HeUniform,
    LecunNormal, LecunUniform, Orthogonal, RandomNormal, RandomUniform, TruncatedNormal,
    VarianceScaling, zero=Zeros, one=Ones, normal=RandomNormal, uniform=RandomUniform,
    IdentityInitializer=Identity, OrthogonalInitializer=Orthogonal, STFTInitializer=STFT)


def get(identifier: Any) -> Any:
    """The initializer of a name such as 'he_normal'; objects stay, arrays become constants."""
    if hasattr(identifier, "shape") and not isinstance(identifier, type):
        return Constant(np.asarray(identifier))
    return resolve("initializer", _TABLE, identifier, Initializer)


__all__ = [
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "get",
    "random_normal_initializer",
    "random_uniform_initializer",
]
