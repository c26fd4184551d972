"""The folder where compiled kernels are kept between runs.

GTAPE_CACHE_DIR, else `gtape` in XDG_CACHE_HOME or ~/.cache. A file appears under its name only
when it is complete, so processes that write the same one at once do no harm; a folder that cannot
be written to is no error, since everything in it can be made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

VARIABLE = "GTAPE_CACHE_DIR"


def folder(kind: str) -> Path:
    """Where files of this kind are kept; it may not exist."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) / kind
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "gtape" / kind


def key(*parts: str) -> str:
    """A file name for what is made from `parts` alone."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:40]


def read(kind: str, name: str) -> bytes | None:
    """A kept file, or None."""
    try:
        return (folder(kind) / name).read_bytes()
    except OSError:
        return None


def write(kind: str, name: str, data: bytes) -> Path | None:
    """Keep a file, whole or not at all; None where the folder cannot be written to."""
    target = folder(kind) / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    except OSError:
        return None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return None
    return target
