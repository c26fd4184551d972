"""DynamicRaggedShape: what `tf.shape` gives of a RaggedTensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int


class DynamicRaggedShape:
    """The lengths of a RaggedTensor: a number for a dense axis, one for each row for a ragged one.

    `shape[axis]` is the length of a dense axis.
    """

    __slots__ = ("_dtype", "_x")

    def __init__(self, x: Any, dtype: Any = None) -> None:
        self._x = x
        self._dtype = x.row_splits.dtype if dtype is None else dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self._x.ragged_rank + self._x.flat_values.ndim

    @property
    def dtype(self) -> Any:
        """int32 or int64."""
        return self._dtype

    @property
    def num_row_partitions(self) -> int:
        """How many axes are ragged."""
        return self._x.ragged_rank

    def static_lengths(self) -> list[Any]:
        """Of each axis its length, or the lengths of its rows."""
        found: list[Any] = [self._x._count()]
        level = self._x
        while hasattr(level, "row_splits"):
            found.append(level._uniform if level._uniform is not None else
                         tuple(np.diff(level._host()).tolist()))
            level = level.values
        return found + list(level.shape[1:])

    def is_uniform(self, axis: int) -> bool:
        """Whether all rows have one length along an axis."""
        return self._x.shape[axis] is not None

    def __getitem__(self, index: Any) -> Tensor:
        at = as_int(index, "an axis of a ragged shape")
        if not -self.rank <= at < self.rank:
            raise IndexError(f"there is no axis {at} in {self!r}")
        length = self._x.shape[at]
        if length is None:
            raise ValueError(f"axis {at} is ragged: it has no one length. Write x.row_lengths(), "
                             f"or x.bounding_shape(axis={at})")
        return convert(length, self._dtype, self._x.row_splits._t.device)

    def __repr__(self) -> str:
        return (f"<DynamicRaggedShape lengths={self.static_lengths()} "
                f"num_row_partitions={self.num_row_partitions}>")
