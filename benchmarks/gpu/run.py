"""Warm-ups of all peers at once, and then every workload by every peer, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from benchmarks.gpu.calibration import Measure
from benchmarks.gpu.peers import COMPILED, GTAPE, KERNELS
from benchmarks.gpu.processes import Process, peer_process
from benchmarks.gpu.results import Results
from benchmarks.gpu.workload import Workload

#: The longest that one peer may take for one workload, compiling included.
MOST_SECONDS = 75.0
#: With less time left than this, nothing is begun.
LEAST_SECONDS = 8.0

Start = Callable[[str, Path], Process]


class Deadline:
    """How much of some seconds is left."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def left(self) -> float:
        return self._end - monotonic()


def warm_up(
    columns: Sequence[str], workloads: Sequence[Workload], caches: Path, seconds: float,
    start: Start = peer_process,
) -> list[str]:
    """Run everything that compiles once, each peer in a process of its own and all at the same
    time, so that their caches on disk are full; what was not done, in sentences."""
    deadline, missing = Deadline(seconds), []

    def warm(column: str) -> None:
        process = start(column, caches)
        for workload in workloads:
            if column not in workload.columns:
                continue
            request = {"workload": workload.number, "scale": workload.scale, "warm": True}
            if deadline.left() <= 0:
                missing.append(f"{column}, {workload.number}: no time was left to warm it up.")
                continue
            answer = process.ask(request, deadline.left())
            if "skipped" in answer:
                break
            if "error" in answer:
                missing.append(f"{column}, {workload.number}: warming up: {answer['error']}.")
        process.close()

    at_once(warm, [c for c in columns if c in (GTAPE, KERNELS, *COMPILED)])
    return missing


def at_once(function: Callable[[str], None], columns: Sequence[str]) -> None:
    """Call `function` for every column, each in a thread."""
    threads = [threading.Thread(target=function, args=(column,)) for column in columns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Measurement:
    """One run of the benchmark.

    Args:
        columns: the peers.
        workloads: what they do, in order.
        caches: where they keep what they compile.
        seconds: in all.
    """

    def __init__(
        self, columns: Sequence[str], workloads: Sequence[Workload], caches: Path, seconds: float,
        start: Start = peer_process,
    ) -> None:
        self.results = Results()
        self._workloads, self._deadline = workloads, Deadline(seconds)
        self._processes = {column: start(column, caches) for column in columns}

    def hello(self) -> None:
        """Start all peers at once; those that are not there, or fail, are noted and left out."""
        answers: dict[str, dict[str, Any]] = {}

        def ask(column: str) -> None:
            answers[column] = self._processes[column].hello()

        at_once(ask, list(self._processes))
        for column in tuple(self._processes):
            answer = answers[column]
            self.results.versions |= answer.get("versions", {})
            if "skipped" in answer:
                self.results.skipped[column] = answer["skipped"]
            if "error" in answer:
                self.results.failed.append(f"{column}: {answer['error']}")
            if "versions" not in answer:
                self._processes.pop(column).close()

    def calibrate(self) -> None:
        """G0."""
        if KERNELS not in self._processes:
            return
        answer = self._processes[KERNELS].ask({"calibrate": True}, self._allowed())
        if "error" in answer:
            self.results.failed.append(f"G0: {answer['error']}")
        self.results.measures = [Measure(**found) for found in answer.get("measures", ())]

    def measure(self, workload: Workload) -> None:
        """One workload by every peer that has it."""
        for column in workload.columns:
            process = self._processes.get(column)
            if process is None:
                continue
            if self._deadline.left() < LEAST_SECONDS:
                self.results.notes.append(
                    f"{column}, {workload.number}: left out, no time was left."
                )
                continue
            request = {"workload": workload.number, "scale": workload.scale}
            answer = process.ask(request, self._allowed())
            if "timings" in answer:
                self.results.add(workload.number, column, answer["timings"])
            else:
                why = answer.get("error") or answer.get("skipped")
                self.results.failed.append(f"{column}, {workload.number}: {why}")

    def _allowed(self) -> float:
        return max(LEAST_SECONDS, min(MOST_SECONDS, self._deadline.left()))

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
