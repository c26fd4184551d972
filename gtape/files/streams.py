"""The bytes of a file from its beginning, those of a compressed one unpacked as they are asked for.

How much can still come is known before it is read, so that no claim in a file makes a reader ask
for more memory than the file can fill.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from typing import Any, Self

from gtape.core.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.files.paths import errors, local
from gtape.ops.arguments import host_value

#: zlib's window size and format by the name of the compression.
WINDOWS = {"": 0, "ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_CHUNK = 1 << 18
#: Deflate makes at most so many bytes of one: 258 of two bits.
_MOST = 1032


def compression(value: str | None) -> str:
    """The name of a compression: "", "ZLIB" or "GZIP". Raises InvalidArgumentError: there is no
    such compression."""
    if isinstance(value, Tensor):
        value = host_value(value, "the name of a compression")[()]
    name = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    name = "" if name is None else name
    if not isinstance(name, str) or name not in WINDOWS:
        raise InvalidArgumentError(f"a compression is '', 'ZLIB' or 'GZIP'; got {shown(value)}")
    return name


class Stream:
    """The unpacked bytes of a file. Raises NotFoundError, FailedPreconditionError,
    PermissionDeniedError: there is none, it is a folder, or it may not be read."""

    def __init__(self, path: object, kind: str = "") -> None:
        self.path = local(path)
        # Opening a folder says other things on other systems.
        if os.path.isdir(self.path):
            raise FailedPreconditionError(f"{self.path}; Is a directory")
        with errors(self.path):
            self._file = open(self.path, "rb")  # noqa: SIM115
        self._size = os.fstat(self._file.fileno()).st_size
        self._kind = kind
        self._unpack: Any = None
        self._packed = b""
        self.at = 0
        self._next: Callable[[int], bytes] = self._unpacked if kind else self._plain

    def most(self) -> int:
        """No more bytes than this can still come."""
        here = self._file.tell()
        left = max(self._size - here, 0)
        return left if not self._kind else (left + len(self._packed) + _CHUNK) * _MOST

    def read(self, size: int = _CHUNK) -> bytes:
        """The next bytes, at most `size` of them; none at the end. Raises DataLossError: the file
        is no such compressed file, is damaged or cut short."""
        with errors(self.path):
            content = self._next(size)
        self.at += len(content)
        return content

    def exactly(self, size: int) -> bytes:
        """The next `size` bytes, or those that are left."""
        parts, missing = [], size
        while missing > 0 and (part := self.read(min(missing, _CHUNK * 16))):
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _plain(self, size: int) -> bytes:
        # A damaged length must not make room for more than the file can fill.
        return self._file.read(min(size, self._size + _CHUNK))

    def _unpacked(self, size: int) -> bytes:
        while True:
            if not self._packed:
                self._packed = self._file.read(_CHUNK)
                if not self._packed:
                    if self._unpack is not None:
                        raise DataLossError(f"'{self.path}' is cut short: its {self._kind} data "
                                            f"go on after byte {self._size}, where it ends")
                    return b""
            # Made only when there are bytes: an empty file is a compressed file of nothing.
            if self._unpack is None:
                self._unpack = zlib.decompressobj(WINDOWS[self._kind])
            try:
                content = self._unpack.decompress(self._packed, size)
            except zlib.error as error:
                raise DataLossError(
                    f"'{self.path}' is damaged or not compressed as {self._kind}: about byte "
                    f"{self._file.tell() - len(self._packed)}: {error}") from None
            self._packed = self._unpack.unconsumed_tail
            # A file may be several compressed ones, one after another.
            if self._unpack.eof:
                self._packed, self._unpack = self._unpack.unused_data, None
            if content:
                return content

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
