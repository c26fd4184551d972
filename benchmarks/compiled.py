"""W1, W3 to W10 and W12 compiled: gtape's function beside torch.compile, jax.jit and TensorFlow's.

Run `python -m benchmarks.compiled [W3 W5 ...] [--rounds N]` or `python benchmarks/compiled.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import MachineUse, Samples, caches_in, command, measure, measure_fresh
from benchmarks.memory import ONE_MAPPING_PER_ARRAY
from benchmarks.programs.compiled.columns import COLUMNS
from benchmarks.programs.compiled.table import (
    MEMORY,
    WORKLOADS,
    Workload,
    entries,
    first_call_table,
    goals_table,
)
from benchmarks.programs.program import Program
from benchmarks.report import document, markdown, save

MEMORY_ROUNDS = 3

REMARKS = (
    (
        "x best peer: the cost of the best peer as a multiple of gtape's, medians by medians and"
        " bests by bests; goals are held against it. W12's goal is a peak of memory."
    ),
    (
        "gtape and tensorflow: the same text under @tf.function; tensorflow xla: with"
        " jit_compile=True. torch: eager, with its fused kernels. torch.compile: default mode,"
        " forward and backward as one graph. jax jit: the whole step, its state donated."
    ),
)
FIRST_CALL = (
    "The first call: trace, compile and run, in a fresh process, with empty caches. The goal is"
    " torch.compile's time."
)


def programs(peer: str, name: str) -> dict[str, Program]:
    """The one program of that name."""
    row = next(row for row in WORKLOADS if row.program == name)
    module = import_module(f"benchmarks.programs.compiled.{row.module}")
    return {name: module.program(peer, row.argument)}


def measured(row: Workload, rounds: int) -> Samples:
    """One workload by every peer: each in a process of its own, with caches that are empty."""
    with TemporaryDirectory() as folder:
        if row is not MEMORY:
            return measure(
                f"compiled:{row.program}",
                COLUMNS,
                rounds=rounds,
                turn_seconds=0.1,
                caches=Path(folder),
            )
        return measure_fresh(
            {row.program: COLUMNS},
            lambda _, peer: command("programs.compiled.memory", peer.column),
            rounds=min(rounds, MEMORY_ROUNDS),
            extra_environment=ONE_MAPPING_PER_ARRAY | caches_in(Path(folder)),
        )


def chosen(arguments: Sequence[str] | None) -> tuple[list[Workload], int]:
    """The workloads and the number of rounds that the command line asks for."""
    numbers = list(dict.fromkeys(row.number for row in WORKLOADS))
    parser = argparse.ArgumentParser(prog="benchmarks.compiled", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="W", help=f"of {' '.join(numbers)}")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    for number in options.workloads:
        if number not in numbers:
            parser.error(f"{number} is no workload; there are {' '.join(numbers)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    wanted = options.workloads or numbers
    return [row for row in WORKLOADS if row.number in wanted], options.rounds


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; a run of all workloads is written to results/ too."""
    rows, rounds = chosen(arguments)
    samples, use = Samples(), MachineUse()
    for row in rows:
        print(f"{row.program} ...", file=sys.stderr, flush=True)
        samples.merge(measured(row, rounds))
    samples.others = use.others()
    tables = [markdown(goals_table(samples, rows, COLUMNS))]
    if samples.first:
        tables += [FIRST_CALL, markdown(first_call_table(samples, rows, COLUMNS))]
    title = "Compiled programs: one call for forward and gradients, or for a training step"
    text, record = document("compiled", title, samples, tables, entries(samples, rows), REMARKS)
    if len(rows) == len(WORKLOADS):
        save("compiled", text, record)
    print(text)
    return 1 if samples.failed else 0


if __name__ == "__main__":
    sys.exit(main())
