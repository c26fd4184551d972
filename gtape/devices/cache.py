"""The folder where compiled programs and kernels are kept between runs.

GTAPE_CACHE_DIR, else `gtape` in XDG_CACHE_HOME or ~/.cache. What is in it is run, so it is used
only where nobody else can have put it there (`ownership`); otherwise nothing is kept, and a warning
says so once. A file appears under its name only when it is complete, so processes that write the
same one at once do no harm; a folder that cannot be written to is no error, since everything in it
can be made again.

Only files that gtape names so are ever removed, whatever else the folder holds. A library may go
while a process has it loaded: the system keeps the file until the last one lets go of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gtape.core.context import stack_level
from gtape.core.errors import CacheWarning, PermissionDeniedError
from gtape.devices import ownership

DAY = 86400.0
#: What is kept after a sweep: so many bytes, of files that were used within so many days. A program
#: takes about 100 KB and a second to make, so that is ten thousand of them.
BYTES, DAYS = 2**30, 90
#: What the names of files begin with that are not complete yet.
UNFINISHED = ".new-"
#: The folders in it, each of one kind of file.
KINDS = ("cpu", "cubins", "emulator", "proofs")
_KEY = r"[0-9a-f]{40}"
_OURS = re.compile(rf"{_KEY}|{_KEY}/{_KEY}\.so|({_KEY}/)?{re.escape(UNFINISHED)}\w+")
_SWEPT = ".swept"


class CacheEntry(NamedTuple):
    """A file in the cache, its size in bytes, and when it was last used, to a day."""

    path: str
    kind: str
    size: int
    used: float

    @property
    def unfinished(self) -> bool:
        """Whether it is what a process writes now, or left when it was killed."""
        return os.path.basename(self.path).startswith(UNFINISHED)


def kept(root: Path) -> list[CacheEntry]:
    """Every file of gtape's in a cache folder."""
    return [CacheEntry(path, kind, status.st_size, status.st_mtime)
            for kind in KINDS for path, status in _files(str(root / kind), "")]


def _files(folder: str, inside: str) -> Iterator[tuple[str, os.stat_result]]:
    # A file or folder may go at any moment, by the sweep of another process.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and not inside:
                yield from _files(entry.path, f"{entry.name}/")
            elif (_OURS.fullmatch(f"{inside}{entry.name}")
                  and entry.is_file(follow_symlinks=False)):
                with contextlib.suppress(FileNotFoundError):
                    yield entry.path, entry.stat(follow_symlinks=False)


def sweep_daily(root: Path) -> None:
    """Remove what is too old or too much, unless that was done within a day. It is called when a
    file was added, which took far longer than a sweep."""
    mark, now = root / _SWEPT, time.time()
    with contextlib.suppress(OSError):
        # A mark from the future, by a clock set back, would put off sweeps for as long.
        if 0 <= now - mark.stat().st_mtime < DAY:
            return
    with contextlib.suppress(OSError):
        mark.touch()
        remove(surplus(kept(root), now))


def surplus(files: Iterable[CacheEntry], now: float) -> list[CacheEntry]:
    """What is to go: what killed processes left, what was not used for long, and of the rest the
    least recently used beyond the size."""
    going, size = [], 0
    # Newest first, so that the size is what would be kept, and what is beyond it goes.
    for file in sorted(files, key=lambda file: file.used, reverse=True):
        size += file.size
        # A file that is being written belongs to somebody for as long as a compiler may take; a day
        # is far beyond that.
        days, limit = (1, float("inf")) if file.unfinished else (DAYS, BYTES)
        if size > limit or now - file.used > days * DAY:
            going.append(file)
    return going


def remove(files: Iterable[CacheEntry]) -> None:
    """Remove files, and the folders that become empty."""
    for file in files:
        with contextlib.suppress(OSError):
            os.unlink(file.path)
            # The folder of a kind is not empty as a rule; it may go, too.
            os.rmdir(os.path.dirname(file.path))


VARIABLE = "GTAPE_CACHE_DIR"
ADVICE = f". Or set {VARIABLE} to a folder where only this user may write"
#: What was warned of, so that each is said once in a process.
_WARNED: set[str] = set()


def root() -> Path:
    """The folder of all that is kept; it may not exist, and is not looked at. Raises
    PermissionDeniedError: there is none that could be this user's own."""
    given = os.environ.get(VARIABLE)
    if given:
        expanded = os.path.expanduser(given)
        if not os.path.isabs(expanded):
            raise PermissionDeniedError(f"{VARIABLE} must be a whole path, beginning with "
                                        f"'{os.path.abspath(os.sep)}'; it is '{given}'")
        return Path(expanded)
    # A relative XDG_CACHE_HOME counts for nothing, as the XDG Base Directory Specification says.
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if os.path.isabs(base) else os.path.join(_home(), ".cache"), "gtape")


def _home() -> str:
    home = os.path.expanduser("~") if os.environ.get("HOME") != "" else ""
    if not os.path.isabs(home):
        raise PermissionDeniedError("this user has no home folder (HOME)")
    return home


def state() -> tuple[Path | None, str]:
    """The folder, where there is one, and why nothing is kept in it, empty where something is."""
    folder = None
    try:
        folder = root()
        ownership.trusted(folder)
    except FileNotFoundError:
        return folder, ""  # it will be made
    except (OSError, PermissionDeniedError) as error:
        return folder, str(error)
    return folder, ""


def key(*parts: str) -> str:
    """A file name for what is made from `parts` alone."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())  # "ab", "c" is not "a", "bc"
        digest.update(part.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:40]  # 160 bits: short, and no two programs share them


def read(kind: str, name: str) -> bytes | None:
    """A kept file, or None."""
    with _refused():
        return _read(ownership.trusted(root() / kind) / name)
    return None


def each(kind: str, name: str) -> Iterator[tuple[Path, bytes]]:
    """The files of a kept folder that can be read, by name."""
    files: list[Path] = []
    with _refused():
        files = sorted(ownership.trusted(root() / kind / name).glob("[!.]*"))
    for file in files:
        content = None
        with _refused():
            content = _read(file)
        if content is not None:
            yield file, content


def _read(file: Path) -> bytes:
    content, changed = ownership.content(file)
    # The time of a file is that of its last use, near enough to know which have not been used.
    if time.time() - changed > DAY:
        with contextlib.suppress(OSError):
            os.utime(file)
    return content


def write(kind: str, name: str, data: bytes) -> Path | None:
    """Keep a file, whole or not at all; None where the folder cannot be used."""
    with _refused():
        target = root() / kind / name
        target = ownership.trusted(target.parent, make=True) / target.name
        _write(target, data)
        sweep_daily(root())
        return target
    return None


def _write(target: Path, data: bytes) -> None:
    # In the same folder: renaming is one step only within a file system, and a reader sees all or
    # nothing.
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """What is wrong with the folder ends the block: a warning where others might get in."""
    try:
        yield
    except OSError:
        return
    except PermissionDeniedError as error:
        reason = str(error)
        # Every program asks again, and one warning says all there is to do.
        if reason not in _WARNED:
            _WARNED.add(reason)
            warnings.warn(f"compiled programs are not kept, and each process compiles its own: "
                          f"{reason}{ADVICE}", CacheWarning, stacklevel=stack_level())
