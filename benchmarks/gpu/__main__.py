"""`python -m benchmarks.gpu`: measure gtape, torch and JAX on GPU:0, and write the tables.

The exit status is 1 if a peer failed or computed something wrong, 2 without a GPU, and never
depends on a time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.peers import COMPILED, GTAPE, PEERS
from benchmarks.gpu.publish import facts, write
from benchmarks.gpu.run import Measurement, warm_up
from benchmarks.gpu.workload import Workload
from benchmarks.gpu.workloads import WORKLOADS
from benchmarks.report import RESULTS

NO_GPU = 2


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    made.add_argument("--only", nargs="+", choices=list(WORKLOADS), metavar="NUMBER",
                      help=f"only these workloads: {', '.join(WORKLOADS)}")
    made.add_argument("--quick", action="store_true", help=(
        f"no warm-ups beforehand, and without {', '.join(COMPILED)}"))
    made.add_argument("--warm", choices=("first", "only", "done"), default="first", help=(
        "warm up first (default), do nothing else, or not at all, because it is done"))
    made.add_argument("--warm-seconds", type=float, default=240.0, metavar="S",
                      help="the most that warming up may take (default: %(default)s)")
    made.add_argument("--budget", type=float, default=280.0, metavar="S",
                      help="the most that measuring may take (default: %(default)s)")
    made.add_argument("--scale", type=int, default=1, metavar="N",
                      help="divide all sizes by N, to try the program out (default: %(default)s)")
    made.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER",
                      help="where gpu.md and gpu.json go (default: benchmarks/results)")
    made.add_argument("--caches", type=Path, metavar="FOLDER", help=(
        "where peers keep what they compile (default: a folder that is removed afterwards)"))
    return made


def measured(
    columns: Sequence[str], workloads: Sequence[Workload], options: argparse.Namespace,
    caches: Path, notes: Sequence[str],
) -> int:
    """Measure and write; the exit status."""
    run = Measurement(columns, workloads, caches, options.budget)
    results = run.results
    results.notes += notes
    try:
        run.hello()
        if GTAPE in results.skipped:
            print(f"python -m benchmarks.gpu needs an NVIDIA GPU: {results.skipped[GTAPE]}",
                  file=sys.stderr)
            return NO_GPU
        known = facts(results)
        run.calibrate()
        page = write(results, workloads, known, options.out)
        for workload in workloads:
            print(f"{workload.number}: {workload.title}", file=sys.stderr, flush=True)
            run.measure(workload)
            page = write(results, workloads, known, options.out)
    finally:
        run.close()
    print(page)
    return 1 if results.failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    columns = [c for c in PEERS if not (options.quick and c in COMPILED)]
    chosen = [number for number in WORKLOADS if number in (options.only or WORKLOADS)]
    workloads = [WORKLOADS[number](options.scale) for number in chosen]
    with tempfile.TemporaryDirectory() as folder:
        caches = options.caches or Path(folder)
        notes: list[str] = []
        if options.quick:
            notes.append(f"A quick run: without {', '.join(COMPILED)}.")
        elif options.warm != "done":
            notes += warm_up(columns, workloads, caches, options.warm_seconds)
        if options.warm == "only":
            print(*notes, sep="\n")
            return 0
        return measured(columns, workloads, options, caches, notes)


if __name__ == "__main__":
    sys.exit(main())
