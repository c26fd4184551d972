"""How much the cache folder may hold, and for how long.

Only files that gtape names so are ever removed, whatever else the folder holds. A library may go
while a process has it loaded: the system keeps the file until the last one lets go of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

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
        if 0 <= now - mark.stat().st_mtime < DAY:
            return
    with contextlib.suppress(OSError):
        mark.touch()
        remove(surplus(kept(root), now))


def surplus(files: Iterable[CacheEntry], now: float) -> list[CacheEntry]:
    """What is to go: what killed processes left, what was not used for long, and of the rest the
    least recently used beyond the size."""
    going, size = [], 0
    for file in sorted(files, key=lambda file: file.used, reverse=True):
        size += file.size
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
