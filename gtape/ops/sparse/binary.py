"""Two SparseTensors, or one and a dense tensor: sums, maxima and minima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.convert import convert_like
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_float
from gtape.ops.indexing.gathering import scatter_nd_, scatter_rows_
from gtape.ops.shape.packing import concat_
from gtape.ops.sparse.conversions import int64_rows
from gtape.ops.sparse.places import host_rows, keys_of, pick, placed, sparse
from gtape.ops.sparse.tensor import SparseTensor


def _union(name: str, a: SparseTensor, b: SparseTensor) -> tuple[np.ndarray, np.ndarray]:
    """The index tuples of either in row-major order; for each value of a, then of b, its row."""
    if a.dtype is not b.dtype:
        raise InvalidArgumentError(f"{name}: the values must have one dtype; got {a.dtype.name} "
                                   f"and {b.dtype.name}. Write tf.cast(x, tf.{a.dtype.name})")
    if a._lengths != b._lengths:
        raise InvalidArgumentError(f"{name}: the shapes must be equal; got {list(a.shape)} and "
                                   f"{list(b.shape)}")
    rows = host_rows(a), host_rows(b)
    joined = np.concatenate(keys_of(a._lengths, *rows))
    _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
    return np.concatenate(rows)[first], inverse.reshape(-1)


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """a + b: a SparseTensor where both are, else dense.

    Args:
        threshold: sums of two SparseTensors of smaller magnitude are left out; 0 keeps all.

    Raises:
        TypeError: neither is a SparseTensor.
        InvalidArgumentError: the shapes or dtypes differ; nothing is broadcast.
    """
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
        kept = np.flatnonzero(np.abs(total._peek()) >= limit)
        rows, total = rows[kept], pick(total, placed(kept, total))
    return SparseTensor._made(int64_rows(rows, total), total, a._lengths)


def _with_dense(x: SparseTensor, other: Any) -> Tensor:
    dense = convert_like(other, x.values._t, "add")
    if dense.spec.shape != x._lengths or dense.dtype is not x.dtype:
        raise InvalidArgumentError(f"add: a dense tensor beside a SparseTensor must have its shape "
                                   f"and dtype, {x.dtype.name}{list(x.shape)}; got {dense.spec}")
    if not dense.ndim:
        from gtape.ops.reductions.reductions import reduce_sum

        return dense + reduce_sum(x.values)
    return dense + scatter_nd_(x.indices, x.values, shape=x._lengths)


def _chosen(name: str, choose: Callable[..., Any], a: Any, b: Any) -> SparseTensor:
    x, y = sparse(a, name), sparse(b, name)
    rows, target = _union(name, x, y)
    count = x.values.spec.shape[0]
    parts = [scatter_rows_(v, placed(at, x.values), rows=len(rows))
             for v, at in ((x.values, target[:count]), (y.values, target[count:]))]
    return SparseTensor._made(int64_rows(rows, x.values), choose(*parts), x._lengths)


def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger at every index that either has; the other counts as 0.

    Raises:
        InvalidArgumentError: the shapes or dtypes differ.
        TypeError: one is not a SparseTensor.
    """
    from gtape.ops.elementwise.scalars import maximum

    return _chosen("maximum", maximum, sp_a, sp_b)


def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller at every index that either has; the other counts as 0. Raises as `maximum`."""
    from gtape.ops.elementwise.scalars import minimum

    return _chosen("minimum", minimum, sp_a, sp_b)
