"""The folder that a demonstration writes to."""

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
