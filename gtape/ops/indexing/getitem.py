"""x[…]: basic and advanced indexing, and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule, at_home
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.symbolic_dim import slice_length
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import Variable
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int
from gtape.ops.elementwise.scalars import where
from gtape.ops.indexing.gathering import gather, gather_nd
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import broadcast_to_
from gtape.ops.shape.packing import stack_
from gtape.trace.symbolic_tensor import SymbolicTensor

#: One entry of a basic index: an int, None (a new axis), or ("slice", start, stop, step).
Entry = int | None | tuple[str, int | None, int | None, int | None]
WHOLE_AXIS = ("slice", None, None, None)


def _native(key: tuple[Entry, ...]) -> tuple[object, ...]:
    return tuple(slice(*e[1:]) if type(e) is tuple else e for e in key)


def _result_shape(shape: tuple[int, ...], key: tuple[Entry, ...]) -> tuple[int, ...]:
    made, axis = [], 0
    for entry in key:
        if entry is None:
            made.append(1)
            continue
        if type(entry) is tuple:
            made.append(slice_length(shape[axis], *entry[1:]))
        axis += 1
    return (*made, *shape[axis:])


@primitive(linear="x", tf_name="StridedSlice")
def getitem_(xp: ArrayModule, x: Any, *, key: tuple[Entry, ...]) -> Any:
    """y = x[key] for ints, slices and new axes."""
    return x[_native(key)]


@getitem_.infer
def _(x: Spec, *, key: tuple[Entry, ...]) -> Spec:
    axis = 0
    for entry in key:
        if entry is None:
            continue
        if axis >= x.ndim:
            raise InvalidArgumentError(f"x[…]: too many indices for {x}, which has rank {x.ndim}")
        # By the shape: a trace has no array that would raise. Slices are cut off, as in Python.
        if type(entry) is int and not -x.shape[axis] <= entry < x.shape[axis]:
            raise InvalidArgumentError(f"x[…]: index {entry} is out of bounds for axis {axis} of "
                                       f"{x}, whose length is {x.shape[axis]}")
        axis += 1
    return x.reshaped(_result_shape(x.shape, key))


getitem_.vjp(x=lambda g, x_spec, *, key: put_(g, key=key, shape=x_spec.shape))
getitem_.cases = [case((3, 4), key=(1,)), case((3, 4), key=(("slice", None, None, 2), None, -1)),
                  case((4,), key=(("slice", 3, 0, -1),))]


@primitive(linear="x", tf_name="StridedSliceGrad")
def put_(xp: ArrayModule, x: Array, *, key: tuple[Entry, ...], shape: tuple[int, ...]) -> Array:
    """Zeros of `shape` with y[key] = x: the adjoint of getitem."""
    y = xp.zeros(shape, x.dtype)
    y[_native(key)] = x
    return y


put_.infer(lambda x, *, shape, **_: x.reshaped(shape))
put_.vjp(x=lambda g, *, key: getitem_(g, key=key))
put_.cases = [case((4,), key=(1,), shape=(3, 4)),
              case((2, 1), key=(("slice", None, None, 2), None, -1), shape=(3, 4))]


def getitem(x: Any, key: object) -> Tensor:
    """x[key]: ints, slices, …, new axes, integer tensors, boolean masks, integer arrays. Raises
    InvalidArgumentError: out of bounds, or too many indices; TypeError: an index of another type;
    ValueError: a scalar mask."""
    tensor = x._read_() if isinstance(x, Variable) else x
    # x[i] in loops over rows: nothing is to be resolved.
    if type(key) is int:
        return getitem_(tensor, key=(key,))
    entries = key if isinstance(key, tuple) else (key,)
    parts = [_entry(e) for e in entries]
    arrays = [i for i, e in enumerate(parts) if isinstance(e, (np.ndarray, Tensor))]
    if arrays:
        return _advanced(x, tensor, parts, arrays)
    return getitem_(tensor, key=_expanded(parts, tensor.ndim))


def _expanded(entries: list[Any], ndim: int) -> tuple[Entry, ...]:
    """`entries` with the ellipsis written out."""
    at = next((i for i, e in enumerate(entries) if e is Ellipsis), None)
    if at is None:
        return tuple(entries)
    # New axes use up none of the tensor's.
    used = sum(1 for e in entries if e is not None and e is not Ellipsis)
    return (*entries[:at], *[WHOLE_AXIS] * max(ndim - used, 0), *entries[at + 1:])


def _bound(value: int | None) -> int | None:
    return None if value is None else as_int(value, "a slice bound")


def _entry(e: object) -> Any:
    if e is None or e is Ellipsis or type(e) is int:
        return e
    if isinstance(e, slice):
        step = _bound(e.step)
        if step == 0:
            raise InvalidArgumentError("x[…]: a slice step must not be 0")
        return ("slice", _bound(e.start), _bound(e.stop), step)
    # Before integers: True is 1 to Python, and a mask of rank 0 to NumPy.
    if isinstance(e, (bool, np.bool_)):
        raise ValueError("x[…]: a mask must not be a scalar; use tf.where or an if")
    if isinstance(e, np.integer):
        return int(e)
    if isinstance(e, Variable):
        e = e._read_()
    if isinstance(e, Tensor):
        if e.dtype.is_integer and not e.ndim and type(e) is not SymbolicTensor:
            return int(e._exit("an index")[()])
        if e.dtype.is_integer or (e.dtype.is_bool and e.ndim):
            return e
    elif isinstance(e, np.ndarray) and e.dtype.kind == "b" and e.ndim:
        return e
    elif isinstance(e, np.ndarray) and e.dtype.kind in "iu":
        raise TypeError("x[…]: index with a list or an integer tensor, or write "
                        "tf.gather(x, indices); a NumPy array of integers is not taken")
    elif isinstance(e, list):
        try:
            array = np.asarray(e)
        except ValueError:
            array = np.array(None)  # a ragged list: of no kind that is taken below
        if array.dtype.kind in "iu" or (array.dtype.kind == "b" and array.ndim):
            return array
        if not array.size:
            return array.astype(np.int32)  # NumPy makes an empty list float64
    raise TypeError(f"x[…]: an index must be an int, a slice, …, tf.newaxis, an integer tensor or "
                    f"a boolean mask; got {shown(e)} of type {type(e).__name__}")


def _advanced(x: TensorLike, tensor: Tensor, entries: list[Any], arrays: list[int]) -> Tensor:
    """One integer array or mask among slices, or integer arrays for all leading axes."""
    first = entries[arrays[0]]
    index = first if isinstance(first, Tensor) else convert(first, None, tensor._t.device)
    # A mask's result has a length that only its values say.
    if index.dtype.is_bool:
        if len(entries) > 1:
            raise TypeError("x[…]: a mask must be the only index; use tf.boolean_mask with axis")
        from gtape.ops.indexing.masking import boolean_mask  # of use to masks alone

        return boolean_mask(tensor, index)
    if len(arrays) > 1 and all(type(entries[i]) is SymbolicTensor and not entries[i].ndim
                               for i in arrays):
        return _one_by_one(tensor, entries)
    if len(arrays) > 1:
        return _all_arrays(tensor, entries, arrays)
    expanded = list(_expanded(entries, tensor.ndim))
    at = next(i for i, e in enumerate(expanded) if isinstance(e, (np.ndarray, Tensor)))
    if len(expanded) == 1:
        return gather(x, _wrapped(index, tensor.spec.shape[0]))
    expanded[at] = WHOLE_AXIS
    rest = getitem_(tensor, key=tuple(expanded))
    axis = sum(1 for e in expanded[:at] if type(e) is not int)  # axes of ints are gone by then
    return gather(rest, _wrapped(index, rest.spec.shape[axis]), axis=axis)


def _one_by_one(tensor: Tensor, entries: list[object]) -> Tensor:
    """Several integers among the entries that are known only when the traced function runs."""
    expanded: list[Any] = list(_expanded(entries, tensor.ndim))
    picks: list[tuple[int, Tensor]] = []
    axis = 0
    for at, e in enumerate(expanded):
        if isinstance(e, Tensor):
            picks.append((axis, e))
            expanded[at] = WHOLE_AXIS
        axis += type(e) is not int
    y = getitem_(tensor, key=tuple(expanded))
    # From the last axis on, so that the numbers of the others hold.
    for axis, index in reversed(picks):
        y = gather(y, _wrapped(index, y.spec.shape[axis]), axis=axis)
    return y


@at_home
def _wrapped(index: Tensor, length: int) -> Tensor:
    """Negative indices counted from the end, as Python does."""
    if type(index) is SymbolicTensor:
        return where(index < 0, index + length, index)
    array = index._array_()
    # The common case keeps the tensor itself: nothing new to record or to upload.
    if not array.size or not bool((array < 0).any()):
        return index
    y = array + (array < 0) * np.asarray(length, array.dtype)
    return EagerTensor(y.astype(array.dtype), index._t)


def _all_arrays(tensor: Tensor, entries: list[object], arrays: list[int]) -> Tensor:
    if arrays != list(range(len(entries))):
        raise TypeError("x[…]: several index arrays must come first and alone; use tf.gather_nd, "
                        "or index one axis at a time")
    device = tensor._t.device
    parts = [cast(_wrapped(convert(e, None, device), n), int64)
             for e, n in zip(entries, tensor.spec.shape)]
    shape = broadcast_shapes("x[…]", *(p.spec for p in parts))
    return gather_nd(tensor, stack_(*(broadcast_to_(p, shape=shape) for p in parts),
                                    axis=len(shape)))


for _class in (Tensor, Variable):
    setattr(_class, "__getitem__", getitem)  # noqa: B010
