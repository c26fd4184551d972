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

from gtape.core.atomic_files import write_whole
from gtape.train.stored import SUFFIX, permitted

#: The name of the file.
LIST = "checkpoint"
_NUMBERED = re.compile(r"(.+)-(\d+)" + re.escape(SUFFIX), re.DOTALL | re.ASCII)


def name_of(file: Path) -> str:
    """The name of a checkpoint without its number."""
    return file.name.rpartition("-")[0]


def _number_of(file: Path) -> int:
    return int(file.name.removesuffix(SUFFIX).rpartition("-")[2])


def saved_in(folder: Path, name: str | None = None, list_name: str | None = None) -> list[Path]:
    """The numbered checkpoints called `name` (None: any name), oldest first.

    Only a folder that is not there has none. One that cannot be listed now may have some.

    Raises:
        PermissionDeniedError: the folder, or its list, may not be read.
        OSError: it cannot be read for another reason, or is no folder.
    """
    with permitted(f"the checkpoints in '{folder}' cannot be listed"):
        try:
            present = {p.name: p for p in folder.iterdir() if _NUMBERED.fullmatch(p.name)}
        except FileNotFoundError:
            return []
        return _ordered(present, _listed(folder / (list_name or LIST)), name)


def _ordered(present: dict[str, Path], known: list[str], name: str | None) -> list[Path]:
    listed = [n for n in known if n in present]
    unlisted = sorted(present.keys() - set(listed), key=lambda n: (_number_of(present[n]), n))
    files = [present[n] for n in (*listed, *unlisted)]
    return [file for file in files if name is None or name_of(file) == name]


def _listed(file: Path) -> list[str]:
    try:
        found = json.loads(file.read_text("utf-8"))["checkpoints"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
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

    Raises:
        PermissionDeniedError: the folder is there, and may not be read.
        OSError: it cannot be read for another reason, or is no folder.
    """
    found = saved_in(Path(checkpoint_dir), list_name=latest_filename)
    return str(found[-1]) if found else None
