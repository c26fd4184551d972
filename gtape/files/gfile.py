"""GFile: a file that is opened when it is first used, with TensorFlow's errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, Any, Self

from gtape.core.errors import InvalidArgumentError, PermissionDeniedError
from gtape.core.formatting import shown
from gtape.files.paths import errors, local

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file of this machine. Without "b" in the mode what is read is str, decoded from UTF-8; line
    ends stay as they are.

    Args:
        name: its path.
        mode: "r", "w", "a", "r+", "w+" or "a+", each also with "b".

    Raises:
        InvalidArgumentError: another mode. An error of the system comes with the first use.
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name, self._mode = name, mode
        self._path = local(name)
        if not isinstance(mode, str) or mode.replace("b", "") not in _MODES:
            raise InvalidArgumentError("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+', "
                                       f"each also with 'b'; got {shown(mode)}")
        self._binary = "b" in mode
        self._file: IO[bytes] | None = None

    @property
    def name(self) -> Any:
        """The path, as it was given."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode, as it was given."""
        return self._mode

    def _opened(self, use: str = "") -> IO[bytes]:
        plain = self._mode.replace("b", "")
        if (use == "reading" and plain in ("w", "a")) or (use == "writing" and plain == "r"):
            raise PermissionDeniedError(f"File isn't open for {use}: the mode of GFile("
                                        f"'{self._path}') is '{self._mode}'")
        if self._file is None:
            with errors(self._path):
                self._file = open(self._path, plain + "b")  # noqa: SIM115
        return self._file

    def _given(self, content: bytes) -> Any:
        return content if self._binary else content.decode("utf-8")

    def read(self, n: int = -1) -> Any:
        """The next `n` bytes, or all that are left."""
        with errors(self._path):
            return self._given(self._opened("reading").read(n))

    def readline(self) -> Any:
        r"""The next line with its "\n"; empty at the end."""
        with errors(self._path):
            return self._given(self._opened("reading").readline())

    def readlines(self) -> list[Any]:
        """The lines that are left."""
        return list(self)

    def write(self, file_content: Any) -> None:
        """Write a str as UTF-8, or bytes."""
        content = file_content.encode() if isinstance(file_content, str) else file_content
        with errors(self._path):
            self._opened("writing").write(content)

    def seek(self, offset: int | None = None, whence: int = 0,
             position: int | None = None) -> None:
        """Go to a byte: from the beginning (`whence` 0), from here (1) or from the end (2).

        Raises:
            TypeError: no offset.
        """
        place = position if offset is None else offset
        if place is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise InvalidArgumentError(f"seek: whence must be 0, 1 or 2; got {whence}")
        with errors(self._path):
            self._opened().seek(place, whence)

    def tell(self) -> int:
        """The byte at which the next read or write begins."""
        return self._opened().tell() if self._file is not None or "a" not in self._mode else 0

    def size(self) -> int:
        """The length of the file in bytes."""
        if self._file is not None:
            self.flush()
        with errors(self._path):
            return os.stat(self._path).st_size

    def seekable(self) -> bool:
        """True."""
        return True

    def readable(self) -> bool:
        """Whether the mode allows to read."""
        return "r" in self._mode or "+" in self._mode

    def writable(self) -> bool:
        """Whether the mode allows to write."""
        return "w" in self._mode or "a" in self._mode or "+" in self._mode

    def flush(self) -> None:
        """Hand what was written to the system."""
        if self._file is not None:
            with errors(self._path):
                self._file.flush()

    def close(self) -> None:
        """Close the file; one that was to be written is there then, even if it is empty."""
        if self._file is None and self._mode[0] in "wa":
            self._opened()
        if self._file is not None:
            with errors(self._path):
                self._file.close()
            self._file = None

    def __iter__(self) -> Iterator[Any]:
        while line := self.readline():
            yield line

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def next(self) -> Any:
        """The next line. Raises StopIteration: at the end."""
        return self.__next__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
