"""IndexedSlices: the sparse gradient of a gather. Rows `values[i]` belong at `indices[i]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.core.composite_tensor import CompositeTensor
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.installed import installed
from gtape.core.shape import TensorShape
from gtape.core.tensor import Tensor
from gtape.core.type_specs import IndexedSlicesSpec


class IndexedSlices(CompositeTensor):
    """Rows of a larger tensor: row `indices[i]` has `values[i]` added. Rows may repeat.

    Args:
        values: tensor [n, …].
        indices: integer tensor [n].
        dense_shape: integer tensor, the shape of the whole; may be None.
    """

    __slots__ = ("__weakref__", "_shape", "dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        convert = installed.slice_tensor
        self.values: Tensor = convert(values)
        self.indices: Tensor = convert(indices)
        self.dense_shape: Any = None if dense_shape is None else convert(dense_shape)
        self._shape: tuple[int, ...] | None = None
        if self.dense_shape is not None:
            lengths = np.asarray(self.dense_shape._peek())
            if lengths.ndim != 1 or (lengths.dtype.kind not in "iu" and lengths.size):
                raise InvalidArgumentError(f"IndexedSlices: dense_shape must be a list of "
                                           f"integers; got {self.dense_shape.spec}")
            self._shape = tuple(int(n) for n in lengths)

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole."""
        if self._shape is None:
            return TensorShape([None, *self.values.shape[1:]])
        return TensorShape(self._shape)

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def device(self) -> str:
        return self.values.device

    def to_dense(self) -> Tensor:
        """The whole tensor, repeated rows added.

        Raises:
            ValueError: `dense_shape` is unknown.
            InvalidArgumentError: there is not one index for each row of the values.
        """
        if self._shape is None:
            raise ValueError("this IndexedSlices has no dense_shape, so its whole shape is unknown;"
                             " give dense_shape when it is made")
        rows, index = self.values.spec, self.indices.spec
        if len(index.shape) != 1 or not rows.shape or rows.shape[0] != index.shape[0]:
            raise InvalidArgumentError(f"an IndexedSlices must have a vector of indices, one for "
                                       f"each row of its values; got indices {index} and values "
                                       f"{rows}")
        return installed.dense_rows(self.values, self.indices, self._shape)

    def dense(self, as_tensor: bool) -> Any:
        """`to_dense` as a tensor, or as the bare array."""
        found = self.to_dense()
        return found if as_tensor else found._array_()

    def numpy(self) -> Any:
        """The whole as a NumPy array."""
        return self.to_dense().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.to_dense().__array__(dtype)

    def _parts_(self) -> tuple[Any, ...]:
        return self.values, self.indices

    def _source_(self) -> Any:
        return self.values

    def _frame_(self) -> Any:
        shape = self.dense_shape
        return None if shape is None else (self._shape, np.dtype(shape.dtype.as_numpy_dtype).name)

    @classmethod
    def _of_(cls, frame: Any, parts: Sequence[Any]) -> IndexedSlices:
        values, indices = parts
        return cls(values, indices, None if frame is None else np.array(*frame))

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        return IndexedSlicesSpec.from_value(self)

    def _with(self, values: Tensor) -> IndexedSlices:
        return IndexedSlices(values, self.indices, self.dense_shape)

    def __neg__(self) -> IndexedSlices:
        return self._with(-self.values)  # type: ignore[operator]

    def __add__(self, other: Any) -> Any:
        if isinstance(other, IndexedSlices):
            # A backward walk meets the later lookup first; rows come in the order of lookup.
            join = installed.concat
            return IndexedSlices(join([other.values, self.values]),
                                 join([other.indices, self.indices]), self.dense_shape)
        if isinstance(other, Tensor):
            return self.to_dense() + other  # type: ignore[operator]
        return self.dense(False) + other

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, Tensor):
            return other + self.to_dense()  # type: ignore[operator]
        return other + self.dense(False)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (int, float)) or getattr(other, "ndim", None) == 0:
            return self._with(self.values * other)  # type: ignore[operator]
        return self.to_dense() * other  # type: ignore[operator]

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, (int, float)) or getattr(other, "ndim", None) == 0:
            return self._with(self.values / other)  # type: ignore[operator]
        return self.to_dense() / other  # type: ignore[operator]

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __getitem__(self, key: Any) -> Any:
        return self.to_dense()[key]  # type: ignore[index]

    def __repr__(self) -> str:
        text = f"IndexedSlices(indices={self.indices!s}, values={self.values!s}"
        return text + (f", dense_shape={self.dense_shape!s})" if self.dense_shape is not None
                       else ")")
