"""The checkpoints in a folder, in the order in which they were saved.

The file `checkpoint` lists them. A checkpoint that it does not list is younger than all listed,
since it is written first; a process killed in between loses nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gtape.core.files import write_whole
from gtape.train.stored import SUFFIX

#: The name of the file.
LIST = "checkpoint"
_NUMBERED = re.compile(r"(.+)-(\d+)" + re.escape(SUFFIX))


def number_of(file: Path) -> int:
    """The number in the name of a checkpoint."""
    found = _NUMBERED.fullmatch(file.name)
    if found is None:
        raise ValueError(f"'{file.name}' is not numbered")
    return int(found[2])


def saved_in(folder: Path, name: str | None = None, list_name: str | None = None) -> list[Path]:
    """The numbered checkpoints called `name` (None: any name), oldest first."""
    try:
        present = {p.name: p for p in folder.iterdir() if _NUMBERED.fullmatch(p.name)}
    except OSError:
        return []
    listed = [n for n in _listed(folder / (list_name or LIST)) if n in present]
    unlisted = sorted(present.keys() - set(listed), key=lambda n: (number_of(present[n]), n))
    return [present[n] for n in (*listed, *unlisted)
            if name is None or n.rpartition("-")[0] == name]


def _listed(file: Path) -> list[str]:
    try:
        found = json.loads(file.read_text("utf-8"))["checkpoints"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [*dict.fromkeys(n for n in found if isinstance(n, str))] if isinstance(
        found, list) else []


def write_list(folder: Path, files: Iterable[Path]) -> None:
    """List the checkpoints, oldest first."""
    text = json.dumps({"checkpoints": [file.name for file in files]}, indent=1)
    write_whole(folder / LIST, text.encode())


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The path of the checkpoint saved last in a folder, for `Checkpoint.restore`; or None.

    Args:
        latest_filename: the name of the file that lists the checkpoints; 'checkpoint' unless given.
    """
    found = saved_in(Path(checkpoint_dir), list_name=latest_filename)
    return str(found[-1]) if found else None
