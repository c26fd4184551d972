"""segment_*: sums, means, extremes and products of the rows that share an id; dynamic_partition and
dynamic_stitch: rows dealt out by number, and put together again.

The segment_* functions take sorted ids and number the segments up to the last id; the
unsorted_segment_* functions take any ids, drop negative ones and are told how many segments there
are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import SupportsIndex

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule, at_home
from gtape.core.dtypes import DType, float32, int64, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case, ints
from gtape.core.spec import Spec, room_for
from gtape.core.tensor import EagerTensor, Tensor
from gtape.numerics import scatter
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_tensors, index_tensor, named
from gtape.ops.elementwise.scalars import equal, greater_equal, maximum, sqrt, truncatediv, where
from gtape.ops.indexing.gathering import rows_or_zero_, scatter_rows_, within
from gtape.ops.indexing.masking import compress_
from gtape.ops.indexing.scattering import put_last_
from gtape.ops.shape.casting import cast_
from gtape.ops.shape.creation import ones_like, zeros_like
from gtape.ops.shape.layout import broadcast_to_, reshape_
from gtape.ops.shape.packing import concat_, split_


@primitive(tf_name="UnsortedSegmentMax")
def segment_extreme_(xp: ArrayModule, x: Array, ids: Array, *, count: int, largest: bool,
                     zeros: bool = False) -> Array:
    """y[s] = the largest or smallest x[i] with ids[i] = s. Where there is none: the lowest or
    highest finite value, or 0 if `zeros`."""
    y = (scatter.segment_max if largest else scatter.segment_min)(xp, x, ids, count)
    if zeros:
        present = scatter.segment_count(xp, ids, count) > 0
        y = xp.where(present.reshape((count,) + (1,) * (x.ndim - 1)), y, xp.zeros((), x.dtype))
    return y


segment_extreme_.on_cuda("kernels.indexing.segment_extreme")


@segment_extreme_.infer
def _(x: Spec, ids: Spec, *, count: int, largest: bool, zeros: bool) -> Spec:
    if not (x.dtype.is_floating or x.dtype.is_integer):
        raise InvalidArgumentError(f"segment_max and segment_min take real numbers; got {x}")
    return x.reshaped((count, *x.shape[1:]))


@segment_extreme_.vjp("x")
def _(g: Tensor, x: Tensor, ids: Tensor, y: Tensor, *, count: int) -> Tensor:
    hit = cast_(equal(x, rows_or_zero_(y, ids)), dtype=x.dtype)
    # How many rows of the segment are the extreme: they share the gradient.
    equals = rows_or_zero_(scatter_rows_(hit, ids, rows=count), ids)
    return rows_or_zero_(g, ids) * hit / maximum(equals, 1.0)


segment_extreme_.cases = [case((6, 2), ints(6, below=3), count=3, largest=True),
                          case((6,), ints(6, below=4), count=5, largest=False, zeros=True)]


@primitive(tf_name="UnsortedSegmentProd")
def segment_prod_(xp: ArrayModule, x: Array, ids: Array, *, count: int) -> Array:
    """y[s] = Π x[i] over i with ids[i] = s; 1 where there is none."""
    return scatter.segment_prod(xp, x, ids, count)


segment_prod_.on_cuda("kernels.indexing.segment_reduce", reduction="product")
segment_prod_.infer(lambda x, ids, *, count: x.reshaped((count, *x.shape[1:])))


@segment_prod_.vjp("x")
def _(g: Tensor, x: Tensor, ids: Tensor) -> Tensor:
    # Rows that no segment takes have no gradient, whatever they are.
    spread = rows_or_zero_(g, ids)
    taken = reshape_(greater_equal(ids, 0), shape=(ids.spec.shape[0], *(1,) * (x.ndim - 1)))
    taken = broadcast_to_(taken, shape=x.spec.shape)
    return where(taken, spread * _product_of_others(x, ids), zeros_like(x))


segment_prod_.cases = [case((6, 2), ints(6, below=3), count=3), case((5,), ints(5, below=2),
                                                                     count=3)]


@primitive(nondifferentiable=True, outputs="order place before behind", tf_name="Sort")
def group_(xp: ArrayModule, ids: Array) -> tuple[Array, ...]:
    """The order that brings equal ids together, its inverse, and how many rows of the same id come
    before and behind each in this order."""
    # Stable: within a segment the rows keep their order, and so do the errors of rounding.
    order = xp.argsort(ids, kind="stable")
    ranked, at = ids[order], xp.arange(ids.size)
    before = at - xp.searchsorted(ranked, ranked)
    behind = xp.searchsorted(ranked, ranked, side="right") - 1 - at
    return tuple(v.astype(np.int64) for v in (order, xp.argsort(order), before, behind))


group_.infer(lambda ids: (Spec(ids.shape, int64),) * 4)


def _product_of_others(x: Tensor, ids: Tensor) -> Tensor:
    """Π x[j] over the other rows j of the segment of i: no division, so zeros are exact, and no
    number of another segment, so that nan and infinity stay in their own."""
    order, place, before, behind = group_(ids)
    rows = rows_or_zero_(x, order)
    return rows_or_zero_(_product_before(rows, before, -1) * _product_before(rows, behind, 1),
                         place)


def _product_before(x: Tensor, count: Tensor, way: int) -> Tensor:
    """Π of the `count[i]` rows next to row i on one side, without it: -1 before, 1 behind it."""
    # The product of a stretch is that of its two halves, longer by twice in every step: log₂ n
    # passes over the data, where a walk along the rows would be n steps of Python.
    n, step = x.spec.shape[0], 1
    y = _near(x, count, way)
    while step < n:
        y = y * _near(y, count, way * step)
        step *= 2
    return y


def _near(x: Tensor, count: Tensor, distance: int) -> Tensor:
    """x[i + distance], and 1 where fewer rows of the segment than that lie on that side."""
    n = x.spec.shape[0]
    inside = greater_equal(count, abs(distance))
    at = convert(np.arange(n) + distance, None, x._t.device)
    y = rows_or_zero_(x, where(inside, at, convert(-1, at.dtype, x._t.device)))
    shape = (n, *(1,) * (x.ndim - 1))
    return where(broadcast_to_(reshape_(inside, shape=shape), shape=x.spec.shape), y,
                 ones_like(x))


def _numeric(name: str, data: TensorLike) -> Tensor:
    x = convert(data)
    if x.dtype is string or x.dtype.is_bool:
        raise InvalidArgumentError(f"{name}: data must be numbers; got {x.spec}")
    return x


@at_home
def _sorted(name: str, data: TensorLike, segment_ids: TensorLike) -> tuple[Tensor, Tensor, int]:
    """Rows, ids and the number of segments."""
    x = _numeric(name, data)
    ids = index_tensor(segment_ids, name, x)
    if not x.ndim or ids.spec.shape != x.spec.shape[:1]:
        raise InvalidArgumentError(f"{name}: segment_ids must be a vector with one id for each row "
                                   f"of data; got data {x.spec}, segment_ids {ids.spec}")
    array = ids._array_()  # their order, and how many segments they make, only values say
    if not array.size:
        return x, ids, 0
    if int(array[0]) < 0 or bool((array[1:] < array[:-1]).any()):
        raise InvalidArgumentError(f"{name}: segment_ids must be >= 0 and must not decrease; got "
                                   f"{shown(ids._peek())}. Use tf.math.unsorted_{name} for others")
    return x, ids, int(array[-1]) + 1


@at_home
def _unsorted(name: str, data: TensorLike, segment_ids: TensorLike, num_segments: int,
              ) -> tuple[Tensor, Tensor, int]:
    """Rows [n, …], ids [n] and the number of segments."""
    x = _numeric(name, data)
    ids = index_tensor(segment_ids, name, x)
    count = as_int(num_segments, f"{name}: num_segments")
    shape, lead = x.spec.shape, ids.spec.shape
    if shape[:len(lead)] != lead or count < 0:
        raise InvalidArgumentError(f"{name}: the shape of data must begin with that of segment_ids,"
                                   f" and num_segments must be >= 0; got data {x.spec}, "
                                   f"segment_ids {ids.spec}, num_segments={count}")
    # On a GPU the test would wait for the device; kernels drop what is out of range.
    if ids._t.device.is_host:
        ids = within(ids, None, count, f"{name}: with num_segments={count}, segment_ids")
    if len(lead) != 1:
        total = math.prod(lead)
        x = reshape_(x, shape=(total, *shape[len(lead):]))
        ids = reshape_(ids, shape=(total,))
    return x, ids, count


@primitive(nondifferentiable=True)
def sizes_(xp: ArrayModule, ids: Array, *, count: int, axes: int, dtype: DType) -> Array:
    """The number of rows of each segment, at least 1, with so many axes of length 1 behind."""
    # An empty segment has the sum 0, and so the mean 0.
    y = xp.maximum(scatter.segment_count(xp, ids, count), 1)
    return y.reshape((count,) + (1,) * axes).astype(dtype.np_dtype)


sizes_.infer(lambda ids, *, count, axes, dtype: Spec((count,) + (1,) * axes, dtype))
sizes_.cases = [case(ints(6, below=4), count=5, axes=1, dtype=float32)]


def _sizes(x: Tensor, ids: Tensor, count: int) -> Tensor:
    """The number of rows of each segment, at least 1, beside sums of x."""
    return sizes_(ids, count=count, axes=x.ndim - 1, dtype=x.dtype)


def _total(x: Tensor, ids: Tensor, count: int) -> Tensor:
    return scatter_rows_(x, ids, rows=count)


def _mean(x: Tensor, ids: Tensor, count: int) -> Tensor:
    return _total(x, ids, count) / _sizes(x, ids, count)


def _sorted_mean(x: Tensor, ids: Tensor, count: int) -> Tensor:
    # TensorFlow's segment_mean divides integers as C does; its unsorted one gives floats.
    if x.dtype.is_integer:
        return truncatediv(_total(x, ids, count), _sizes(x, ids, count))
    return _mean(x, ids, count)


def _root_mean(x: Tensor, ids: Tensor, count: int) -> Tensor:
    return _total(x, ids, count) / sqrt(_sizes(x, ids, count))


def _product(x: Tensor, ids: Tensor, count: int) -> Tensor:
    return segment_prod_(x, ids, count=count)


def _extreme(largest: bool, zeros: bool) -> Callable[[Tensor, Tensor, int], Tensor]:
    return lambda x, ids, count: segment_extreme_(x, ids, count=count, largest=largest, zeros=zeros)


def _of_sorted(public: str, reduced: Callable[[Tensor, Tensor, int], Tensor], doc: str,
               more: str = "See `segment_sum`.") -> Callable[..., Tensor]:
    """The public function of sorted ids."""
    def function(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
        return reduced(*_sorted(public, data, segment_ids))

    return named(function, public, f"{doc}\n\n    {more}")


def _of_unsorted(public: str, reduced: Callable[[Tensor, Tensor, int], Tensor], doc: str,
                 more: str = "See `unsorted_segment_sum`.") -> Callable[..., Tensor]:
    """The public function of any ids, and of composites."""
    def function(data: TensorLike, segment_ids: TensorLike, num_segments: SupportsIndex,
                 name: str | None = None) -> Tensor:
        return reduced(*_unsorted(public, data, segment_ids, num_segments))

    return takes_composites(named(function, public, f"{doc}\n\n    {more}"))


segment_sum = _of_sorted(
    "segment_sum", _total,
    "y[s, …] = Σ data[i, …] over i with segment_ids[i] = s, 0 where there is none.",
    """Args:
        segment_ids: integers [n], >= 0, not decreasing; the last gives the number of segments.

    Raises:
        InvalidArgumentError: ids that decrease, are negative, or do not fit `data`.
    """)
segment_mean = _of_sorted("segment_mean", _sorted_mean,
                          "The mean of the rows of each segment, 0 where there is none.")
segment_max = _of_sorted(
    "segment_max", _extreme(largest=True, zeros=True),
    "The largest of the rows of each segment, 0 where there is none; ties share the gradient.")
segment_min = _of_sorted(
    "segment_min", _extreme(largest=False, zeros=True),
    "The smallest of the rows of each segment, 0 where there is none; ties share the gradient.")
segment_prod = _of_sorted(
    "segment_prod", _product,
    "The product of the rows of each segment, 1 where there is none; exact gradient at zeros.")
unsorted_segment_sum = _of_unsorted(
    "unsorted_segment_sum", _total,
    "y[s, …] = Σ data[I, …] over I with segment_ids[I] = s, 0 where there is none.",
    """Args:
        data: [*I, …].
        segment_ids: integers [*I], below `num_segments`; negative ones are dropped.

    Returns:
        [num_segments, …].

    Raises:
        InvalidArgumentError: shapes that do not fit, or (in host memory) an id too large.
    """)
unsorted_segment_mean = _of_unsorted("unsorted_segment_mean", _mean,
                                     "The mean of each segment, 0 where there is none.")
unsorted_segment_sqrt_n = _of_unsorted("unsorted_segment_sqrt_n", _root_mean,
                                       "The sum of each segment divided by √(number of rows).")
unsorted_segment_max = _of_unsorted(
    "unsorted_segment_max", _extreme(largest=True, zeros=False),
    "The largest of each segment, the lowest finite value where there is none; ties share the\n"
    "    gradient.")
unsorted_segment_min = _of_unsorted(
    "unsorted_segment_min", _extreme(largest=False, zeros=False),
    "The smallest of each segment, the highest finite value where there is none; ties share the\n"
    "    gradient.")
unsorted_segment_prod = _of_unsorted(
    "unsorted_segment_prod", _product,
    "The product of each segment, 1 where there is none; exact gradient at zeros.")


# ---------------------------------------------------------------- rows dealt out and put together
@at_home
def dynamic_partition(data: TensorLike, partitions: TensorLike, num_partitions: int,
                      name: str | None = None) -> list[Tensor]:
    """The rows of `data` as `num_partitions` tensors: row I goes to number partitions[I].

    Args:
        data: [*I, …].
        partitions: integers [*I] in [0, num_partitions).

    Returns:
        Tensors [n, …]; within each, the rows keep their order.

    Raises:
        InvalidArgumentError: shapes that do not fit, or a number out of range.
    """
    x = convert(data)
    index = index_tensor(partitions, "dynamic_partition", x)
    count = as_int(num_partitions, "dynamic_partition: num_partitions")
    shape, lead = x.spec.shape, index.spec.shape
    if shape[:len(lead)] != lead or count < 1:
        raise InvalidArgumentError(f"dynamic_partition: the shape of data must begin with that of "
                                   f"partitions, and num_partitions must be >= 1; got data "
                                   f"{x.spec}, partitions {index.spec}, num_partitions={count}")
    xp, numbers = x._t.xp, index._array_().reshape(-1)
    if numbers.size and not (int(numbers.min()) >= 0 and int(numbers.max()) < count):
        raise InvalidArgumentError(f"dynamic_partition: partitions must lie in [0, {count}); got "
                                   f"{int(numbers.min())} to {int(numbers.max())}")
    # Stable: within a partition the rows keep their order.
    order = xp.argsort(numbers, kind="stable")
    rows = reshape_(x, shape=(math.prod(lead), *shape[len(lead):]))
    dealt = compress_(rows, EagerTensor(order, x._t.device.type_of(order.dtype)), axis=0)
    with room_for("dynamic_partition", Spec((count,), int64)):
        # int64: bincount refuses uint64.
        sizes = xp.bincount(numbers.astype(np.int64), minlength=count)
        return list(split_(dealt, sizes=tuple(int(n) for n in sizes), axis=0))


@at_home
def dynamic_stitch(indices: Sequence[TensorLike], data: Sequence[TensorLike],
                   name: str | None = None) -> Tensor:
    """y[indices[m][I], …] = data[m][I, …] for every m and I; of equal indices the last counts.

    Rows that no index names are 0. The first axis is as long as the largest index demands.

    Raises:
        InvalidArgumentError: shapes that do not fit, or a negative index.
        ValueError: the lists differ in length, or are empty.
    """
    if len(indices) != len(data) or not len(data):
        raise ValueError(f"dynamic_stitch: indices and data must be lists of one length >= 1; got "
                         f"{len(indices)} and {len(data)}")
    values = as_tensors(list(data), "dynamic_stitch")
    places = [index_tensor(i, "dynamic_stitch", values[0]) for i in indices]
    rest = values[0].spec.shape[places[0].ndim:]
    rows = []
    for place, value in zip(places, values):
        if value.spec.shape != (*place.spec.shape, *rest):
            raise InvalidArgumentError(f"dynamic_stitch: for indices {place.spec} the data must "
                                       f"have shape {[*place.spec.shape, *rest]}; got "
                                       f"{value.spec}")
        rows.append(reshape_(value, shape=(math.prod(place.spec.shape), *rest)))
    xp = values[0]._t.xp
    flat = xp.concatenate([p._array_().reshape(-1).astype(np.int64) for p in places])
    if flat.size and int(flat.min()) < 0:
        raise InvalidArgumentError(f"dynamic_stitch: indices must be >= 0; got {int(flat.min())}")
    length = int(flat.max()) + 1 if flat.size else 0
    # One number each, as index tuples.
    index = EagerTensor(flat[:, None], values[0]._t.device.type_of(flat.dtype))
    return put_last_(index, concat_(*rows, axis=0), shape=(length, *rest))
