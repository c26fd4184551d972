"""gtape.lookup: tables of values by keys, which are strings or integers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from gtape._names import lacking as _lacking
from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, int64, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor, Tensor
from gtape.files.paths import errors, local
from gtape.ops.arguments import as_bytes, as_int
from gtape.ops.indexing.lookup_tables import (
    DenseHashTable,
    KeyedValues,
    LookupTable,
    MutableHashTable,
    StaticHashTable,
    fillable,
)
from gtape.ops.text.hashes import fingerprints
from gtape.ops.text.numerals import to_number
from gtape.ops.text.steps import array_of

__all__ = [
    "KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex",
    "TextFileInitializer", "experimental"]


def _known(value: TensorLike, dtype: object, what: str) -> EagerTensor:
    tensor = convert(value, None if dtype is None else as_dtype(dtype))
    if not isinstance(tensor, EagerTensor):
        raise InvalidArgumentError(f"the {what} of a table must be known when it is made; got "
                                   f"{tensor.spec}. Make the table outside of the function")
    return tensor


class KeyValueTensorInitializer(KeyedValues):
    """Fills a table with `values` at `keys`, tensors of one shape; dtypes are for Python values.
    Raises InvalidArgumentError: other shapes, or none at all, when a table is made."""

    def __init__(self, keys: TensorLike, values: TensorLike, key_dtype: DTypeLike | None = None,
                 value_dtype: DTypeLike | None = None, name: str | None = None) -> None:
        self._keys, self._values = _known(keys, key_dtype, "keys"), _known(
            values, value_dtype, "values")
        self._key_dtype, self._value_dtype = self._keys.dtype, self._values.dtype

    def initialize(self, table: LookupTable) -> None:
        """Fill `table`, which forgets what was in it; a StaticHashTable that is full stays so.
        Raises TypeError: it is no table of these dtypes; FailedPreconditionError: a key has two
        values, for a StaticHashTable."""
        full = fillable(table, self)
        keys, values = self._keys.spec, self._values.spec
        if keys.shape != values.shape or 0 in keys.shape:
            raise InvalidArgumentError(f"the keys and values of a table must have one shape, and "
                                       f"not be empty; got keys {keys} and values {values}")
        full._import(self._keys._peek(), self._values._peek())


class TextFileIndex:
    """What of a line is a key, or a value: the line, its number, or the column of a number >= 0."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(KeyedValues):
    """Fills a table with a key and a value from each line of a text file.

    Args:
        filename: the file, read when a table is made.
        key_dtype, value_dtype: int64 for the number of the line; string for the whole line;
            string or a number for a column.
        key_index, value_index: TextFileIndex.WHOLE_LINE, LINE_NUMBER, or the number of a column.
        vocab_size: read so many lines; all unless given.
        delimiter: what is between columns.
        value_index_offset: added to the number of the line, as a value.

    Raises:
        ValueError: an index below -2, or a dtype that does not fit one; a vocab_size below 1, or a
            delimiter of another length.
        NotFoundError: there is no such file, when a table is made.
        InvalidArgumentError: fewer lines than `vocab_size`, a line with too few columns, or a
            column that is no number where one is asked for.
    """

    def __init__(self, filename: object, key_dtype: object, key_index: int, value_dtype: object,
                 value_index: int, vocab_size: int | None = None, delimiter: str = "\t",
                 name: str | None = None, value_index_offset: int = 0) -> None:
        if filename is None or (isinstance(filename, (str, bytes)) and not filename):
            raise ValueError("TextFileInitializer: a filename is needed")
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._columns = (
            (_column("key", key_index, self._key_dtype), self._key_dtype, 0),
            (_column("value", value_index, self._value_dtype), self._value_dtype,
             _offset(value_index_offset)))
        self._size, self._delimiter = _lines(vocab_size), _delimiter(delimiter)
        self._path = local(filename)

    def initialize(self, table: StaticHashTable) -> None:
        """Read the file and fill `table`. Raises as `KeyValueTensorInitializer.initialize`."""
        # Looked at before the file is read.
        full = fillable(table, self)
        both: tuple[list[Any], list[Any]] = ([], [])
        with errors(self._path), open(self._path, "rb") as file:
            for number, line in enumerate(file):
                # Lines beyond are not read: a vocabulary may be cut by its size.
                if number == self._size:
                    break
                # Lines of files from Windows are the same words.
                text = line.rstrip(b"\r\n")
                for items, (index, dtype, offset) in zip(both, self._columns):
                    items.append(self._item(text, number, index, dtype, offset))
        count = len(both[0])
        if self._size is not None and count != self._size:
            raise InvalidArgumentError(f"the vocab_size of {self._path} was to be {self._size}, "
                                       f"and the file has {count} lines")
        full._import(*(array_of(items, (count,), dtype)
                        for items, (_, dtype, _) in zip(both, self._columns)))

    def _item(self, text: bytes, number: int, index: int, dtype: DType, offset: int,
              ) -> bytes | int | np.generic:
        if index == TextFileIndex.LINE_NUMBER:
            return number + offset
        if index == TextFileIndex.WHOLE_LINE:
            return text if dtype is string else self._numeral(text, number, dtype)
        columns = text.split(self._delimiter)
        if index >= len(columns):
            raise InvalidArgumentError(
                f"{self._path}, line {number}, must have at least {index + 1} columns between "
                f"{self._delimiter!r}; it has {len(columns)}: {shown(text)}")
        column = columns[index]
        return column if dtype is string else self._numeral(column, number, dtype)

    def _numeral(self, text: bytes, number: int, dtype: DType) -> np.generic:
        try:
            return to_number(convert(text), dtype).numpy()
        except InvalidArgumentError:
            raise InvalidArgumentError(f"{self._path}, line {number}: {shown(text)} is no "
                                       f"{dtype.name}") from None


def _delimiter(value: str) -> bytes:
    delimiter = as_bytes(value, "TextFileInitializer: the delimiter")
    # A character may have several bytes; lines are split by all of them.
    if len(delimiter.decode(errors="replace")) != 1:
        raise ValueError(f"TextFileInitializer: the delimiter must be one character; got "
                         f"{shown(value)}")
    return delimiter


def _lines(vocab_size: int | None) -> int | None:
    if vocab_size is None:
        return None
    count = as_int(vocab_size, "TextFileInitializer: vocab_size")
    if count <= 0:
        raise ValueError(f"TextFileInitializer: vocab_size must be positive; got {count}")
    return count


def _offset(value: int) -> int:
    offset = as_int(value, "TextFileInitializer: value_index_offset")
    # Half of int64's range is left for the numbers of lines.
    if abs(offset) >= 1 << 62:
        raise ValueError(f"TextFileInitializer: value_index_offset must be between -2**62 and "
                         f"2**62, so that int64 holds the sums; got {offset}")
    return offset


def _column(what: str, given: int, dtype: DType) -> int:
    """The `{what}_index` of a line: a column, or one of TextFileIndex. Raises TypeError: it is no
    integer; ValueError: it is below these, or `dtype` does not fit it."""
    index = as_int(given, f"TextFileInitializer: {what}_index")
    if index < TextFileIndex.WHOLE_LINE:
        raise ValueError(f"TextFileInitializer: {what}_index must be a column, or LINE_NUMBER or "
                         f"WHOLE_LINE of tf.lookup.TextFileIndex; got {index}")
    if index == TextFileIndex.LINE_NUMBER and dtype is not int64:
        raise ValueError(f"TextFileInitializer: {what}_dtype must be int64 where {what}_index is "
                         f"LINE_NUMBER; got {dtype.name}")
    if index == TextFileIndex.WHOLE_LINE and not (dtype is string or dtype.is_integer):
        raise ValueError(f"TextFileInitializer: {what}_dtype must be string or an integer where "
                         f"{what}_index is WHOLE_LINE; got {dtype.name}")
    return index


class StaticVocabularyTable(LookupTable):
    """Ids of the words of a vocabulary, and buckets behind them for all other words. Raises
    ValueError: fewer than one bucket, or more than int64 counts; TypeError: ids that are not int64,
    or keys that are neither strings nor integers.

    The id of a word that is not in the vocabulary is its size plus the word's
    `tf.strings.to_hash_bucket_fast`; integers are hashed as their digits.

    Args:
        initializer: of strings or integers to int64 ids, or None for buckets alone.
        num_oov_buckets: how many buckets.
        lookup_key_dtype: the dtype of the keys; that of the initializer, or string, unless given.
    """

    def __init__(self, initializer: object, num_oov_buckets: int,
                 lookup_key_dtype: DTypeLike | None = None, name: str | None = None,
                 experimental_is_anonymous: bool = False) -> None:
        self._buckets = as_int(num_oov_buckets, "num_oov_buckets")
        if self._buckets <= 0:
            raise ValueError(f"StaticVocabularyTable: num_oov_buckets must be greater than 0; got "
                             f"{self._buckets}. Use tf.lookup.StaticHashTable")
        self._words = None if initializer is None else StaticHashTable(initializer, -1)
        if self._words is not None and self._words.value_dtype is not int64:
            raise TypeError(f"StaticVocabularyTable: the ids must be int64; got "
                            f"{self._words.value_dtype.name}. Write tf.cast(ids, tf.int64)")
        usual = string if self._words is None else self._words.key_dtype
        super().__init__(usual if lookup_key_dtype is None else lookup_key_dtype, int64, -1, name)
        if (self._key_dtype is string) is not (usual is string):
            raise TypeError(f"StaticVocabularyTable: the lookup_key_dtype {self._key_dtype.name} "
                            f"does not fit the words, which are {usual.name}")
        if self._words is not None:
            self._entries = self._words._entries
        # The last bucket's id must be an int64.
        if len(self._entries) + self._buckets >= 1 << 63:
            raise ValueError(f"StaticVocabularyTable: the ids of {len(self._entries)} words and "
                             f"the buckets must be int64; got num_oov_buckets={self._buckets}")

    def size(self, name: str | None = None) -> Tensor:
        """How many words and buckets there are: an int64 scalar."""
        return convert(len(self._entries) + self._buckets, int64)

    def _read(self, keys: np.ndarray, defaults: np.ndarray | None = None) -> list[np.ndarray]:
        asked = keys.reshape(-1).tolist()
        # A dict and no search in an array: keys are bytes, of any length.
        ids = np.array([self._entries.get(key, -1) for key in asked], np.int64)
        unknown = np.flatnonzero(ids == -1)
        # Integers are hashed as TensorFlow hashes them: by their digits.
        words = [asked[i] if self._key_dtype is string else str(asked[i]).encode()
                 for i in unknown.tolist()]
        if words:
            buckets = (fingerprints(words) % np.uint64(self._buckets)).astype(np.int64)
            ids[unknown] = len(self._entries) + buckets
        return [ids.reshape(keys.shape)]


experimental = SimpleNamespace(MutableHashTable=MutableHashTable, DenseHashTable=DenseHashTable)

__getattr__ = _lacking("gtape.lookup", __all__)
