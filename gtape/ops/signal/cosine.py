"""Cosine transforms: dct of four types, the modified one of audio codecs, and mel features."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_float, as_function, as_int
from gtape.ops.elementwise.scalars import make_complex, real_part, zero
from gtape.ops.shape.packing import concat_
from gtape.ops.signal.fourier import _real_input, _sized, irfft, rfft
from gtape.ops.signal.frames import frame, overlap_and_add, vorbis_window

# Types 1 and 4 are symmetric matrices; 2 and 3 are each other's transpose.
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _like(array: np.ndarray, x: Tensor) -> Tensor:
    """`array` in the precision and on the device of x, complex if it is."""
    wide = np.result_type(x.dtype.np_dtype, np.complex64) if array.dtype.kind == "c" else (
        x.dtype.real_dtype.np_dtype)
    return convert(array.astype(wide), None, x._t.device)


def _length(name: str, kind: int, n: int | None, axis: int, norm: str | None) -> int | None:
    """`n`, the other arguments being what they may be."""
    if not isinstance(kind, int) or kind not in _INVERSE:
        raise ValueError(f"{name}: type must be 1, 2, 3 or 4; got {shown(kind)}")
    if axis != -1:
        raise NotImplementedError(f"{name}: axis must be -1; got "
                                  f"{shown(axis)}. Use tf.transpose first")
    length = None if n is None else as_int(n, f"{name}: n")
    if length is not None and length < 1:
        raise ValueError(f"{name}: n must be at least 1; got {n}")
    if norm not in (None, "ortho"):
        raise ValueError(f"{name}: norm must be None or 'ortho'; got {shown(norm)}")
    if kind == 1 and norm == "ortho":
        raise ValueError(f"{name}: type 1 has no norm='ortho'")
    return length


def dct(input: TensorLike, type: int = 2, n: int | None = None, axis: int = -1,
        norm: str | None = None, name: str | None = None) -> Tensor:
    """The discrete cosine transform of the last axis.

    Type 2: y[k] = 2 Σₙ x[n] cos(π k (n + ½) / N). Type 3 is its inverse but for a factor 2N, type
    4 has half steps in both, and type 1 takes the end points once and the others twice.

    Args:
        n: cut or pad the input to this length.
        norm: 'ortho' makes the transform orthonormal (types 2, 3 and 4).

    Raises:
        InvalidArgumentError: not float32 or float64, or type 1 of fewer than 2 places.
        ValueError: an unknown type or norm.
        NotImplementedError: another axis than the last.
    """
    size = _length("dct", type, n, axis, norm)
    x = _real_input("dct", input)
    if not x.ndim:
        raise InvalidArgumentError("dct needs rank 1 or more; got a scalar")
    if size is not None:
        x = _sized(x, (size,), (x.ndim - 1,))
    return {1: _first, 2: _second, 3: _third, 4: _fourth}[type](x, norm)


def idct(input: TensorLike, type: int = 2, n: Any = None, axis: int = -1, norm: str | None = None,
         name: str | None = None) -> Tensor:
    """The inverse of `dct` of the same type, but for a factor 2N (2(N - 1) for type 1) without
    norm='ortho'. Raises as `dct`."""
    size = _length("idct", type, n, axis, norm)
    return dct(input, type=_INVERSE[type], n=size, norm=norm)


def _first(x: Tensor, norm: str | None) -> Tensor:
    n = x.spec.shape[-1]
    if n < 2:
        raise InvalidArgumentError(f"dct: type 1 needs 2 places or more; got {x.spec}")
    # Even about both ends: its Fourier transform is real, and these are its cosines.
    mirrored = concat_(x, x[..., n - 2:0:-1], axis=x.ndim - 1)
    return real_part(rfft(mirrored))


def _second(x: Tensor, norm: str | None) -> Tensor:
    n = x.spec.shape[-1]
    # The phases of cos(π k (n + ½) / N): twice the length, turned by half a step.
    turn = _like(2 * np.exp(-0.5j * math.pi * np.arange(n) / max(n, 1)), x)
    y = real_part(rfft(x, [2 * n])[..., :n] * turn)
    if norm == "ortho":
        y = y * _like(_orthonormal(n), x)
    return y


def _third(x: Tensor, norm: str | None) -> Tensor:
    n = x.spec.shape[-1]
    if norm == "ortho":
        scale = _orthonormal(n)
        # Type 3 counts its first place half.
        scale[:1] *= 2
        x = x * _like(scale, x)
    turn = _like(2 * n * np.exp(0.5j * math.pi * np.arange(n) / max(n, 1)), x)
    return irfft(make_complex(x, zero(x)) * turn, [2 * n])[..., :n]


def _fourth(x: Tensor, norm: str | None) -> Tensor:
    n = x.spec.shape[-1]
    # Half steps in both are the odd ones of a transform four times as long.
    turn = _like(2 * np.exp(-0.5j * math.pi * (np.arange(n) + 0.5) / max(n, 1)), x)
    y = real_part(rfft(x, [4 * n])[..., 1:2 * n:2] * turn)
    return y * math.sqrt(0.5 / max(n, 1)) if norm == "ortho" else y


def _orthonormal(n: int) -> np.ndarray:
    """What makes the rows of type 2 orthonormal."""
    scale = np.full(n, math.sqrt(0.5 / max(n, 1)))
    scale[:1] = 0.5 / math.sqrt(max(n, 1))
    return scale


def mdct(signals: TensorLike, frame_length: int,
         window_fn: Callable[..., Tensor] | None = vorbis_window, pad_end: bool = False,
         norm: str | None = None, name: str | None = None) -> Tensor:
    """The modified discrete cosine transform of frames that overlap by half (Princen & Bradley
    1986).

    Returns:
        [..., frames, frame_length // 2].

    Raises ValueError: frame_length is not a multiple of 4, or an unknown norm;
    InvalidArgumentError: not float32 or float64."""
    x = _real_input("mdct", signals)
    length = as_int(frame_length, "mdct: frame_length")
    # Quarters are folded onto each other.
    if length < 4 or length % 4:
        raise ValueError(f"mdct: frame_length must be a multiple of 4; got {length}")
    framed = _weighted(frame(x, length, length // 2, pad_end=pad_end), window_fn)
    quarter = length // 4
    a, b, c, d = (framed[..., i * quarter:(i + 1) * quarter] for i in range(4))
    # Princen & Bradley: the aliasing of one frame cancels in the sum with its neighbours.
    folded = concat_(-c[..., ::-1] - d, a - b[..., ::-1], axis=framed.ndim - 1)
    return dct(folded, type=4, norm=norm)


def _weighted(frames: Tensor, window_fn: Callable[..., Tensor] | None) -> Tensor:
    if window_fn is None:
        # Frames overlap twice, and each is windowed twice: squares must add up to 1.
        return frames * math.sqrt(0.5)
    window = as_function(window_fn, "window_fn")(frames.spec.shape[-1], dtype=frames.dtype)
    return frames * window


def inverse_mdct(mdcts: TensorLike, window_fn: Callable[..., Tensor] | None = vorbis_window,
                 norm: str | None = None, name: str | None = None) -> Tensor:
    """The signal of which `mdct` gave the frames, but for the first and last half frame.
    Raises InvalidArgumentError: not float32 or float64, or a rank below 2;
    ValueError: an unknown norm."""
    x = _real_input("inverse_mdct", mdcts)
    half = x.spec.shape[-1] if x.ndim else 0
    if x.ndim < 2 or half % 2:
        raise InvalidArgumentError(f"inverse_mdct needs [..., frames, an even number]; got "
                                   f"{x.spec}")
    folded = dct(x, type=4, norm=norm)
    if norm is None:
        folded = folded * (0.5 / max(half, 1))
    first, second = folded[..., :half // 2], folded[..., half // 2:]
    frames = concat_(second, -second[..., ::-1], -first[..., ::-1], -first, axis=x.ndim - 1)
    return overlap_and_add(_weighted(frames, window_fn), half)


def _mel(hertz: TensorLike) -> Any:
    """HTK's scale: 1127 log(1 + f / 700)."""
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


def linear_to_mel_weight_matrix(num_mel_bins: int = 20, num_spectrogram_bins: int = 129,
                                sample_rate: int = 8000, lower_edge_hertz: float = 125.0,
                                upper_edge_hertz: float = 3800.0, dtype: object = dtypes.float32,
                                name: str | None = None) -> Tensor:
    """[num_spectrogram_bins, num_mel_bins]: triangles equally spaced on the mel scale, by which a
    spectrogram is multiplied.
    Raises ValueError: no bins, or edges that are not 0 <= lower < upper <= sample_rate / 2."""
    bins = as_int(num_mel_bins, "num_mel_bins")
    count = as_int(num_spectrogram_bins, "num_spectrogram_bins")
    rate = as_float(sample_rate, "sample_rate")
    low = as_float(lower_edge_hertz, "lower_edge_hertz")
    high = as_float(upper_edge_hertz, "upper_edge_hertz")
    wanted = as_dtype(dtype)
    if bins <= 0 or count <= 0 or rate <= 0:
        raise ValueError(f"linear_to_mel_weight_matrix: the numbers of bins and the sample rate "
                         f"must be positive; got {bins}, {count}, {rate}")
    if not 0 <= low < high <= rate / 2:
        raise ValueError(f"linear_to_mel_weight_matrix: the edges must satisfy 0 <= lower < upper "
                         f"<= {rate / 2}; got {low} and {high}")
    if not wanted.is_floating:
        raise ValueError(f"linear_to_mel_weight_matrix: the dtype must be floating; got "
                         f"{wanted.name}")
    with room_for("linear_to_mel_weight_matrix", Spec((count, bins), wanted)):
        # Without the first bin, of frequency 0, to which TensorFlow gives no weight.
        spectrum = _mel(np.linspace(0.0, rate / 2, count)[1:])[:, None]
        edges = np.linspace(_mel(low), _mel(high), bins + 2)
        lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
        rising = (spectrum - lower) / (center - lower)
        falling = (upper - spectrum) / (upper - center)
        weights = np.maximum(0.0, np.minimum(rising, falling))
        return convert(np.pad(weights, ((1, 0), (0, 0))).astype(wanted.np_dtype))


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None,
                                    ) -> Tensor:
    """Mel-frequency cepstral coefficients: dct of type 2 over the last axis, times 1/√(2N).
    Raises ValueError: no bins."""
    x = convert(log_mel_spectrograms)
    bins = x.spec.shape[-1] if x.ndim else 0
    if not bins:
        raise ValueError(f"mfccs_from_log_mel_spectrograms needs at least one bin in the last "
                         f"axis; got {x.spec}")
    return dct(x, type=2) * (1 / math.sqrt(2.0 * bins))
