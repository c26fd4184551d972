"""pad: new cells around a tensor, constant or mirrored."""

from __future__ import annotations

from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import host_value
from gtape.ops.indexing.getitem import getitem_

#: (before, after) for each axis.
Pads = tuple[tuple[int, int], ...]


def _padded(x: Spec, paddings: Pads) -> Spec:
    return x.reshaped(tuple(n + b + a for n, (b, a) in zip(x.shape, paddings)))


def _inside(x: Spec, paddings: Pads) -> tuple[Any, ...]:
    """The index of x within its padded form."""
    return tuple(("slice", b, b + n, None) for n, (b, _) in zip(x.shape, paddings))


@primitive(linear="x", tf_name="PadV2")
def pad_(xp: ArrayModule, x: Array, *, paddings: Pads, value: bytes | complex = 0) -> Array:
    """x with cells of `value` around it."""
    shape = tuple(n + b + a for n, (b, a) in zip(x.shape, paddings))
    # NumPy's pad goes axis by axis in Python.
    y = xp.empty(shape, x.dtype)
    y[...] = value
    y[tuple(slice(b, b + n) for n, (b, _) in zip(x.shape, paddings))] = x
    return y


pad_.infer(lambda x, *, paddings, **_: _padded(x, paddings))
pad_.vjp(x=lambda g, x_spec, *, paddings: getitem_(g, key=_inside(x_spec, paddings)))
pad_.cases = [case((2, 3), paddings=((1, 0), (0, 2))), case((2,), paddings=((1, 1),), value=2.0)]


@primitive(linear="x", tf_name="MirrorPad")
def mirror_pad_(xp: ArrayModule, x: Array, *, paddings: Pads, edge: bool) -> Array:
    """x with its mirror image around it, the border cell repeated (edge) or not."""
    return xp.pad(x, paddings, mode="symmetric" if edge else "reflect") if x.ndim else x


@mirror_pad_.infer
def _(x: Spec, *, paddings: Pads, edge: bool) -> Spec:
    for n, pair in zip(x.shape, paddings):
        # A reflection without the border cell has one cell less to give.
        if max(pair) > n - (not edge):
            raise InvalidArgumentError(f"pad: a mirror image of {x} is at most as wide as the axis "
                                       f"({'' if edge else 'less one cell, for '}mode "
                                       f"{'SYMMETRIC' if edge else 'REFLECT'}); got "
                                       f"{list(paddings)}")
    return _padded(x, paddings)


mirror_pad_.vjp(x=lambda g, **attrs: mirror_fold_(g, **attrs))


_MIRRORED = [case((3, 4), paddings=((1, 0), (0, 2)), edge=True),
             case((4,), paddings=((3, 3),), edge=False)]
mirror_pad_.cases = _MIRRORED


@primitive(linear="x", tf_name="MirrorPadGrad")
def mirror_fold_(xp: ArrayModule, x: Array, *, paddings: Pads, edge: bool) -> Array:
    """The margins added to the cells they mirror: the adjoint of mirror_pad."""
    for axis, (before, after) in enumerate(paddings):
        if not before and not after:
            continue  # no margin to add, no copy to make
        # Axis by axis, as the padding was made: corners mirror margins that are already whole.
        x = xp.moveaxis(x, axis, 0)
        n, off = x.shape[0] - before - after, 0 if edge else 1
        y = xp.array(x[before:before + n])  # a copy: the margins are added into it
        y[off:off + before] += x[:before][::-1]
        y[n - off - after:n - off] += x[before + n:][::-1]
        x = xp.moveaxis(y, 0, axis)
    return x


mirror_fold_.infer(lambda x, *, paddings, **_:
                   x.reshaped(tuple(n - b - a for n, (b, a) in zip(x.shape, paddings))))
mirror_fold_.vjp(x=lambda g, **attrs: mirror_pad_(g, **attrs))
mirror_fold_.cases = [case((4, 6), paddings=((1, 0), (0, 2)), edge=True),
                      case((10,), paddings=((3, 3),), edge=False)]


def pads_of(name: str, paddings: TensorLike, rank: int, what: str = "paddings") -> Pads:
    """`paddings` as pairs of numbers >= 0, one pair for each of `rank` axes. Raises
    InvalidArgumentError: they are not."""
    array = host_value(paddings, f"{name}: {what}")
    if array.shape != (rank, 2) or (array.size and (array.dtype.kind not in "iu"
                                                    or int(array.min()) < 0)):
        raise InvalidArgumentError(f"{name}: {what} must hold a pair (before, after) of integers "
                                   f">= 0 for each of the {rank} axes; got {array.tolist()}")
    return tuple((int(b), int(a)) for b, a in array)


def pad(tensor: TensorLike, paddings: TensorLike, mode: str = "CONSTANT",
        constant_values: TensorLike = 0, name: str | None = None) -> Tensor:
    """`tensor` with paddings[i] = (before, after) new cells around axis i.

    Args:
        mode: 'CONSTANT'; 'REFLECT', a mirror image without the border cell; or 'SYMMETRIC', with
            it. Upper or lower case.
        constant_values: what 'CONSTANT' fills in: one value, of the dtype of `tensor`.

    Raises:
        InvalidArgumentError: `paddings` does not fit.
        ValueError: another mode.
        TypeError: a value that does not fit the dtype.
    """
    x = convert(tensor)
    pads = pads_of("pad", paddings, x.ndim)
    chosen = mode.upper() if isinstance(mode, str) else ""
    if chosen == "CONSTANT":
        return pad_(x, paddings=pads, value=_fill(x, constant_values))
    if chosen not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"pad: mode must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC'; got "
                         f"{shown(mode)}")
    return mirror_pad_(x, paddings=pads, edge=chosen == "SYMMETRIC")


def _fill(x: Tensor, value: TensorLike) -> bytes | complex:
    """The constant as a Python value of x's dtype."""
    # The default is dtype-less: 0 pads strings with b''.
    if type(value) is int and value == 0:
        return b"" if x.dtype is string else 0
    tensor = convert(value, x.dtype)
    if tensor.ndim:
        raise InvalidArgumentError(f"pad: constant_values must be one value; got {shown(value)}")
    return tensor._array_().tolist()  # a Python value: attributes are hashed
