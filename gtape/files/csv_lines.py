"""Records of comma separated values: their fields, and these as tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_bytes, as_ints, as_items, as_strings, host_value
from gtape.ops.text.steps import array_of
from gtape.trace.host_steps import step

#: From here on a float32 is infinite.
_HUGE = float.fromhex("0x1.ffffffp127")
# What TensorFlow's op takes; others are cast from these.
_TYPES = ("float32", "float64", "int32", "int64", "string")


class CsvColumn(NamedTuple):
    """A field's dtype, and what stands for an empty one; None where it must not be empty."""

    dtype: DType
    default: object


class Format(NamedTuple):
    """How records are written: the byte between fields, whether fields may be quoted, and what
    stands for an empty field."""

    delimiter: bytes
    quotes: bool
    empty: bytes


def as_format(field_delim: str, use_quote_delim: bool, na_value: str) -> Format:
    """The format that the arguments of `decode_csv` say. Raises InvalidArgumentError: the delimiter
    is not one byte, or is a quote or a line's end."""
    delimiter = as_bytes(field_delim, "field_delim")
    # Records are cut at bytes, before they are decoded.
    if len(delimiter) != 1 or delimiter in b'"\r\n':
        raise InvalidArgumentError(f"field_delim should be only 1 char, and no quote or line's "
                                   f"end; got {shown(field_delim)}")
    return Format(delimiter, bool(use_quote_delim), as_bytes(na_value, "na_value"))


def as_columns(record_defaults: object) -> list[CsvColumn]:
    """The columns that a list of defaults says: a scalar or a list of one value, or a dtype or an
    empty tensor for a column that must not be empty. Raises InvalidArgumentError: a dtype that
    records do not have, or more than one value."""
    columns = []
    for i, given in enumerate(as_items(record_defaults, "record_defaults")):
        if isinstance(given, (DType, type)):
            column = CsvColumn(dtypes.as_dtype(given), None)
        else:
            tensor = convert(given)
            values = np.atleast_1d(host_value(tensor, f"the default of column {i}"))
            if values.size > 1 or values.ndim > 1:
                raise InvalidArgumentError(f"record_defaults: the default of column {i} must be "
                                           f"one value, or none where the column must not be "
                                           f"empty; got {shown(given)}")
            column = CsvColumn(tensor.dtype, values[0] if values.size else None)
        if column.dtype.name not in _TYPES:
            raise InvalidArgumentError(f"record_defaults: columns are of {', '.join(_TYPES)}; got "
                                       f"{column.dtype!r} for column {i}")
        columns.append(column)
    if not columns:
        raise InvalidArgumentError("record_defaults must name one column at least")
    return columns


def as_selection(select_cols: Sequence[int] | None, count: int) -> list[int] | None:
    """The numbers of the columns that are wanted. Raises ValueError: they are not in order,
    negative, or not as many as there are defaults."""
    if select_cols is None:
        return None
    # In order, since fields are taken as they come.
    numbers = list(as_ints(select_cols, "select_cols"))
    if any(a >= b for a, b in pairwise(numbers)):
        raise ValueError(f"select_cols is not strictly increasing; got {shown(select_cols)}")
    if numbers and numbers[0] < 0:
        raise ValueError(f"select_cols contains negative values; got {shown(select_cols)}")
    if len(numbers) != count:
        raise ValueError(f"select_cols and record_defaults must be of one length; got "
                         f"{len(numbers)} and {count}")
    return numbers


def fields(record: bytes, form: Format) -> list[bytes]:
    """The fields of a record, without their quotes. Raises InvalidArgumentError: quotes that do not
    end, or stand within an unquoted field; a line's end outside quotes."""
    # An empty line has no field; split would give one that is empty.
    if not record:
        return []
    if not (form.quotes and b'"' in record):
        if form.quotes and (b"\n" in record or b"\r" in record):
            raise _unquoted()
        # Most files have no quotes, and then one call in C does it all.
        return record.split(form.delimiter)
    texts, at, size, mark = [], 0, len(record), form.delimiter
    while True:
        if record[at:at + 1] == b'"':
            value, at = _quoted(record, at + 1, mark)
        else:
            end = record.find(mark, at)
            end = size if end < 0 else end
            value, at = record[at:end], end
            if any(c in value for c in (b'"', b"\n", b"\r")):
                raise _unquoted()
        texts.append(value)
        if at >= size:
            return texts
        at += 1


def _unquoted() -> InvalidArgumentError:
    return InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside")


def _quoted(record: bytes, at: int, mark: bytes) -> tuple[bytes, int]:
    """The field whose quote begins before `at`, and the place after its last quote."""
    parts = []
    while True:
        end = record.find(b'"', at)
        if end < 0:
            raise InvalidArgumentError("Quoted field has to end with quote followed by delim or "
                                       "end")
        parts.append(record[at:end])
        after = record[end + 1:end + 2]
        if after == b'"':
            parts.append(b'"')
            at = end + 2
            continue
        if after not in (b"", mark):
            raise InvalidArgumentError("Quote inside a string has to be escaped by another "
                                       "quote")
        return b"".join(parts), end + 1


class Reader:
    """Reads the values of records: of the `columns` that are wanted, whose numbers in a record are
    the `selection`, or else all but those `excluded`."""

    def __init__(self, columns: Sequence[CsvColumn], form: Format,
                 selection: list[int] | None = None,
                 excluded: frozenset[int] = frozenset()) -> None:
        self._form, self._selection, self._excluded = form, selection, excluded
        self._columns = columns
        self._readers = [_reader(column, form, i) for i, column in enumerate(columns)]

    def _wanted(self, columns: list[Any]) -> list[Any]:
        if self._selection is not None:
            return [columns[i] for i in self._selection if i < len(columns)]
        return [c for i, c in enumerate(columns) if i not in self._excluded]

    def values(self, record: bytes) -> list[object]:
        """The values of the wanted columns of a record. Raises InvalidArgumentError: the record has
        another number of fields; a field is empty and must not be, or is no number of its dtype."""
        texts = self._wanted(fields(record, self._form))
        if len(texts) != len(self._readers):
            raise InvalidArgumentError(f"Expect {len(self._readers)} fields but have {len(texts)}")
        return [read(text) for read, text in zip(self._readers, texts)]

    def columns(self, records: Sequence[bytes]) -> list[np.ndarray]:
        """The values of the wanted columns of many records, an array of each column. Raises
        InvalidArgumentError: as `values`."""
        texts = self._texts(records)
        if texts is None:
            rows = [self.values(record) for record in records]
            return [array_of([row[i] for row in rows], [len(rows)], c.dtype)
                    for i, c in enumerate(self._columns)]
        return [_array(column, c.dtype, read, self._form)
                for column, c, read in zip(texts, self._columns, self._readers)]

    def _texts(self, records: Sequence[bytes]) -> list[Sequence[bytes]] | None:
        """The fields by columns; None where some record has quotes, or other numbers of fields."""
        # One search in all bytes takes less time than one in every record.
        whole = b"".join(records)
        if self._form.quotes and any(c in whole for c in (b'"', b"\n", b"\r")):
            return None
        mark = self._form.delimiter
        try:
            columns = self._wanted(list(zip(*[r.split(mark) for r in records], strict=True)))
        except ValueError:
            return None
        return columns if len(columns) == len(self._readers) and all(records) else None


def _reader(column: CsvColumn, form: Format, number: int) -> Callable[[bytes], object]:
    dtype, default = column
    convert_text = _CONVERTERS[dtype.name]

    def read(text: bytes) -> object:
        if not text or text == form.empty:
            if default is None:
                raise InvalidArgumentError(f"Field {number} is required but missing")
            return default
        try:
            return convert_text(text)
        except ValueError:
            raise InvalidArgumentError(f"Field {number} is not a valid {dtype.name}: "
                                       f"{shown(text.decode('utf-8', 'replace'))}") from None

    return read


def _float64(text: bytes) -> float:
    if b"_" in text:  # Python's numbers may have underscores, a file's not
        raise ValueError
    return float(text)


def _float32(text: bytes) -> float:
    """A float that is infinite where a float32 is."""
    number = _float64(text)
    return number if abs(number) < _HUGE or number != number else number * math.inf


def _integer(bits: int) -> Callable[[bytes], int]:
    # Python has integers of any size, and would read more than the dtype holds.
    limit = 1 << bits - 1

    def read(text: bytes) -> int:
        number = int(text)
        if not -limit <= number < limit or b"_" in text:
            raise ValueError
        return number

    return read


_CONVERTERS: dict[str, Callable[[bytes], Any]] = {
    "float32": _float32, "float64": _float64, "int32": _integer(32), "int64": _integer(64),
    "string": lambda text: text}


def fits(text: bytes, dtype: DType) -> bool:
    """Whether a field is a number of a dtype, and a finite one where it is a float32."""
    try:
        number = _CONVERTERS[dtype.name](text)
    except ValueError:
        return False
    return dtype is not dtypes.float32 or math.isfinite(number)


def _array(texts: Sequence[bytes], dtype: DType, read: Callable[[bytes], object],
           form: Format) -> np.ndarray:
    """An array of a column's fields: at once where all are plain numbers, else one by one."""
    # An empty field is its default, or an error that names the field: one by one.
    if b"" in texts or form.empty in texts:
        return array_of([read(text) for text in texts], [len(texts)], dtype)
    if dtype is dtypes.string:
        return array_of(texts, [len(texts)], dtype)
    if b"_" not in b"".join(texts):
        number = int if dtype.is_integer else float
        try:
            return _numbers(np.array(list(map(number, texts)), number), dtype)
        except (ValueError, OverflowError):  # the fields one by one say which
            pass
    return array_of([read(text) for text in texts], [len(texts)], dtype)


def _numbers(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    """int64 or float64 numbers in a dtype; floats beyond its range are infinite. Raises
    OverflowError: an integer is beyond it."""
    with np.errstate(over="ignore"):
        cast = numbers.astype(dtype.np_dtype, copy=False)
    # NumPy wraps what is too large, without a word.
    if dtype is dtypes.int32 and (cast != numbers).any():
        raise OverflowError
    return cast


def decode_csv(records: TensorLike, record_defaults: TensorLike, field_delim: str = ",",
               use_quote_delim: bool = True, na_value: str = "",
               select_cols: Sequence[int] | None = None, name: str | None = None) -> list[Tensor]:
    """The columns of records, strings [...], as a list of tensors [...].

    Args:
        record_defaults: for each column what stands for an empty field, which sets the dtype too;
            an empty tensor or a dtype where the field must not be empty.
        field_delim: the character between fields.
        use_quote_delim: fields may stand in quotes, a quote among them doubled.
        na_value: another text that stands for an empty field.
        select_cols: the numbers of the columns that are wanted, in order.

    Raises:
        InvalidArgumentError: a record with another number of fields, a field that is no number of
            its dtype or empty without a default, quotes that do not end. It names the record.
        ValueError: `select_cols` that are not in order or not as many as the defaults.
    """
    columns = as_columns(record_defaults)
    form = as_format(field_delim, use_quote_delim, na_value)
    reader = Reader(columns, form, as_selection(select_cols, len(columns)))
    given = as_strings(records, "decode_csv")

    def run(array: np.ndarray) -> list[object]:
        texts = array.reshape(-1).tolist()
        try:
            arrays = reader.columns(texts)
        except InvalidArgumentError:
            # Records are read all at once; only where one is wrong is it looked for.
            raise _placed(reader, texts) from None
        return [column.reshape(array.shape) for column in arrays]

    return list(step("decode_csv", run, [given], [Spec(given.spec.shape, c.dtype)
                                                  for c in columns], rows=run))


def _placed(reader: Reader, records: Sequence[bytes]) -> InvalidArgumentError:
    for i, record in enumerate(records):
        try:
            reader.values(record)
        except InvalidArgumentError as error:
            return InvalidArgumentError(f"decode_csv: record {i}: {error}")
    raise AssertionError("every record can be read")
