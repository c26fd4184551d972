"""boolean_mask: the elements where a mask is true. sequence_mask: masks of lengths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.context import paused
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule, at_home
from gtape.core.dtypes import as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, as_int
from gtape.ops.elementwise.scalars import less
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import expand_dims, reshape_


@primitive(linear="x", tf_name="GatherV2")
def compress_(xp: ArrayModule, x: Array, index: Array, *, axis: int) -> Array:
    """y[…, i, …] = x[…, index[i], …] along `axis`, for distinct valid indices."""
    return xp.take(x, index, axis=axis)


compress_.infer(lambda x, index, *, axis:
                x.reshaped((*x.shape[:axis], *index.shape, *x.shape[axis + 1:])))
compress_.vjp(x=lambda g, x_spec, index, *, axis:
              expand_(g, index, axis=axis, length=x_spec.shape[axis]))


# Distinct, as the ops ask; out of order, so that a mix-up shows.
_INDEX = np.array([3, 0, 2], np.int64)
compress_.cases = [case((4, 2), _INDEX, axis=0), case((2, 5), _INDEX, axis=1)]


@primitive(linear="x", tf_name="ScatterNd")
def expand_(xp: ArrayModule, x: Array, index: Array, *, axis: int, length: int) -> Array:
    """Zeros of `length` along `axis`, with y[…, index[i], …] = x[…, i, …]: compress's adjoint."""
    y = xp.zeros((*x.shape[:axis], length, *x.shape[axis + 1:]), x.dtype)
    y[(slice(None),) * axis + (index,)] = x
    return y


expand_.infer(lambda x, index, *, axis, length:
              x.reshaped((*x.shape[:axis], length, *x.shape[axis + 1:])))
expand_.vjp(x=lambda g, index, *, axis: compress_(g, index, axis=axis))
expand_.cases = [case((3, 2), _INDEX, axis=0, length=4), case((2, 3), _INDEX, axis=1, length=5)]


@at_home
def boolean_mask(tensor: TensorLike, mask: TensorLike, axis: IntsLike | None = None,
                 name: str = "boolean_mask") -> Tensor:
    """The slices of `tensor` where `mask` is true, in row-major order.

    Args:
        mask: bools [*M], where M are the lengths of the axes of `tensor` from `axis` on.
        axis: the first axis masked; 0 unless given.

    Returns:
        tensor.shape[:axis] + [number of true] + tensor.shape[axis + rank of mask:]. The gradient
        is 0 where the mask is false.

    Raises:
        ValueError: a scalar mask, a mask of another shape, or one that is not bool.
    """
    x = convert(tensor)
    chosen = convert(mask, None, x._t.device)
    if not chosen.ndim:
        raise ValueError("boolean_mask: the mask must not be a scalar; use tf.where or an if")
    if chosen.dtype.is_integer:
        # TensorFlow takes integers for masks too; floats are refused as a likely mistake.
        chosen = chosen != 0  # type: ignore[assignment]
    if not chosen.dtype.is_bool:
        raise InvalidArgumentError(f"boolean_mask: the mask must be bool; got {chosen.spec}. "
                                   f"Write a comparison such as x > 0")
    at = 0 if axis is None else as_int(axis, "boolean_mask: axis")
    at = at + x.ndim if at < 0 else at
    shape, lengths = x.spec.shape, chosen.spec.shape
    end = at + len(lengths)
    if at < 0 or shape[at:end] != lengths:
        raise InvalidArgumentError(f"boolean_mask: from axis {at} on, {x.spec} must have the "
                                   f"lengths {list(lengths)} of the mask")
    # The number of results is known only by looking: on a GPU this waits.
    flat = chosen._t.xp.flatnonzero(chosen._array_().reshape(-1))
    index = EagerTensor(flat, chosen._t.device.type_of(flat.dtype))
    if len(lengths) > 1:  # a vector for a mask needs no reshape
        x = reshape_(x, shape=(*shape[:at], math.prod(lengths), *shape[end:]))
    # Distinct indices: the adjoint writes rows and need not add them.
    return compress_(x, index, axis=at)


def _count(longest: Any) -> int:
    if not np.isfinite(longest):  # int() would raise an error that names no function
        raise InvalidArgumentError(f"sequence_mask: lengths must be finite; got {longest}")
    return max(int(longest), 0)  # where all lengths are negative


@at_home
def sequence_mask(lengths: TensorLike, maxlen: int | None = None, dtype: object = dtypes.bool_,
                  name: str | None = None) -> Tensor:
    """y[…, j] = j < int(lengths[…]), for j in [0, maxlen). Not differentiable.

    Args:
        maxlen: the length of the new last axis; the largest of `lengths` unless given.
        dtype: of the result: True and False, or 1 and 0.

    Raises:
        InvalidArgumentError: `lengths` are not numbers, or `maxlen` is not one; the longest is
            infinite or NaN.
    """
    x = convert(lengths)
    if not (x.dtype.is_integer or x.dtype.is_floating):
        raise InvalidArgumentError(f"sequence_mask: lengths must be numbers; got {x.spec}")
    if maxlen is None:
        array = x._array_()
        count = _count(array.max()) if array.size else 0  # nothing has no largest
    else:
        count = _count(as_float(maxlen, "sequence_mask: maxlen"))
    with paused():  # bools have no gradient: nothing to record
        with room_for("sequence_mask", Spec((*x.spec.shape, count), dtypes.bool_)):
            places = convert(np.arange(count), dtypes.int64, x._t.device)
        hit = less(places, cast(expand_dims(x, -1), dtypes.int64))
    return cast(hit, as_dtype(dtype))
