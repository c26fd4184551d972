"""What an op on a GPU costs the host: look-up, allocation, record; launches do nothing.

Run `python -m benchmarks.host_cost` or `python benchmarks/host_cost.py`. It needs CuPy, and neither
a GPU nor a driver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import TORCH, Peer, measure
from benchmarks.programs.program import Program, WrongResult
from benchmarks.report import Row, publish

GTAPE_ON_CUPY = Peer("gtape", "cupy")
COLUMNS = (GTAPE_ON_CUPY, TORCH)
OPERATIONS = 48
SHAPE = (10,)
BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "x * y": lambda x, y: x * y,
    "-x": lambda x, y: -x,
    "x + 0.5": lambda x, y: x + 0.5,
}
PHASES = ("forward", "forward + tape", "forward + tape + gradient")

REMARKS = (
    "x gtape: the cost as a multiple of gtape's, above 1 is slower than gtape.",
    (
        "gtape: tensors of CuPy arrays; a launch is a call that does nothing. CuPy's own launch and"
        " pool (0.9 to 1.5 us together, with a stub driver) and the driver's time come on top."
    ),
    "torch: the same chain on CPU tensors, arithmetic included, which is small for 10 numbers.",
)


def name_of(body: str, phase: str) -> str:
    return f"{body}, {phase}"


def chain(body: Callable[[Any, Any], Any], x: Any) -> Any:
    y = x
    for _ in range(OPERATIONS):
        y = body(y, x)
    return y


def gtape_programs() -> dict[str, Program]:
    import gtape as tf
    from benchmarks.programs.no_launch import NoLaunch, tensor

    tf.zeros(())  # the operators of tensors come with the first of them

    def phases(body: Callable[[Any, Any], Any], x: Any) -> tuple[Callable[[], Any], ...]:
        def taped() -> Any:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = chain(body, x)
            return tape, y

        def gradient() -> Any:
            tape, y = taped()
            return tape.gradient(y, x, output_gradients=x)

        return lambda: chain(body, x), taped, gradient

    def check(body: Callable[[Any, Any], Any], phase: int) -> None:
        loader = NoLaunch(counting=True)
        phases(body, tensor(SHAPE, loader))[phase]()
        if loader.launches < OPERATIONS:
            raise WrongResult(f"{loader.launches} launches for {OPERATIONS} operations")

    found = {}
    for name, body in BODIES.items():
        for phase, run in enumerate(phases(body, tensor(SHAPE, NoLaunch()))):
            found[name_of(name, PHASES[phase])] = Program(
                run, lambda body=body, phase=phase: check(body, phase))
    return found


def torch_programs() -> dict[str, Program]:
    import torch

    def phases(body: Callable[[Any, Any], Any]) -> tuple[Callable[[], Any], ...]:
        plain = torch.full(SHAPE, 0.9)
        leaf = torch.full(SHAPE, 0.9, requires_grad=True)

        def gradient() -> Any:
            return torch.autograd.grad(chain(body, leaf), leaf, plain)

        return lambda: chain(body, plain), lambda: chain(body, leaf), gradient

    return {name_of(name, phase): Program(run, lambda: None)
            for name, body in BODIES.items() for phase, run in zip(PHASES, phases(body))}


def programs(peer: str) -> dict[str, Program]:
    """Every program of this benchmark that `peer` has."""
    return torch_programs() if peer == TORCH.column else gtape_programs()


def main() -> int:
    rows = [Row(name_of(body, phase), "us per op", 1e6 / OPERATIONS)
            for body in BODIES for phase in PHASES]
    samples = measure("host_cost", COLUMNS)
    return publish("host_cost", "Host cost of an op on a GPU, launches left out", samples, rows,
                   COLUMNS, REMARKS)


if __name__ == "__main__":
    sys.exit(main())
