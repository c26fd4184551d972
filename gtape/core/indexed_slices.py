"""IndexedSlices: the sparse gradient of a gather. Rows `values[i]` belong at `indices[i]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.composite_tensor import CompositeTensor
from gtape.core.device import add_arrays
from gtape.core.dtypes import DType, as_dtype, float32, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.installed import installed
from gtape.core.spec import TensorShape
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import CompositeSpec, TensorSpec, TypeSpec, fully_known

if TYPE_CHECKING:
    from gtape.core.annotations import DTypeLike, IntsLike, TensorLike

#: What rows are multiplied with as they are; times a tensor, of any shape, they are a tensor.
_NUMBERS = (int, float, np.number)


class IndexedSlices(CompositeTensor):
    """Rows of a larger tensor: row `indices[i]` has `values[i]` added. Rows may repeat.

    Args:
        values: tensor [n, …].
        indices: integer tensor [n].
        dense_shape: integer tensor, the shape of the whole; may be None.
    """

    __slots__ = ("__weakref__", "_shape", "dense_shape", "indices", "values")

    def __init__(self, values: object, indices: object, dense_shape: IntsLike | None = None,
                 ) -> None:
        convert = installed.slice_tensor
        self.values: Tensor = convert(values)
        self.indices: Tensor = convert(indices)
        self.dense_shape: Any = None if dense_shape is None else convert(dense_shape)
        self._shape: tuple[int, ...] | None = None
        if self.dense_shape is not None:
            # Peeked at, which is no exit from a tape: nobody differentiates a shape.
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

    def dense(self, as_tensor: bool) -> Tensor | np.ndarray:
        """`to_dense` as a tensor, or as the bare array."""
        dense = self.to_dense()
        return dense if as_tensor else dense._array_()

    def numpy(self) -> Any:
        """The whole as a NumPy array."""
        return self.to_dense().numpy()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self.to_dense().__array__(dtype)

    def _parts_(self) -> tuple[Tensor, ...]:
        return self.values, self.indices

    def _source_(self) -> Any:
        return self.values

    def _frame_(self) -> Any:
        shape = self.dense_shape
        return None if shape is None else (self._shape, np.dtype(shape.dtype.as_numpy_dtype).name)

    @classmethod
    def _of_(cls, frame: Any, parts: Sequence[object]) -> IndexedSlices:
        values, indices = parts
        return cls(values, indices, None if frame is None else np.array(*frame))

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        return IndexedSlicesSpec.from_value(self)

    def _with(self, values: Tensor) -> IndexedSlices:
        return IndexedSlices(values, self.indices, self.dense_shape)

    def __neg__(self) -> IndexedSlices:
        return self._with(-self.values)

    def __add__(self, other: Any) -> IndexedSlices | Tensor:
        if isinstance(other, IndexedSlices):
            # A backward walk meets the later lookup first; rows come in the order of lookup.
            join = installed.concat
            return IndexedSlices(join([other.values, self.values]),
                                 join([other.indices, self.indices]), self.dense_shape)
        if self._is_bare(other):
            return add_arrays(self.dense(False), other)
        return self.dense(True) + other

    def __radd__(self, other: TensorLike) -> Any:
        if self._is_bare(other):
            return add_arrays(other, self.dense(False))
        return other + self.dense(True)

    def _is_bare(self, other: TensorLike) -> bool:
        """Whether `other` is an array as backward walks add them up."""
        return type(self.values) is EagerTensor and isinstance(other, self.values._t.xp.ndarray)

    def __mul__(self, other: TensorLike) -> IndexedSlices | Tensor:
        if isinstance(other, _NUMBERS):
            return self._with(self.values * other)
        return self.to_dense() * other

    __rmul__ = __mul__

    def __truediv__(self, other: TensorLike) -> IndexedSlices | Tensor:
        if isinstance(other, _NUMBERS):
            return self._with(self.values / other)
        return self.to_dense() / other

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: TensorLike) -> Any:
        return -self + other

    def __getitem__(self, key: Any) -> Any:
        return self.to_dense()[key]

    def __repr__(self) -> str:
        text = f"IndexedSlices(indices={self.indices!s}, values={self.values!s}"
        return text + (f", dense_shape={self.dense_shape!s})" if self.dense_shape is not None
                       else ")")


class IndexedSlicesSpec(CompositeSpec):
    """The spec of a `tf.IndexedSlices`.

    Args:
        shape: of the whole; None for any.
        dtype: of the values.
        indices_dtype: tf.int32 or tf.int64.
        dense_shape_dtype: of `dense_shape`; None where there is none.
        indices_shape: of the indices.
    """

    __slots__ = ("_dense_shape_dtype", "_dtype", "_indices_dtype", "_indices_shape", "_shape")

    def __init__(self, shape: IntsLike | None = None, dtype: Any = float32,
                 indices_dtype: object = int64, dense_shape_dtype: object = None,
                 indices_shape: IntsLike | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._indices_dtype = as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape([None] if indices_shape is None else indices_shape)

    @classmethod
    def from_value(cls, value: Any) -> IndexedSlicesSpec:
        """The spec of an IndexedSlices."""
        dense = value.dense_shape
        return cls(value.shape, value.dtype, value.indices.dtype,
                   None if dense is None else dense.dtype, value.indices.shape)

    @property
    def value_type(self) -> type:
        return IndexedSlices

    def _serialize(self) -> tuple[object, ...]:
        return (self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype,
                self._indices_shape)

    def _part_specs_(self) -> list[TensorSpec]:
        return self._component_specs[:2]  # type: ignore[return-value]

    def _part_names_(self) -> tuple[str, ...]:
        return "values", "indices"

    def _frame_(self) -> Any:
        if self._dense_shape_dtype is None:
            return None
        return fully_known(self, self._shape), np.dtype(
            self._dense_shape_dtype.as_numpy_dtype).name

    @property
    def _component_specs(self) -> list[TypeSpec]:
        rows = TensorShape(None) if self._shape.rank is None else self._shape[1:]
        specs: list[TypeSpec] = [TensorSpec(self._indices_shape + rows, self._dtype),
                                 TensorSpec(self._indices_shape, self._indices_dtype)]
        if self._dense_shape_dtype is not None:
            specs.append(TensorSpec([self._shape.rank], self._dense_shape_dtype))
        return specs

    def _to_components(self, value: Any) -> list[Any]:
        parts = [value.values, value.indices]
        return parts if value.dense_shape is None else [*parts, value.dense_shape]

    def _from_components(self, components: Sequence[Any]) -> Any:
        return self.value_type(*components)
