"""Products of sparse and dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.checks.ranges import check_rows
from gtape.ops.indexing.gathering import gather, gather_, scatter_rows_
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import expand_dims, reshape_, swap_last
from gtape.ops.sparse.conversions import int64_rows
from gtape.ops.sparse.places import columns_, host_rows, keys_of, placed, sparse
from gtape.ops.sparse.tensor import SparseTensor


def sparse_dense_matmul(sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False,
                        name: str | None = None) -> Tensor:
    """The matrix product of a SparseTensor and a dense matrix, either first; dense.

    Gradients flow to the values and to the dense matrix.

    Args:
        adjoint_a, adjoint_b: take the conjugate transpose of the one or the other.

    Raises:
        InvalidArgumentError: they are no matrices, or their inner lengths or dtypes differ.
        TypeError: there is not exactly one SparseTensor.
    """
    if isinstance(b, SparseTensor) and not isinstance(sp_a, SparseTensor):
        turned = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return _adjoint(turned)
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
    picked = gather_(dense, _column(a, axes[1], inner), axis=0)
    return scatter_rows_(expand_dims(values, 1) * picked, at, rows=rows)


def sparse_sparse_matmul(a: SparseTensor, b: SparseTensor, dtype: Any = None) -> SparseTensor:
    """The matrix product of two SparseTensors, of matrices or of batches [n, …, …] of them.

    Args:
        dtype: of both and of the product; None for the one that they have.

    Raises:
        InvalidArgumentError: their shapes or dtypes do not fit.
    """
    if dtype is not None:
        a, b = cast(a, dtype), cast(b, dtype)
    (*lead, rows, inner), (*other, below, columns) = a._lengths, b._lengths
    if lead != other or len(lead) > 1 or inner != below or a.dtype is not b.dtype:
        raise InvalidArgumentError(f"sparse_sparse_matmul: the shapes and dtypes do not fit; got "
                                   f"{a.dtype.name}{list(a.shape)} and "
                                   f"{b.dtype.name}{list(b.shape)}")
    left, right = host_rows(a), host_rows(b)
    wanted, = keys_of((*lead, inner), np.delete(left, -2, axis=1))
    given, = keys_of((*lead, inner), right[:, :-1])
    order = np.argsort(given, kind="stable")
    first = np.searchsorted(given[order], wanted, side="left")
    count = np.searchsorted(given[order], wanted, side="right") - first
    at = np.repeat(np.arange(len(left)), count)
    beside = order[np.repeat(first - np.cumsum(count) + count, count) + np.arange(len(at))]
    places = np.concatenate([left[at, :-1], right[beside, -1:]], axis=1)
    shape = (*lead, rows, columns)
    keys, = keys_of(shape, places)
    _, found, target = np.unique(keys, return_index=True, return_inverse=True)
    each = gather(a.values, at) * gather(b.values, beside)
    total = scatter_rows_(each, placed(target.reshape(-1), a.values), rows=len(found))
    return SparseTensor._made(int64_rows(places[found], total), total, shape)


def _column(x: SparseTensor, axis: int, below: int) -> Tensor:
    made = reshape_(columns_(x.indices, axes=(axis,)), shape=x.values.spec.shape)
    if type(made) is EagerTensor:
        check_rows(made._t.xp, made._a, below, "sparse_dense_matmul")
    return made


def _conjugate(x: Tensor) -> Tensor:
    from gtape.ops.elementwise.more_math import conj

    return conj(x) if x.dtype.is_complex else x


def _adjoint(x: Tensor) -> Tensor:
    return swap_last(_conjugate(x))


def sampled_addmm(indices: Any, values: Any, dense_shape: Any, mat1: Any, mat2: Any,
                  beta: Any = 1.0, alpha: Any = 1.0, output_type: Any = None,
                  ) -> tuple[Tensor, Tensor, Tensor]:
    """beta · values + alpha · (mat1 @ mat2) at `indices` alone: (indices, values, dense_shape).

    Raises:
        InvalidArgumentError: the matrices do not fit the indices.
    """
    from gtape.ops.reductions.reductions import reduce_sum

    x = SparseTensor(indices, values, dense_shape)
    a, b = convert(mat1), convert(mat2)
    if len(x._lengths) != 2 or a.ndim != 2 or b.ndim != 2 or a.spec.shape[1] != b.spec.shape[0]:
        raise InvalidArgumentError(f"sampled_addmm takes matrices; got {list(x.shape)}, {a.spec} "
                                   f"and {b.spec}")
    left = gather(a, _column(x, 0, a.spec.shape[0]))
    right = gather(swap_last(b), _column(x, 1, b.spec.shape[1]))
    made = x.values * beta + reduce_sum(left * right, 1) * alpha
    return x.indices, made, x.dense_shape
