"""CheckpointManager: numbered checkpoints in a folder, of which the last few are kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gtape.core.files import abandoned
from gtape.core.text import shown
from gtape.train import listing
from gtape.train.checkpoint import Checkpoint
from gtape.train.stored import SUFFIX


class CheckpointManager:
    """Saves a Checkpoint as 'folder/name-n.safetensors' and keeps the last `max_to_keep`.

    An old file goes only after the new one is safely on the disk, so a process killed at any time
    leaves at least one that can be restored.

    Args:
        checkpoint: the Checkpoint to save.
        directory: the folder; it is made by the first save.
        max_to_keep: how many are kept; None keeps all.
        checkpoint_name: what the files' names begin with.
        step_counter: a Variable that counts steps, for `checkpoint_interval`.
        checkpoint_interval: `save` does nothing before so many steps after the last one.
        init_fn: called by `restore_or_initialize` where there is no checkpoint.

    Raises:
        ValueError: max_to_keep is less than 1, a name with '/', or an interval without a counter.
    """

    def __init__(self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None, *,
                 checkpoint_name: str = "ckpt", step_counter: Any = None,
                 checkpoint_interval: int | None = None,
                 init_fn: Callable[[], Any] | None = None) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"max_to_keep must be at least 1, or None for all; got {max_to_keep}")
        if "/" in checkpoint_name or not checkpoint_name:
            raise ValueError(f"checkpoint_name must be a name without folders; got "
                             f"{shown(checkpoint_name)}")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("checkpoint_interval needs a step_counter")
        self._checkpoint, self._folder = checkpoint, Path(directory)
        self._keep, self._name, self._init = max_to_keep, checkpoint_name, init_fn
        self._steps, self._interval = step_counter, checkpoint_interval
        self._saved_at: int | None = None

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
        """The paths of the checkpoints that are there, oldest first."""
        return [str(path) for path in self._present()]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the checkpoint saved last, or None."""
        found = self.checkpoints
        return found[-1] if found else None

    def _present(self) -> list[Path]:
        return listing.saved_in(self._folder, self._name)

    def save(self, checkpoint_number: Any = None, check_interval: bool = True,
             options: Any = None) -> str | None:
        """Save as number `checkpoint_number`, by default one more than the saves so far.

        Gives the path, or None where the interval has not passed.

        Raises:
            ValueError: the number is negative; and as `Checkpoint.write`.
        """
        given = None if checkpoint_number is None else int(checkpoint_number)
        if given is not None and given < 0:
            raise ValueError(f"checkpoint_number must be 0 or more; got {given}")
        if check_interval and not self._due():
            return None
        with self._checkpoint.counted() as count:
            file = self._folder / f"{self._name}-{count if given is None else given}{SUFFIX}"
            self._checkpoint.write(file)
        self._listed(file)
        if self._steps is not None:
            self._saved_at = int(self._steps)
        return str(file)

    def _due(self) -> bool:
        if self._interval is None or self._saved_at is None:
            return True
        return int(self._steps) - self._saved_at >= self._interval

    def _listed(self, newest: Path) -> None:
        """Drop what is too old and what killed processes left, and then list `newest` last.

        In this order, since what is not listed counts as new.
        """
        others = [file for file in self._present() if file != newest]
        surplus = 0 if self._keep is None else max(0, len(others) + 1 - self._keep)
        for file in (*others[:surplus], *abandoned(self._folder, f"{self._name}-"),
                     *abandoned(self._folder, listing.LIST)):
            with contextlib.suppress(OSError):
                file.unlink()
        kept = [file for file in listing.saved_in(self._folder) if file != newest]
        listing.write_list(self._folder, [*kept, newest])

    def restore_or_initialize(self) -> str | None:
        """Restore the checkpoint saved last and give its path; None where there is none.

        Raises as `Checkpoint.restore`.
        """
        latest = self.latest_checkpoint
        if latest is None:
            if self._init is not None:
                self._init()
            return None
        self._checkpoint.restore(latest)
        if self._steps is not None:
            self._saved_at = int(self._steps)
        return latest
