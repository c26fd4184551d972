"""Files and folders: what `tf.io.gfile` has besides GFile."""

from __future__ import annotations

import glob as python_glob
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from gtape.core.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
)
from gtape.files.paths import errors, local


class FileStatistics(NamedTuple):
    """What `stat` says of a file: its length in bytes, when it was changed in nanoseconds since
    1970, whether it is a folder."""

    length: int
    mtime_nsec: int
    is_directory: bool


def exists(path: Any) -> bool:
    """Whether there is a file or a folder."""
    return os.path.exists(local(path))


def isdir(path: Any) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(local(path))


def listdir(path: Any) -> list[str]:
    """The names of the files and folders in a folder, in order.

    Raises:
        NotFoundError: there is no such folder.
    """
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
            for path in sorted(python_glob.glob(local(p), include_hidden=True))]


def mkdir(path: Any) -> None:
    """Make a folder in one that is there; one that is there already stays.

    Raises:
        NotFoundError: the folder around it is missing.
        FailedPreconditionError: a file is in its place.
    """
    _make(local(path), os.mkdir)


def makedirs(path: Any) -> None:
    """Make a folder with those around it; what is there already stays.

    Raises:
        FailedPreconditionError: a file is in its place.
    """
    _make(local(path), os.makedirs)


def _make(path: str, make: Callable[[str], None]) -> None:
    try:
        with errors(path):
            make(path)
    except AlreadyExistsError:
        if not os.path.isdir(path):
            raise FailedPreconditionError(f"{path} is not a directory") from None


def remove(path: Any) -> None:
    """Remove a file.

    Raises:
        NotFoundError: there is none.
        FailedPreconditionError: it is a folder; `rmtree` removes folders.
    """
    name = local(path)
    if os.path.isdir(name) and not os.path.islink(name):
        raise FailedPreconditionError(f"{name}; Is a directory: rmtree removes folders")
    with errors(name):
        os.remove(name)


def rmtree(path: Any) -> None:
    """Remove a folder with all that is in it, or a file.

    Raises:
        NotFoundError: there is neither.
    """
    name = local(path)
    if not os.path.lexists(name):
        raise NotFoundError(f"{name} not found")
    with errors(name):
        if os.path.isdir(name) and not os.path.islink(name):
            shutil.rmtree(name)
        else:
            os.remove(name)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Give a file or folder another path.

    Raises:
        AlreadyExistsError: something is there, and `overwrite` is not set.
        NotFoundError: there is no `src`.
    """
    before, after = local(src), local(dst)
    if not overwrite and os.path.exists(after) and os.path.exists(before):
        raise AlreadyExistsError(f"file already exists: {after}; give overwrite=True to replace it")
    with errors(before):
        os.replace(before, after)


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file.

    Raises:
        AlreadyExistsError: something is there, and `overwrite` is not set.
        InvalidArgumentError: `src` is a folder.
        NotFoundError: there is no `src`.
    """
    before, after = local(src), local(dst)
    if os.path.isdir(before):
        raise InvalidArgumentError(f"copy takes a file; {before} is a folder")
    if not overwrite and os.path.exists(after) and os.path.exists(before):
        raise AlreadyExistsError(f"file already exists: {after}; give overwrite=True to replace it")
    with errors(before):
        try:
            shutil.copyfile(before, after)
        except shutil.SameFileError:
            return


def stat(path: Any) -> FileStatistics:
    """Length, time of the last change, and whether it is a folder.

    Raises:
        NotFoundError: there is no such file.
    """
    name = local(path)
    with errors(name):
        found = os.stat(name)
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(name))


def walk(top: Any, topdown: bool = True, onerror: Callable[[OpError], object] | None = None,
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
