"""Numbered checkpoints in a folder, and CheckpointManager, which keeps the last few.

The file `checkpoint` lists them in the order in which they were saved. A checkpoint that it does
not list is younger than all listed, since it is written first; a process killed in between loses
nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gtape.core.atomic_files import abandoned, write_whole
from gtape.core.formatting import shown
from gtape.core.locks import lock
from gtape.train.checkpoint import Checkpoint
from gtape.train.stored import SUFFIX, permitted

#: The name of the file.
LIST = "checkpoint"
# ASCII, since \d fits the digits of all scripts. DOTALL, since names may have any character.
_NUMBERED = re.compile(r"(.+)-(\d+)" + re.escape(SUFFIX), re.DOTALL | re.ASCII)


def name_of(file: Path) -> str:
    """The name of a checkpoint without its number."""
    return file.name.rpartition("-")[0]


def _number_of(file: Path) -> int:
    return int(file.name.removesuffix(SUFFIX).rpartition("-")[2])


def saved_in(folder: Path, name: str | None = None, list_name: str | None = None) -> list[Path]:
    """The numbered checkpoints called `name` (None: any name), oldest first. Only a folder that is
    not there has none. One that cannot be listed now may have some. Raises PermissionDeniedError:
    the folder, or its list, may not be read. OSError: it cannot be read for another reason, or is
    no folder."""
    with permitted(f"the checkpoints in '{folder}' cannot be listed"):
        try:
            present = {p.name: p for p in folder.iterdir() if _NUMBERED.fullmatch(p.name)}
        except FileNotFoundError:
            return []
        return _ordered(present, _listed(folder / (list_name or LIST)), name)


def _ordered(present: dict[str, Path], known: list[str], name: str | None) -> list[Path]:
    # The list may name what was removed by hand, and lack what was written just before a kill.
    listed = [n for n in known if n in present]
    unlisted = sorted(present.keys() - set(listed), key=lambda n: (_number_of(present[n]), n))
    files = [present[n] for n in (*listed, *unlisted)]
    return [file for file in files if name is None or name_of(file) == name]


def _listed(file: Path) -> list[str]:
    try:
        names = json.loads(file.read_text("utf-8"))["checkpoints"]
    # A list that is damaged is as good as none: files are then ordered by their numbers.
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [*dict.fromkeys(n for n in names if isinstance(n, str))] if isinstance(
        names, list) else []


def write_list(folder: Path, files: Iterable[Path]) -> None:
    """List the checkpoints, oldest first."""
    text = json.dumps({"checkpoints": [file.name for file in files]}, indent=1)
    write_whole(folder / LIST, text.encode())


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The path of the checkpoint saved last in a folder, for `Checkpoint.restore`; or None. The
    file `latest_filename`, by default 'checkpoint', lists them. Raises PermissionDeniedError: the
    folder is there, and may not be read; OSError: it cannot be read for another reason, or is no
    folder."""
    saved = saved_in(Path(checkpoint_dir), list_name=latest_filename)
    return str(saved[-1]) if saved else None


class CheckpointManager:
    """Saves a Checkpoint as 'folder/name-n.safetensors' and keeps the last `max_to_keep`. Raises
    ValueError: max_to_keep is less than 1, a name that no file can have, or an interval without a
    counter.

    An old file goes only after the new one is safely on the disk, so a process killed at any time
    leaves at least one that can be restored. Threads that save at once take turns.

    Args:
        checkpoint: the Checkpoint to save.
        directory: the folder; it is made by the first save.
        max_to_keep: how many are kept; None keeps all.
        checkpoint_name: what the files' names begin with.
        step_counter: a Variable that counts steps, for `checkpoint_interval`.
        checkpoint_interval: `save` does nothing before so many steps after the last one.
        init_fn: called by `restore_or_initialize` where there is no checkpoint.
    """

    def __init__(self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None, *,
                 checkpoint_name: str = "ckpt", step_counter: Any = None,
                 checkpoint_interval: int | None = None,
                 init_fn: Callable[[], Any] | None = None) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"max_to_keep must be at least 1, or None for all; got {max_to_keep}")
        if not isinstance(checkpoint_name, str) or not checkpoint_name or any(
                c in checkpoint_name for c in (os.sep, os.altsep or os.sep, "\0")):
            raise ValueError(f"checkpoint_name must be a name without folders; got "
                             f"{shown(checkpoint_name)}")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("checkpoint_interval needs a step_counter")
        self._checkpoint, self._folder = checkpoint, Path(directory)
        self._keep, self._name, self._init = max_to_keep, checkpoint_name, init_fn
        self._steps, self._interval = step_counter, checkpoint_interval
        self._saved_at: int | None = None
        self._turn = lock()

    @property
    def checkpoint(self) -> Checkpoint:
        """The Checkpoint that is saved."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The folder."""
        return str(self._folder)

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that are there, oldest first. Raises PermissionDeniedError:
        the folder may not be read; OSError: it cannot be read now; this does not mean that it is
        empty."""
        return [str(path) for path in self._present()]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the checkpoint saved last, or None. Raises as `checkpoints`."""
        saved = self.checkpoints
        return saved[-1] if saved else None

    def _present(self) -> list[Path]:
        return saved_in(self._folder, self._name)

    def save(self, checkpoint_number: Any = None, check_interval: bool = True,
             options: Any = None) -> str | None:
        """Save as number `checkpoint_number`, by default one more than the saves so far. Raises
        ValueError: the number is negative; and as `Checkpoint.write` and `checkpoints`. Only where
        the list of checkpoints cannot be written is the new one saved nevertheless. Gives the path,
        or None where the interval has not passed."""
        given = None if checkpoint_number is None else int(checkpoint_number)
        if given is not None and given < 0:
            raise ValueError(f"checkpoint_number must be 0 or more; got {given}")
        with self._turn:
            # In the turn, since another thread may have saved a moment ago.
            if check_interval and not self._due():
                return None
            # Before anything is written: what cannot be listed cannot be kept in order.
            before = saved_in(self._folder)
            with self._checkpoint.counted() as count:
                file = self._folder / f"{self._name}-{count if given is None else given}{SUFFIX}"
                self._checkpoint.write(file)
            # Only now, when the new one is on the disk.
            self._tidy([other for other in before if other != file], file)
            if self._steps is not None:
                self._saved_at = int(self._steps)
        return str(file)

    def _due(self) -> bool:
        if self._interval is None or self._saved_at is None:
            return True
        return int(self._steps) - self._saved_at >= self._interval

    def _tidy(self, others: list[Path], newest: Path) -> None:
        """Drop what is too old and what killed processes left, and then list `newest` last. In this
        order, since what is not listed counts as new."""
        ours = [file for file in others if name_of(file) == self._name]
        surplus = 0 if self._keep is None else max(0, len(ours) + 1 - self._keep)
        gone = [file for file in ours[:surplus] if _removed(file)]
        # Parts of files that killed processes left; if they cannot be listed they stay a while.
        with contextlib.suppress(OSError):
            for start in (f"{self._name}-", LIST):
                for part in abandoned(self._folder, start):
                    _removed(part)
        write_list(self._folder, [*(f for f in others if f not in gone), newest])

    def restore_or_initialize(self) -> str | None:
        """Restore the checkpoint saved last and give its path; None where there is none. Raises as
        `Checkpoint.restore` and `checkpoints`."""
        latest = self.latest_checkpoint
        if latest is None:
            if self._init is not None:
                self._init()
            return None
        self._checkpoint.restore(latest)
        if self._steps is not None:
            self._saved_at = int(self._steps)
        return latest


def _removed(file: Path) -> bool:
    """Whether the file is gone now; one that cannot be removed is tried again by the next save."""
    try:
        file.unlink(missing_ok=True)
    except OSError:
        return False
    return True
