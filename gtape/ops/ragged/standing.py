"""What functions of tensors do with RaggedTensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype, int32
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, as_ints
from gtape.ops.elementwise import operators
from gtape.ops.ragged import joining, picking, reductions
from gtape.ops.ragged.elementwise import applied, mapped
from gtape.ops.ragged.ragged_tensor import RaggedTensor
from gtape.ops.ragged.shapes import DynamicRaggedShape
from gtape.ops.shape.layout import identity
from gtape.ops.sparse.counting import dense_bincount


def shape(input: RaggedTensor, out_type: Any = None, name: str | None = None,
          ) -> DynamicRaggedShape:
    return DynamicRaggedShape(input, int32 if out_type is None else as_dtype(out_type))


def size(input: RaggedTensor, out_type: Any = None, name: str | None = None) -> Tensor:
    from gtape.ops.shape.shapes import size

    return size(input.flat_values, out_type)


def rank(input: RaggedTensor, name: str | None = None) -> Tensor:
    return convert(np.int32(input.ragged_rank + input.flat_values.ndim), int32)


def reshape(tensor: RaggedTensor, shape: Any, name: str | None = None) -> Tensor:
    """All values in a row: the one shape that rows of any lengths have."""
    wanted = as_ints(shape, "reshape: shape")
    if wanted != (-1,):
        raise ValueError(f"reshape: a RaggedTensor can be given the shape [-1] alone; got "
                         f"{list(wanted)}. Write x.to_tensor() first")
    from gtape.ops.shape.layout import reshape

    return reshape(tensor.flat_values, [-1])


def add_n(inputs: Any, name: str | None = None) -> Any:
    made = inputs[0]
    for other in inputs[1:]:
        made = made + other
    return made


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None,
                  ) -> Any:
    from gtape.ops.elementwise.clipping import clip_by_value

    return applied("clip_by_value", clip_by_value, (t, clip_value_min, clip_value_max))


def _pairs(name: str) -> Callable[..., Any]:
    def function(x: Any, y: Any, name: str | None = None) -> Any:
        return applied(public, getattr(operators, public), (x, y))

    public = name
    return function


def _flat(module: str, name: str, first: str) -> Callable[..., Any]:
    """A function of the flat values alone, whose `first` parameter they are."""
    def function(*args: Any, **kwargs: Any) -> Any:
        import importlib

        x = args[0] if args else kwargs.pop(first)
        return mapped(getattr(importlib.import_module(module), name), x, *args[1:], **kwargs)

    return function


def unsorted_segments(name: str) -> Callable[..., Any]:
    def function(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        return reductions.grouped(public, data, segment_ids,
                                  as_int(num_segments, f"{public}: num_segments"))

    public = name
    return function


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add_n": add_n, "bincount": dense_bincount, "clip_by_value": clip_by_value,
    "concat": joining.concat,
    "divide_no_nan": _pairs("divide_no_nan"),
    "dropout": _flat("gtape.ops.nn.dropout", "dropout", "x"),
    "expand_dims": joining.expand_dims, "gather": picking.gather,
    "identity": lambda input, name=None: input._mapped_(_copied),
    "one_hot": picking.one_hot,
    "ones_like": _flat("gtape.ops.shape.creation", "ones_like", "input"),
    "rank": rank, "reduce_all": reductions.reduce_all, "reduce_any": reductions.reduce_any,
    "reduce_max": reductions.reduce_max, "reduce_mean": reductions.reduce_mean,
    "reduce_min": reductions.reduce_min, "reduce_prod": reductions.reduce_prod,
    "reduce_std": reductions.reduce_std, "reduce_sum": reductions.reduce_sum,
    "reduce_variance": reductions.reduce_variance, "reshape": reshape,
    "reverse": joining.reverse, "shape": shape, "size": size, "softmax": reductions.softmax,
    "split": joining.split, "squeeze": joining.squeeze, "stack": joining.stack,
    "tile": joining.tile, "truediv": _pairs("truediv"), "where": picking.where,
    "zeros_like": _flat("gtape.ops.shape.creation", "zeros_like", "input"),
    **{name: unsorted_segments(name) for name in (
        "unsorted_segment_sum", "unsorted_segment_prod", "unsorted_segment_max",
        "unsorted_segment_min", "unsorted_segment_mean", "unsorted_segment_sqrt_n")},
}


def _copied(part: Tensor) -> Tensor:
    return identity(part)
