"""Sums of whole tensors, and tensors scaled by a number."""

from __future__ import annotations

import functools
from typing import Any, SupportsFloat

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert, convert_like
from gtape.core.dtypes import as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import case
from gtape.core.shape import TensorShape
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_tensors, one_dtype, taken
from gtape.ops.elementwise import scalars as s


@primitive(linear="values", tf_name="AddN")
def add_n_(xp: Any, *values: object) -> Any:
    """y = Σ of the tensors."""
    total = xp.add(values[0], values[1])
    for value in values[2:]:
        total = xp.add(total, value, out=total) if total.ndim else total + value
    return total


@add_n_.infer
def _(*values: Spec) -> Spec:
    one_dtype("add_n", values)
    if any(v.shape != values[0].shape for v in values):
        raise InvalidArgumentError(f"add_n: the tensors must have one shape; got "
                                   f"{', '.join(map(str, values))}. Nothing is broadcast: use +")
    return taken("add_n", "numbers", values[0])


add_n_.defined(lambda *values: functools.reduce(s.add, values))
add_n_.literal = True
add_n_.vjp(values=lambda g, values_spec: [g] * len(values_spec))
add_n_.cases = [case((2, 3), (2, 3), (2, 3)), case((), ())]


def _dense(value: TensorLike) -> Any:
    return value.to_dense() if isinstance(value, IndexedSlices) else value


@takes_composites
def add_n(inputs: object, name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape and dtype; IndexedSlices count as dense.

    A list of one tensor gives that very tensor.

    Raises:
        ValueError: no list, or an empty one.
        InvalidArgumentError: shapes or dtypes differ.
    """
    if not hasattr(inputs, "__iter__") or getattr(inputs, "ndim", 1) == 0:
        raise ValueError(f"add_n takes a list of tensors; got {shown(inputs)}")
    values = [_dense(value) for value in inputs]
    if not values:
        raise ValueError("add_n needs at least one tensor; got an empty list")
    tensors = as_tensors(values, "add_n")
    return tensors[0] if len(tensors) == 1 else add_n_(*tensors)


def accumulate_n(inputs: TensorLike, shape: IntsLike | None = None, tensor_dtype: object = None,
                 name: str | None = None) -> Tensor:
    """`add_n`, with the shape and dtype checked where given.

    Raises:
        ValueError: no list, an empty one, or another shape or dtype than asked for.
        InvalidArgumentError: shapes or dtypes differ.
    """
    total = add_n(inputs)
    if shape is not None and not TensorShape(shape).is_compatible_with(total.shape):
        raise ValueError(f"accumulate_n: the tensors have shape {total.shape}, which does not fit "
                         f"{TensorShape(shape)}")
    if tensor_dtype is not None and total.dtype != as_dtype(tensor_dtype):
        raise ValueError(f"accumulate_n: the tensors are {total.dtype!r}, not {tensor_dtype!r}; "
                         f"use tf.cast")
    return total


def scalar_mul(scalar: SupportsFloat, x: TensorLike, name: str | None = None,
               ) -> IndexedSlices | Tensor:
    """`scalar` times a tensor or an IndexedSlices, in its dtype.

    Raises:
        ValueError: `scalar` is no scalar.
        InvalidArgumentError: `scalar` has another dtype than `x`.
    """
    if isinstance(x, IndexedSlices):
        return IndexedSlices(scalar_mul(scalar, x.values), x.indices, x.dense_shape)
    value = convert(x)
    factor = convert_like(scalar, value._t, "scalar_mul")
    if factor.ndim:
        raise ValueError(f"scalar_mul: the first argument must be a scalar; got {factor.spec}. "
                         f"Use * to multiply tensors")
    return s.multiply(factor, value)
