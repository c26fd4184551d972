"""Windows, overlapping frames of signals, and the Fourier transform of each frame."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import DType, as_dtype, float32
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, normal_axes, room_for
from gtape.core.tensor import Tensor
from gtape.numerics import windows
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, as_function, as_int, host_value, named
from gtape.ops.elementwise.scalars import divide_no_nan
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.layout import reshape_, transpose_
from gtape.ops.shape.packing import concat_
from gtape.ops.signal.fourier import _sized, irfft, rfft

_RAISES = "\n\n    Raises:\n        InvalidArgumentError: a dtype that is not floating.\n    "


def _window(name: str, length: int, dtype: object, formula: Callable[[int], np.ndarray]) -> Tensor:
    wanted: DType = as_dtype(dtype)
    if not wanted.is_floating:
        raise InvalidArgumentError(f"{name}: the dtype must be floating; got {wanted.name}")
    count = as_int(length, f"{name}: window_length")
    if count < 0:
        raise InvalidArgumentError(f"{name}: window_length must not be negative; got {count}")
    with room_for(name, Spec((count,), wanted)):
        return convert(formula(count).astype(wanted.np_dtype))


def _raised_cosine(public: str, a: float, b: float, doc: str) -> Callable[..., Tensor]:
    """a - b cos(2πn / N), N the length, one less where the window is not periodic or odd."""
    def window(window_length: int, periodic: bool = True, dtype: object = float32,
               name: str | None = None) -> Tensor:
        def formula(count: int) -> np.ndarray:
            if count == 1:
                return np.ones(1)
            # An odd length is never periodic: TensorFlow's windows of odd lengths are symmetric.
            period = count - 1 + (bool(periodic) and count % 2 == 0)
            return a - b * np.cos(2 * math.pi * np.arange(count) / max(period, 1))

        return _window(public, window_length, dtype, formula)

    return named(window, public, doc + _RAISES)


hann_window = _raised_cosine(
    "hann_window", 0.5, 0.5,
    "w[n] = 0.5 - 0.5 cos(2πn / N), N = window_length if periodic and even, else one less.")
hamming_window = _raised_cosine(
    "hamming_window", 0.54, 0.46, "w[n] = 0.54 - 0.46 cos(2πn / N); N as for `hann_window`.")


def _kaiser(count: int, beta: float) -> np.ndarray:
    if count == 1:
        return np.ones(1)
    steps = np.arange(count) - (count - 1) / 2
    # The root of what rounding makes less than 0 at the ends would be nan.
    inside = np.maximum(0.0, 1 - (2 * steps / max(count - 1, 1)) ** 2)
    return np.i0(beta * np.sqrt(inside)) / np.i0(beta)


def _derived(count: int, beta: float) -> np.ndarray:
    # An odd length gives one number fewer, and 1 none at all, in TensorFlow too.
    sums = np.cumsum(_kaiser(count // 2 + 1, beta))
    rising = np.sqrt(sums[:-1] / sums[-1])
    return np.concatenate([rising, rising[::-1]])


def _by_beta(public: str, formula: Callable[[int, float], np.ndarray], doc: str,
             ) -> Callable[..., Tensor]:
    def window(window_length: int, beta: float = 12.0, dtype: object = float32,
               name: str | None = None) -> Tensor:
        width = as_float(beta, f"{public}: beta")
        return _window(public, window_length, dtype, lambda count: formula(count, width))

    return named(window, public, doc + _RAISES)


kaiser_window = _by_beta("kaiser_window", _kaiser,
                         "w[n] = I₀(β √(1 - (2n/(N-1) - 1)²)) / I₀(β).")
kaiser_bessel_derived_window = _by_beta(
    "kaiser_bessel_derived_window", _derived,
    "The root of running sums of a Kaiser window of half the length plus one, then mirrored.")


def vorbis_window(window_length: int, dtype: object = float32, name: str | None = None) -> Tensor:
    """w[n] = sin(π/2 sin²(π (n + 0.5) / N)).
    Raises InvalidArgumentError: a dtype that is not floating."""
    def formula(count: int) -> np.ndarray:
        phase = math.pi * (np.arange(count) + 0.5) / max(count, 1)
        return np.sin(math.pi / 2 * np.sin(phase) ** 2)

    return _window("vorbis_window", window_length, dtype, formula)


Window = Callable[..., Tensor] | None


@primitive(linear="x", tf_name="Frame")
def frames_(xp: ArrayModule, x: Array, *, length: int, step: int, count: int) -> Array:
    """y[…, i, j] = x[…, i step + j]."""
    return windows.cut(xp, x, length, step, count)


frames_.infer(lambda x, *, length, count, **_: x.reshaped((*x.shape[:-1], count, length)))
frames_.vjp(x=lambda g, x_spec, *, step: overlap_(g, step=step, size=x_spec.shape[-1]))
frames_.cases = [case((7,), length=3, step=2, count=3), case((2, 6), length=2, step=3, count=2)]


@primitive(linear="x", tf_name="OverlapAndAdd")
def overlap_(xp: ArrayModule, x: Array, *, step: int, size: int) -> Array:
    """y[…, i step + j] = Σ x[…, i, j]."""
    return windows.overlap(xp, x, step, size)


overlap_.infer(lambda x, *, size, **_: x.reshaped((*x.shape[:-2], size)))


@overlap_.vjp("x")
def _(g: Tensor, x_spec: Spec, *, step: int) -> Tensor:
    # A result cut off at `size`, or longer than the frames reach, has zeros there.
    count, length = x_spec.shape[-2:]
    needed = max((count - 1) * step + length, 0)
    whole = _sized(g, (max(needed, g.spec.shape[-1]),), (g.ndim - 1,))
    return frames_(whole, length=length, step=step, count=count)


overlap_.cases = [case((3, 4), step=2, size=8), case((2, 3, 5), step=2, size=9),
                  case((2, 2), step=3, size=5)]


def _positive(value: int, what: str) -> int:
    number = as_int(value, what)
    # A start and a length are added in int64.
    if not 1 <= number < 2 ** 62:
        raise InvalidArgumentError(f"{what} must be at least 1, and below 2**62; got {number}")
    return number


def frame(signal: TensorLike, frame_length: int, frame_step: int, pad_end: bool = False,
          pad_value: int = 0, axis: IntsLike = -1, name: str | None = None) -> Tensor:
    """Frames of `frame_length`, each `frame_step` after the one before, along `axis`.

    Args:
        pad_end: fill the end with `pad_value`, so that every step begins a frame; frames that do
            not fit are left out otherwise.

    Returns:
        The axis replaced by two: frames, and places in a frame.

    Raises InvalidArgumentError: a length or step below 1, or no such axis."""
    x = convert(signal)
    length = _positive(frame_length, "frame: frame_length")
    step = _positive(frame_step, "frame: frame_step")
    if not x.ndim:
        raise InvalidArgumentError("frame needs rank 1 or more; got a scalar")
    (at,) = normal_axes("frame", as_int(axis, "frame: axis"), x.ndim)
    last = x.ndim - 1
    if at != last:
        x = transpose_(x, perm=(*range(at), *range(at + 1, x.ndim), at))
    size = x.spec.shape[-1]
    # As many frames as steps begin within the signal, or as fit into it.
    count = -(-size // step) if pad_end else max(0, 1 + (size - length) // step)
    beyond = max(0, (count - 1) * step + length - size) if pad_end else 0
    if beyond:
        number = host_value(pad_value, "frame: pad_value")[()]
        blank = np.full((*x.spec.shape[:-1], beyond), number, x.dtype.np_dtype)
        x = concat_(x, convert(blank, x.dtype, x._t.device), axis=last)
    y = frames_(x, length=length, step=step, count=count)
    if at == last:
        return y
    return transpose_(y, perm=(*range(at), last, last + 1, *range(at, last)))


def overlap_and_add(signal: TensorLike, frame_step: int, name: str | None = None) -> Tensor:
    """The signal whose frames [..., frames, frame_length] are `frame_step` apart, overlaps added.
    Raises InvalidArgumentError: a rank below 2, or a step below 1."""
    x = convert(signal)
    if x.ndim < 2:
        raise InvalidArgumentError(f"overlap_and_add needs rank 2 or more; got {x.spec}")
    step = _positive(frame_step, "overlap_and_add: frame_step")
    count, length = x.spec.shape[-2:]
    return overlap_(x, step=step, size=max(0, (count - 1) * step + length))


def _transform_length(fft_length: int | None, length: int, name: str) -> int:
    """`fft_length`, or the power of two that a frame fits in."""
    if fft_length is None:
        # Powers of two are what transforms are fastest for, and TensorFlow's default.
        return 1 << max(length - 1, 0).bit_length()
    return _positive(fft_length, f"{name}: fft_length")


def stft(signals: TensorLike, frame_length: int, frame_step: int, fft_length: Any = None,
         window_fn: Window = hann_window, pad_end: bool = False, name: str | None = None,
         ) -> Tensor:
    """The short-time Fourier transform: `rfft` of each windowed frame.

    Args:
        signals: float32 or float64 [..., samples].
        fft_length: frames are padded to it; the next power of two unless given.
        window_fn: (length, dtype=) -> window; None for none.

    Returns:
        Complex [..., frames, fft_length // 2 + 1].

    Raises InvalidArgumentError: not real floating, or a length or step below 1."""
    x = convert(signals)
    length = _positive(frame_length, "stft: frame_length")
    y = frame(x, length, frame_step, pad_end=pad_end)
    if window_fn is not None:
        y = y * as_function(window_fn, "stft: window_fn")(length, dtype=x.dtype)
    return rfft(y, [_transform_length(fft_length, length, "stft")])


def inverse_stft(stfts: TensorLike, frame_length: int, frame_step: int, fft_length: Any = None,
                 window_fn: Window = hann_window, name: str | None = None) -> Tensor:
    """The signal of frames' spectra, overlaps added; exact when `window_fn` is that of
    `inverse_stft_window_fn`.
    Raises InvalidArgumentError: not complex, or a length or step below 1."""
    spectra = convert(stfts)
    length = _positive(frame_length, "inverse_stft: frame_length")
    y = irfft(spectra, [_transform_length(fft_length, length, "inverse_stft")])
    y = _sized(y, (length,), (y.ndim - 1,))
    if window_fn is not None:
        y = y * as_function(window_fn, "stft: window_fn")(length, dtype=y.dtype)
    return overlap_and_add(y, frame_step)


def inverse_stft_window_fn(frame_step: int, forward_window_fn: Callable[..., Tensor] = hann_window,
                           name: str | None = None) -> Callable[..., Tensor]:
    """The window for `inverse_stft` that undoes `stft` with `forward_window_fn`: the forward
    window divided by the sum of squares of all windows over a place, and 0 where that is 0
    (Griffin & Lim 1984).
    Raises InvalidArgumentError: a step below 1."""
    step = _positive(frame_step, "inverse_stft_window_fn: frame_step")

    def window(frame_length: int, dtype: DType = float32) -> Tensor:
        length = _positive(frame_length, "inverse_stft_window_fn: frame_length")
        forward = forward_window_fn(length, dtype=dtype)
        count = -(-length // step)
        # Places a step apart see the same windows, so the sum has one period of `step`.
        squares = _sized(forward * forward, (count * step,), (0,))
        total = reduce_sum_(reshape_(squares, shape=(count, step)), axis=(0,))
        whole = concat_(*[total] * count, axis=0)
        # Where all windows are 0, nothing of the signal came through.
        return divide_no_nan(forward, whole[:length])

    return window
