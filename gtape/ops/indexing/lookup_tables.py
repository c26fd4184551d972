"""Lookup tables: values by keys, which are strings or integers. They live on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import here, resolve, tracer_now
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, int32, int64, string
from gtape.core.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotTraceableError,
    UnimplementedError,
)
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.arguments import as_int, host_value
from gtape.ops.sparse.tensor import SparseTensor
from gtape.ops.text.steps import array_of
from gtape.trace.host_steps import step


def _key_type(dtype: object) -> DType:
    wanted = as_dtype(dtype)
    if wanted not in (string, int32, int64):
        raise InvalidArgumentError(f"the keys of a table must be string, int32 or int64; got "
                                   f"{wanted.name}")
    return wanted


class KeyedValues:
    """Keys of one dtype, and values of one."""

    _key_dtype: DType
    _value_dtype: DType

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._value_dtype


class LookupTable(KeyedValues):
    """What all tables can do. Keys and values are kept in the order in which they came."""

    #: Its entries change: a traced function reads them at every call.
    _changes = False

    def __init__(self, key_dtype: DTypeLike, value_dtype: object, default_value: TensorLike,
                 name: str | None = None) -> None:
        self._key_dtype, self._value_dtype = _key_type(key_dtype), as_dtype(value_dtype)
        self._name = name
        self._default: Tensor = convert(default_value, self._value_dtype)
        if not isinstance(self._default, EagerTensor):
            raise InvalidArgumentError("the default_value of a table must be known when it is made")
        self._row = self._default.spec.shape
        self._entries: dict[Any, Any] = {}

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not there."""
        return self._default

    @property
    def name(self) -> str | None:
        """The name that it was given."""
        return self._name

    def size(self, name: str | None = None) -> Tensor:
        """How many keys there are: an int64 scalar."""
        return step("size of a table", lambda: [np.int64(len(self._entries))], [],
                    [Spec((), int64)], has_side_effect=self._changes)[0]

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys [n], and their values [n, ...].

        Raises:
            NotTraceableError: in a traced function, of a table that can change: it runs eagerly.
        """
        if self._changes and tracer_now() is not None:
            raise NotTraceableError(f"{resolve(*here())}: how many entries a table has is known "
                                    f"only when the function runs")
        keys = array_of(list(self._entries), (len(self._entries),), self._key_dtype)
        values = self._rows(list(self._entries.values()), (len(self._entries),))
        result = step("export", lambda: [keys, values], [], [
            Spec(keys.shape, self._key_dtype), Spec(values.shape, self._value_dtype)])
        return result[0], result[1]

    def lookup(self, keys: TensorLike | CompositeTensor, name: str | None = None,
               ) -> CompositeTensor | Tensor:
        """The values of `keys`, a tensor, SparseTensor or RaggedTensor; else `default_value`.

        Raises:
            InvalidArgumentError: keys of another dtype than the table's.
        """
        return self._found(keys, None)

    def __getitem__(self, keys: TensorLike) -> Any:
        return self.lookup(keys)

    def __iter__(self) -> NoReturn:
        # Python would take a table, which has items, for a sequence without end.
        raise TypeError("a table is no sequence of its values; write table.export() for its keys "
                        "and values")

    def _found(self, keys: Any, defaults: TensorLike | None) -> CompositeTensor | Tensor:
        if hasattr(keys, "with_flat_values"):
            return keys.with_flat_values(self._found(keys.flat_values, defaults))
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, self._found(keys.values, defaults), keys.dense_shape)
        asked = self._keys(keys)
        inputs = [asked]
        if defaults is not None:
            given = convert(defaults, self._value_dtype)
            inputs.append(given if given.spec.shape == self._row else self._values(given, asked))
        spec = Spec((*asked.spec.shape, *self._row), self._value_dtype)
        # Values go where integer keys are; strings stay on the host, and so do values by them.
        home = None if asked.dtype is string else asked._t.device
        return step("lookup", self._read, inputs, [spec], home, has_side_effect=self._changes)[0]

    def _read(self, keys: np.ndarray, defaults: np.ndarray | None = None) -> list[np.ndarray]:
        asked, entries = keys.reshape(-1).tolist(), self._entries
        if defaults is None:
            default = self._default._peek()[()]
            parts = [entries.get(key, default) for key in asked]
        else:
            # One for all, or one for each key: to the loop they are alike.
            others = np.broadcast_to(defaults, (*keys.shape, *self._row)).reshape(
                (len(asked), *self._row))
            parts = [entries.get(key, other) for key, other in zip(asked, others)]
        return [self._rows(parts, keys.shape)]

    def _rows(self, values: Sequence[TensorLike], shape: Sequence[int]) -> np.ndarray:
        """An array of values."""
        if not self._row:
            return array_of(values, shape, self._value_dtype)
        # Filled row by row, since stack takes no empty list.
        result = np.empty((len(values), *self._row), self._value_dtype.np_dtype)
        for i, value in enumerate(values):
            result[i] = value
        return result.reshape((*shape, *self._row))

    def _keys(self, keys: TensorLike) -> Tensor:
        try:
            return convert(keys, self._key_dtype)
        # `convert` speaks of values; the user has to hear of keys.
        except (ValueError, TypeError):
            found = getattr(keys, "dtype", None) or convert(keys).dtype
            raise InvalidArgumentError(f"the keys must have the dtype {self._key_dtype.name} as in "
                                       f"the table; got {found}") from None

    def _values(self, values: TensorLike, keys: Tensor) -> Tensor:
        x = convert(values, self._value_dtype)
        wanted = (*keys.spec.shape, *self._row)
        if x.spec.shape != wanted:
            raise InvalidArgumentError(f"expected the shape {list(wanted)} for the values of keys "
                                       f"of shape {list(keys.spec.shape)}; got {x.spec}")
        return x

    def _import(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Have these entries and no others: what an initializer does. Raises InvalidArgumentError:
        a key that cannot be used, or values of another shape."""
        if values.shape != (*keys.shape, *self._row):
            raise InvalidArgumentError(f"a table of values {list(self._row)} cannot be filled with "
                                       f"values {list(values.shape[keys.ndim:])}")
        self._check(keys)
        self._entries.clear()
        self._put(keys, values)

    def _check(self, keys: np.ndarray) -> None:
        """Refuse keys that cannot be used."""

    def _put(self, keys: np.ndarray, values: np.ndarray) -> None:
        rows = values.reshape((keys.size, *self._row))
        self._entries.update(zip(keys.reshape(-1).tolist(), rows if self._row else rows.tolist()))


def fillable(table: LookupTable, source: KeyedValues) -> LookupTable:
    """`table`, into which an initializer puts keys and values.

    Raises:
        TypeError: it is no table, or one of other dtypes.
    """
    if not isinstance(table, LookupTable):
        raise TypeError(f"initialize takes a table such as tf.lookup.StaticHashTable; got "
                        f"{shown(table)}")
    for what, wanted, given in (("key", table.key_dtype, source.key_dtype),
                                ("value", table.value_dtype, source.value_dtype)):
        if wanted is not given:
            raise TypeError(f"Invalid {what} dtype for table, expected {wanted.name} but got "
                            f"{given.name}")
    return table


class StaticHashTable(LookupTable):
    """A table that an initializer fills when it is made, and nobody changes.

    Args:
        initializer: such as tf.lookup.KeyValueTensorInitializer.
        default_value: the value of keys that are not there: a scalar.

    Raises:
        FailedPreconditionError: the initializer gives a key two values.
    """

    def __init__(self, initializer: Any, default_value: TensorLike, name: str | None = None,
                 experimental_is_anonymous: bool = False) -> None:
        if not hasattr(initializer, "initialize"):
            raise TypeError(f"StaticHashTable takes an initializer such as "
                            f"tf.lookup.KeyValueTensorInitializer; got {shown(initializer)}")
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value, name)
        if self._row:
            raise ValueError(f"the default_value of a StaticHashTable must be a scalar; got "
                             f"{self._default.spec}")
        self._initialized = False
        self._initializer = initializer
        initializer.initialize(self)

    def _import(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Fill it, the first time. Raises FailedPreconditionError: two values for one key."""
        if self._initialized:
            return
        entries: dict[Any, Any] = {}
        for key, value in zip(keys.reshape(-1).tolist(), values.reshape(-1).tolist()):
            # nan is not equal to itself, but may come twice as the same object.
            first = entries.setdefault(key, value)
            if first is not value and first != value:
                raise FailedPreconditionError(
                    f"the table has a different value for the same key: {shown(key)} has "
                    f"{shown(first)}, and came with {shown(value)} too")
        self._entries = entries
        self._initialized = True

    def _become(self, other: StaticHashTable) -> None:
        """Have the entries of `other`, for all who hold this table."""
        self._entries, self._initialized = other._entries, other._initialized

    def _empty(self) -> None:
        """Be as a table whose initializer put nothing into it."""
        self._entries, self._initialized = {}, False

    def _read(self, keys: np.ndarray, defaults: np.ndarray | None = None) -> list[np.ndarray]:
        if not self._initialized:
            raise FailedPreconditionError("the table is not initialized: its initializer put "
                                          "nothing into it")
        return super()._read(keys, defaults)


class MutableHashTable(LookupTable):
    """A table that can be changed, also in traced functions, which do so at every call.

    Args:
        key_dtype: string, int32 or int64.
        value_dtype: the dtype of the values.
        default_value: the value of keys that are not there; its shape is that of every value.
    """

    _changes = True

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike, default_value: TensorLike,
                 name: str = "MutableHashTable", checkpoint: bool = True,
                 experimental_is_anonymous: bool = False) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name)

    def lookup(self, keys: Any, dynamic_default_values: Any = None,  # type: ignore[override]
               name: str | None = None) -> Any:
        """The values of `keys`, a tensor, SparseTensor or RaggedTensor.

        Keys that are not there have `dynamic_default_values`, one for each key or one for all, or
        else the table's `default_value`.

        Raises:
            InvalidArgumentError: keys of another dtype than the table's, or default values of
                another shape.
        """
        return self._found(keys, dynamic_default_values)

    def insert(self, keys: TensorLike, values: TensorLike, name: str | None = None) -> None:
        """Give `keys` these values; of a key that comes twice, the last.

        Raises:
            InvalidArgumentError: keys of another dtype than the table's, or values whose shape does
                not fit.
            ValueError: values of another dtype.
        """
        given = self._keys(keys)
        self._change("insert", self._put, [given, self._values(values, given)])

    def remove(self, keys: TensorLike, name: str | None = None) -> None:
        """Forget `keys`; those that are not there do not matter.

        Raises:
            InvalidArgumentError: keys of another dtype than the table's.
        """
        self._change("remove", self._drop, [self._keys(keys)])

    def _drop(self, keys: np.ndarray) -> None:
        for key in keys.reshape(-1).tolist():
            self._entries.pop(key, None)

    def _change(self, name: str, change: Callable[..., object], inputs: list[Tensor]) -> None:
        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            change(*arrays)
            return []

        # A side effect: a traced function changes the table though nobody reads a result.
        step(name, run, inputs, [], has_side_effect=True)


class DenseHashTable(MutableHashTable):
    """A MutableHashTable two of whose keys are set apart and cannot be used.

    Args:
        key_dtype: string, int32 or int64.
        value_dtype: the dtype of the values.
        default_value: the value of keys that are not there; its shape is that of every value.
        empty_key, deleted_key: the keys that cannot be used; they must differ.
        initial_num_buckets: not used; the table grows as it must.

    Raises:
        InvalidArgumentError: both keys are the same, or of another dtype than `key_dtype`; a number
            of buckets that is no power of 2, or below 4.
        UnimplementedError: a key is no scalar.
    """

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike, default_value: int,
                 empty_key: int, deleted_key: int, initial_num_buckets: int | None = None,
                 name: str = "MutableDenseHashTable", checkpoint: bool = True,
                 experimental_is_anonymous: bool = False) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name)
        empty, deleted = self._lone(empty_key, "empty_key"), self._lone(deleted_key, "deleted_key")
        if empty == deleted:
            raise InvalidArgumentError(f"DenseHashTable: empty_key and deleted_key must differ; "
                                       f"both are {shown(empty)}")
        self._apart = {empty: "empty_key", deleted: "deleted_key"}
        _check_buckets(initial_num_buckets)  # none are made here, but wrong numbers are wrong

    def _lone(self, key: int | str, what: str) -> bytes | int:
        """The only value of a key. Raises UnimplementedError: it is no scalar."""
        array = host_value(self._keys(key), f"DenseHashTable: {what}")
        if array.ndim:
            raise UnimplementedError(f"DenseHashTable: {what} must be a scalar, as keys are; got "
                                     f"{shown(key)}")
        return array.item()

    def erase(self, keys: TensorLike, name: str | None = None) -> None:
        """`remove`."""
        self.remove(keys)

    def _check(self, keys: np.ndarray) -> None:
        for key in {*keys.reshape(-1).tolist()} & {*self._apart}:
            raise InvalidArgumentError(f"the {self._apart[key]} {shown(key)} of a DenseHashTable "
                                       f"cannot be used as a key")

    def _read(self, keys: np.ndarray, defaults: np.ndarray | None = None) -> list[np.ndarray]:
        self._check(keys)
        return super()._read(keys, defaults)

    def _put(self, keys: np.ndarray, values: np.ndarray) -> None:
        self._check(keys)
        super()._put(keys, values)

    def _drop(self, keys: np.ndarray) -> None:
        self._check(keys)
        super()._drop(keys)


def _check_buckets(count: Any) -> None:
    if count is None:
        return
    number = as_int(count, "DenseHashTable: initial_num_buckets")
    if number < 4 or number & (number - 1):
        raise InvalidArgumentError(f"DenseHashTable: initial_num_buckets must be a power of 2, and "
                                   f"4 or more; got {number}")
