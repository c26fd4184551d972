"""Windows: weights that fade a frame in and out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_float, as_int


def _made(name: str, length: int, dtype: DType, formula: Callable[[int], np.ndarray]) -> Tensor:
    wanted: DType = as_dtype(dtype)
    if not wanted.is_floating:
        raise InvalidArgumentError(f"{name}: the dtype must be floating; got {wanted.name}")
    count = as_int(length, f"{name}: window_length")
    if count < 0:
        raise InvalidArgumentError(f"{name}: window_length must not be negative; got {count}")
    with room_for(name, Spec((count,), wanted)):
        return convert(formula(count).astype(wanted.np_dtype))


def _raised_cosine(name: str, length: int, periodic: bool, dtype: DType, a: float, b: float,
                   ) -> Tensor:
    """a - b cos(2πn / N), N the length, one less where the window is not periodic or odd."""
    def formula(count: int) -> np.ndarray:
        if count == 1:
            return np.ones(1)
        period = count - 1 + (bool(periodic) and count % 2 == 0)
        return a - b * np.cos(2 * math.pi * np.arange(count) / max(period, 1))

    return _made(name, length, dtype, formula)


def hann_window(window_length: int, periodic: bool = True, dtype: Any = dtypes.float32,
                name: str | None = None) -> Tensor:
    """w[n] = 0.5 - 0.5 cos(2πn / N), N = window_length if periodic and even, else one less.

    Raises:
        InvalidArgumentError: a dtype that is not floating.
    """
    return _raised_cosine("hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(window_length: int, periodic: bool = True, dtype: Any = dtypes.float32,
                   name: str | None = None) -> Tensor:
    """w[n] = 0.54 - 0.46 cos(2πn / N); N as for `hann_window`.

    Raises:
        InvalidArgumentError: a dtype that is not floating.
    """
    return _raised_cosine("hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def _kaiser(count: int, beta: float) -> np.ndarray:
    if count == 1:
        return np.ones(1)
    steps = np.arange(count) - (count - 1) / 2
    inside = np.maximum(0.0, 1 - (2 * steps / max(count - 1, 1)) ** 2)
    return np.i0(beta * np.sqrt(inside)) / np.i0(beta)


def kaiser_window(window_length: int, beta: float = 12.0, dtype: Any = dtypes.float32,
                  name: str | None = None) -> Tensor:
    """w[n] = I₀(β √(1 - (2n/(N-1) - 1)²)) / I₀(β).

    Raises:
        InvalidArgumentError: a dtype that is not floating.
    """
    width = as_float(beta, "kaiser_window: beta")
    return _made("kaiser_window", window_length, dtype, lambda n: _kaiser(n, width))


def kaiser_bessel_derived_window(window_length: int, beta: float = 12.0,
                                 dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """The root of running sums of a Kaiser window of half the length plus one, then mirrored.

    Raises:
        InvalidArgumentError: a dtype that is not floating.
    """
    width = as_float(beta, "kaiser_bessel_derived_window: beta")

    def formula(count: int) -> np.ndarray:
        sums = np.cumsum(_kaiser(count // 2 + 1, width))
        rising = np.sqrt(sums[:-1] / sums[-1])
        return np.concatenate([rising, rising[::-1]])

    return _made("kaiser_bessel_derived_window", window_length, dtype, formula)


def vorbis_window(window_length: int, dtype: Any = dtypes.float32, name: str | None = None,
                  ) -> Tensor:
    """w[n] = sin(π/2 sin²(π (n + 0.5) / N)).

    Raises:
        InvalidArgumentError: a dtype that is not floating.
    """
    def formula(count: int) -> np.ndarray:
        phase = math.pi * (np.arange(count) + 0.5) / max(count, 1)
        return np.sin(math.pi / 2 * np.sin(phase) ** 2)

    return _made("vorbis_window", window_length, dtype, formula)
