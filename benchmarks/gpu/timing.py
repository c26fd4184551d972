"""Clocks: how long a step takes on the device, by the wall, and to issue from Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np

WARM_UPS, TIMED = 10, 50
#: A long step is timed less often: this many seconds in all, and this often at least.
MOST_SECONDS, LEAST_TIMED = 3.0, 10
#: Calls between two waits of a clock that has no events.
BATCH = 5

Run = Callable[[int], Any]


@dataclass(frozen=True)
class Timing:
    """Seconds per step. `low`, `high`: the 10th and 90th percentile. `wall`: all steps by the
    wall clock, divided by their number; `host`: the same until the last one was issued."""

    median: float
    low: float
    high: float
    wall: float
    host: float
    samples: int

    def record(self) -> dict[str, float]:
        return asdict(self)


class Clock(Protocol):
    """`measure(run)` times `run(turn)`, the turns counting up from 0."""

    def measure(self, run: Run, warm_ups: int = WARM_UPS, timed: int = TIMED) -> Timing: ...


def summary(samples: list[float], wall: float, host: float) -> Timing:
    """`samples`: seconds per step; `wall` and `host` likewise."""
    low, middle, high = np.percentile(samples, [10, 50, 90]).tolist()
    return Timing(middle, low, high, wall, host, len(samples))


def affordable(run: Run, wait: Callable[[], None], warm_ups: int, timed: int) -> int:
    """How often to time `run`, which this warms up."""
    for turn in range(warm_ups):
        run(turn)
        if turn == 0:
            # The first call compiles.
            wait()
            start = perf_counter()
    wait()
    each = (perf_counter() - start) / max(1, warm_ups - 1)
    fitting = int(MOST_SECONDS / max(each, 1e-9))
    return min(timed, max(LEAST_TIMED, fitting))


class EventClock:
    """Times by events of CUDA, recorded before and after each step.

    Args:
        event: makes an event, which has `record()`.
        elapsed: milliseconds between two events.
        wait: waits for the device.
    """

    def __init__(
        self,
        event: Callable[[], Any],
        elapsed: Callable[[Any, Any], float],
        wait: Callable[[], None],
    ) -> None:
        self._event, self._elapsed, self._wait = event, elapsed, wait

    def measure(self, run: Run, warm_ups: int = WARM_UPS, timed: int = TIMED) -> Timing:
        count = affordable(run, self._wait, warm_ups, timed)
        pairs = [(self._event(), self._event()) for _ in range(count)]
        start = perf_counter()
        for turn, (before, after) in enumerate(pairs):
            before.record()
            run(turn)
            after.record()
        issued = perf_counter()
        self._wait()
        ended = perf_counter()
        samples = [self._elapsed(*pair) / 1e3 for pair in pairs]
        return summary(samples, (ended - start) / count, (issued - start) / count)


class WallClock:
    """Times by the wall clock, waiting for the results of every few steps together.

    Waiting for each one would add the way back to Python to every step.

    Args:
        wait_for: waits for a result of a step.
    """

    def __init__(self, wait_for: Callable[[Any], Any]) -> None:
        self._wait_for = wait_for

    def measure(self, run: Run, warm_ups: int = WARM_UPS, timed: int = TIMED) -> Timing:
        last: Any = None

        def kept(turn: int) -> None:
            nonlocal last
            last = run(turn)

        count = affordable(kept, lambda: self._wait_for(last), warm_ups, timed)
        samples, host, turn = [], 0.0, 0
        start = perf_counter()
        for _ in range(-(-count // BATCH)):
            begun = perf_counter()
            for _ in range(BATCH):
                kept(turn)
                turn += 1
            host += perf_counter() - begun
            self._wait_for(last)
            samples.append((perf_counter() - begun) / BATCH)
        return summary(samples, (perf_counter() - start) / turn, host / turn)
