"""Two SparseTensors, or one and a dense tensor: sums, maxima and minima, products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert, convert_like
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.arguments import as_float, host
from gtape.ops.elementwise import scalars
from gtape.ops.elementwise.operators import conj
from gtape.ops.indexing.gathering import check_rows, gather, gather_, scatter_nd_, scatter_rows_
from gtape.ops.reductions.reductions import reduce_sum
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import expand_dims, reshape_, swap_last
from gtape.ops.shape.packing import concat_
from gtape.ops.sparse.tensor import SparseTensor, columns_, keys_of, pick, placed, sparse


def _union(name: str, a: SparseTensor, b: SparseTensor) -> tuple[np.ndarray, np.ndarray]:
    """The index tuples of either in row-major order; for each value of a, then of b, its row."""
    if a.dtype is not b.dtype:
        raise InvalidArgumentError(f"{name}: the values must have one dtype; got {a.dtype.name} "
                                   f"and {b.dtype.name}. Write tf.cast(x, tf.{a.dtype.name})")
    if a._lengths != b._lengths:
        raise InvalidArgumentError(f"{name}: the shapes must be equal; got {list(a.shape)} and "
                                   f"{list(b.shape)}")
    rows = host(a.indices), host(b.indices)
    joined = np.concatenate(keys_of(a._lengths, *rows))
    _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
    return np.concatenate(rows)[first], inverse.reshape(-1)


def add(a: Any, b: Any, threshold: float = 0) -> Any:
    """a + b: a SparseTensor where both are, else dense. `threshold`: sums of two SparseTensors of
    smaller magnitude are left out; 0 keeps all. Raises TypeError: neither is a SparseTensor;
    InvalidArgumentError: the shapes or dtypes differ; nothing is broadcast."""
    both = isinstance(a, SparseTensor), isinstance(b, SparseTensor)
    if not any(both):
        raise TypeError("tf.sparse.add takes at least one SparseTensor; for dense tensors use "
                        "tf.add")
    if not all(both):
        return _with_dense(a, b) if both[0] else _with_dense(b, a)
    rows, target = _union("add", a, b)
    total = scatter_rows_(concat_(a.values, b.values, axis=0), placed(target, a.values),
                          rows=len(rows))
    limit = as_float(threshold, "add: threshold")
    if limit > 0:
        kept = np.flatnonzero(np.abs(host(total)) >= limit)
        rows, total = rows[kept], pick(total, kept)
    return SparseTensor._of_rows(rows, total, a._lengths)


def _with_dense(x: SparseTensor, other: Tensor) -> Tensor:
    dense = convert_like(other, x.values._t, "add")
    if dense.spec.shape != x._lengths or dense.dtype is not x.dtype:
        raise InvalidArgumentError(f"add: a dense tensor beside a SparseTensor must have its shape "
                                   f"and dtype, {x.dtype.name}{list(x.shape)}; got {dense.spec}")
    # Without axes there is no index to scatter at: all values are of the one cell.
    if not dense.ndim:
        return dense + reduce_sum(x.values)
    return dense + scatter_nd_(x.indices, x.values, shape=x._lengths)


def _chosen(name: str, choose: Callable[..., Any], a: SparseTensor, b: SparseTensor,
            ) -> SparseTensor:
    x, y = sparse(a, name), sparse(b, name)
    rows, target = _union(name, x, y)
    count = x.values.spec.shape[0]
    parts = [scatter_rows_(v, placed(at, x.values), rows=len(rows))
             for v, at in ((x.values, target[:count]), (y.values, target[count:]))]
    return SparseTensor._of_rows(rows, choose(*parts), x._lengths)


def maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The larger at every index that either has; the other counts as 0. Raises
    InvalidArgumentError: the shapes or dtypes differ; TypeError: one is not a SparseTensor."""
    return _chosen("maximum", scalars.maximum, sp_a, sp_b)


def minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The smaller at every index that either has; the other counts as 0. Raises as `maximum`."""
    return _chosen("minimum", scalars.minimum, sp_a, sp_b)


def sparse_dense_matmul(sp_a: Any, b: TensorLike | CompositeTensor, adjoint_a: bool = False,
                        adjoint_b: bool = False, name: str | None = None) -> Tensor:
    """The matrix product of a SparseTensor and a dense matrix, either first; dense.

    Gradients flow to the values and to the dense matrix.

    Args:
        adjoint_a, adjoint_b: take the conjugate transpose of the one or the other.

    Raises:
        InvalidArgumentError: they are no matrices, or their inner lengths or dtypes differ.
        TypeError: there is not exactly one SparseTensor.
    """
    if isinstance(b, SparseTensor) and not isinstance(sp_a, SparseTensor):
        return _adjoint(sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a))
    a = sparse(sp_a, "sparse_dense_matmul")
    dense = convert(b, None, a.values._t.device)
    if len(a._lengths) != 2 or dense.ndim != 2 or dense.dtype is not a.dtype:
        raise InvalidArgumentError(f"sparse_dense_matmul takes matrices of one dtype; got "
                                   f"{a.dtype.name}{list(a.shape)} and {dense.spec}")
    values, axes = a.values, (1, 0) if adjoint_a else (0, 1)
    rows, inner = (a._lengths[n] for n in axes)
    if adjoint_a:
        values = _conjugate(values)
    if adjoint_b:
        dense = _adjoint(dense)
    if dense.spec.shape[0] != inner:
        raise InvalidArgumentError(f"sparse_dense_matmul: the inner lengths differ, {inner} and "
                                   f"{dense.spec.shape[0]}")
    at = _column(a, axes[0], rows)
    # A row of the dense matrix for each value, scaled and added up where it belongs: gather and
    # scatter have gradients to both operands, in every order.
    picked = gather_(dense, _column(a, axes[1], inner), axis=0)
    return scatter_rows_(expand_dims(values, 1) * picked, at, rows=rows)


def sparse_sparse_matmul(a: SparseTensor, b: SparseTensor, dtype: DTypeLike | None = None,
                         ) -> SparseTensor:
    """The matrix product of two SparseTensors, of matrices or of batches [n, …, …] of them.
    `dtype`: of both and of the product; None for the one that they have. Raises
    InvalidArgumentError: their shapes or dtypes do not fit."""
    if dtype is not None:
        a, b = cast(a, dtype), cast(b, dtype)
    (*lead, rows, inner), (*other, below, columns) = a._lengths, b._lengths
    if lead != other or len(lead) > 1 or inner != below or a.dtype is not b.dtype:
        raise InvalidArgumentError(f"sparse_sparse_matmul: the shapes and dtypes do not fit; got "
                                   f"{a.dtype.name}{list(a.shape)} and "
                                   f"{b.dtype.name}{list(b.shape)}")
    left, right = host(a.indices), host(b.indices)
    wanted, = keys_of((*lead, inner), np.delete(left, -2, axis=1))
    given, = keys_of((*lead, inner), right[:, :-1])
    # Each value of a meets the stretch of b's values, sorted by row, whose row is its column.
    order = np.argsort(given, kind="stable")
    first = np.searchsorted(given[order], wanted, side="left")
    count = np.searchsorted(given[order], wanted, side="right") - first
    at = np.repeat(np.arange(len(left)), count)
    beside = order[np.repeat(first - np.cumsum(count) + count, count) + np.arange(len(at))]
    places = np.concatenate([left[at, :-1], right[beside, -1:]], axis=1)
    shape = (*lead, rows, columns)
    keys, = keys_of(shape, places)
    _, first, target = np.unique(keys, return_index=True, return_inverse=True)
    each = gather(a.values, at) * gather(b.values, beside)
    total = scatter_rows_(each, placed(target.reshape(-1), a.values), rows=len(first))
    return SparseTensor._of_rows(places[first], total, shape)


def _column(x: SparseTensor, axis: int, below: int) -> Tensor:
    column = reshape_(columns_(x.indices, axes=(axis,)), shape=x.values.spec.shape)
    if type(column) is EagerTensor:
        check_rows(column._t.xp, column._a, below, "sparse_dense_matmul")
    return column


def _conjugate(x: Tensor) -> Tensor:
    return conj(x) if x.dtype.is_complex else x


def _adjoint(x: Tensor) -> Tensor:
    return swap_last(_conjugate(x))


def sampled_addmm(indices: TensorLike, values: TensorLike, dense_shape: IntsLike, mat1: TensorLike,
                  mat2: TensorLike, beta: float = 1.0, alpha: float = 1.0,
                  output_type: DTypeLike | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """beta · values + alpha · (mat1 @ mat2) at `indices` alone: (indices, values, dense_shape).
    Raises InvalidArgumentError: the matrices do not fit the indices."""
    x = SparseTensor(indices, values, dense_shape)
    a, b = convert(mat1), convert(mat2)
    if len(x._lengths) != 2 or a.ndim != 2 or b.ndim != 2 or a.spec.shape[1] != b.spec.shape[0]:
        raise InvalidArgumentError(f"sampled_addmm takes matrices; got {list(x.shape)}, {a.spec} "
                                   f"and {b.spec}")
    left = gather(a, _column(x, 0, a.spec.shape[0]))
    right = gather(swap_last(b), _column(x, 1, b.spec.shape[1]))
    return x.indices, x.values * beta + reduce_sum(left * right, 1) * alpha, x.dense_shape
