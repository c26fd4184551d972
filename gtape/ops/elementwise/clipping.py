"""Values, norms and global norms kept within limits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, SupportsFloat

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.tensor import Tensor
from gtape.opdef.scalar_graph import Expr
from gtape.ops.elementwise import scalars as s
from gtape.ops.linalg.norms import global_norm
from gtape.ops.reductions.reductions import prepared, reduce_sum_
from gtape.ops.shape.casting import cast


def _of_values(t: TensorLike, clipped: Tensor) -> IndexedSlices | Tensor:
    """`clipped` in the form of `t`, whose values it holds."""
    return IndexedSlices(clipped, t.indices, t.dense_shape) if isinstance(
        t, IndexedSlices) else clipped


def _values(t: TensorLike) -> Tensor:
    return t.values if isinstance(t, IndexedSlices) else convert(t)


@takes_composites
def clip_by_value(t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike,
                  name: str | None = None) -> IndexedSlices | Tensor:
    """max(min(t, high), low); the gradient passes at the limits too.

    The limits may be tensors that broadcast to the shape of `t`; they get the gradient of the
    elements they replace. IndexedSlices have their values clipped.

    Raises:
        InvalidArgumentError: dtypes differ, or the limits do not broadcast to the shape of `t`.
    """
    values = _values(t)
    clipped = s.clip(values, clip_value_min, clip_value_max)
    if clipped.spec.shape != values.spec.shape:
        raise InvalidArgumentError(
            f"clip_by_value: the limits must broadcast to the shape of {values.spec}; with them "
            f"the result would be {clipped.spec}")
    return _of_values(t, clipped)


#: A formula for real numbers: complex ones have no order.
_real_function = partial(s.scalar_function, types="real_float", domain=(0.2, 3.0))


@_real_function
def norm_limited(x: Any, limit: Any, norm: Expr) -> Expr:
    """x limit / max(norm, limit), and 0 where both are 0."""
    return s.divide_no_nan(x * limit, s.maximum(norm, limit))


def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: IntsLike | None = None,
                 name: str | None = None) -> Any:
    """t c / max(‖t‖, c): `t` with its Euclidean norm over `axes` brought down to c where larger.

    A negative c counts as 0. At ‖t‖ = c the gradient is that of the clipped side. For
    IndexedSlices the norm is that of the values, with repeated rows not added.

    Raises:
        ValueError: `t` is None.
        InvalidArgumentError: integers, or no such axis.
    """
    values, over = prepared("clip_by_norm", t.values if isinstance(t, IndexedSlices) else t, axes)
    # A number is bounded here: no op, and no record, for the common case.
    limit = (max(clip_norm, 0.0) if isinstance(clip_norm, (int, float))
             else s.maximum(clip_norm, 0.0))
    # `root` has the slope 0 at 0, where that of √ is infinite, and 0 times it nan.
    norm = s.root(reduce_sum_(s.square(values), axis=over, keepdims=True))
    return _of_values(t, norm_limited(values, limit, norm))


@_real_function
def global_scale(limit: Expr, norm: Any) -> Expr:
    """limit / max(norm, limit), and nan where the norm is not finite."""
    # norm - norm is 0, and nan where the norm is infinite or nan.
    return s.divide_no_nan(limit, s.maximum(norm, limit)) + (norm - norm)


def clip_by_global_norm(t_list: Sequence[TensorLike | None], clip_norm: SupportsFloat,
                        use_norm: TensorLike | None = None, name: str | None = None,
                        ) -> tuple[list[Tensor | None], Tensor]:
    """(tensors c / max(n, c), n), where n is the norm of all tensors together, or `use_norm`.

    Entries may be None, and stay None. A norm that is not finite makes every entry nan.

    Raises:
        TypeError: `t_list` is no list.
        InvalidArgumentError: integers.

    Source: Pascanu, Mikolov & Bengio 2013, arXiv:1211.5063.
    """
    if isinstance(t_list, (Tensor, str)) or not isinstance(t_list, Sequence):
        raise TypeError(f"clip_by_global_norm takes a list of tensors; got "
                        f"{type(t_list).__name__}. Write [t], or tf.clip_by_norm(t, …)")
    if use_norm is None:
        norm = global_norm(t_list)
    else:
        norm = convert(use_norm)
    scale = global_scale(clip_norm, norm)
    clipped: list[Any] = []
    for t in t_list:
        if t is None:
            clipped.append(None)
            continue
        values = _values(t)
        # There is one norm, but each tensor may have a dtype of its own.
        clipped.append(_of_values(t, s.multiply(values, cast(scale, values.dtype))))
    return clipped, norm
