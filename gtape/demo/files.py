"""Files that are either whole or absent."""

from __future__ import annotations

import os
from pathlib import Path

from gtape.demo.errors import DemoError


def writable_folder(folder: Path) -> Path:
    """Make `folder` if it is missing.

    Raises:
        DemoError: it cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoError(f"--out must name a folder that can be made; {folder}: "
                        f"{error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DemoError(f"--out must name a folder that can be written to; {folder} cannot")
    return folder


def write_whole(file: Path, content: bytes) -> None:
    """Write beside the file, then move into place: a reader never sees half of it."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(unfinished, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
