"""Two versions of gtape beside each other, on the programs of the other benchmarks.

Run `python -m benchmarks.versions INTERPRETER [NAME ...]`: `INTERPRETER` is a Python that has the
other version installed, `NAME` a benchmark (`overhead`, `mlp`, `sums`) or a workload of `compiled`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import GTAPE, Peer, Samples, measure
from benchmarks.programs.compiled.table import MEMORY, WORKLOADS
from benchmarks.report import markdown, notes
from benchmarks.sums import FUNCTION

EAGER = ("overhead", "mlp", "sums")
HEADER = ["", "rounds", "here, best", "other, best", "ratio of bests", "ratio of medians", "spread"]


def compared(samples: Samples) -> list[list[str]]:
    """A line for each program: here beside there, in microseconds.

    The spread is that of the ratio from round to round, as a part of it: what noise there was.
    """
    lines = [HEADER]
    for name, costs in samples.costs.items():
        for column in sorted({c.removesuffix(" other") for c in costs}):
            here, there = costs.get(column, []), costs.get(f"{column} other", [])
            if not here or not there:
                continue
            ratios = sorted(a / b for a, b in zip(here, there, strict=False))
            quarter = len(ratios) // 4
            spread = (ratios[-1 - quarter] - ratios[quarter]) / median(ratios)
            lines.append([
                name if column == GTAPE.column else f"{name} ({column})", str(len(ratios)),
                f"{1e6 * min(here):,.4g}", f"{1e6 * min(there):,.4g}",
                f"{min(here) / min(there):.3f}", f"{median(ratios):.3f}", f"{spread:.3f}"])
    return lines


def pair(peer: Peer, interpreter: str) -> tuple[Peer, Peer]:
    """A column of gtape, here and in the other interpreter, both started in the same way."""
    return (Peer(peer.column, peer.package, sys.executable),
            Peer(f"{peer.column} other", peer.package, interpreter, peer.column))


def measured(name: str, interpreter: str, rounds: int) -> Samples:
    """One benchmark, or the workloads of `compiled` that begin with `name`."""
    if name in EAGER:
        columns = (GTAPE, FUNCTION) if name == "sums" else (GTAPE,)
        peers = [version for column in columns for version in pair(column, interpreter)]
        return measure(name, peers, rounds=rounds, turn_seconds=0.05)
    samples = Samples()
    for row in WORKLOADS:
        if row is not MEMORY and (row.number == name or name == "compiled"):
            with TemporaryDirectory() as folder:
                samples.merge(measure(f"compiled:{row.program}", pair(GTAPE, interpreter),
                                      rounds=rounds, turn_seconds=0.1, caches=Path(folder)))
    return samples


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.versions", description=__doc__)
    parser.add_argument("interpreter", help="a Python that has the other version of gtape")
    parser.add_argument("names", nargs="*", default=[*EAGER, "compiled"])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    samples = Samples()
    for name in options.names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        samples.merge(measured(name, options.interpreter, options.rounds))
    print(markdown(compared(samples)), *notes(samples), sep="\n\n")
    return 1 if samples.failed else 0


if __name__ == "__main__":
    sys.exit(main())
