"""W3 and W4: a whole training step of a small and of a middling multilayer perceptron.

Run `python -m benchmarks.mlp` or `python benchmarks/mlp.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import PEERS, TORCH, measure
from benchmarks.programs.mlp_peers import LAYERS, WRITTEN_OUT, steps_of
from benchmarks.programs.mlp_problem import (
    Problem,
    Step,
    classification,
    reference_losses,
    regression,
)
from benchmarks.programs.program import Program, require_close, to_numpy
from benchmarks.report import Row, publish

PROBLEMS: dict[str, Callable[[], Problem]] = {"W3": regression, "W4": classification}
CHECKED_STEPS = 5

REMARKS = (
    (
        "W3: 10-64-32-1, batch 32, mean squared error. W4: 784-512-512-10, batch 128, softmax cross"
        " entropy. A step is forward, backward and Adam, on the next of 64 batches."
    ),
    (
        "layers: tf.keras, torch.nn. written out: matrix products on variables, the framework's own"
        " Adam where it has one. numpy: forward, backward and Adam by hand, nothing recorded."
    ),
    "x gtape: the time as a multiple of gtape's, above 1 is slower than gtape.",
)


def program(make: Callable[[], Step], expected: np.ndarray) -> Program:
    """Timed: one step of a network that goes on training. Checked: its first losses."""
    step: Step | None = None

    def run() -> object:
        nonlocal step
        step = step or make()
        return step()

    def check() -> None:
        fresh = make()
        losses = [float(to_numpy(fresh())) for _ in range(CHECKED_STEPS)]
        require_close(losses, expected, f"the losses of {CHECKED_STEPS} steps")

    return Program(run, check)


def programs(peer: str) -> dict[str, Program]:
    """Every program of this benchmark that `peer` has."""
    found = {}
    for name, problem_of in PROBLEMS.items():
        problem = problem_of()
        expected = reference_losses(problem, CHECKED_STEPS, late=peer == TORCH.column)
        for way, make in steps_of(peer, problem).items():
            found[f"{name} {way}"] = program(make, expected)
    return found


def main() -> int:
    ways = (LAYERS, WRITTEN_OUT)
    rows = [Row(f"W3 {way}", "steps/s", rate=True, floor=True) for way in ways]
    rows += [Row(f"W4 {way}", "ms", 1e3, floor=True) for way in ways]
    samples = measure("mlp", PEERS, turn_seconds=0.1)
    title = "Training steps: two multilayer perceptrons"
    return publish("mlp", title, samples, rows, PEERS, REMARKS)


if __name__ == "__main__":
    sys.exit(main())
