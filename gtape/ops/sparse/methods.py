"""What functions of tensors do with SparseTensors, which are given them here; `bincount`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype, int32
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int, host
from gtape.ops.indexing.gathering import scatter_rows_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.identity import identity
from gtape.ops.shape.layout import reshape_
from gtape.ops.sparse.layout import to_dense
from gtape.ops.sparse.tensor import SparseTensor, pick, placed, values_in_rows


def _numbers(name: str, values: Any) -> tuple[np.ndarray, np.ndarray, int, Tensor, bool]:
    """The numbers, the row of each, how many rows there are, the numbers as a tensor, and whether
    there is only one vector."""
    vector = isinstance(values, SparseTensor) and len(values._lengths) == 1
    parts = None if vector else values_in_rows(values)
    if vector:
        x, count = values.values, 1
        owner = np.zeros(x.spec.shape[0], np.int64)
    elif parts is not None:
        x, owner, count = parts
    else:
        dense = convert(values)
        if dense.ndim not in (1, 2):
            raise InvalidArgumentError(f"{name}: values must be a vector or a matrix; got "
                                       f"{dense.spec}")
        vector = dense.ndim == 1
        count, length = 1 if vector else dense.spec.shape[0], dense.spec.shape[-1]
        x = reshape_(dense, shape=(count * length,))
        owner = np.repeat(np.arange(count), length)
    if not x.dtype.is_integer:
        raise InvalidArgumentError(f"{name}: values must be integers; got {x.spec}")
    numbers = host(x).astype(np.int64)
    if numbers.size and numbers.min() < 0:
        raise InvalidArgumentError(f"{name}: values must be 0 or more; got {int(numbers.min())}")
    return numbers, owner, count, x, vector


def _weights(weights: TensorLike, numbers: Tensor) -> Tensor:
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


def _limit(value: int | None, what: str) -> int | None:
    """A length; None for none, which -1 means too."""
    if value is None:
        return None
    length = as_int(value, f"bincount: {what}")
    if not -1 <= length < 1 << 63:
        raise InvalidArgumentError(f"bincount: {what} must be 0 or more, and int64; got {length}. "
                                   f"Write -1 or None for none")
    return None if length < 0 else length


def _sorted(owner: np.ndarray, numbers: np.ndarray, kept: np.ndarray,
            ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The kept numbers in order, the different pairs of a row and a number, and the pair of each:
    by columns, so that no product of lengths overflows."""
    order = kept[np.lexsort((numbers[kept], owner[kept]))]
    pairs = np.stack([owner[order], numbers[order]], 1)
    first = np.ones(len(pairs), bool)
    first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    return order, pairs[first], np.cumsum(first) - 1


def bincount(values: TensorLike | CompositeTensor, weights: TensorLike | None = None,
             axis: object = 0, minlength: int | None = None, maxlength: int | None = None,
             binary_output: bool = False, name: str | None = None) -> SparseTensor:
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
    numbers, owner, count, x, vector = _numbers("bincount", values)
    single = axis != -1 or vector
    length = int(numbers.max()) + 1 if numbers.size else 0
    length = max(length, _limit(minlength, "minlength") or 0)
    kept, most = np.arange(numbers.size), _limit(maxlength, "maxlength")
    if most is not None:
        length = min(length, most)
        kept = np.flatnonzero(numbers < length)
    order, rows, which = _sorted(np.zeros_like(owner) if single else owner, numbers, kept)
    if weights is None:
        counts = np.ones(len(rows)) if binary_output else np.bincount(which, minlength=len(rows))
        # Counts have no gradient, so that NumPy does; weights have one, and are added by an op.
        totals = placed(counts.astype(np.int32), x)
    else:
        totals = scatter_rows_(pick(_weights(weights, x), order), placed(which, x), rows=len(rows))
    if single:
        return SparseTensor._of_rows(rows[:, 1:], totals, (length,))
    return SparseTensor._of_rows(rows, totals, (count, length))


def dense_bincount(arr: TensorLike | CompositeTensor, weights: Any = None, minlength: Any = None,
                   maxlength: Any = None, dtype: DTypeLike = "int32", name: str | None = None,
                   axis: int | None = None, binary_output: bool = False) -> Tensor:
    """`bincount` as a dense tensor of `dtype`, of the weights' dtype where there are some."""
    counts = to_dense(bincount(arr, weights, axis, minlength, maxlength, binary_output))
    return counts if weights is not None else cast(counts, dtype)


def _integers(x: SparseTensor, value: int | np.generic | tuple[int, ...], out_type: object,
              ) -> Tensor:
    dtype = int32 if out_type is None else as_dtype(out_type)
    return placed(np.array(value, dtype.as_numpy_dtype), x.values)


def shape(input: SparseTensor, out_type: DTypeLike | None = None, name: str | None = None,
          ) -> Tensor:
    return _integers(input, input._frame_(), out_type)


def size(input: SparseTensor, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    return _integers(input, np.prod(input._frame_(), dtype=np.int64), out_type)


def rank(input: SparseTensor, name: str | None = None) -> Tensor:
    return _integers(input, len(input._frame_()), None)


SparseTensor._functions_ = {
    "bincount": dense_bincount, "shape": shape, "size": size, "rank": rank,
    "identity": lambda input, name=None: input._mapped_(identity)}
