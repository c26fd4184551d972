"""Files and folders: what `tf.io.gfile` has, with TensorFlow's errors, and whole files in string
tensors."""

from __future__ import annotations

import glob as python_glob
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.atomic_files import make_folder, write_whole
from gtape.core.convert import convert
from gtape.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
)
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.files.paths import errors, local
from gtape.trace.host_steps import step

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file of this machine, in the mode "r", "w", "a", "r+", "w+" or "a+", each also with "b";
    without it what is read is str, decoded from UTF-8; line ends stay as they are. Raises
    InvalidArgumentError: another mode. An error of the system comes with the first use."""

    def __init__(self, name: str, mode: str = "r") -> None:
        self._name, self._mode = name, mode
        self._path = local(name)
        if not isinstance(mode, str) or mode.replace("b", "") not in _MODES:
            raise InvalidArgumentError("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+', "
                                       f"each also with 'b'; got {shown(mode)}")
        self._binary = "b" in mode
        self._file: IO[bytes] | None = None

    @property
    def name(self) -> str:
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
        # Not when it is made: as with TensorFlow, errors of the system come with the first use.
        if self._file is None:
            with errors(self._path):
                self._file = open(self._path, plain + "b")  # noqa: SIM115
        return self._file

    def _given(self, content: bytes) -> bytes | str:
        return content if self._binary else content.decode("utf-8")

    def read(self, n: int = -1) -> bytes | str:
        """The next `n` bytes, or all that are left."""
        with errors(self._path):
            return self._given(self._opened("reading").read(n))

    def readline(self) -> bytes | str:
        r"""The next line with its "\n"; empty at the end."""
        with errors(self._path):
            return self._given(self._opened("reading").readline())

    def readlines(self) -> list[bytes | str]:
        """The lines that are left."""
        return list(self)

    def write(self, file_content: str | bytes) -> None:
        """Write a str as UTF-8, or bytes."""
        content = file_content.encode() if isinstance(file_content, str) else file_content
        with errors(self._path):
            self._opened("writing").write(content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Go to a byte: from the beginning (`whence` 0), from here (1) or from the end (2). Raises
        TypeError: no offset."""
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
            # What Python holds back is part of the file to who wrote it.
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

    def __iter__(self) -> Iterator[bytes | str]:
        while line := self.readline():
            yield line

    def __next__(self) -> bytes | str:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def next(self) -> bytes | str:
        """The next line. Raises StopIteration: at the end."""
        return self.__next__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class FileStatistics(NamedTuple):
    """What `stat` says of a file: its length in bytes, when it was changed in nanoseconds since
    1970, whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


def exists(path: object) -> bool:
    """Whether there is a file or a folder."""
    return os.path.exists(local(path))


def isdir(path: str) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(local(path))


def listdir(path: str) -> list[str]:
    """The names of the files and folders in a folder, in order. Raises NotFoundError: there is no
    such folder."""
    folder = local(path)
    if not os.path.isdir(folder):
        raise NotFoundError(f"Could not find directory {folder}")
    with errors(folder):
        return sorted(os.listdir(folder))


def glob(pattern: Any) -> list[str]:
    """The paths that fit a pattern or one of several, in order: `*` and `?` stand for characters of
    a name, `[ab]` for one of some."""
    several = isinstance(pattern, Iterable) and not isinstance(pattern, (str, bytes, os.PathLike))
    patterns = list(pattern) if several else [pattern]
    return [path for p in patterns
            # TensorFlow's `*` fits names that begin with a dot too.
            for path in sorted(python_glob.glob(local(p), include_hidden=True))]


def mkdir(path: str) -> None:
    """Make a folder in one that is there; one that is there already stays. Raises NotFoundError:
    the folder around it is missing; FailedPreconditionError: a file is in its place."""
    _make(local(path), os.mkdir)


def makedirs(path: str) -> None:
    """Make a folder with those around it; what is there already stays. Raises
    FailedPreconditionError: a file is in its place."""
    _make(local(path), os.makedirs)


def _make(path: str, make: Callable[[str], None]) -> None:
    try:
        with errors(path):
            make(path)
    except AlreadyExistsError:
        # Also where another process made it meanwhile.
        if not os.path.isdir(path):
            raise FailedPreconditionError(f"{path} is not a directory") from None


def remove(path: str) -> None:
    """Remove a file. Raises NotFoundError: there is none; FailedPreconditionError: it is a folder;
    `rmtree` removes folders."""
    name = local(path)
    # A link to a folder is removed as a file is, and the folder stays.
    if os.path.isdir(name) and not os.path.islink(name):
        raise FailedPreconditionError(f"{name}; Is a directory: rmtree removes folders")
    with errors(name):
        os.remove(name)


def rmtree(path: str) -> None:
    """Remove a folder with all that is in it, or a file. Raises NotFoundError: there is neither."""
    name = local(path)
    if not os.path.lexists(name):
        raise NotFoundError(f"{name} not found")
    with errors(name):
        if os.path.isdir(name) and not os.path.islink(name):
            shutil.rmtree(name)
        else:
            os.remove(name)


def rename(src: str, dst: str, overwrite: bool = False) -> None:
    """Give a file or folder another path. Raises AlreadyExistsError: something is there, and
    `overwrite` is not set; NotFoundError: there is no `src`."""
    before, after = local(src), local(dst)
    if not overwrite and os.path.exists(after) and os.path.exists(before):
        raise AlreadyExistsError(f"file already exists: {after}; give overwrite=True to replace it")
    with errors(before):
        # In one step: no program sees the place empty.
        os.replace(before, after)


def copy(src: str, dst: str, overwrite: bool = False) -> None:
    """Copy a file. Raises AlreadyExistsError: something is there, and `overwrite` is not set;
    InvalidArgumentError: `src` is a folder; NotFoundError: there is no `src`."""
    before, after = local(src), local(dst)
    if os.path.isdir(before):
        raise InvalidArgumentError(f"copy takes a file; {before} is a folder")
    if not overwrite and os.path.exists(after) and os.path.exists(before):
        raise AlreadyExistsError(f"file already exists: {after}; give overwrite=True to replace it")
    with errors(before):
        try:
            shutil.copyfile(before, after)
        # A file copied onto itself is there already.
        except shutil.SameFileError:
            return


def stat(path: str) -> FileStatistics:
    """Length, time of the last change, and whether it is a folder. Raises NotFoundError: there is
    no such file."""
    name = local(path)
    with errors(name):
        status = os.stat(name)
    return FileStatistics(status.st_size, status.st_mtime_ns, os.path.isdir(name))


def walk(top: str, topdown: bool = True, onerror: Callable[[OpError], object] | None = None,
         ) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, names of folders in it, names of files in it) of a folder and of all in it.

    Args:
        topdown: a folder comes before those in it.
        onerror: gets the error of a folder that cannot be listed, which is left out otherwise.
    """
    folder = local(top)
    try:
        names = listdir(folder)
    except OpError as error:
        if onerror is not None:
            onerror(error)
        return
    folders = [n for n in names if os.path.isdir(os.path.join(folder, n))]
    files = [n for n in names if n not in set(folders)]
    if topdown:
        yield folder, folders, files
    for name in folders:
        inner = os.path.join(folder, name)
        # A link may lead back to where the walk came from.
        if not os.path.islink(inner):
            yield from walk(inner, topdown, onerror)
    if not topdown:
        yield folder, folders, files


def join(path: Any, *paths: Any) -> Any:
    """The parts of a path as one, as os.path.join has it."""
    return os.path.join(path, *paths)


def get_registered_schemes() -> list[str]:
    """The kinds of paths that can be opened: those of this machine's files."""
    return ["", "file"]


def content(path: bytes) -> bytes:
    """The bytes of a file. Raises NotFoundError, FailedPreconditionError, PermissionDeniedError:
    there is none, it is a folder, or it may not be read."""
    name = local(path)
    if Path(name).is_dir():
        raise FailedPreconditionError(f"{name}; Is a directory")
    with errors(name), open(name, "rb") as file:
        return file.read()


def _scalar(value: TensorLike, what: str) -> Tensor:
    scalar = convert(value)
    if scalar.dtype is not dtypes.string or scalar.spec.shape:
        raise InvalidArgumentError(f"{what} must be a scalar of strings; got {shown(value)}")
    return scalar


def _path(value: Any, what: str) -> Tensor:
    return _scalar(str(value) if isinstance(value, Path) else value, what)


def read_file(filename: object, name: str | None = None) -> Tensor:
    """The content of a file as a scalar of strings; in a traced function it is read at every call.
    Raises NotFoundError: there is no such file; FailedPreconditionError: it is a folder."""
    return step("read_file", lambda path: [content(path.item())],
                [_path(filename, "read_file: filename")], [Spec((), dtypes.string)],
                has_side_effect=True)[0]


def write_file(filename: object, contents: TensorLike, name: str | None = None) -> None:
    """Write a scalar of strings to a file, whole or not at all, and make the folders around it.
    Raises FailedPreconditionError: a folder is in its place; PermissionDeniedError: the folder
    around it cannot be written to."""
    def run(path: np.ndarray, value: np.ndarray) -> list[object]:
        target = Path(local(path.item()))
        with errors(str(target)):
            make_folder(target.absolute().parent)
            write_whole(target, value.item())
        return []

    step("write_file", run, [_path(filename, "write_file: filename"),
                             _scalar(contents, "write_file: contents")], [], has_side_effect=True)


def matching_files(pattern: TensorLike, name: str | None = None) -> Tensor:
    """The paths that fit a pattern or one of several, in order, as a vector of strings."""
    def run(patterns: np.ndarray) -> list[object]:
        paths = glob(patterns.reshape(-1).tolist())
        # Patterns may overlap; each file is named once.
        return [np.array(sorted({f.encode() for f in paths}), object)]

    return step("matching_files", run, [str(pattern) if isinstance(pattern, Path) else pattern],
                [dtypes.string], has_side_effect=True)[0]
