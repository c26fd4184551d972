"""CSV: datasets of the records of files of comma separated values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.device import CPU
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.arguments import flag, integer_or_none
from gtape.data.base import Same
from gtape.data.dataset import Dataset
from gtape.data.reading import FileDataset, lines
from gtape.data.rows import Elements, Rows
from gtape.files import csv_lines
from gtape.files.csv_lines import Format
from gtape.files.gfile import glob
from gtape.files.streams import compression
from gtape.ops.arguments import as_bytes, as_int, as_ints, as_items

#: Lines that a quoted field may go over, before it is said not to end.
_MOST_LINES = 10_000


class CsvRecord(NamedTuple):
    """A record, and where it begins."""

    path: str
    line: int
    content: bytes


class CsvDataset(FileDataset):
    """The records of CSV files, each a tuple of scalars.

    Args:
        filenames: of one file, of several, or a dataset of them.
        record_defaults: for each column a dtype, or an empty tensor, where a field must not be
            empty; else the value that stands for an empty one.
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        header: the first line of each file is no record.
        field_delim: the character between fields.
        use_quote_delim: fields may stand in quotes, and then go over several lines.
        na_value: another text that stands for an empty field.
        select_cols: the numbers of the columns that are wanted, in order; or
        exclude_cols: of those that are not.

    Raises:
        InvalidArgumentError: in a pass: a record with another number of fields, or a field that is
            no number of its dtype or must not be empty. It names the file and the line.
    """

    def __init__(
            self, filenames: object, record_defaults: TensorLike,
            compression_type: str | None = None, buffer_size: object = None, header: bool = False,
            field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
            select_cols: Any = None, exclude_cols: TensorLike | None = None) -> None:
        if select_cols is not None and exclude_cols is not None:
            raise InvalidArgumentError("CsvDataset takes select_cols or exclude_cols, not both")
        self._columns = csv_lines.as_columns(record_defaults)
        self._form = csv_lines.as_format(field_delim, use_quote_delim, na_value)
        self._reader = csv_lines.Reader(
            self._columns, self._form, csv_lines.as_selection(select_cols, len(self._columns)),
            frozenset(() if exclude_cols is None else as_ints(exclude_cols, "exclude_cols")))
        self._header = flag(header, "header")
        self._skips = False
        super().__init__(filenames, compression_type, buffer_size)

    def _record_spec(self) -> Any:
        return tuple([TensorSpec([], c.dtype) for c in self._columns])

    def _of_file(self, path: str) -> Elements[CsvRecord]:
        every = _records(path, self._kind, self._form, self._header)
        return filter(self._readable, every) if self._skips else every

    def _readable(self, record: CsvRecord) -> bool:
        try:
            self._reader.values(record.content)
        except InvalidArgumentError:
            return False
        return True

    def _rows(self) -> Rows:
        return super()._rows().mapped(_Fields(self._reader, self._columns))


class _Fields:
    """The fields of records, as rows call functions."""

    what = "CsvDataset"
    pure = vectorised = True

    def __init__(self, reader: csv_lines.Reader, columns: Sequence[csv_lines.CsvColumn]) -> None:
        self._read, self._types = reader, [CPU.typed(c.dtype) for c in columns]
        self.pack = tuple

    def batched(self, leaves: Sequence[EagerTensor]) -> list[EagerTensor] | None:
        """The columns of records; None where one of them cannot be read."""
        try:
            columns = self._read.columns([r.content for r in leaves[0]._a])
        except InvalidArgumentError:
            return None
        return [EagerTensor(a, kind) for a, kind in zip(columns, self._types)]

    def flat(self, leaves: Sequence[EagerTensor]) -> list[EagerTensor]:
        """The fields of one record."""
        # An array of no axes, which holds the record itself.
        record = leaves[0]._a[()]
        try:
            columns = self._read.columns([record.content])
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"'{record.path}', line {record.line}: {error}") from None
        return [EagerTensor(a.reshape(()), kind) for a, kind in zip(columns, self._types)]


def _records(path: str, kind: str, form: Format, header: bool) -> Elements[CsvRecord]:
    """The records of a file: one goes on where a quote is open at a line's end."""
    number, first, quotes = 0, 1, 0
    parts: list[bytes] = []
    for line in lines(path, kind, ends=True):
        number += 1
        if not parts:
            first = number
        parts.append(line)
        # Within quotes a quote is doubled, so that an even number says that none is open.
        quotes += line.count(b'"') if form.quotes else 0
        if quotes % 2:
            if len(parts) > _MOST_LINES:
                break
            continue
        record = parts[0] if len(parts) == 1 else b"".join(parts)
        parts, quotes = [], 0
        if header:
            header = False
            continue
        yield CsvRecord(path, first, record.removesuffix(b"\n").removesuffix(b"\r"))
    if parts:
        raise InvalidArgumentError(f"'{path}', line {first}: Quoted field has to end with quote "
                                   f"followed by delim or end; the quote is open at line {number}")
    if header:
        raise InvalidArgumentError(f"'{path}': Can't read header of file: it is empty")


class _Named(Same):
    """Tuples of columns as dicts by name, and the label beside them if one is named."""

    def __init__(self, dataset: Dataset, names: Sequence[str], label: str | None) -> None:
        super().__init__(dataset)
        self._names, self._label = names, label
        self._spec = lambda: self._named(dataset.element_spec)

    def _named(self, columns: Any) -> Any:
        named = OrderedDict(zip(self._names, columns))
        if self._label is None:
            return named
        label = named.pop(self._label)
        return named, label

    def _iterate(self) -> Elements[Any]:
        return map(self._named, self._inputs[0]._iterate())


def make_csv_dataset(file_pattern: Any, batch_size: int, column_names: object = None,
                     column_defaults: TensorLike | None = None, label_name: str | None = None,
                     select_columns: TensorLike | None = None, field_delim: str = ",",
                     use_quote_delim: bool = True, na_value: str = "", header: bool = True,
                     num_epochs: int | None = None, shuffle: bool = True,
                     shuffle_buffer_size: int = 10000, shuffle_seed: SupportsIndex | None = None,
                     prefetch_buffer_size: int | None = None,
                     num_parallel_reads: int | None = None, sloppy: bool = False,
                     num_rows_for_inference: int | None = 100, compression_type: Any = None,
                     ignore_errors: bool = False, encoding: str = "utf-8") -> Dataset:
    """Batches of CSV files: dicts from the columns' names to tensors [batch], with `label_name`
    pairs of such a dict and the label [batch].

    Args:
        file_pattern: the name of a file, a glob pattern, or a list of them.
        column_names: those of the first line by default.
        column_defaults: for each column (each that is selected) a dtype where its fields must not
            be empty, or what stands for an empty one; by default found from the first rows.
        select_columns: the names or numbers of those that are wanted.
        num_epochs: how often all is gone over; without it, without end.
        num_rows_for_inference: rows that are read to find the columns' dtypes; None for all.
        ignore_errors: records that are none are left out.
        sloppy: accepted; the order is the same in every pass that does not shuffle.

    Raises:
        ValueError: no file fits; no names; a name that no column has, or that the encoding cannot
            decode.
        InvalidArgumentError: in a pass, as `CsvDataset`.
    """
    paths = glob(file_pattern)
    if not paths:
        raise ValueError(f"No files match `file_pattern` {shown(file_pattern)}.")
    form = csv_lines.as_format(field_delim, use_quote_delim, na_value)
    kind, header, mixed = (compression(compression_type), flag(header, "header"),
                           flag(shuffle, "shuffle"))
    reads = integer_or_none(num_parallel_reads, "num_parallel_reads")
    ready = integer_or_none(prefetch_buffer_size, "prefetch_buffer_size")
    names = _column_names(paths, column_names, header, form, kind, encoding)
    chosen = _selected(select_columns, names)
    if column_defaults is None:
        defaults = _inferred(paths, chosen, len(names), form, header, kind, num_rows_for_inference)
    else:
        defaults = as_items(column_defaults, "column_defaults")
        if len(defaults) == len(names) != len(chosen):
            defaults = [defaults[i] for i in chosen]
    kept = [names[i] for i in chosen]
    if label_name is not None and not (isinstance(label_name, str) and label_name in kept):
        raise ValueError(f"`label_name` provided must be one of the columns: {kept}. Received: "
                         f"{shown(label_name)}.")
    files = Dataset.from_tensor_slices(paths)
    # Files and then rows: a buffer of rows alone would mix only the files that are read near each
    # other.
    if mixed:
        files = files.shuffle(len(paths), shuffle_seed)
    rows: Any = CsvDataset(files, defaults, kind, None, header, field_delim, use_quote_delim,
                           na_value, chosen)
    rows._skips = flag(ignore_errors, "ignore_errors")
    rows._side_by_side = max(reads or 1, 1)
    if mixed:
        rows = rows.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = rows.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)
    named = _Named(batches, kept, label_name)
    return named if ready == 0 else named.prefetch(-1 if ready is None else ready)


def _column_names(paths: list[str], given: object, header: bool, form: Format, kind: str,
                  encoding: str) -> list[str]:
    """The names of the columns, given or from the first line of every file."""
    if given is None and not header:
        raise ValueError("Expected `column_names` or `header` arguments. Neither is provided.")
    names = None if given is None else [
        as_bytes(name, "a name of column_names").decode("utf-8", "surrogateescape")
        for name in as_items(given, "column_names")]
    if names is None:
        for path in paths:
            first = next(_records(path, kind, form, False), None)
            if first is None:
                raise ValueError(f"'{path}' is empty; its first line must name the columns")
            here = [_decoded(field, encoding) for field in _fields(first, form)]
            if names is not None and here != names:
                raise ValueError(f"Files contain different sets of columns: {names} in "
                                 f"'{paths[0]}', {here} in '{path}'")
            names = here
    assert names is not None
    if len(set(names)) != len(names):
        raise ValueError(f"Cannot have duplicate column names; got {names}")
    return names


def _selected(wanted: object, names: list[str]) -> list[int]:
    """The numbers of the wanted columns, in order."""
    if wanted is None:
        return list(range(len(names)))
    numbers = []
    for column in as_items(wanted, "select_columns"):
        at = (names.index(column) if column in names else -1) if isinstance(column, str) else (
            as_int(column, "select_columns: a number of a column"))
        if not 0 <= at < len(names):
            raise ValueError(f"select_columns must be names or numbers of the columns {names}; got "
                             f"{shown(column)}")
        numbers.append(at)
    return sorted(numbers)


def _decoded(text: bytes, encoding: str) -> str:
    """The name of a column."""
    try:
        return text.decode(encoding)
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"make_csv_dataset: encoding={shown(encoding)} cannot decode "
                         f"{shown(text)}: {error}") from None


#: From the narrowest to the widest; a column has the first that fits all of its fields.
_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


def _inferred(paths: list[str], chosen: list[int], count: int, form: Format, header: bool,
              kind: str, rows: Any) -> list[object]:
    """What stands for an empty field of each column: zero or "", of the dtype of the column."""
    ranks: list[int | None] = [None] * len(chosen)
    left = integer_or_none(rows, "num_rows_for_inference")
    if left is not None and left < 0:
        raise ValueError(f"num_rows_for_inference must be 0 or more, or None for all; got {left}")
    for path in paths:
        for record in islice(_records(path, kind, form, header), left):
            texts = _fields(record, form)
            if len(texts) != count:
                raise ValueError(f"Problem inferring types: CSV row has different number of fields "
                                 f"than expected: '{path}', line {record.line} has {len(texts)}, "
                                 f"the columns are {count}")
            for i, column in enumerate(chosen):
                field = texts[column]
                if field and field != form.empty:
                    # Never narrower than a field before: the last dtype fits every field.
                    ranks[i] = next(rank for rank in range(ranks[i] or 0, len(_TYPES))
                                    if csv_lines.fits(field, _TYPES[rank]))
            left = None if left is None else left - 1
        if left == 0:
            break
    types = [dtypes.string if rank is None else _TYPES[rank] for rank in ranks]
    return [elements.element_of(np.array(b"" if t is dtypes.string else 0, t.np_dtype))
            for t in types]


def _fields(record: CsvRecord, form: Format) -> list[bytes]:
    try:
        return csv_lines.fields(record.content, form)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"'{record.path}', line {record.line}: {error}") from None
