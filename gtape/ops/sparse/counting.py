"""bincount: how often each number occurs, as a SparseTensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int
from gtape.ops.indexing.gathering import scatter_rows_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_
from gtape.ops.sparse.conversions import int64_rows, to_dense
from gtape.ops.sparse.places import host_rows, pick, placed
from gtape.ops.sparse.tensor import SparseTensor


def _numbers(name: str, values: Any) -> tuple[np.ndarray, np.ndarray, int, Tensor, bool]:
    """The numbers, the row of each, how many rows there are, the numbers as a tensor, and whether
    there is only one vector."""
    if isinstance(values, SparseTensor):
        x = values.values
        rows = host_rows(values)
        vector = len(values._lengths) == 1
        owner = np.zeros(len(rows), np.int64) if vector else rows[:, 0]
        count = 1 if vector else values._lengths[0]
    elif hasattr(values, "row_splits"):
        x, owner = values.flat_values, values.value_rowids()._peek()
        count, vector = len(values.row_splits._peek()) - 1, False
    else:
        dense = convert(values)
        if dense.ndim not in (1, 2):
            raise InvalidArgumentError(f"{name}: values must be a vector or a matrix; got "
                                       f"{dense.spec}")
        vector = dense.ndim == 1
        count = 1 if vector else dense.spec.shape[0]
        length = dense.spec.shape[-1]
        from gtape.ops.shape.layout import reshape_

        x = reshape_(dense, shape=(count * length,))
        owner = np.repeat(np.arange(count), length)
    if not x.dtype.is_integer:
        raise InvalidArgumentError(f"{name}: values must be integers; got {x.spec}")
    found = np.asarray(x._peek()).astype(np.int64)  # type: ignore[attr-defined]
    if found.size and found.min() < 0:
        raise InvalidArgumentError(f"{name}: values must be 0 or more; got {int(found.min())}")
    return found, owner, count, x, vector


def _weights(weights: Any, numbers: Tensor) -> Tensor:
    flat = getattr(weights, "flat_values", None)
    if isinstance(weights, SparseTensor):
        flat = weights.values
    if flat is None:
        dense = convert(weights, None, numbers._t.device)
        flat = reshape_(dense, shape=(int(np.prod(dense.spec.shape)),))
    if not (flat.dtype.is_integer or flat.dtype.is_differentiable):
        raise InvalidArgumentError(f"bincount: weights must be numbers; got {flat.spec}")
    if flat.spec.shape != numbers.spec.shape:
        raise InvalidArgumentError(f"bincount: weights must have the shape of values; got "
                                   f"{flat.spec} beside {numbers.spec}")
    return flat


def _limit(value: Any, what: str) -> int | None:
    """A length; None for none, which -1 means too."""
    if value is None:
        return None
    found = as_int(value, f"bincount: {what}")
    if not -1 <= found < 1 << 63:
        raise InvalidArgumentError(f"bincount: {what} must be 0 or more, and int64; got {found}. "
                                   f"Write -1 or None for none")
    return None if found < 0 else found


def bincount(values: Any, weights: Any = None, axis: Any = 0, minlength: Any = None,
             maxlength: Any = None, binary_output: bool = False, name: str | None = None,
             ) -> SparseTensor:
    """y[v] = how often v occurs in `values`, as a SparseTensor; y[row, v] where axis is -1.

    Args:
        values: integers >= 0: a vector or matrix, a SparseTensor or a RaggedTensor.
        weights: what each value counts; then the result has their dtype, else it is int32.
        axis: 0 or None, all together; -1, each row for itself.
        minlength: the least length of the last axis, which is 1 + the largest value.
        maxlength: its largest length; larger values are left out.
        binary_output: 1 for each value that occurs at all.

    Raises:
        InvalidArgumentError: a negative value, values that are not integers, weights that do not
            fit, or both weights and binary_output.
    """
    if not (axis is None or (isinstance(axis, (int, np.integer)) and axis in (0, -1))):
        raise InvalidArgumentError(f"bincount: axis must be 0, -1 or None; got {shown(axis)}")
    if weights is not None and binary_output:
        raise InvalidArgumentError("bincount: give weights or binary_output=True, not both")
    found, owner, count, x, vector = _numbers("bincount", values)
    single = axis != -1 or vector
    length = int(found.max()) + 1 if found.size else 0
    length = max(length, _limit(minlength, "minlength") or 0)
    kept, most = np.arange(found.size), _limit(maxlength, "maxlength")
    if most is not None:
        length = min(length, most)
        kept = np.flatnonzero(found < length)
    # By columns, so that no product of lengths overflows.
    order = kept[np.lexsort((found[kept], np.zeros(len(kept)) if single else owner[kept]))]
    pairs = np.stack([np.zeros(len(order), np.int64) if single else owner[order], found[order]], 1)
    first = np.ones(len(pairs), bool)
    first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    which = placed(np.cumsum(first) - 1, x)
    rows = pairs[first]
    if weights is None:
        total = np.ones(len(rows)) if binary_output else np.bincount(
            np.cumsum(first) - 1, minlength=len(rows))
        made: Tensor = placed(total.astype(np.int32), x)
    else:
        made = scatter_rows_(pick(_weights(weights, x), placed(order, x)), which, rows=len(rows))
    if single:
        return SparseTensor._made(int64_rows(rows[:, 1:], made), made, (length,))
    return SparseTensor._made(int64_rows(rows, made), made, (count, length))


def dense_bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None,
                   dtype: Any = "int32", name: str | None = None, axis: int | None = None,
                   binary_output: bool = False) -> Tensor:
    """`bincount` as a dense tensor of `dtype`, of the weights' dtype where there are some."""
    made = to_dense(bincount(arr, weights, axis, minlength, maxlength, binary_output))
    return made if weights is not None else cast(made, dtype)
