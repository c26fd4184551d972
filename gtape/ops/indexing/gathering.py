"""gather and scatter: rows picked by index, rows added at an index; each the other's adjoint.

The gradient of a gather along axis 0 is an IndexedSlices: the rows that were used, not the table.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor, takes_composites
from gtape.core.convert import convert
from gtape.core.device import CPU, Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import case, ints
from gtape.core.spec import Spec, normal_axes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.numerics.scatter import segment_sum
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, index_tensor
from gtape.ops.shape.layout import broadcast_to_, reshape_, transpose_
from gtape.ops.shape.packing import concat, concat_
from gtape.trace.symbolic_tensor import SymbolicTensor


def take_rows(xp: Any, params: Any, indices: Any, axis: int) -> Any:
    """params taken at indices along axis; on a GPU, zeros where an index is out of range."""
    if xp is np:
        return np.take(params, indices, axis=axis)  # checked before: -1 would take the last row
    # On a GPU an error would be seen only by waiting for it.
    valid = (indices >= 0) & (indices < params.shape[axis])
    y = xp.take(params, xp.where(valid, indices, 0), axis=axis)
    shape = (1,) * axis + valid.shape + (1,) * (params.ndim - axis - 1)
    return xp.where(valid.reshape(shape), y, xp.zeros((), params.dtype))


@primitive(linear="params", tf_name="GatherV2")
def gather_(xp: ArrayModule, params: Any, indices: object, *, axis: int) -> Any:
    """y[…, *I, …] = params[…, indices[I], …] along `axis`."""
    check_rows(xp, indices, params.shape[axis], "gather")
    return take_rows(xp, params, indices, axis)


@gather_.infer
def _(params: Spec, indices: Spec, *, axis: int) -> Spec:
    if not params.ndim:
        raise InvalidArgumentError("gather: params must not be a scalar")
    return params.reshaped((*params.shape[:axis], *indices.shape, *params.shape[axis + 1:]))


gather_.on_cuda("kernels.indexing.gather")


@gather_.vjp("params")
def _(g: Tensor, params_spec: Spec, indices: Any, *, axis: int) -> IndexedSlices | Tensor:
    count = math.prod(indices.spec.shape)
    flat = reshape_(indices, shape=(count,))
    # The rows that were used, and not the table: embeddings of a million rows have small gradients.
    if axis == 0:
        values = reshape_(g, shape=(count, *params_spec.shape[1:]))
        return IndexedSlices(values, flat, np.array(params_spec.shape, np.int32))
    rank = len(indices.spec.shape)
    order = (*range(axis, axis + rank), *range(axis), *range(axis + rank, g.ndim))
    rest = params_spec.shape[:axis] + params_spec.shape[axis + 1:]
    rows = reshape_(transpose_(g, perm=order), shape=(count, *rest))
    y = scatter_rows_(rows, flat, rows=params_spec.shape[axis])
    back = (*range(1, axis + 1), 0, *range(axis + 1, len(params_spec.shape)))
    return transpose_(y, perm=back)


gather_.refuses = True
gather_.cases = [case((5, 3), ints(4, below=5), axis=0), case((2, 4), ints(2, 2, below=4), axis=1)]


@primitive(linear="x", tf_name="UnsortedSegmentSum")
def scatter_rows_(xp: Any, x: Any, indices: Any, *, rows: int) -> Any:
    """y[r, …] = Σ x[i, …] over i with indices[i] = r; indices out of range are dropped."""
    return segment_sum(xp, x, indices, rows)


scatter_rows_.infer(lambda x, indices, *, rows: x.reshaped((rows, *x.shape[1:])))
scatter_rows_.on_cuda("kernels.indexing.scatter_add")
scatter_rows_.vjp(x=lambda g, indices: rows_or_zero_(g, indices))
scatter_rows_.cases = [case((4, 3), ints(4, below=5), rows=5)]


@primitive(linear="params", tf_name="GatherV2")
def rows_or_zero_(xp: ArrayModule, params: Array, indices: Array) -> Array:
    """params[indices[i]], and zeros where an index is out of range: scatter_rows' adjoint."""
    rows = params.shape[0]
    if not rows:  # NumPy takes nothing of an empty axis
        return xp.zeros((*indices.shape, *params.shape[1:]), params.dtype)
    valid = (indices >= 0) & (indices < rows)
    y = xp.take(params, xp.where(valid, indices, 0), axis=0)
    # Of the few rows that are out of range, if any: `where` would write every row again.
    y[~valid] = 0
    return y


rows_or_zero_.infer(lambda params, indices: params.reshaped((*indices.shape, *params.shape[1:])))
rows_or_zero_.on_cuda("kernels.indexing.gather")
rows_or_zero_.vjp(params=lambda g, params_spec, indices:
                  scatter_rows_(g, indices, rows=params_spec.shape[0]))
rows_or_zero_.cases = [case((5, 3), ints(4, below=5))]


@takes_composites
def gather(params: TensorLike, indices: TensorLike, validate_indices: bool | None = None,
           axis: IntsLike | None = None, batch_dims: int = 0, name: str | None = None) -> Tensor:
    """Slices of `params` at `indices` along `axis`; the first `batch_dims` axes go together.

    Returns:
        params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]. The gradient
        with respect to `params` is an IndexedSlices for axis 0.

    Raises:
        InvalidArgumentError: an index out of range (in host memory; a GPU gives zeros), or
            indices that are not integers.
    """
    x = convert(params.to_dense() if isinstance(params, IndexedSlices) else params)
    index = index_tensor(indices, "gather", x)
    batch = as_int(batch_dims, "gather: batch_dims")
    batch = batch + index.ndim if batch < 0 else batch
    if axis is None:
        axis = batch  # TensorFlow's default: the first axis after the batch
    if not x.ndim:
        raise InvalidArgumentError("gather: params must not be a scalar")
    (at,) = normal_axes("gather", as_int(axis, "gather: axis"), x.ndim)
    return gather_(x, index, axis=at) if batch == 0 else _batched(x, index, at, batch)


def _batched(x: Tensor, index: Tensor, axis: int, batch: int) -> Tensor:
    """Gather within each batch, as one gather from all batches laid end to end."""
    shape, chosen = x.spec.shape, index.spec.shape
    if axis < batch or shape[:batch] != chosen[:batch]:
        raise InvalidArgumentError(f"gather: the first {batch} axes must be equal and come before "
                                   f"axis {axis}; got {x.spec} and {index.spec}")
    order = (*range(batch), axis, *range(batch, axis), *range(axis + 1, len(shape)))
    moved = transpose_(x, perm=order)
    count, length = math.prod(shape[:batch]), shape[axis]
    rest = moved.spec.shape[batch + 1:]
    table = reshape_(moved, shape=(count * length, *rest))
    # Before the offsets: an index out of its own batch would be a row of the next.
    index = checked_rows(index, length, "gather")
    starts = np.arange(count, dtype=index.dtype.np_dtype) * length
    offset = convert(starts.reshape(chosen[:batch] + (1,) * (len(chosen) - batch)), None,
                     x._t.device)
    y = gather_(table, index + offset, axis=0)
    picked = len(chosen) - batch
    middle = axis - batch
    n = len(chosen)
    back = (*range(batch), *range(n, n + middle), *range(batch, batch + picked),
            *range(n + middle, y.ndim))
    return transpose_(y, perm=back)


def _flat_rows(xp: ArrayModule, indices: Array, shape: tuple[int, ...]) -> Array:
    """Index tuples [N, k] as numbers of flattened leading cells; -1 where out of range."""
    depth = indices.shape[-1]
    # int64, since a product of lengths need not fit into the dtype of the indices.
    flat = xp.zeros(indices.shape[:-1], np.int64)
    valid = xp.ones(indices.shape[:-1], bool)
    for k in range(depth):
        part = indices[..., k]
        flat = flat * shape[k] + part
        valid &= (part >= 0) & (part < shape[k])
    return xp.where(valid, flat, -1)


def _checked_rows(xp: ArrayModule, indices: Array, shape: tuple[int, ...], name: str) -> Array:
    flat = _flat_rows(xp, indices, shape)
    if xp is np and flat.size and int(flat.min()) < 0:
        bad = indices.reshape(-1, indices.shape[-1])[int(np.argmin(flat.reshape(-1)))]
        raise InvalidArgumentError(f"{name}: the index {bad.tolist()} is outside the shape "
                                   f"{list(shape[:indices.shape[-1]])}")
    return flat


@primitive(linear="params", tf_name="GatherNd")
def gather_nd_(xp: ArrayModule, params: Array, indices: Array) -> Array:
    """y[*I, …] = params[indices[I, 0], …, indices[I, k - 1], …]."""
    depth = indices.shape[-1]
    flat = _checked_rows(xp, indices, params.shape, "gather_nd")
    table = params.reshape((math.prod(params.shape[:depth]), *params.shape[depth:]))
    return take_rows(xp, table, flat, 0)


@gather_nd_.infer
def _(params: Spec, indices: Spec) -> Spec:
    if not indices.ndim:
        raise InvalidArgumentError("gather_nd: indices must have a last axis that holds the index "
                                   "tuples; got a scalar. Write [[i]], or use tf.gather")
    depth = indices.shape[-1]
    if depth > params.ndim:
        raise InvalidArgumentError(f"gather_nd: the last axis of indices is {depth} long, more "
                                   f"than the rank of {params}")
    return params.reshaped((*indices.shape[:-1], *params.shape[depth:]))


gather_nd_.on_cuda("kernels.indexing.gather_nd")


@gather_nd_.vjp("params")
def _(g: Tensor, params_spec: Spec, indices: Any) -> Any:
    # Whole rows, as of `gather`: the table is not filled with zeros.
    if indices.spec.shape[-1] == 1:
        count = math.prod(indices.spec.shape[:-1])
        values = reshape_(g, shape=(count, *params_spec.shape[1:]))
        return IndexedSlices(values, reshape_(indices, shape=(count,)),
                             np.array(params_spec.shape, np.int32))
    return scatter_nd_(indices, g, shape=params_spec.shape)


gather_nd_.refuses = True
gather_nd_.cases = [case((3, 4), ints(5, 2, below=3)), case((3, 4), ints(2, 1, below=3))]


def gather_nd(params: TensorLike, indices: TensorLike, batch_dims: int = 0, name: str | None = None,
              ) -> Tensor:
    """Slices of `params` at the index tuples in the last axis of `indices`.

    Raises:
        InvalidArgumentError: a tuple out of range, or longer than the rank of `params`.
    """
    x = convert(params.to_dense() if isinstance(params, IndexedSlices) else params)
    index = index_tensor(indices, "gather_nd", x)
    batch = as_int(batch_dims, "gather_nd: batch_dims")
    if batch == 0:
        return gather_nd_(x, index)
    shape = index.spec.shape
    if not 0 < batch < min(len(shape), x.ndim + 1):
        raise InvalidArgumentError(f"gather_nd: batch_dims must be 0 or more, less than the rank "
                                   f"of the indices, and no more than that of the parameters; got "
                                   f"{batch} for {index.spec} and {x.spec}")
    # The numbers of the batch entries, written before the given index tuples: one gather for all.
    grid = np.meshgrid(*[np.arange(n) for n in shape[:batch]], indexing="ij")
    cells = np.stack(grid, -1).reshape(*shape[:batch], *(1,) * (len(shape) - 1 - batch), batch)
    where = convert(cells.astype(index.dtype.np_dtype), None, x._t.device)
    full = concat_(broadcast_to_(where, shape=(*shape[:-1], batch)), index, axis=len(shape) - 1)
    return gather_nd_(x, full)


@primitive(linear="updates", tf_name="ScatterNd")
def scatter_nd_(xp: ArrayModule, indices: Array, updates: Array, *, shape: tuple[int, ...],
                ) -> Array:
    """y = zeros(shape) with updates[I] added at indices[I]."""
    depth = indices.shape[-1]
    rows = math.prod(shape[:depth])
    flat = _checked_rows(xp, indices, shape, "scatter_nd").reshape(-1)
    values = updates.reshape((flat.size, *shape[depth:]))
    return segment_sum(xp, values, flat, rows).reshape(shape)


@scatter_nd_.infer
def _(indices: Spec, updates: Spec, *, shape: tuple[int, ...]) -> Spec:
    if not indices.ndim:
        raise InvalidArgumentError(f"scatter_nd: indices must have rank 1 or more; got {indices}")
    depth = indices.shape[-1]
    wanted = (*indices.shape[:-1], *shape[depth:])
    if depth > len(shape) or updates.shape != wanted:
        raise InvalidArgumentError(f"scatter_nd: for indices {indices} and the shape {list(shape)} "
                                   f"the updates must have shape {list(wanted)}; got {updates}")
    return updates.reshaped(shape)


scatter_nd_.on_cuda("kernels.indexing.scatter_nd")
scatter_nd_.vjp(updates=lambda g, indices: gather_nd_(g, indices))
scatter_nd_.refuses = True
scatter_nd_.cases = [case(ints(5, 2, below=3), (5,), shape=(3, 4)),
                     case(ints(4, 1, below=3), (4, 2), shape=(3, 2))]


def embedding_lookup(params: object, ids: TensorLike | CompositeTensor,
                     max_norm: float | None = None, name: str | None = None) -> Tensor:
    """Rows of the table `params` [rows, …] at `ids`; rows longer than `max_norm` are scaled to it.

    A list of tables is one table, their rows one after another. The gradient of a single table is
    an IndexedSlices.

    Raises:
        InvalidArgumentError: an id out of range.
    """
    if isinstance(params, (list, tuple)):
        # One table needs no concat, which would make its gradient dense.
        params = params[0] if len(params) == 1 else concat(params, 0)
    rows = gather(params, ids)
    if max_norm is None:
        return rows
    from gtape.ops.elementwise.clipping import clip_by_norm

    rank = convert(ids).ndim
    return clip_by_norm(rows, max_norm, axes=list(range(rank, rows.ndim)))


def dense_rows(values: Tensor, indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    if type(indices) is EagerTensor:
        check_rows(values._t.xp, indices._a, shape[0], "IndexedSlices")
    return scatter_rows_(values, indices, rows=shape[0])


def slice_tensor(value: TensorLike) -> Tensor:
    # The shape of every IndexedSlices comes by here: no look at the value, no copy.
    if isinstance(value, np.ndarray) and value.dtype == np.int32:
        return EagerTensor(value, _HOST_INT)
    return convert(value)


_HOST_INT = CPU.typed(dtypes.int32)  # looked up once, and not at every IndexedSlices


# ---------------------------------------------------------------- indices in range
def check_rows(xp: ArrayModule, indices: Any, rows: int, name: str) -> None:
    """Raises InvalidArgumentError for an index outside [0, rows), in host memory. On a GPU the test
    would wait for the device; rows out of range give zeros there."""
    if xp is np and indices.size:  # nothing has no least and no largest
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= rows:
            bad = low if low < 0 else high
            raise InvalidArgumentError(f"{name}: indices must lie in [0, {rows}); got {bad}")


@primitive(nondifferentiable=True)
def within_(xp: ArrayModule, x: Array, *, low: int | None, high: int | None, what: str) -> Array:
    """x, whose integers are checked to lie in [low, high)."""
    if x.size:
        least, most = int(x.min()), int(x.max())
        if (low is not None and least < low) or (high is not None and most >= high):
            must, got = ((f"be >= {low}", least) if high is None else
                         (f"be below {high}", most) if low is None else
                         (f"lie in [{low}, {high})", f"numbers from {least} to {most}"))
            raise InvalidArgumentError(f"{what} must {must}; got {got}")
    return x


within_.infer(lambda x, **_: x)
within_.refuses = True
within_.cases = [case(ints(4, below=5), low=0, high=5, what="indices")]


def within(x: Tensor, low: int | None, high: int | None, what: str) -> Tensor:
    """`x`, whose integers are checked to lie in [low, high): in a traced function at every call.
    Raises InvalidArgumentError: they do not."""
    if type(x) is SymbolicTensor:
        return within_(x, low=low, high=high, what=what)
    # The check alone: no op to record.
    within_.value(x._t.xp, x._array_(), low=low, high=high, what=what)
    return x


def checked_rows(index: Tensor, rows: int, name: str) -> Tensor:
    """`index`, by `check_rows`: now, or in a traced function at every call."""
    if type(index) is SymbolicTensor:
        # On a GPU every call would wait for the check; kernels give zeros there.
        on_host = index._t.device.is_host
        return within(index, 0, rows, f"{name}: indices") if on_host else index
    check_rows(index._t.xp, index._array_(), rows, name)
    return index
