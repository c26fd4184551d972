"""Reading: datasets of what files hold: lines, TFRecords, records of one length."""

from __future__ import annotations

import os
from itertools import chain, islice
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.dtypes import string
from gtape.core.errors import DataLossError, InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.type_specs import TensorSpec
from gtape.data import elements
from gtape.data.arguments import integer, known
from gtape.data.dataset import Dataset
from gtape.data.rows import Chunk, Elements, Rows, vector
from gtape.files import records as record_files
from gtape.files.paths import local
from gtape.files.streams import Stream, compression

#: Files that are read side by side where the number is left to gtape: in one thread, so that more
#: would not be faster, only better mixed.
_SIDE_BY_SIDE = 4
#: So many records are passed on at once, at most: functions of rows get them together.
_BLOCK = 256
#: A line that is longer is no line.
_LONGEST = 1 << 30


class FileDataset(Dataset):
    """The records that the files of a list, or of a dataset of their names, hold, one file after
    another. A subclass says what one file holds (`_of_file`), and what the elements are, if they
    are not scalars of strings (`_record_spec`). Records are rows whose picks are the records
    themselves: they are shuffled, mapped and batched many at once."""

    def __init__(self, filenames: Any, compression_type: str | None = None, buffer_size: Any = None,
                 num_parallel_reads: int | None = None, name: str | None = None) -> None:
        given = filenames if isinstance(filenames, Dataset) else Dataset.from_tensor_slices(
            _names(filenames))
        named = given.element_spec
        if not isinstance(named, TensorSpec) or named.dtype is not string:
            raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got "
                            f"{named}")
        self._kind = compression(compression_type)
        size = 0 if buffer_size is None else integer(
            buffer_size, f"{type(self).__name__}: buffer_size")
        # A user's small buffer would make a call of the system for each few lines.
        self._chunk = max(size, 1 << 18)
        reads = 1 if num_parallel_reads is None else integer(
            num_parallel_reads, f"{type(self).__name__}: num_parallel_reads")
        self._side_by_side = _SIDE_BY_SIDE if reads < 0 else max(reads, 1)
        super().__init__(self._record_spec(), given)

    def _record_spec(self) -> Any:
        """The spec of the elements."""
        return TensorSpec([], string)

    def _paths(self) -> Elements[str]:
        for names in self._inputs[0]._iterate():
            for name in np.asarray(names._a, object).reshape(-1):
                # As Python names files whose bytes are no UTF-8.
                yield name.decode("utf-8", "surrogateescape")

    def _of_file(self, path: str) -> Elements[Any]:
        """The records of one file."""
        raise NotImplementedError

    def _records(self) -> Elements[Any]:
        """The records of a new pass."""
        if self._side_by_side == 1:
            return chain.from_iterable(map(self._of_file, self._paths()))
        return self._in_turn(self._paths())

    def _rows(self) -> Rows:
        # A size of 1: how long records are is not known, and `_BLOCK` limits them already.
        return Rows([(0, vector)], TensorSpec([], string), lambda: _chunks(self._records()), 1,
                    read=True)

    def _in_turn(self, paths: Elements[str]) -> Elements[Any]:
        """A record of each of several files in turn; the next file takes the place of one that
        ends."""
        opened: list[Any] = [self._of_file(p) for p in islice(paths, self._side_by_side)]
        while opened:
            for i, records in enumerate(opened):
                # A marker, for a record may be any value.
                element = next(records, _END)
                while element is _END:
                    path = next(paths, None)
                    if path is None:
                        opened[i] = None
                        break
                    opened[i] = self._of_file(path)
                    element = next(opened[i], _END)
                else:
                    yield element
            opened = [records for records in opened if records is not None]


_END = object()


def _names(filenames: Any) -> Any:
    """The names of files as a vector of strings."""
    if isinstance(filenames, os.PathLike):
        filenames = os.fspath(filenames)
    if isinstance(filenames, (list, tuple)):
        filenames = [os.fspath(f) if isinstance(f, os.PathLike) else f for f in filenames]
        if not filenames:
            # An empty list would become float32.
            filenames = np.empty(0, object)
    tensor = elements.element_of(list(filenames) if isinstance(filenames, tuple) else filenames)
    if getattr(tensor, "dtype", None) is not string:
        raise TypeError(f"The `filenames` argument must contain `tf.string` elements. Got "
                        f"{getattr(tensor, 'dtype', type(filenames).__name__)!r} elements.")
    names = known(tensor, "filenames")
    return names.reshape(-1) if tensor.ndim else np.array([names], object)


def _chunks(records: Elements[Any]) -> Elements[Chunk]:
    """Records many at once; those before an error come before it."""
    size = 1  # the first comes at once
    while True:
        held: list[Any] = []
        try:
            held.extend(islice(records, size))
        except Exception:
            if held:
                yield _chunk(held)
            raise
        if not held:
            return
        yield _chunk(held)
        size = min(2 * size, _BLOCK)


def _chunk(held: list[Any]) -> Chunk:
    return (np.fromiter(held, object, len(held)),)


class TextLineDataset(FileDataset):
    r"""The lines of text files, scalars of strings without their "\n" or "\r\n".

    Args:
        filenames: of one file, of several, or a dataset of them.
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        buffer_size: bytes that are read at once.
        num_parallel_reads: files that are read side by side, a line of each in turn.

    Raises:
        DataLossError: in a pass: a compressed file is damaged or cut short.
        NotFoundError: in a pass: there is no such file.
        TypeError: the names are no strings.
    """

    def _of_file(self, path: str) -> Elements[object]:
        return lines(path, self._kind, self._chunk)


def lines(path: str, kind: str = "", chunk: int = 1 << 18, ends: bool = False) -> Elements[bytes]:
    r"""The lines of a file; `ends`: with what ends them, "\n" or "\r\n"."""
    with Stream(path, kind) as stream:
        kept: list[bytes] = []
        number, length = 0, 0
        while more := stream.read(chunk):
            first, *rest = more.split(b"\n")
            # A line may lie across many chunks: its parts are joined once, not at each chunk, which
            # would take quadratic time.
            kept.append(first)
            length += len(first)
            if not rest:
                if length > _LONGEST:
                    raise DataLossError(f"'{path}', line {number + 1}: it is longer than "
                                        f"{_LONGEST} bytes; is this a text file?")
                continue
            for line in (b"".join(kept), *rest[:-1]):
                yield line + b"\n" if ends else line.removesuffix(b"\r")
            number += len(rest)
            kept, length = [rest[-1]], len(rest[-1])
        last = b"".join(kept)
        if last:
            yield last if ends else last.removesuffix(b"\r")


class TFRecordDataset(FileDataset):
    """The records of TFRecord files, scalars of strings. Arguments and errors are those of
    `TextLineDataset`; a DataLossError names the file, the record and its place."""

    def _of_file(self, path: str) -> Elements[object]:
        return record_files.records(path, self._kind, self._chunk)


class FixedLengthRecordDataset(FileDataset):
    """The records of files in which each has as many bytes, scalars of strings.

    Args:
        record_bytes: the length of a record.
        header_bytes, footer_bytes: that are left out at the beginning and the end of each file.
            The other arguments are those of `TextLineDataset`.

    Raises:
        InvalidArgumentError: record_bytes is not positive; in a pass: a file's length does not fit.
    """

    def __init__(self, filenames: TensorLike, record_bytes: int, header_bytes: int | None = None,
                 footer_bytes: int | None = None, buffer_size: object = None,
                 compression_type: str | None = None, num_parallel_reads: Any = None,
                 name: str | None = None) -> None:
        self._size = integer(record_bytes, "FixedLengthRecordDataset: record_bytes")
        self._header, self._footer = (
            0 if n is None else integer(n, f"FixedLengthRecordDataset: {what}")
            for n, what in ((header_bytes, "header_bytes"), (footer_bytes, "footer_bytes")))
        if self._size <= 0 or self._header < 0 or self._footer < 0:
            raise InvalidArgumentError(f"`record_bytes` must be > 0, header_bytes and footer_bytes "
                                       f"not negative; got {self._size}, {self._header} and "
                                       f"{self._footer}")
        super().__init__(filenames, compression_type, buffer_size, num_parallel_reads)

    def _of_file(self, path: str) -> Elements[object]:
        with Stream(path, self._kind) as stream:
            if len(stream.exactly(self._header)) < self._header:
                raise self._odd(path, stream.at)
            kept = b""
            while more := stream.read(max(self._size, 1 << 18)):
                kept += more
                whole = max(len(kept) - self._footer, 0) // self._size * self._size
                for at in range(0, whole, self._size):
                    yield kept[at:at + self._size]
                kept = kept[whole:]
            if len(kept) != self._footer and stream.at:
                raise self._odd(path, stream.at)

    def _odd(self, path: str, size: int) -> InvalidArgumentError:
        body = max(size - self._header - self._footer, 0)
        return InvalidArgumentError(
            f"Excluding the header ({self._header} bytes) and footer ({self._footer} bytes), input "
            f"file \"{path}\" has body length {body} bytes, which is not an exact multiple of the "
            f"record length ({self._size} bytes): it is cut short, or of another length")


class TFRecordDatasetWriter:
    """Writes datasets of strings to a TFRecord file, which is replaced; `compression_type` is
    "GZIP", "ZLIB", or "" or None for none. Raises TypeError: the name is none;
    InvalidArgumentError: another compression."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._name, self._kind = local(filename), compression(compression_type)

    def write(self, dataset: Any) -> None:
        """Write the elements of a dataset. Raises TypeError: it is no dataset of scalar strings."""
        if not isinstance(dataset, Dataset):
            raise TypeError(f"Invalid `dataset.` Expected a `tf.data.Dataset` object but got "
                            f"{shown(dataset)}")
        spec = dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype is not string or spec.shape.rank != 0:
            raise TypeError(f"Invalid `dataset`. Expected a`dataset` that produces scalar "
                            f"`tf.string` elements, but got one of {spec}; tf.io.serialize_tensor "
                            f"makes strings of tensors")
        with record_files.TFRecordWriter(self._name, self._kind) as writer:
            for element in dataset._iterate():
                writer.write(element.numpy())
