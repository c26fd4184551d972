"""unique: the distinct elements of a vector."""

from __future__ import annotations

from typing import Any, NamedTuple

from gtape.core import dtypes
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.placement import at_home
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.kinds.primitive import primitive


class Unique(NamedTuple):
    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


@primitive(tf_name="Unique")
def unique_(xp: Any, x: Any, first: Any) -> Any:
    """The elements of x at the positions where each occurs first."""
    return x[first]


@unique_.infer
def _(x: Spec, first: Spec) -> Spec:
    return x.reshaped(first.shape)


unique_.cases = [case((4,), ints(3, below=4))]


@at_home
def _distinct(x: Any, out_idx: Any) -> tuple[Tensor, Tensor, Tensor]:
    tensor = convert(x)
    if tensor.ndim != 1:
        raise InvalidArgumentError(f"unique takes a vector; got {tensor.spec}. Use tf.reshape")
    xp, dtype = tensor._t.xp, as_dtype(out_idx)
    _, first, inverse, count = xp.unique(tensor._array_(), return_index=True, return_inverse=True,
                                         return_counts=True)
    order = xp.argsort(first)
    place = xp.argsort(order)

    def integers(array: Any, wanted: DType) -> EagerTensor:
        return EagerTensor(array.astype(wanted.np_dtype), tensor._t.device.typed(wanted))

    return (unique_(tensor, integers(first[order], dtypes.int64)),
            integers(place[inverse.reshape(-1)], dtype), integers(count[order], dtype))


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector in the order they first occur, and x as indices of them.

    No gradient is registered.

    Raises:
        InvalidArgumentError: `x` is not a vector.
    """
    return Unique(*_distinct(x, out_idx)[:2])


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None,
                       ) -> UniqueWithCounts:
    """`unique`, and how often each distinct element occurs."""
    return UniqueWithCounts(*_distinct(x, out_idx))
