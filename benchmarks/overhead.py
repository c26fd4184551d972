"""W1 and W2: what an operation costs when the arithmetic is nothing.

Run `python -m benchmarks.overhead` or `python benchmarks/overhead.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import NUMPY, PEERS, Peer, measure
from benchmarks.programs import tutorials
from benchmarks.programs.chain import (
    Chain,
    chain_of,
    numpy_small_ops,
    reference,
    scalar_small_ops,
    small_ops,
)
from benchmarks.programs.program import Program, require_close
from benchmarks.report import Row, publish

SCALARS = Peer("numpy scalar", "numpy")
COLUMNS = (NUMPY, SCALARS, *PEERS[1:])
OPERATIONS = 20
INPUTS = {
    "()": np.array(0.3, np.float32),
    "(10,)": np.linspace(-1, 1, 10, dtype=np.float32),
}
PHASES = ("forward", "forward + record", "forward + tape + gradient")
TUTORIALS = ("W2 control flow", "W2 second order")

REMARKS = (
    "x gtape: the cost as a multiple of gtape's, above 1 is slower than gtape.",
    (
        "numpy: the ufunc calls of the same forward and backward pass, written by hand, nothing"
        " recorded; x numpy is the multiple of that floor. numpy scalar: the same with operators on"
        " np.float32 scalars, which no code that also takes arrays of other shapes can rely on."
    ),
)


def chain_name(shape: str, phase: str) -> str:
    return f"W1 {shape} {phase}"


def chain_on(peer: str, x: np.ndarray) -> Chain | None:
    """W1 in the words of one column; None where it has no such program."""
    if peer == NUMPY.column:
        return numpy_small_ops(x)
    if peer == SCALARS.column:
        return scalar_small_ops(x) if x.ndim == 0 else None
    return chain_of(peer, small_ops, x)


def chain_programs(peer: str, shape: str, x: np.ndarray) -> dict[str, Program]:
    """W1 on one input: the three phases, checked against float64."""
    chain = chain_on(peer, x)
    if chain is None:
        return {}
    value, derivative = reference(small_ops, x)

    def check_gradient() -> None:
        y, gradient = chain.gradient()
        require_close(y, value, "value")
        require_close(gradient, derivative, "gradient")

    phases = {
        PHASES[0]: Program(chain.forward, lambda: require_close(chain.forward(), value, "value")),
        PHASES[2]: Program(chain.gradient, check_gradient),
    }
    if (record := chain.record) is not None:
        phases[PHASES[1]] = Program(record, lambda: require_close(record()[0], value, "value"))
    return {chain_name(shape, phase): program for phase, program in phases.items()}


def tutorial_programs(peer: str) -> dict[str, Program]:
    """W2: the tutorials' two programs, checked against the derivatives known by heart."""
    both = tutorials.tutorials_of(peer)

    def check_control_flow() -> None:
        require_close(both.control_flow(), tutorials.CONTROL_FLOW_GRADIENT, "gradient")

    def check_second_order() -> None:
        for order, expected in enumerate(tutorials.SECOND_ORDER_GRADIENTS):
            require_close(both.second_order()[order], expected, f"derivative {order + 1}")

    return {
        TUTORIALS[0]: Program(both.control_flow, check_control_flow),
        TUTORIALS[1]: Program(both.second_order, check_second_order),
    }


def programs(peer: str) -> dict[str, Program]:
    """Every program of this benchmark that `peer` has."""
    found: dict[str, Program] = {}
    for shape, x in INPUTS.items():
        found |= chain_programs(peer, shape, x)
    return found if peer in (NUMPY.column, SCALARS.column) else found | tutorial_programs(peer)


def main() -> int:
    rows = [
        Row(chain_name(shape, phase), "us per op", 1e6 / OPERATIONS, floor=True)
        for shape in INPUTS
        for phase in PHASES
    ]
    rows += [Row(name, "us", 1e6) for name in TUTORIALS]
    samples = measure("overhead", COLUMNS)
    title = "Overhead: a chain of 20 small operations, and two tutorial programs"
    return publish("overhead", title, samples, rows, COLUMNS, REMARKS)


if __name__ == "__main__":
    sys.exit(main())
