"""The first call, timed, and the results of the first calls, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.programs.compiled.columns import Run
from benchmarks.programs.program import Program, require_close, to_numpy


def arrays(result: Any) -> Any:
    """Copies of a peer's arrays, in the same lists and tuples."""
    if isinstance(result, (list, tuple)):
        return [arrays(part) for part in result]
    return np.array(to_numpy(result))


def checked(run: Run, check: Callable[[list[Any]], None], calls: int = 1) -> Program:
    """A program of `run`; `check` is given the results of its first `calls` calls."""
    results: list[Any] = []

    def first() -> float:
        start = perf_counter()
        result = run()
        seconds = perf_counter() - start
        results.append(arrays(result))
        return seconds

    def check_all() -> None:
        while len(results) < calls:
            results.append(arrays(run()))
        check(results)
        results.clear()

    return Program(run, check_all, first)


def gradients_program(
    run: Run, value: Any, gradients: Sequence[Any], rtol: float = 1e-4
) -> Program:
    """A program that gives a value and its gradient or gradients; expected in float64."""

    def check(results: list[Any]) -> None:
        found_value, found = results[0]
        found = found if isinstance(found, list) else [found]
        require_close(found_value, value, "value")
        if len(found) != len(gradients):
            raise ValueError(f"{len(found)} gradients, {len(gradients)} expected")
        for i, (gradient, expected) in enumerate(zip(found, gradients, strict=True)):
            require_close(gradient, expected, f"gradient {i}", rtol)

    return checked(run, check)


def losses_program(run: Run, losses: np.ndarray, rtol: float = 1e-4) -> Program:
    """A program that gives the loss of one training step after another; expected in float64."""

    def check(results: list[Any]) -> None:
        require_close(np.array(results), losses, f"the losses of {len(losses)} steps", rtol)

    return checked(run, check, len(losses))
