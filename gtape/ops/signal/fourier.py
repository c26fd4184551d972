"""Fourier transforms over the last axes, over chosen axes, and shifts of their zero frequency.

The transform matrix F is symmetric, so the rule of fft is fft again (the conjugates that complex
gradients need are added by the kind). A real transform keeps half the spectrum: its adjoint counts
the kept frequencies that stand for two twice, or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec, normal_axes
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_ints, axes_of, named
from gtape.ops.indexing.getitem import getitem_, put_
from gtape.ops.shape.packing import concat_

Axes = tuple[int, ...]
_COMPLEX = ("complex128",)


def _count(x: Spec, axes: Axes) -> int:
    return math.prod(x.shape[a] for a in axes)


@primitive(linear="x", tf_name="FFTND")
def fft_(xp: ArrayModule, x: Array, *, axes: Axes) -> Array:
    """y[k] = Σₙ x[n] exp(-2πi k·n/N) over `axes`."""
    # NumPy refuses axes without places.
    if not x.size:
        return x
    # NumPy before 2.0 computes in complex128 whatever it is given.
    return xp.fft.fftn(x, axes=axes).astype(x.dtype)


fft_.infer(lambda x, **_: x)
fft_.vjp(x=lambda g, *, axes: fft_(g, axes=axes))
fft_.cases = [case((4,), axes=(0,), dtypes=_COMPLEX), case((2, 3, 2), axes=(0, 1), dtypes=_COMPLEX)]


@primitive(linear="x", tf_name="IFFTND")
def ifft_(xp: ArrayModule, x: Array, *, axes: Axes) -> Array:
    """y[n] = 1/N Σₖ x[k] exp(2πi k·n/N) over `axes`."""
    if not x.size:
        return x
    return xp.fft.ifftn(x, axes=axes).astype(x.dtype)


ifft_.infer(lambda x, **_: x)
ifft_.vjp(x=lambda g, *, axes: ifft_(g, axes=axes))
ifft_.cases = [case((4,), axes=(0,), dtypes=_COMPLEX), case((3, 2), axes=(0, 1), dtypes=_COMPLEX)]


@primitive(linear="x", tf_name="RFFTND", holomorphic=False)
def rfft_(xp: ArrayModule, x: Array, *, axes: Axes) -> Array:
    """The spectrum of real x over `axes`; of the last axis only the frequencies 0 … N/2."""
    wide = np.complex64 if x.dtype == np.float32 else np.complex128
    if not x.size:
        return xp.zeros(_resized(x.shape, axes[-1], _half(x.shape[axes[-1]])), wide)
    return xp.fft.rfftn(x, axes=axes).astype(wide)


def _resized(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return tuple([length if i == axis else n for i, n in enumerate(shape)])


def _half(length: int) -> int:
    """How many frequencies a real signal of `length` has."""
    return length // 2 + 1 if length else 0


@rfft_.infer
def _(x: Spec, *, axes: Axes) -> Spec:
    wide = dtypes.complex64 if x.dtype is dtypes.float32 else dtypes.complex128
    return Spec(_resized(x.shape, axes[-1], _half(x.shape[axes[-1]])), wide)


@rfft_.vjp("x")
def _(g: Tensor, x_spec: Spec, *, axes: Axes) -> Tensor:
    length = x_spec.shape[axes[-1]]
    # irfft_ counts twice each frequency that stands for two, so that it is given half of them.
    weighted = g * _weights(g, length, axes[-1], 0.5)
    return irfft_(weighted, length=length, axes=axes) * float(_count(x_spec, axes))


rfft_.cases = [case((5,), axes=(0,)), case((2, 4), axes=(1,)), case((3, 4, 2), axes=(0, 1))]


@primitive(linear="x", tf_name="IRFFTND", holomorphic=False)
def irfft_(xp: ArrayModule, x: Array, *, length: int, axes: Axes) -> Array:
    """The real signal whose half spectrum is x; `length` along the last of `axes`."""
    real = np.float32 if x.dtype == np.complex64 else np.float64
    if not x.size or not length:
        return xp.zeros(_resized(x.shape, axes[-1], length), real)
    lengths = [*[x.shape[a] for a in axes[:-1]], length]
    return xp.fft.irfftn(x, s=lengths, axes=axes).astype(real)


irfft_.infer(lambda x, *, length, axes:
             Spec(_resized(x.shape, axes[-1], length), x.dtype.real_dtype))


@irfft_.vjp("x")
def _(g: Tensor, x_spec: Spec, *, length: int, axes: Axes) -> Tensor:
    y = rfft_(g, axes=axes)
    return y * _weights(y, length, axes[-1], 2.0) / float(max(_count(g.spec, axes), 1))


irfft_.cases = [case((3,), length=5, axes=(0,), dtypes=_COMPLEX),
                case((2, 3), length=4, axes=(1,), dtypes=_COMPLEX),
                case((2, 3), length=5, axes=(0, 1), dtypes=_COMPLEX)]


def _weights(like: Tensor, length: int, axis: int, inner: float) -> Tensor:
    """`inner` for the frequencies that stand for two, 1 for the rest, along `axis`."""
    kept = _half(length)
    weights = np.full(kept, inner)
    # Frequency 0, and N/2 of an even length, are their own mirror images.
    weights[:1] = 1
    if length % 2 == 0:
        weights[-1:] = 1
    shape = [1] * like.ndim
    shape[axis] = kept
    return convert(weights.reshape(shape).astype(like.dtype.np_dtype), None, like._t.device)


# ---------------------------------------------------------------- arguments

def _sized(x: Tensor, lengths: tuple[int, ...], axes: Axes) -> Tensor:
    """`x` cut or padded with zeros at the end to `lengths` along `axes`."""
    shape = x.spec.shape
    wanted = list(shape)
    for axis, n in zip(axes, lengths):
        wanted[axis] = n
    if tuple(wanted) == shape:
        return x
    key = tuple([("slice", 0, min(n, m), None) for n, m in zip(shape, wanted)])
    cut = getitem_(x, key=key)
    return cut if cut.spec.shape == tuple(wanted) else put_(cut, key=key, shape=tuple(wanted))


def _last_axes(name: str, x: Tensor, count: int) -> Axes:
    if x.ndim < count:
        raise InvalidArgumentError(f"{name} needs rank {count} or more; got {x.spec}")
    return tuple(range(x.ndim - count, x.ndim))


def _lengths(name: str, fft_length: IntsLike | None, count: int) -> tuple[int, ...] | None:
    if fft_length is None:
        return None
    numbers = as_ints(fft_length, f"{name}: fft_length")
    if len(numbers) != count or any(n < 0 for n in numbers):
        raise InvalidArgumentError(f"{name}: fft_length must hold {count} lengths; got {numbers}")
    return numbers


def _complex_input(name: str, value: TensorLike) -> Tensor:
    x = convert(value)
    if not x.dtype.is_complex:
        raise InvalidArgumentError(f"{name} takes complex tensors; got {x.spec}. Write "
                                   f"tf.cast(x, tf.complex64), or use tf.signal.rfft")
    return x


def _real_input(name: str, value: TensorLike) -> Tensor:
    x = convert(value)
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise InvalidArgumentError(f"{name} takes float32 or float64 tensors; got {x.spec}. Write "
                                   f"tf.cast(x, tf.float32)")
    return x


def _input(name: str, op: Any, value: TensorLike) -> Tensor:
    return (_real_input if op is rfft_ else _complex_input)(name, value)


def _transformed(op: Any, x: Tensor, lengths: tuple[int, ...] | None, axes: Axes) -> Tensor:
    """`op` of `x`, cut or padded to `lengths`: for irfft_ those of the result."""
    shape = x.spec.shape
    if op is not irfft_:
        return op(x if lengths is None else _sized(x, lengths, axes), axes=axes)
    if lengths is None:
        # A half spectrum does not say whether the signal was odd; as in NumPy it was even.
        lengths = (*[shape[a] for a in axes[:-1]], max(2 * (shape[axes[-1]] - 1), 0))
    halved = (*lengths[:-1], _half(lengths[-1]))
    return op(_sized(x, halved, axes), length=lengths[-1], axes=axes)


# ---------------------------------------------------------------- over the last axes
_RAISES = "\n\n    Raises:\n        InvalidArgumentError: {}, or a scalar.\n    "


def _complex(public: str, op: Callable[..., Tensor], count: int, doc: str) -> Callable[..., Tensor]:
    """The public function that applies `op` to complex tensors over the last axes."""
    def transform(input: TensorLike, name: str | None = None) -> Tensor:
        x = _complex_input(public, input)
        return op(x, axes=_last_axes(public, x, count))

    return named(transform, public, doc)


fft = _complex("fft", fft_, 1, "y[k] = Σₙ x[n] exp(-2πi k n/N) over the last axis, for complex "
                               "input." + _RAISES.format("not complex"))
ifft = _complex("ifft", ifft_, 1, "The inverse of `fft`.")
fft2d = _complex("fft2d", fft_, 2, "`fft` over the last two axes.")
ifft2d = _complex("ifft2d", ifft_, 2, "The inverse of `fft2d`.")
fft3d = _complex("fft3d", fft_, 3, "`fft` over the last three axes.")
ifft3d = _complex("ifft3d", ifft_, 3, "The inverse of `fft3d`.")


def _real(public: str, op: Callable[..., Tensor], count: int, doc: str) -> Callable[..., Tensor]:
    """The public function between real tensors and half spectra over the last axes."""
    def transform(input_tensor: TensorLike, fft_length: IntsLike | None = None,
                  name: str | None = None) -> Tensor:
        x = _input(public, op, input_tensor)
        axes = _last_axes(public, x, count)
        return _transformed(op, x, _lengths(public, fft_length, count), axes)

    return named(transform, public, doc)


rfft = _real("rfft", rfft_, 1, "The frequencies 0 … N/2 of `fft`, for real input, which is cut or "
             "padded to `fft_length`." + _RAISES.format("not float32 or float64"))
irfft = _real("irfft", irfft_, 1, "The inverse of `rfft`: real, of length `fft_length`, 2 (K - 1) "
              "unless given." + _RAISES.format("not complex"))
rfft2d = _real("rfft2d", rfft_, 2, "`rfft` over the last axis and `fft` over the one before.")
irfft2d = _real("irfft2d", irfft_, 2, "The inverse of `rfft2d`.")
rfft3d = _real("rfft3d", rfft_, 3, "`rfft` over the last axis and `fft` over the two before.")
irfft3d = _real("irfft3d", irfft_, 3, "The inverse of `rfft3d`.")


# ---------------------------------------------------------------- over chosen axes

def _chosen(name: str, x: Tensor, fft_length: IntsLike | None, axes: IntsLike | None,
            ) -> Axes:
    given = axes_of(axes)
    if given is None and fft_length is not None:
        given = tuple(range(-len(as_ints(fft_length, f"{name}: fft_length")), 0))
    normal_axes(name, given, x.ndim)
    # In the order given, which `normal_axes` does not keep: the last one is that which is halved.
    if given is None:
        given = tuple(range(x.ndim))
    chosen = tuple([a % x.ndim for a in ((given,) if isinstance(given, int) else given)])
    if not chosen:
        raise InvalidArgumentError(f"{name} needs at least one axis; got {x.spec}")
    return chosen


#: The power of N that a forward transform is divided by, and an inverse multiplied: its 1/N is in
#: the op already.
_NORMS = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}


def _nd(public: str, op: Any, doc: str) -> Callable[..., Tensor]:
    """The public function that applies `op` over chosen axes."""
    def transform(input_tensor: TensorLike, fft_length: IntsLike | None = None,
                  axes: IntsLike | None = None, norm: str | None = None,
                  name: str | None = None) -> Tensor:
        x = _input(public, op, input_tensor)
        if not (norm is None or isinstance(norm, str)) or norm not in _NORMS:
            raise ValueError(f"{public}: norm must be one of None, 'backward', 'ortho', 'forward'; "
                             f"got {shown(norm)}")
        chosen = _chosen(public, x, fft_length, axes)
        lengths = _lengths(public, fft_length, len(chosen))
        y = _transformed(op, x, lengths, chosen)
        power = _NORMS[norm] if op in (ifft_, irfft_) else -_NORMS[norm]
        if not power:
            return y
        # N counts places of the signal: the result of rfft has lost some of them.
        count = math.prod(lengths) if lengths is not None else _count(
            (x if op is rfft_ else y).spec, chosen)
        return y * float(max(count, 1)) ** power

    return named(transform, public, doc)


fftnd = _nd("fftnd", fft_, """\
`fft` over `axes`, all unless given, each cut or padded to its entry of `fft_length`.

    Args:
        norm: None or 'backward' divides the inverse by N, 'forward' this, 'ortho' both by √N.

    Raises:
        InvalidArgumentError: not complex, or no such axis.
        ValueError: an unknown `norm`.
    """)
ifftnd = _nd("ifftnd", ifft_, "The inverse of `fftnd`.")
rfftnd = _nd("rfftnd", rfft_,
             "`rfft` over the last of `axes` and `fft` over the others; see `fftnd`.")
irfftnd = _nd("irfftnd", irfft_, "The inverse of `rfftnd`.")


# ---------------------------------------------------------------- shifts
def _moved(name: str, x: Any, axes: IntsLike, extra: int) -> Tensor:
    tensor = convert(x)
    for axis in normal_axes(name, axes_of(axes), tensor.ndim):
        n = tensor.spec.shape[axis]
        # For odd lengths the shift and its inverse differ by one.
        cut = n - (n + extra) // 2
        head = (slice(None),) * axis
        if n > 1:
            tensor = concat_(tensor[(*head, slice(cut, None))], tensor[(*head, slice(0, cut))],
                           axis=axis)
    return tensor


def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """`x` with the zero frequency, first along each of `axes`, moved to the middle.
    Raises InvalidArgumentError: no such axis."""
    return _moved("fftshift", x, axes, 0)


def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _moved("ifftshift", x, axes, 1)
