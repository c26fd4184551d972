"""TensorArray: a list of tensors, written and read by index; gradients flow through it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NoReturn

from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, float32
from gtape.core.errors import (
    InvalidArgumentError,
    NotTraceableError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from gtape.core.formatting import shown
from gtape.core.spec import TensorShape
from gtape.core.tensor import Tensor
from gtape.core.type_specs import TensorSpec, TypeSpec
from gtape.ops.arguments import as_int, as_ints
from gtape.ops.indexing.gathering import gather_
from gtape.ops.indexing.scattering import tensor_scatter_update_
from gtape.ops.shape.creation import zeros
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.packing import concat_, split_, stack_, unstack_
from gtape.trace.symbolic_tensor import SymbolicTensor


def _places(count: int) -> list[Tensor | None]:
    if count < 0:
        raise InvalidArgumentError(f"TensorArray: the size must not be negative; got {count}")
    try:
        # At once: a loop that fills a longer and longer list would fail much later.
        return [None] * count
    except (MemoryError, OverflowError):
        raise ResourceExhaustedError(f"TensorArray: there is not enough memory for {count} "
                                     f"elements") from None


class TensorArray:
    """A list of tensors of one dtype.

    Args:
        dtype: of every element.
        size: the number of elements.
        dynamic_size: writing beyond the end makes it longer.
        clear_after_read: an element can be read once; True unless given. What is read at an index
            that is known only when a traced function runs stays.
        infer_shape: every element must have the shape of the first.
        element_shape: that shape, where known; None for free lengths.

    Raises:
        ValueError: no size.
        InvalidArgumentError: a negative size.
        ResourceExhaustedError: a size for which there is no memory.
    """

    def __init__(self, dtype: Any, size: IntsLike | None = None, dynamic_size: bool | None = None,
                 clear_after_read: bool | None = None, tensor_array_name: str | None = None,
                 handle: object = None, flow: object = None, infer_shape: bool = True,
                 element_shape: IntsLike | None = None, colocate_with_first_write_call: bool = True,
                 name: str | None = None) -> None:
        if size is None:
            raise ValueError("a TensorArray needs its size; write size=0, dynamic_size=True for "
                             "one that grows")
        self._dtype: DType = as_dtype(dtype)
        self._dynamic = bool(dynamic_size)
        self._clear = True if clear_after_read is None else bool(clear_after_read)
        self._infer = bool(infer_shape)
        self._shape = TensorShape(element_shape)
        self._list: list[Tensor | None] = _places(as_int(size, "TensorArray: size"))
        #: All elements in one tensor, in place of the list: after an index that is traced.
        self._whole: Tensor | None = None
        self._read: set[int] = set()

    @property
    def _type_spec(self) -> TensorArraySpec:
        return TensorArraySpec(self._shape, self._dtype, self._dynamic, self._infer)

    @property
    def _items(self) -> list[Tensor | None]:
        if self._whole is not None:
            # A list again as soon as an index is a number: a write to it copies nothing.
            self._list, self._whole = list(unstack_(self._whole, axis=0)), None
        return self._list

    def together(self) -> Tensor:
        """All elements in one tensor, which loops of traced functions pass on.

        Raises:
            InvalidArgumentError: the shape of the elements is unknown.
        """
        if self._whole is None:
            self._whole = self._stacked(range(len(self._list)))
        return self._whole

    def like(self, whole: Tensor) -> TensorArray:
        """An array of the same kind with other elements."""
        result = copy.copy(self)
        result._whole, result._read = whole, set()
        return result

    def blank(self) -> TensorArray:
        """A copy to write to on trial."""
        result = copy.copy(self)
        result._list, result._read = list(self._list), set()
        return result

    def learn(self, shape: TensorShape) -> None:
        """Know the shape of the elements, as far as `shape` does."""
        if self._infer and not self._shape.is_fully_defined():
            self._shape = shape

    def _row(self, index: TensorLike, what: str) -> Tensor | None:
        """An index that is known only when the traced function runs, as int32[1]."""
        if type(index) is not SymbolicTensor:
            return None
        # The length after a write would depend on a value, and shapes may not.
        if self._dynamic:
            raise NotTraceableError(f"{what}: the index is known only when the traced function "
                                    f"runs, and so would be the size of an array that grows; make "
                                    f"the array with size=n and without dynamic_size")
        if index.spec.shape or not index.dtype.is_integer:
            raise InvalidArgumentError(f"{what}: the index must be one integer; got {index.spec}")
        return reshape_(index, shape=(1,))

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape:
        """The shape of the elements, as far as it is known."""
        return self._shape

    @property
    def handle(self) -> None:  # no resource of a runtime stands behind it
        return None

    @property
    def flow(self) -> Tensor:
        return convert(0)  # TensorFlow orders writes by it; here Python's lines do

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, written or not."""
        return convert(len(self._list) if self._whole is None else self._whole.spec.shape[0])

    def identity(self) -> TensorArray:
        """This array."""
        return self

    def close(self, name: str | None = None) -> None:
        """Forget the elements."""
        self._items.clear()

    def grad(self, source: object, flow: object = None, name: str | None = None) -> NoReturn:
        raise NotImplementedError("TensorArray.grad: use tape.gradient; gradients flow through "
                                  "write, read, stack and unstack")

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """Set element `index`, and give this array.

        Raises:
            OutOfRangeError: an index below 0, or beyond the end of an array of fixed size.
            InvalidArgumentError: another dtype or shape.
        """
        row = self._row(index, "TensorArray.write")
        if row is not None:
            item = self._fitting(value)
            self.learn(item.shape)
            self._whole = tensor_scatter_update_(self.together(), reshape_(row, shape=(1, 1)),
                                                 reshape_(item, shape=(1, *item.spec.shape)))
            return self
        at = as_int(index, "TensorArray.write: index")
        if at < 0 or (at >= len(self._items) and not self._dynamic):
            raise OutOfRangeError(f"TensorArray.write: the index must lie in "
                                  f"[0, {len(self._items)}); got {at}. Use dynamic_size=True for "
                                  f"an array that grows")
        item = self._fitting(value)
        self._items.extend([None] * (at + 1 - len(self._items)))
        self._items[at] = item
        self._read.discard(at)  # written anew, it can be read once more
        return self

    def _fitting(self, value: TensorLike) -> Tensor:
        # Python numbers take the array's dtype; a tensor's own is checked.
        item = convert(value, None if isinstance(value, Tensor) else self._dtype)
        if item.dtype is not self._dtype:
            raise InvalidArgumentError(f"TensorArray.write: the array holds {self._dtype!r}, the "
                                       f"value is {item.spec}; write tf.cast(value, "
                                       f"tf.{self._dtype.name})")
        if not self._shape.is_compatible_with(item.shape):
            raise InvalidArgumentError(f"TensorArray.write: the elements have shape {self._shape}, "
                                       f"the value {item.shape}; use infer_shape=False for "
                                       f"elements of different shapes")
        self.learn(item.shape)
        return item

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        """Element `index`; zeros where none was written and the shape is known.

        Raises:
            OutOfRangeError: no such element.
            InvalidArgumentError: it was read before, and `clear_after_read` holds; or it was not
                written, and its shape is unknown.
        """
        row = self._row(index, "TensorArray.read")
        if row is not None:
            return reshape_(gather_(self.together(), row, axis=0),
                            shape=self.together().spec.shape[1:])
        at = as_int(index, "TensorArray.read: index")
        if not 0 <= at < len(self._items):
            raise OutOfRangeError(f"TensorArray.read: the index must lie in "
                                  f"[0, {len(self._items)}); got {at}")
        if at in self._read:
            raise InvalidArgumentError(f"TensorArray.read: element {at} was cleared when it was "
                                       f"read; use clear_after_read=False to read it again")
        found = self._at(at)
        # TensorFlow frees what was read; programs that read twice by mistake hear of it here too.
        if self._clear:
            self._items[at] = None
            self._read.add(at)
        return found

    def _at(self, index: int) -> Tensor:
        found = self._items[index]
        if found is not None:
            return found
        if not self._shape.is_fully_defined():
            raise InvalidArgumentError(f"TensorArray: element {index} was not written, and the "
                                       f"shape of the elements is unknown")
        return zeros(self._shape, self._dtype)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis."""
        return self._stacked(range(len(self._list))) if self._whole is None else self._whole

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements at `indices` along a new first axis.

        Raises:
            OutOfRangeError: no such element.
        """
        wanted = as_ints(indices, "TensorArray.gather: indices")
        if not all(0 <= i < len(self._items) for i in wanted):
            raise OutOfRangeError(f"TensorArray.gather: indices must lie in "
                                  f"[0, {len(self._items)}); got {list(wanted)}")
        return self._stacked(wanted)

    def _stacked(self, indices: range | tuple[int, ...]) -> Tensor:
        items = [self._at(i) for i in indices]
        if items:
            return stack_(*items, axis=0)
        rest = self._shape.as_list() if self._shape.is_fully_defined() else []
        return zeros((0, *rest), self._dtype)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements one after another along their first axis."""
        return concat_(*[self._at(i) for i in range(len(self._items))], axis=0)

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """Set the elements to the slices of `value` along its first axis.

        Raises:
            ValueError: more slices than an array of fixed size holds.
        """
        return self._filled(self._parts(value, "TensorArray.unstack"))

    def _parts(self, value: TensorLike, what: str) -> tuple[Tensor, ...]:
        """The slices of a value along its first axis."""
        return unstack_(self._with_rows(value, what), axis=0)

    def _with_rows(self, value: TensorLike, what: str) -> Tensor:
        whole = convert(value, None if isinstance(value, Tensor) else self._dtype)
        if not whole.ndim:
            raise InvalidArgumentError(f"{what}: the value must have rank 1 or more; got "
                                       f"{whole.spec}")
        return whole

    def _filled(self, parts: tuple[Tensor, ...]) -> TensorArray:
        if len(parts) > len(self._items) and not self._dynamic:
            raise ValueError(f"a TensorArray of size {len(self._items)} cannot hold {len(parts)} "
                             f"elements; use dynamic_size=True")
        self._list, self._whole = [self._fitting(p) for p in parts], None
        self._read.clear()
        return self

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None,
                ) -> TensorArray:
        """Set element indices[i] to value[i].

        Raises:
            InvalidArgumentError: a scalar, or another number of values than of indices.
            OutOfRangeError: as `write`.
        """
        parts = self._parts(value, "TensorArray.scatter")
        for index, part in zip(as_ints(indices, "TensorArray.scatter: indices"), parts):
            self.write(index, part)
        return self

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """Set the elements to consecutive pieces of `value`, of the given lengths.

        Raises:
            InvalidArgumentError: the lengths do not add up.
        """
        whole = self._with_rows(value, "TensorArray.split")
        sizes = as_ints(lengths, "TensorArray.split: lengths")
        # Pieces of several lengths are meant; their shapes cannot be inferred from the first.
        self._infer = self._infer and len(set(sizes)) <= 1
        return self._filled(split_(whole, sizes=sizes, axis=0))


class TensorArraySpec(TypeSpec):
    """The spec of a `tf.TensorArray`.

    Args:
        element_shape: of each element; None for any.
        dtype: of the elements.
        dynamic_size: whether it may grow.
        infer_shape: whether all elements must have one shape.
    """

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    def __init__(self, element_shape: IntsLike | None = None, dtype: Any = float32,
                 dynamic_size: bool = False, infer_shape: bool = True) -> None:
        self._element_shape = TensorShape(element_shape)
        self._dtype = as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = bool(infer_shape)

    @classmethod
    def from_value(cls, value: TensorArray) -> TensorArraySpec:
        """The spec of a TensorArray.

        Raises:
            TypeError: it is none.
        """
        if not isinstance(value, TensorArray):
            raise TypeError(f"TensorArraySpec.from_value takes a TensorArray; got {shown(value)}")
        return value._type_spec

    @property
    def value_type(self) -> type:
        return TensorArray

    def _serialize(self) -> tuple[TensorShape, DType, bool, bool]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    @property
    def _component_specs(self) -> list[TypeSpec]:
        return [TensorSpec(TensorShape([None]) + self._element_shape, self._dtype)]

    def _to_components(self, value: Any) -> list[object]:
        return [value.stack()]

    def _from_components(self, components: Sequence[Any]) -> TensorArray:
        result = TensorArray(self._dtype, components[0].shape[0], self._dynamic_size, False,
                           infer_shape=self._infer_shape, element_shape=self._element_shape)
        return result.unstack(components[0])
