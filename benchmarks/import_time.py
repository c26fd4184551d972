"""W11: what `import` costs beyond NumPy's own, and what an installation weighs.

Run `python -m benchmarks.import_time` or `python benchmarks/import_time.py`.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import (
    GTAPE,
    JAX_JIT,
    NUMPY,
    PEERS,
    ROOT,
    Peer,
    Samples,
    installed,
    measure_fresh,
)
from benchmarks.report import Row, publish

IMPORT = "W11 import"
OWN, WITH_REQUIRED = "W11 installed, itself", "W11 installed, with what it requires"
MB = 1e6

# Nothing but this runs before the clock starts: no module that a package needs is there already.
PROGRAM = """
import sys
from time import perf_counter
package = sys.argv[1]
if package != "numpy":
    import numpy
start = perf_counter()
__import__(package)
print('{"cost": %r}' % ((perf_counter() - start) * 1e3))
"""

REMARKS = (
    (
        "import: milliseconds in a fresh process that has already imported NumPy; the numpy column"
        " is NumPy's own import. One more round before the others warms the disk cache."
    ),
    (
        "installed: the files' sizes without byte code; with what it requires: the same with every"
        " installed package it needs, NumPy excepted. A checkout counts as its package folders."
    ),
    "x gtape: as a multiple of gtape's, above 1 is more than gtape.",
)


def folder_bytes(folder: Path) -> int:
    files = (file for file in folder.rglob("*") if "__pycache__" not in file.parts)
    return sum(file.stat().st_size for file in files if file.is_file())


def distribution_bytes(name: str) -> int:
    """The sizes of the files that installing distribution `name` wrote, without byte code."""
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:  # required on another platform only
        return 0
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def normal(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required_by(name: str) -> set[str]:
    """Every installed distribution that `name` needs, however far down; extras are left out."""
    found: set[str] = set()
    waiting = [normal(name)]
    while waiting:
        try:
            requirements = metadata.requires(waiting.pop()) or []
        except metadata.PackageNotFoundError:
            continue
        for requirement in requirements:
            words, _, marker = requirement.partition(";")
            match = re.match(r"[\w.-]+", words.strip())
            if match is None or "extra" in marker or normal(match[0]) in found:
                continue
            found.add(normal(match[0]))
            waiting.append(normal(match[0]))
    return found - {normal(name)}


def megabytes(package: str) -> tuple[float, float]:
    """The size of `package` itself, and with what it requires except NumPy."""
    if package == GTAPE.package:
        names = [package]
        own = folder_bytes(ROOT / "gtape") + folder_bytes(ROOT / "kernels")
    else:
        names = metadata.packages_distributions()[package]
        own = sum(map(distribution_bytes, names))
    required = set().union(*map(required_by, names)) - {NUMPY.package}
    return own / MB, (own + sum(map(distribution_bytes, required))) / MB


def weigh(samples: Samples) -> None:
    """Add what every installed peer weighs."""
    for peer in installed([peer for peer in PEERS if peer != JAX_JIT], samples):
        own, with_required = megabytes(peer.package)
        samples.add(OWN, peer.column, own)
        samples.add(WITH_REQUIRED, peer.column, with_required)


def import_command(_: str, peer: Peer) -> list[str]:
    return [sys.executable, "-c", PROGRAM, peer.package]


def main() -> int:
    peers = [peer for peer in PEERS if peer != JAX_JIT]
    measure_fresh({IMPORT: peers}, import_command, rounds=1)
    samples = measure_fresh({IMPORT: peers}, import_command, rounds=5)
    weigh(samples)
    rows = [Row(IMPORT, "ms"), Row(OWN, "MB"), Row(WITH_REQUIRED, "MB")]
    return publish("import_time", "Import and installation", samples, rows, peers, REMARKS)


if __name__ == "__main__":
    sys.exit(main())
