"""tensor_scatter_nd_*: a tensor with some of its slices added to, replaced or bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case, ints
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.primitive import Primitive, primitive
from gtape.ops.arguments import as_shape, index_tensor, named
from gtape.ops.elementwise.scalars import equal
from gtape.ops.indexing.gathering import _checked_rows, gather_, gather_nd_, scatter_nd_
from gtape.ops.shape.casting import cast_
from gtape.ops.shape.creation import zeros
from gtape.ops.shape.layout import reshape_

_POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")  # TensorFlow's names; all but the last are one here


def rows_of(xp: ArrayModule, indices: Array, shape: tuple[int, ...], name: str) -> Array:
    """Index tuples as a vector of row numbers of the flattened leading axes. Out of range raises
    InvalidArgumentError in host memory and gives -1 on a GPU."""
    return _checked_rows(xp, indices, shape, name).reshape(-1)


def _table(xp: ArrayModule, x: Array, depth: int) -> Array:
    """A copy of x with its first `depth` axes made one."""
    return xp.array(x.reshape((math.prod(x.shape[:depth]), *x.shape[depth:])))


def _inside(xp: ArrayModule, rows: Array, values: Array) -> tuple[Any, Any]:
    """Rows and values without those out of range; in host memory there are none."""
    if xp is np:
        return rows, values
    kept = rows >= 0
    return rows[kept], values[kept]


def last_writers(xp: ArrayModule, rows: Array, count: int) -> Array:
    """Whether each update is the last one of its row."""
    # CuPy writes equal rows in any order: the place of the last one is the largest.
    order = xp.arange(rows.size)
    last = xp.full(count + 1, -1, order.dtype)  # one place more, where rows of -1 land
    xp.maximum.at(last, rows, order)
    return last[rows] == order


def _fitting(name: str, x: Spec, indices: Spec, updates: Spec) -> Spec:
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or not 0 <= depth <= x.ndim:
        raise InvalidArgumentError(f"{name}: the last axis of indices holds an index tuple of at "
                                   f"most {x.ndim} entries for {x}; got {indices}. Write [[0], "
                                   f"[2]] for rows 0 and 2")
    wanted = (*indices.shape[:-1], *x.shape[depth:])
    if updates.shape != wanted or updates.dtype is not x.dtype:
        raise InvalidArgumentError(f"{name}: for {x} and indices {indices} the updates must be "
                                   f"{x.reshaped(wanted)}; got {updates}")
    return x


@primitive(linear="tensor updates", tf_name="TensorScatterUpdate")
def tensor_scatter_update_(xp: ArrayModule, tensor: Array, indices: Array, updates: Array) -> Array:
    """y = tensor, with y[indices[I]] = updates[I]; the last of equal indices counts."""
    depth = indices.shape[-1]
    rows = rows_of(xp, indices, tensor.shape, "tensor_scatter_nd_update")
    y = _table(xp, tensor, depth)
    rows, values = _inside(xp, rows, updates.reshape((rows.size, *y.shape[1:])))
    if xp is not np:
        kept = last_writers(xp, rows, y.shape[0])
        rows, values = rows[kept], values[kept]
    # NumPy writes equal rows in order, so that the last one counts.
    y[rows] = values
    return y.reshape(tensor.shape)


tensor_scatter_update_.infer(lambda tensor, indices, updates:
                             _fitting("tensor_scatter_nd_update", tensor, indices, updates))
tensor_scatter_update_.on_cuda("kernels.indexing.tensor_scatter_update")
tensor_scatter_update_.vjp(tensor=lambda g, indices: cleared_(g, indices))
tensor_scatter_update_.vjp(updates=lambda g, indices: gather_last_(g, indices))


_CASES = [case((3, 4), ints(5, 2, below=3), (5,)), case((3, 2), ints(2, 1, below=3), (2, 2))]
tensor_scatter_update_.refuses = True
tensor_scatter_update_.cases = _CASES


@primitive(linear="x", tf_name="TensorScatterUpdate")
def cleared_(xp: ArrayModule, x: Array, indices: Array) -> Array:
    """y = x, with 0 at the indices; its own adjoint."""
    rows = rows_of(xp, indices, x.shape, "tensor_scatter_nd_update")
    y = _table(xp, x, indices.shape[-1])
    # -1 stands for a wrong index on a GPU; as an index it would clear the last row.
    y[rows if xp is np else rows[rows >= 0]] = 0
    return y.reshape(x.shape)


cleared_.infer(lambda x, indices: x)
cleared_.vjp(x=lambda g, indices: cleared_(g, indices))
cleared_.cases = [case((3, 4), ints(5, 2, below=3))]


@primitive(linear="x", tf_name="GatherNd")
def gather_last_(xp: ArrayModule, x: Array, indices: Array) -> Array:
    """y[I] = x[indices[I]], and 0 where a later index is the same."""
    rows = rows_of(xp, indices, x.shape, "tensor_scatter_nd_update")
    y = gather_nd_.value(xp, x, indices)
    count = math.prod(x.shape[:indices.shape[-1]])
    kept = last_writers(xp, rows, count).reshape(indices.shape[:-1])
    return y * kept.reshape(kept.shape + (1,) * (y.ndim - kept.ndim)).astype(x.dtype)


gather_last_.infer(lambda x, indices:
                   x.reshaped((*indices.shape[:-1], *x.shape[indices.shape[-1]:])))
gather_last_.vjp(x=lambda g, x_spec, indices: put_last_(indices, g, shape=x_spec.shape))
gather_last_.cases = [case((3, 4), ints(5, 2, below=3))]


@primitive(linear="updates", tf_name="ScatterNd")
def put_last_(xp: ArrayModule, indices: Array, updates: Array, *, shape: tuple[int, ...]) -> Array:
    """Zeros of `shape` with y[indices[I]] = updates[I]: the adjoint of gather_last."""
    return tensor_scatter_update_.value(xp, xp.zeros(shape, updates.dtype), indices, updates)


put_last_.infer(lambda indices, updates, *, shape: updates.reshaped(shape))
put_last_.on_cuda("kernels.indexing.put_last")
put_last_.vjp(updates=lambda g, indices: gather_last_(g, indices))
put_last_.cases = [case(ints(5, 2, below=3), (5,), shape=(3, 4))]


def _bounded_grads(g: Tensor, tensor: Tensor, indices: Tensor, updates: Tensor, y: Tensor,
                   ) -> tuple[Tensor, ...]:
    """Equal candidates, of the tensor and of the updates, share the gradient."""
    own = cast_(equal(tensor, y), dtype=tensor.dtype)
    hits = cast_(equal(updates, gather_nd_(y, indices)), dtype=tensor.dtype)
    # At least one candidate is equal to the result, so that this never divides by 0.
    shared = g / (own + scatter_nd_(indices, hits, shape=tensor.spec.shape))
    return shared * own, gather_nd_(shared, indices) * hits


def _bounding(which: str, word: str, function: Callable[[ArrayModule], Any]) -> Primitive:
    """The op that keeps the largest ("max") or smallest ("min") of what meets at an index."""
    name = f"tensor_scatter_nd_{which}"

    def bounded(xp: ArrayModule, tensor: Array, indices: Array, updates: Array) -> Array:
        rows = rows_of(xp, indices, tensor.shape, name)
        y = _table(xp, tensor, indices.shape[-1])
        rows, values = _inside(xp, rows, updates.reshape((rows.size, *y.shape[1:])))
        function(xp).at(y, rows, values)  # y[rows] = … would keep one of equal rows
        return y.reshape(tensor.shape)

    doc = f"y = tensor, with y[indices[I]] the {word} of it and its updates."
    op: Primitive = primitive(named(bounded, f"tensor_scatter_{which}_", doc),
                              tf_name=f"TensorScatter{which.title()}")
    op.infer(lambda tensor, indices, updates: _fitting(name, tensor, indices, updates))
    op.vjp("tensor", "updates")(_bounded_grads)
    op.refuses = True
    op.cases = _CASES
    return op


tensor_scatter_max_ = _bounding("max", "largest", lambda xp: xp.maximum)
tensor_scatter_min_ = _bounding("min", "smallest", lambda xp: xp.minimum)


def _arguments(name: str, tensor: TensorLike, indices: TensorLike, updates: TensorLike, policy: str,
               ) -> tuple[Tensor, Tensor, Tensor]:
    if policy not in _POLICIES:
        raise InvalidArgumentError(f"{name}: bad_indices_policy must be one of {_POLICIES}; got "
                                   f"{shown(policy)}")
    x = convert(tensor)
    index = index_tensor(indices, name, x)
    values = convert_like(updates, x._t, name)
    _fitting(name, x.spec, index.spec, values.spec)  # before IGNORE flattens them
    return (x, index, values) if policy != "IGNORE" else (x, *_without_bad(x, index, values))


def _without_bad(x: Tensor, index: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The index tuples inside x, and their updates."""
    xp, array = x._t.xp, index._array_()
    limits = xp.asarray(x.spec.shape[:array.shape[-1]])
    # How many are inside is known only by looking at them.
    kept = xp.flatnonzero(((array >= 0) & (array < limits)).all(axis=-1).reshape(-1))
    rest = values.spec.shape[array.ndim - 1:]
    rows = convert(kept, None, x._t.device)
    flat = reshape_(values, shape=(math.prod(array.shape[:-1]), *rest))
    picked = reshape_(index, shape=(math.prod(array.shape[:-1]), array.shape[-1]))
    return gather_(picked, rows, axis=0), gather_(flat, rows, axis=0)


def _scattered(how: str, doc: str, scatter: Callable[[Tensor, Tensor, Tensor], Tensor],
               more: str = "Raises as `tensor_scatter_nd_add`.") -> Callable[..., Tensor]:
    public = f"tensor_scatter_nd_{how}"

    def function(tensor: TensorLike, indices: TensorLike, updates: TensorLike,
                 bad_indices_policy: str = "", name: str | None = None) -> Tensor:
        return scatter(*_arguments(public, tensor, indices, updates, bad_indices_policy))

    return named(function, public, f"{doc}\n\n    {more}")


tensor_scatter_nd_add = _scattered(
    "add", "`tensor` with `updates` added at `indices`; repeated indices add up.",
    lambda x, index, values: x + scatter_nd_(index, values, shape=x.spec.shape),
    """Args:
        indices: integers [*I, k]: index tuples of the first k axes.
        updates: [*I, *tensor.shape[k:]].
        bad_indices_policy: "IGNORE" drops indices out of range.

    Raises:
        InvalidArgumentError: shapes or dtypes do not fit, or an index is out of range.
    """)
tensor_scatter_nd_sub = _scattered(
    "sub", "`tensor` with `updates` subtracted at `indices`.",
    lambda x, index, values: x - scatter_nd_(index, values, shape=x.spec.shape))
tensor_scatter_nd_max = _scattered(
    "max", "`tensor` with the larger of its value and the updates at `indices`.",
    tensor_scatter_max_, "Equal values share the gradient. Raises as `tensor_scatter_nd_add`.")
tensor_scatter_nd_min = _scattered(
    "min", "`tensor` with the smaller of its value and the updates at `indices`.",
    tensor_scatter_min_, "Equal values share the gradient. Raises as `tensor_scatter_nd_add`.")


def tensor_scatter_nd_update(tensor: TensorLike, indices: TensorLike, updates: TensorLike,
                             name: str | None = None) -> Tensor:
    """`tensor` with `updates` in place of its values at `indices`.

    Of equal indices the last counts, and it alone gets the gradient. Raises as
    `tensor_scatter_nd_add`.
    """
    return tensor_scatter_update_(
        *_arguments("tensor_scatter_nd_update", tensor, indices, updates, ""))


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: IntsLike, name: str | None = None,
               ) -> Tensor:
    """`updates` added into zeros of `shape` at `indices`; repeated indices add up.

    Of strings that have one index the last counts.

    Raises:
        InvalidArgumentError: an index out of range, or shapes that do not fit.
    """
    values = convert(updates)
    # Strings cannot be added.
    if values.dtype is dtypes.string:
        return tensor_scatter_nd_update(zeros(as_shape(shape), dtypes.string), indices, values)
    return scatter_nd_(index_tensor(indices, "scatter_nd", values), values, shape=as_shape(shape))
