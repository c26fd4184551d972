"""reshape, broadcast_to, transpose and kin: ops that rearrange, each with its adjoint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, TensorShape, broadcast_shapes, normal_axes
from gtape.core.tensor import Tensor
from gtape.opdef import numpy_code
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_ints, as_shape, axes_of
from gtape.ops.elementwise.scalars import conj
from gtape.ops.shape.identity import identity_


@primitive(linear="x", tf_name="Reshape")
def reshape_(xp: Any, x: object, *, shape: tuple[int, ...]) -> Any:
    """The same elements in row-major order under another shape."""
    return xp.reshape(x, shape)


reshape_.infer(lambda x, *, shape: x.reshaped(shape))
reshape_.vjp(x=lambda g, x_spec: reshape_(g, shape=x_spec.shape))
reshape_.cases = [case((2, 6), shape=(3, 4)), case((1,), shape=()), case((0, 3), shape=(3, 0))]


def _resolved(x: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with its one -1 replaced. Where 0 elements leave it open, it is what the lengths
    other than 0 give: [0, 6] as [0, -1, 3] is [0, 2, 3]."""
    # Symbolic lengths are of another type, and never negative.
    for n in shape:
        if type(n) is int and n < -1:
            raise InvalidArgumentError(f"reshape: lengths must be 0 or more, one may be -1; got "
                                       f"the shape {list(shape)}")
    size = math.prod(x.spec.shape)
    unknown = [i for i, n in enumerate(shape) if n == -1]
    known = math.prod(n for n in shape if n != -1)
    # 0 elements fit any length; TensorFlow asks the other lengths, and so do we.
    if len(unknown) == 1 and not known and not size:
        at = unknown[0]
        have, given = (math.prod(n for n in s if n) for s in (x.spec.shape, shape))
        return (*shape[:at], have // -given, *shape[at + 1:])
    if len(unknown) == 1 and known and size % known == 0:
        at = unknown[0]
        return (*shape[:at], size // known, *shape[at + 1:])
    if unknown or known != size:
        raise InvalidArgumentError(
            f"reshape: the number of elements must stay {size} (from {list(x.spec.shape)}); got "
            f"the shape {list(shape)}. One length may be -1")
    return shape


@takes_composites
def reshape(tensor: TensorLike, shape: IntsLike, name: str | None = None) -> Tensor:
    """The elements of `tensor` in row-major order under `shape`; one length may be -1.

    Raises:
        InvalidArgumentError: the number of elements would change.
    """
    x = convert(tensor)
    return reshape_(x, shape=_resolved(x, as_ints(shape, "reshape: shape")))


#: Up to this size a copy is made faster than NumPy makes a view.
_SMALL = 4096


@primitive(linear="x", tf_name="BroadcastTo")
def broadcast_to_(xp: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    """x repeated along new axes and axes of length 1."""
    if xp is np and math.prod(shape) <= _SMALL:
        y = np.empty(shape, x.dtype)
        y[...] = x
        return y
    return xp.broadcast_to(x, shape)


@broadcast_to_.infer
def _(x: Spec, *, shape: tuple[int, ...]) -> Spec:
    if broadcast_shapes("broadcast_to", x, x.reshaped(shape)) != shape:
        raise InvalidArgumentError(f"broadcast_to: {x} cannot be stretched to {list(shape)}")
    return x.reshaped(shape)


broadcast_to_.vjp(x=lambda g, x_spec: sum_to(g, x_spec.shape))
broadcast_to_.cases = [case((3, 1), shape=(2, 3, 4)), case((), shape=(2,))]


def broadcast_to(input: TensorLike, shape: IntsLike, name: str | None = None) -> Tensor:
    """`input` repeated to `shape` by the broadcasting rule.

    Raises:
        InvalidArgumentError: the shapes do not allow it.
    """
    return broadcast_to_(convert(input), shape=as_shape(shape))


@primitive(linear="x", tf_name="Sum")
def sum_to_(xp: ArrayModule, x: Any, *, shape: tuple[int, ...]) -> Any:
    """x summed over the axes along which `shape` was broadcast to its shape."""
    return numpy_code.sum_to(x, shape)


sum_to_.on_cuda("kernels.reductions.sum_to")
sum_to_.infer(lambda x, *, shape: x.reshaped(shape))


@sum_to_.vjp("x")
def _(g: Tensor, x_spec: Spec, *, shape: tuple[int, ...]) -> Tensor:
    padded = (1,) * (len(x_spec.shape) - len(shape)) + shape
    return broadcast_to_(reshape_(g, shape=padded), shape=x_spec.shape)


sum_to_.cases = [case((2, 3, 4), shape=(3, 1)), case((2, 3), shape=())]


def sum_to(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The adjoint of broadcasting: `tensor` summed down to `shape`."""
    have = tensor.spec.shape
    if have == shape:  # the usual case: no op, no record
        return tensor
    if numpy_code.stretches(have, shape):
        return broadcast_to_(tensor, shape=shape)
    return sum_to_(tensor, shape=shape)


@primitive(linear="a", tf_name="Transpose")
def transpose_(xp: ArrayModule, a: Array, *, perm: tuple[int, ...]) -> Array:
    """y[i…] = a with its axes in the order `perm`."""
    return xp.transpose(a, perm)


@transpose_.infer
def _(a: Spec, *, perm: tuple[int, ...]) -> Spec:
    if sorted(perm) != list(range(a.ndim)):
        raise InvalidArgumentError(f"transpose: perm must hold each of 0 … {a.ndim - 1} once for "
                                   f"{a}; got {list(perm)}")
    return a.reshaped(tuple(a.shape[i] for i in perm))


# argsort inverts a permutation; int, since attributes are Python's numbers.
transpose_.vjp(a=lambda g, *, perm: transpose_(g, perm=tuple(int(i) for i in np.argsort(perm))))
transpose_.cases = [case((2, 3, 4), perm=(2, 0, 1)), case((3,), perm=(0,))]


def transpose(a: TensorLike, perm: IntsLike | None = None, conjugate: bool = False,
              name: str | None = None) -> Tensor:
    """`a` with its axes in the order `perm`, reversed when `perm` is None.

    Raises:
        InvalidArgumentError: `perm` is not a permutation of the axes.
    """
    x = convert(a)
    order = tuple(range(x.ndim))[::-1] if perm is None else as_ints(perm, "transpose: perm")
    # Negative axes as in Python; others stay wrong, so that the op names them.
    order = tuple(i % x.ndim if -x.ndim <= i < 0 else i for i in order)
    y = transpose_(x, perm=order)
    if conjugate and x.dtype.is_complex:
        return conj(y)
    return y


def swap_last(x: Tensor) -> Tensor:
    """The matrix transpose: the last two axes exchanged."""
    n = x.ndim
    return transpose_(x, perm=(*range(n - 2), n - 1, n - 2))


@takes_composites
def expand_dims(input: TensorLike, axis: IntsLike, name: str | None = None) -> Tensor:
    """A new axis of length 1 before position `axis`.

    Raises:
        InvalidArgumentError: `axis` is outside [-rank - 1, rank].
    """
    x = convert(input)
    (at,) = normal_axes("expand_dims", as_int(axis, "expand_dims: axis"), x.ndim + 1)
    shape = x.spec.shape
    return reshape_(x, shape=(*shape[:at], 1, *shape[at:]))


@takes_composites
def squeeze(input: TensorLike, axis: IntsLike | None = None, name: str | None = None) -> Tensor:
    """`input` without its axes of length 1, or without those named in `axis`.

    Raises:
        InvalidArgumentError: a named axis has another length.
    """
    x = convert(input)
    shape = x.spec.shape
    axes = axes_of(axis)
    # TensorFlow's squeeze takes an empty list for all axes of length 1.
    if axes is None or axes == ():
        gone = tuple(i for i, n in enumerate(shape) if n == 1)
    else:
        gone = normal_axes("squeeze", axes, x.ndim)
        if any(shape[i] != 1 for i in gone):
            raise InvalidArgumentError(f"squeeze: the axes {list(gone)} of {x.spec} must have "
                                       f"length 1")
    return reshape_(x, shape=tuple(n for i, n in enumerate(shape) if i not in gone))


def ensure_shape(x: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """`x`, when its shape fits `shape` (None for any length).

    Raises:
        InvalidArgumentError: it does not.
    """
    tensor = convert(x)
    if not TensorShape(shape).is_compatible_with(tensor.shape):
        raise InvalidArgumentError(f"ensure_shape: {tensor.spec} does not fit {TensorShape(shape)}")
    return identity_(tensor)
