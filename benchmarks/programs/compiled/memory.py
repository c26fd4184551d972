"""W12: the peak of one compiled call over what was there before the program met its size.

`python -m benchmarks.programs.compiled.memory <column>` prints {"cost": MiB}; Linux only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import ELEMENTS, GRADIENT, LAYERS, check, release_unused, resident
from benchmarks.programs.chain import layers
from benchmarks.programs.compiled.chain import writers
from benchmarks.programs.worker import channel_of_stdout

SMALL_SIZES = (10, 20)


def call_of(column: str, x: np.ndarray) -> Callable[[], Any]:
    """The value and the gradient of the chain at x, in one compiled call."""
    return writers(layers(LAYERS), x).run_of(column)


def settle(run: Callable[[], Any]) -> None:
    """The calls that compile and warm up; their results are given back."""
    for _ in range(2):
        run()
    release_unused()


def peak_of(column: str, x: np.ndarray) -> tuple[float, Any]:
    """The peak in MiB above the program's inputs, and its result.

    The same program of a few elements comes first: it loads and builds what every size needs. What
    a program keeps from call to call, its arena, was not there then, and counts.
    """
    for size in SMALL_SIZES:
        settle(call_of(column, x[:size].copy()))
    run = call_of(column, x)
    release_unused()
    before = resident("VmRSS")
    settle(run)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from the present
    result = run()
    return resident("VmHWM") - before, result


def main(column: str) -> float:
    x = np.random.default_rng(12).uniform(-1, 1, ELEMENTS).astype(np.float32)
    peak, result = peak_of(column, x)
    check(result, GRADIENT, x)
    return peak


if __name__ == "__main__":
    channel = channel_of_stdout()
    channel.write(json.dumps({"cost": main(sys.argv[1])}))
    channel.close()
