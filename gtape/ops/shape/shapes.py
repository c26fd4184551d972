"""Shapes as values: shape, size, rank, and shapes that broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule, Device, current_device
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.spec import Spec, TensorShape, broadcast_shapes, check_size
from gtape.core.symbolic_dim import require_known
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import is_variable
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_ints, as_items, as_shape


def _described(value: Any) -> tuple[tuple[int, ...], Device]:
    """Shape of a value, and where numbers about it go: beside it, but as new tensors do where it is
    of strings, which stay on the host. The shape of a variable is known without reading it."""
    if not isinstance(value, Tensor) and hasattr(value, "to_dense"):
        return tuple(value.shape.as_list()), value.values._t.device
    x = value if isinstance(value, Tensor) or is_variable(value) else convert(value)
    device = current_device() if x.dtype is dtypes.string else x._t.device
    return require_known(x.spec.shape), device


def _integers(values: int | tuple[int, ...], out_type: DType | None, device: Device) -> Tensor:
    """An integer tensor beside the tensor it describes, so that the two can be combined."""
    dtype: DType = dtypes.int32 if out_type is None else as_dtype(out_type)
    if not dtype.is_integer:
        raise InvalidArgumentError(f"shape: out_type must be tf.int32 or tf.int64; got {dtype!r}")
    array = np.array(values, dtype.np_dtype)
    return EagerTensor(array if device.is_host else device.upload(array), device.typed(dtype))


@takes_composites
def shape(input: TensorLike, out_type: Any = None, name: str | None = None) -> Tensor:
    """The shape of `input` as an integer tensor [rank], int32 unless `out_type` says otherwise."""
    lengths, device = _described(input)
    return _integers(lengths, out_type, device)


def shape_n(
        input: Sequence[TensorLike], out_type: DTypeLike = dtypes.int32, name: str | None = None,
) -> list[Tensor]:
    """The shape of each tensor."""
    return [shape(x, out_type) for x in as_items(input, "shape_n: input")]


@takes_composites
def size(input: TensorLike, out_type: Any = None, name: str | None = None) -> Tensor:
    """The number of elements, as an integer scalar."""
    lengths, device = _described(input)
    return _integers(math.prod(lengths), out_type, device)


@takes_composites
def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """The number of axes, as an int32 scalar."""
    lengths, device = _described(input)
    return _integers(len(lengths), None, device)


def _led(shape: TensorShape, count: int) -> list[int | None]:
    """The lengths with ones before them, `count` in all."""
    lengths = list(shape.as_list())
    return [1] * (count - len(lengths)) + lengths


def broadcast_static_shape(shape_x: TensorLike, shape_y: TensorLike) -> TensorShape:
    """The shape to which two TensorShapes broadcast.

    Raises:
        ValueError: they do not.
    """
    x, y = TensorShape(shape_x), TensorShape(shape_y)
    if x.rank is None or y.rank is None:
        return TensorShape(None)
    common: list[int | None] = []
    count = max(x.rank, y.rank)
    for a, b in zip(_led(x, count), _led(y, count)):
        # An unknown length beside n > 1 must be n or 1: the result is n either way.
        lengths = {n for n in (a, b) if n is not None and n != 1}
        if len(lengths) > 1:
            raise ValueError(f"broadcast_static_shape: lengths must be equal or 1; got {x} "
                             f"and {y}")
        common.append(lengths.pop() if lengths else 1 if a == b == 1 else None)
    return TensorShape(common)


def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> Tensor:
    """The shape to which two shapes, given as integer vectors, broadcast.

    Raises:
        InvalidArgumentError: they do not.
    """
    # TensorFlow's op has one dtype for both; lists count as int32.
    wide = any(getattr(s, "dtype", None) == dtypes.int64 for s in (shape_x, shape_y))
    specs = [Spec(as_ints(s, "broadcast_dynamic_shape"), dtypes.int32) for s in (shape_x, shape_y)]
    y = broadcast_shapes("broadcast_dynamic_shape", *specs)
    return _integers(y, dtypes.int64 if wide else dtypes.int32, current_device())


@primitive(nondifferentiable=True)
def unravel_index_(xp: ArrayModule, indices: Array, *, dims: tuple[int, ...]) -> Array:
    """[rank, …]: the coordinates of flat indices."""
    count = math.prod(dims)
    if indices.size and not (int(indices.min()) >= 0 and int(indices.max()) < count):
        raise InvalidArgumentError(f"unravel_index: indices must lie in [0, {count}) for dims "
                                   f"{list(dims)}; got {int(indices.min())} to "
                                   f"{int(indices.max())}")
    parts = xp.stack([xp.asarray(p) for p in xp.unravel_index(indices, dims)])
    return parts.astype(indices.dtype)  # NumPy counts in its own integer type


unravel_index_.infer(lambda indices, *, dims: indices.reshaped((len(dims), *indices.shape)))
unravel_index_.refuses = True
unravel_index_.cases = [case(ints(4, below=12), dims=(3, 4))]


def unravel_index(indices: TensorLike, dims: IntsLike, name: str | None = None) -> Tensor:
    """The coordinates [rank, *indices.shape] of flat `indices` in an array of shape `dims`.

    Raises:
        InvalidArgumentError: an index is outside the array, or not an integer.
    """
    flat = convert(indices)
    lengths = as_shape(dims, "unravel_index: dims")
    # First: NumPy refuses dims that no array can have without naming the op.
    check_size("unravel_index", Spec(lengths, flat.dtype))
    if not flat.dtype.is_integer:
        raise InvalidArgumentError(f"unravel_index: indices must be integers; got {flat.spec}")
    return unravel_index_(flat, dims=lengths)
