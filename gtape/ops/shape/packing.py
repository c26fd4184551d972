"""concat, stack, split and unstack: many tensors and one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from gtape.core import convert as conversion
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule, current_device, on
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec, normal_axes
from gtape.core.tensor import Readable, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_ints, as_items, as_tensors, host_value, one_dtype
from gtape.ops.shape.casting import cast
from gtape.ops.shape.creation import zeros


@primitive(linear="values", tf_name="ConcatV2")
def concat_(xp: Any, *values: object, axis: int) -> Any:
    """The tensors one after another along `axis`."""
    return xp.concatenate(values, axis=axis)


@concat_.infer
def _(*values: Spec, axis: int) -> Spec:
    one_dtype("concat", values)
    first = values[0]
    rest = [s.shape[:axis] + s.shape[axis + 1:] for s in values]
    if any(s.ndim != first.ndim for s in values) or any(r != rest[0] for r in rest):
        raise InvalidArgumentError(f"concat: all axes but axis {axis} must have equal lengths; got "
                                   f"{', '.join(map(str, values))}")
    total = sum(s.shape[axis] for s in values)
    return first.reshaped((*first.shape[:axis], total, *first.shape[axis + 1:]))


@concat_.vjp("values")
def _(g: Tensor, values_spec: Spec, *, axis: int) -> tuple[Tensor, ...]:
    return split_(g, sizes=tuple(s.shape[axis] for s in values_spec), axis=axis)  # type: ignore


concat_.cases = [case((2, 3), (2, 1), axis=1), case((2,), (3,), (1,), axis=0)]


@takes_composites
def concat(values: TensorLike, axis: IntsLike, name: str = "concat") -> Tensor:
    """The tensors joined along an existing axis.

    Raises:
        InvalidArgumentError: ranks, other lengths or dtypes differ; or there is no such axis.
    """
    if isinstance(values, Tensor):
        values = [values]  # TensorFlow takes one tensor for a list of one
    tensors = as_tensors(values, "concat")
    if not tensors:
        raise ValueError("concat needs at least one tensor; got an empty list")
    if not tensors[0].ndim:
        raise InvalidArgumentError("concat: scalars have no axis to join along; use tf.stack")
    (at,) = normal_axes("concat", as_int(axis, "concat: axis"), tensors[0].ndim)
    return concat_(*tensors, axis=at)


@primitive(linear="value", tf_name="SplitV")
def split_(xp: ArrayModule, value: Array, *, sizes: tuple[int, ...], axis: int) -> list[Array]:
    """Consecutive pieces of the given sizes along `axis`."""
    # NumPy takes the places of the cuts, and the end is none.
    return list(xp.split(value, list(accumulate(sizes))[:-1], axis=axis))


split_.many = True

#: Of an axis of length 0 any number of parts could be made.
_MOST_PARTS = 2 ** 16


@split_.infer
def _(value: Spec, *, sizes: tuple[int, ...], axis: int) -> tuple[Spec, ...]:
    if sum(sizes) != value.shape[axis]:
        raise InvalidArgumentError(f"split: the sizes {list(sizes)} must add up to the length "
                                   f"{value.shape[axis]} of axis {axis} of {value}")
    return tuple(value.reshaped((*value.shape[:axis], n, *value.shape[axis + 1:])) for n in sizes)


@split_.vjp("value")
def _(gs: Any, value_spec: Spec, *, sizes: tuple[int, ...], axis: int) -> Tensor:
    before, after = value_spec.shape[:axis], value_spec.shape[axis + 1:]
    specs = [value_spec.reshaped((*before, n, *after)) for n in sizes]
    return concat_(*filled(gs, specs), axis=axis)


split_.cases = [case((2, 6), sizes=(1, 2, 3), axis=1)]


def filled(gs: Sequence[Tensor | None], specs: Sequence[Spec]) -> list[Tensor]:
    """Cotangents with zeros where nothing arrived."""
    # Zeros go where the cotangents are, whatever device is the current one.
    place = next((g._t.device for g in gs if g is not None), None)
    with on(place or current_device()):
        return [zeros(s.shape, s.dtype) if g is None else g for g, s in zip(gs, specs)]


@takes_composites
def split(value: TensorLike, num_or_size_splits: int, axis: IntsLike = 0, num: Any = None,
          name: str = "split") -> list[Tensor]:
    """`value` cut along `axis` into a number of equal parts, or into parts of given sizes.

    One size may be -1. `num`, where given, must be the number of parts.

    Raises:
        InvalidArgumentError: the sizes do not add up, the parts are not equal, or `num` is another
            number than that of the parts.
    """
    x = convert(value)
    if not x.ndim:
        raise InvalidArgumentError("split: a scalar cannot be split")
    (at,) = normal_axes("split", as_int(axis, "split: axis"), x.ndim)
    length = x.spec.shape[at]
    if host_value(num_or_size_splits, "split: sizes").ndim == 0:
        parts = as_int(num_or_size_splits, "split: number")
        if parts <= 0 or length % parts:
            raise InvalidArgumentError(f"split: axis {at} of {x.spec} has length {length}, which "
                                       f"is not a multiple of {parts}")
        # 0 is a multiple of every number, and a list of 10**12 empty tensors fills the memory.
        if parts > max(length, _MOST_PARTS):
            raise InvalidArgumentError(f"split: axis {at} of {x.spec} has length {length}; it "
                                       f"cannot make {parts} parts")
        sizes = (length // parts,) * parts
    else:
        sizes = as_ints(num_or_size_splits, "split: sizes")
        # Two -1 stay negative, and are refused below.
        if sizes.count(-1) == 1:
            rest = length - sum(n for n in sizes if n != -1)
            sizes = tuple(rest if n == -1 else n for n in sizes)
        if any(type(n) is int and n < 0 for n in sizes):
            raise InvalidArgumentError(f"split: sizes must be 0 or more, one may be -1, and they "
                                       f"must add up to the length {length} of axis {at} of "
                                       f"{x.spec}; got {shown(num_or_size_splits)}")
    if num is not None and as_int(num, "split: num") != len(sizes):
        raise InvalidArgumentError(f"split: num must be the number of parts, {len(sizes)}; got "
                                   f"{num}. It can be left out")
    return list(split_(x, sizes=sizes, axis=at))


@primitive(linear="values", tf_name="Pack")
def stack_(xp: Any, *values: object, axis: int) -> Any:
    """The tensors side by side along a new axis."""
    return xp.stack(values, axis=axis)


@stack_.infer
def _(*values: Spec, axis: int) -> Spec:
    one_dtype("stack", values)
    first = values[0]
    if any(s.shape != first.shape for s in values):
        raise InvalidArgumentError(f"stack: the tensors must have one shape; got "
                                   f"{', '.join(map(str, values))}")
    return first.reshaped((*first.shape[:axis], len(values), *first.shape[axis:]))


stack_.vjp(values=lambda g, values_spec, *, axis: unstack_(g, axis=axis))
stack_.cases = [case((2, 3), (2, 3), axis=1), case((), (), axis=0)]


@takes_composites
def stack(values: TensorLike, axis: IntsLike = 0, name: str = "stack") -> Tensor:
    """The tensors of one shape joined along a new axis. Python numbers are as in tf.constant.

    Raises:
        InvalidArgumentError: shapes or dtypes differ; or there is no such axis.
    """
    if isinstance(values, Tensor):
        # A tensor is the list of its rows: stacked along axis 0 they are the tensor.
        return values if axis == 0 else stack(unstack(values), axis)
    values = as_items(values, "stack: values")
    # Nested Python numbers are one constant; op by op each leaf would be a tensor first.
    if axis == 0 and not any(isinstance(v, (Tensor, Readable)) for v in values):
        return convert(values)
    tensors = as_tensors(values, "stack")
    if not tensors:
        raise ValueError("stack needs at least one tensor; got an empty list")
    (at,) = normal_axes("stack", as_int(axis, "stack: axis"), tensors[0].ndim + 1)
    return stack_(*tensors, axis=at)


@primitive(linear="value", tf_name="Unpack")
def unstack_(xp: ArrayModule, value: Array, *, axis: int) -> list[Array]:
    """The slices of `value` along `axis`, without that axis."""
    # Views: unstacked rows of a large tensor cost no memory of their own.
    moved = xp.moveaxis(value, axis, 0)
    return [moved[i] for i in range(value.shape[axis])]


unstack_.many = True


@unstack_.infer
def _(value: Spec, *, axis: int) -> tuple[Spec, ...]:
    part = value.reshaped(value.shape[:axis] + value.shape[axis + 1:])
    return (part,) * value.shape[axis]


@unstack_.vjp("value")
def _(gs: Any, value_spec: Spec, *, axis: int) -> Tensor:
    part = value_spec.reshaped(value_spec.shape[:axis] + value_spec.shape[axis + 1:])
    return stack_(*filled(gs, [part] * len(gs)), axis=axis)


unstack_.cases = [case((3, 2), axis=0), case((2, 3), axis=1)]


def unstack(value: TensorLike, num: Any = None, axis: IntsLike = 0, name: str = "unstack",
            ) -> list[Tensor]:
    """The slices of `value` along `axis`.

    Raises:
        ValueError: a scalar, or `num` differs from the length.
    """
    x = convert(value)
    if not x.ndim:
        raise ValueError("unstack: a scalar has no axis to unstack")
    (at,) = normal_axes("unstack", as_int(axis, "unstack: axis"), x.ndim)
    if num is not None and as_int(num, "unstack: num") != x.spec.shape[at]:
        raise ValueError(f"unstack: num={num}, but axis {at} of {x.spec} has length "
                         f"{x.spec.shape[at]}")
    return list(unstack_(x, axis=at))


def pack(value: TensorLike, dtype: Any) -> Tensor:
    """A nested list that holds tensors, as one tensor; where a dtype is asked for they are cast."""
    def packed(items: Any) -> Tensor:
        return stack([packed(v) if isinstance(v, (list, tuple)) and conversion.holds_tensor(v)
                      else item(v) for v in items])

    def item(leaf: TensorLike) -> Any:
        if dtype is None:
            return leaf
        is_tensor = isinstance(leaf, (Tensor, Readable))
        return cast(leaf, dtype) if is_tensor else convert(leaf, dtype)

    return packed(value)


def parallel_stack(values: TensorLike, name: str = "parallel_stack") -> Tensor:
    """`stack` along a new first axis."""
    return stack(values, 0)


