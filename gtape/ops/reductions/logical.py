"""Logical reductions, and counts of what is not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import as_dtype, bool_, float32
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case
from gtape.core.spec import Spec, reduced
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.elementwise.scalars import equal, logical_not, not_equal
from gtape.ops.reductions.reductions import Axes, prepared, reduce_mean_, reduce_sum_, reduction
from gtape.ops.shape.casting import cast_


def _bool_spec(name: str, x: Spec, axis: Axes, keepdims: bool) -> Spec:
    if not x.dtype.is_bool:
        raise InvalidArgumentError(f"{name} takes bools; got {x}. Write a comparison such as "
                                   f"x > 0, or tf.cast(x, tf.bool)")
    return Spec(reduced(x.shape, axis, keepdims), bool_)


@primitive(nondifferentiable=True, tf_name="All")
def reduce_all_(xp: ArrayModule, x: Array, *, axis: Axes, keepdims: bool = False) -> Array:
    """y = whether all of x are true over `axis`."""
    return xp.all(x, axis=axis, keepdims=keepdims)


reduce_all_.on_cuda("kernels.reductions.reduce", operation="Min")
reduce_all_.infer(lambda x, *, axis, keepdims: _bool_spec("reduce_all", x, axis, keepdims))


@primitive(nondifferentiable=True, tf_name="Any")
def reduce_any_(xp: ArrayModule, x: Array, *, axis: Axes, keepdims: bool = False) -> Array:
    """y = whether any of x is true over `axis`."""
    return xp.any(x, axis=axis, keepdims=keepdims)


reduce_any_.on_cuda("kernels.reductions.reduce", operation="Max")
reduce_any_.infer(lambda x, *, axis, keepdims: _bool_spec("reduce_any", x, axis, keepdims))


_SOME = np.array([[True, False, True], [True, True, True]])
reduce_all_.cases = [case(_SOME, axis=(1,)), case(_SOME, axis=(0, 1), keepdims=True)]
reduce_any_.cases = reduce_all_.cases
reduce_all = reduction(reduce_all_, refuses="not bools",
                       doc="Whether all elements are true over `axis`; true for no elements.")
reduce_any = reduction(reduce_any_, refuses="not bools",
                       doc="Whether any element is true over `axis`; false for no elements.")


# ---------------------------------------------------------------- counts
def count_nonzero(input: TensorLike, axis: IntsLike | None = None, keepdims: bool | None = None,
                  dtype: object = "int64", name: str | None = None) -> Tensor:
    """How many elements are not 0 (or not an empty string) over `axis`. Not differentiable.

    Raises:
        InvalidArgumentError: no such axis.
    """
    x, axes = prepared("count_nonzero", input, axis)
    nothing: Any = "" if x.dtype.name == "string" else 0
    hit = x if x.dtype.is_bool else not_equal(x, nothing)
    return reduce_sum_(cast_(hit, dtype=as_dtype(dtype)), axis=axes, keepdims=bool(keepdims))


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The share of zeros among the elements, float32; nan for no elements."""
    x, axes = prepared("zero_fraction", value, None)
    zeros = logical_not(x) if x.dtype.is_bool else equal(x, 0)
    return reduce_mean_(cast_(zeros, dtype=float32), axis=axes)
