"""dynamic_partition and dynamic_stitch: rows dealt out by number, and put together again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.placement import at_home
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.arguments import as_int, as_tensors, index_tensor
from gtape.ops.indexing.masking import compress_
from gtape.ops.indexing.scattering import put_last_
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.packing import concat_, split_


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
    order = xp.argsort(numbers, kind="stable")
    rows = reshape_(x, shape=(math.prod(lead), *shape[len(lead):]))
    dealt = compress_(rows, EagerTensor(order, x._t.device.type_of(order.dtype)), axis=0)
    with room_for("dynamic_partition", Spec((count,), int64)):
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
    index = EagerTensor(flat[:, None], values[0]._t.device.type_of(flat.dtype))
    return put_last_(index, concat_(*rows, axis=0), shape=(length, *rest))
