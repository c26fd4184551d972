"""Records: datasets of what TFRecord files and files of equally long records hold."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from typing import Any

from gtape.core.dtypes import string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.type_specs import TensorSpec
from gtape.data.arguments import integer
from gtape.data.dataset import Dataset
from gtape.data.reading import FileDataset
from gtape.files.paths import local
from gtape.files.records import TFRecordWriter as FileWriter
from gtape.files.records import records
from gtape.files.streams import Stream, compression


class TFRecordDataset(FileDataset):
    """The records of TFRecord files, scalars of strings.

    Args:
        filenames: of one file, of several, or a dataset of them.
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        buffer_size: bytes that are read at once.
        num_parallel_reads: files that are read side by side, a record of each in turn.

    Raises:
        DataLossError: in a pass: a file is damaged or cut short. It names the file, the record and
            its place.
        NotFoundError: in a pass: there is no such file.
        TypeError: the names are no strings.
    """

    def _of_file(self, path: str) -> Elements[Any]:
        return records(path, self._kind, self._chunk)


class FixedLengthRecordDataset(FileDataset):
    """The records of files in which each has as many bytes, scalars of strings.

    Args:
        filenames: of one file, of several, or a dataset of them.
        record_bytes: the length of a record.
        header_bytes, footer_bytes: that are left out at the beginning and the end of each file.
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        num_parallel_reads: files that are read side by side, a record of each in turn.

    Raises:
        InvalidArgumentError: record_bytes is not positive; in a pass: a file's length does not fit.
    """

    def __init__(self, filenames: Any, record_bytes: Any, header_bytes: Any = None,
                 footer_bytes: Any = None, buffer_size: Any = None, compression_type: Any = None,
                 num_parallel_reads: Any = None, name: str | None = None) -> None:
        self._size = integer(record_bytes, "FixedLengthRecordDataset: record_bytes")
        self._header, self._footer = (
            0 if n is None else integer(n, f"FixedLengthRecordDataset: {what}")
            for n, what in ((header_bytes, "header_bytes"), (footer_bytes, "footer_bytes")))
        if self._size <= 0 or self._header < 0 or self._footer < 0:
            raise InvalidArgumentError(f"`record_bytes` must be > 0, header_bytes and footer_bytes "
                                       f"not negative; got {self._size}, {self._header} and "
                                       f"{self._footer}")
        super().__init__(filenames, compression_type, buffer_size, num_parallel_reads)

    def _of_file(self, path: str) -> Elements[Any]:
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


class TFRecordWriter:
    """Writes datasets of strings to a TFRecord file.

    Args:
        filename: of the file, which is replaced.
        compression_type: "GZIP", "ZLIB", or "" or None for none.

    Raises:
        TypeError: the name is none. InvalidArgumentError: another compression.
    """

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._name, self._kind = local(filename), compression(compression_type)

    def write(self, dataset: Any) -> None:
        """Write the elements of a dataset.

        Raises:
            TypeError: it is no dataset of scalar strings.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"Invalid `dataset.` Expected a `tf.data.Dataset` object but got "
                            f"{shown(dataset)}")
        spec = dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype is not string or spec.shape.rank != 0:
            raise TypeError(f"Invalid `dataset`. Expected a`dataset` that produces scalar "
                            f"`tf.string` elements, but got one of {spec}; tf.io.serialize_tensor "
                            f"makes strings of tensors")
        with FileWriter(self._name, self._kind) as writer:
            for element in dataset._iterate():
                writer.write(element.numpy())
