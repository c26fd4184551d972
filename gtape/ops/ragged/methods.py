"""What is built on RaggedTensors and given to them here: methods, Python's operators, and what
functions of tensors do with them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype, int32
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, as_ints
from gtape.ops.elementwise import clipping, operators, scalars
from gtape.ops.elementwise.operators import _divide, absolute, round_
from gtape.ops.nn.dropout import dropout
from gtape.ops.ragged import conversions, indexing, joining, reductions
from gtape.ops.ragged.elementwise import applied, mapped
from gtape.ops.ragged.partition import DynamicRaggedShape
from gtape.ops.ragged.ragged_tensor import RaggedTensor, rank_of
from gtape.ops.shape import identity as passing
from gtape.ops.shape import layout, shapes
from gtape.ops.shape.creation import ones_like, zeros_like
from gtape.ops.sparse.methods import dense_bincount

# ---------------------------------------------------------------------- functions of tensors


def shape(input: RaggedTensor, out_type: object = None, name: str | None = None,
          ) -> DynamicRaggedShape:
    return DynamicRaggedShape(input, int32 if out_type is None else as_dtype(out_type))


def size(input: RaggedTensor, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    return shapes.size(input.flat_values, out_type)


def rank(input: RaggedTensor, name: str | None = None) -> Tensor:
    return convert(np.int32(rank_of(input)), int32)


def identity(input: RaggedTensor, name: str | None = None) -> RaggedTensor:
    return input._mapped_(passing.identity)


def reshape(tensor: RaggedTensor, shape: IntsLike, name: str | None = None) -> Tensor:
    """All values in a row: the one shape that rows of any lengths have."""
    wanted = as_ints(shape, "reshape: shape")
    if wanted != (-1,):
        raise ValueError(f"reshape: a RaggedTensor can be given the shape [-1] alone; got "
                         f"{list(wanted)}. Write x.to_tensor() first")
    return layout.reshape(tensor.flat_values, [-1])


def add_n(inputs: Any, name: str | None = None) -> Any:
    total, *others = inputs
    for other in others:
        total = total + other
    return total


def clip_by_value(t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike,
                  name: str | None = None) -> Any:
    return applied("clip_by_value", clipping.clip_by_value, (t, clip_value_min, clip_value_max))


def _of_pairs(function: Callable[..., object]) -> Callable[..., Any]:
    return lambda x, y, name=None: applied(function.__name__, function, (x, y))


def _of_values(function: Callable[..., Any], first: str) -> Callable[..., Any]:
    """A function of the flat values alone, whose `first` parameter they are."""
    def of_rows(*args: Any, **kwargs: Any) -> Any:
        x = args[0] if args else kwargs.pop(first)
        return mapped(function, x, *args[1:], **kwargs)

    return of_rows


def _of_segments(public: str) -> Callable[..., Any]:
    def function(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        return reductions.grouped(public, data, segment_ids,
                                  as_int(num_segments, f"{public}: num_segments"))

    return function


RaggedTensor._functions_ = {
    "add_n": add_n, "bincount": dense_bincount, "clip_by_value": clip_by_value,
    "concat": joining.concat, "divide_no_nan": _of_pairs(operators.divide_no_nan),
    "dropout": _of_values(dropout, "x"), "expand_dims": joining.expand_dims,
    "gather": indexing.gather, "identity": identity, "one_hot": indexing.one_hot,
    "ones_like": _of_values(ones_like, "input"), "rank": rank,
    "reduce_all": reductions.reduce_all, "reduce_any": reductions.reduce_any,
    "reduce_max": reductions.reduce_max, "reduce_mean": reductions.reduce_mean,
    "reduce_min": reductions.reduce_min, "reduce_prod": reductions.reduce_prod,
    "reduce_std": reductions.reduce_std, "reduce_sum": reductions.reduce_sum,
    "reduce_variance": reductions.reduce_variance, "reshape": reshape,
    "reverse": joining.reverse, "shape": shape, "size": size, "softmax": reductions.softmax,
    "split": joining.split, "squeeze": joining.squeeze, "stack": joining.stack,
    "tile": joining.tile, "truediv": _of_pairs(operators.truediv), "where": indexing.where,
    "zeros_like": _of_values(zeros_like, "input"),
    **{name: _of_segments(name) for name in (
        "unsorted_segment_sum", "unsorted_segment_prod", "unsorted_segment_max",
        "unsorted_segment_min", "unsorted_segment_mean", "unsorted_segment_sqrt_n")},
}

# ---------------------------------------------------------------------- methods

RaggedTensor.from_tensor = staticmethod(conversions.from_tensor)
RaggedTensor.from_sparse = staticmethod(conversions.from_sparse)
RaggedTensor.to_tensor = conversions.to_tensor
RaggedTensor.to_sparse = conversions.to_sparse
RaggedTensor.bounding_shape = conversions.bounding_shape
RaggedTensor.merge_dims = conversions.merge_dims
RaggedTensor.__getitem__ = indexing.item


def _operator(name: str, function: Callable[..., object], reflected: bool) -> Callable[..., Any]:
    def method(self: RaggedTensor, other: TensorLike | CompositeTensor) -> RaggedTensor:
        pair = (other, self) if reflected else (self, other)
        return applied(name, function, pair)

    return method


def _bits(logical: Any, integer: Any) -> Callable[..., Any]:
    return lambda x, y: (logical if x.dtype.is_bool else integer)(x, y)


_REFLECTED: dict[str, Callable[..., Any]] = {
    "add": scalars.add, "sub": scalars.subtract, "mul": scalars.multiply, "truediv": _divide,
    "floordiv": scalars.floordiv, "mod": scalars.floormod, "pow": scalars.power,
    "and": _bits(scalars.logical_and, scalars.bitwise_and),
    "or": _bits(scalars.logical_or, scalars.bitwise_or),
    "xor": _bits(scalars.logical_xor, scalars.bitwise_xor)}
_COMPARED = {"lt": scalars.less, "le": scalars.less_equal,
             "gt": scalars.greater, "ge": scalars.greater_equal}
_MEMBERS: dict[str, Callable[..., Any]] = {
    **{f"__{name}__": _operator(name, function, False)
       for name, function in (_REFLECTED | _COMPARED).items()},
    **{f"__r{name}__": _operator(name, function, True) for name, function in _REFLECTED.items()},
    "__neg__": lambda self: mapped(operator.neg, self),
    "__abs__": lambda self: mapped(absolute, self),
    "__round__": lambda self, digits=None: mapped(round_, self),
    "__invert__": lambda self: mapped(
        scalars.logical_not if self.dtype.is_bool else scalars.invert, self),
    # None is compared with in Python code that asks whether there is a value.
    "__eq__": lambda self, other: other is not None and applied(
        "equal", scalars.equal, (self, other)),
    "__ne__": lambda self, other: other is None or applied(
        "not_equal", scalars.not_equal, (self, other)),
    "_elementwise_": lambda self, op, args: applied(op.name, op.python, args)}
for _name, _member in _MEMBERS.items():
    setattr(RaggedTensor, _name, _member)
