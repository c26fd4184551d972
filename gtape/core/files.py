"""Files that are either whole or absent, even when the process or the machine stops."""

from __future__ import annotations

import contextlib
import os
import platform
import threading
from collections.abc import Iterator
from pathlib import Path

_SUFFIX = ".part"


def _part(target: Path) -> Path:
    """Where this thread prepares `target`: hidden, beside it, named after its host and process."""
    host = platform.node().replace(".", "-")
    return target.with_name(f".{target.name}.{host}.{os.getpid()}-{threading.get_ident()}{_SUFFIX}")


def write_whole(target: Path, content: bytes | memoryview) -> None:
    """Write `content` beside `target`, force it to the disk, and then take the place of `target`.

    A reader sees the old file or the new one. The new one survives a power cut as soon as this
    returns; before that the old one is untouched.

    Raises:
        OSError: the folder cannot be written to, or the disk is full; `target` is as it was. The
            error names `target`.
    """
    part = _part(target)
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    _force_names(target.parent)


def _force_names(folder: Path) -> None:
    """Force the names in `folder` to the disk, where the system can do that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def abandoned(folder: Path, start: str) -> Iterator[Path]:
    """What killed processes of this machine left behind of files whose names begin so."""
    if os.name != "posix":
        return
    host = platform.node().replace(".", "-")
    for part in folder.glob(f".{start}*.{host}.*-*{_SUFFIX}"):
        number = part.name.removesuffix(_SUFFIX).rpartition(".")[2].partition("-")[0]
        if number.isdecimal() and not _running(int(number)):
            yield part


def _running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
