"""CuPy's own sources of the pinned version, of which one module is built against simulated CUDA.

They come from the package index that pip would ask, or from the file GTAPE_SIMULATED_SDIST names.
What comes must have the digest that stands here: no other text reaches the compiler.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
import time
import urllib.request
from hashlib import sha256
from pathlib import Path
from urllib.parse import urljoin

from gtape.core.errors import SimulatorError

VERSION = "14.2.0"
_FILE = f"cupy-{VERSION}.tar.gz"
_DIGEST = "cfed725e612178cfbdbf62f4a3a598b60edecbbca718c0d4580c21a16ae4a62c"
_JSON = "application/vnd.pypi.simple.v1+json"
_SECONDS, _ATTEMPTS = 120, 3  # indexes and networks fail in passing


def archive(kept: Path) -> Path:
    """The archive of CuPy's sources: the given one, else `kept`, where it is put if need be.

    Raises:
        SimulatorError: it cannot be fetched, or is not the archive that was expected.
    """
    given = os.environ.get("GTAPE_SIMULATED_SDIST")
    place = Path(given) if given else kept
    data = place.read_bytes() if given or place.is_file() else _fetched()
    if sha256(data).hexdigest() != _DIGEST:
        raise SimulatorError(f"{_FILE} must have the SHA-256 digest {_DIGEST}; "
                             f"{place if place.is_file() else 'what the index sent'} has "
                             f"{sha256(data).hexdigest()}: remove it, or fetch the file again")
    if not place.is_file():
        unfinished = place.with_suffix(f".{os.getpid()}")  # under its name only when it is whole
        unfinished.write_bytes(data)
        unfinished.replace(place)
    return place


def unpack(archive: Path, folder: Path) -> None:
    """Put CuPy's sources into a folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")  # no member outside of it


def _fetched() -> bytes:
    index = os.environ.get("PIP_INDEX_URL") or os.environ.get("UV_INDEX_URL") or (
        "https://pypi.org/simple")
    for attempt in range(_ATTEMPTS):
        time.sleep(attempt)
        try:
            return _from_index(f"{index.rstrip('/')}/cupy/")
        except (OSError, ValueError) as error:
            failure = error
    raise SimulatorError(
        f"the simulated GPU is built from {_FILE}, which could not be fetched from {index}: "
        f"{failure}; download it from https://pypi.org/project/cupy/{VERSION}/#files where there "
        "is a network, and set GTAPE_SIMULATED_SDIST to the file") from failure


def _from_index(page: str) -> bytes:
    # Indexes older than PEP 691 know pages of HTML only.
    request = urllib.request.Request(page, headers={"Accept": f"{_JSON}, text/html;q=0.5"})
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        address = _address(answer.read().decode(), answer.headers.get_content_type(), page)
    with urllib.request.urlopen(address, timeout=_SECONDS) as answer:
        return bytes(answer.read())


def _address(page: str, kind: str, base: str) -> str:
    """Where an index says that the archive lies."""
    if kind == _JSON:
        for file in json.loads(page)["files"]:
            if file["filename"] == _FILE:
                return urljoin(base, file["url"])
    found = re.search(rf'href="([^"]*/{re.escape(_FILE)}[^"]*)"', page)
    if found is None:
        raise ValueError(f"the index does not list {_FILE}")
    return urljoin(base, found[1].replace("&amp;", "&"))
