"""Text lines: datasets of the lines of files."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from typing import Any

from gtape.core.errors import DataLossError
from gtape.data.reading import FileDataset
from gtape.files.streams import Stream

#: A line that is longer is no line.
_LONGEST = 1 << 30


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

    def _of_file(self, path: str) -> Elements[Any]:
        return lines(path, self._kind, self._chunk)


def lines(path: str, kind: str = "", chunk: int = 1 << 18, ends: bool = False) -> Elements[bytes]:
    r"""The lines of a file.

    Args:
        ends: with what ends them, "\n" or "\r\n".

    Raises:
        DataLossError: a compressed file is damaged, or a line is longer than 1 GiB.
    """
    with Stream(path, kind) as stream:
        kept: list[bytes] = []
        number, length = 0, 0
        while more := stream.read(chunk):
            first, *rest = more.split(b"\n")
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
