"""W12: peak memory of a deep elementwise chain, forward under a tape and with its gradient.

Run `python -m benchmarks.memory` or `python benchmarks/memory.py`; Linux only.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import GTAPE, JAX_JIT, PEERS, command, measure_fresh
from benchmarks.programs.chain import Chain, chain_of, layers, reference
from benchmarks.programs.program import require_close, to_numpy
from benchmarks.programs.worker import channel_of_stdout
from benchmarks.report import Row, publish

LAYERS, ELEMENTS = 50, 1_000_000
MIB = 2.0**20
ARRAY_MIB = ELEMENTS * 4 / MIB
FORWARD, GRADIENT = "W12 forward + record", "W12 forward + tape + gradient"
READ = "W12 what gtape's rules read"
WARM_UP_LAYERS = 2
# glibc otherwise begins to keep and to split freed blocks, and the peak shows its choices too.
ONE_MAPPING_PER_ARRAY = {"MALLOC_MMAP_THRESHOLD_": "1000000"}
SAMPLE_STEP = 997  # elements are independent: the check looks at every 997th

REMARKS = (
    (
        f"{LAYERS} layers y <- tanh(a y + b) over {ELEMENTS:,} float32: {ARRAY_MIB:.2f} MiB an"
        " array. Peak of the resident set above what was there before, the input already in memory."
    ),
    (
        "What the backward rules read: tanh's own result in every layer, and a; nothing of the"
        f" product and the sum. {LAYERS} arrays, {LAYERS * ARRAY_MIB:.1f} MiB. A tape that keeps"
        f" every operation's inputs holds {3 * LAYERS * ARRAY_MIB:.0f} MiB."
    ),
    (
        "x gtape: the memory as a multiple of gtape's, above 1 is more than gtape. jax jit"
        " computes the whole gradient as one compiled program, and may compute again instead of"
        " keep."
    ),
)


def resident(field: str) -> float:
    """MiB of this process: field VmRSS is now, VmHWM the peak since it was last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024 / MIB
    raise OSError(f"/proc/self/status has no {field}: this benchmark needs Linux")


def release_unused() -> None:
    """Give freed memory back, so that what the warm-up used does not hide in the baseline."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def peak_of(chain: Chain, phase: str) -> tuple[float, Any]:
    """The peak in MiB above the baseline while one phase runs once, and its result."""
    run = chain.record if phase == FORWARD else chain.gradient
    if run is None:
        raise ValueError(f"{phase}: this peer has no such program")
    release_unused()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from the present
    result = run()
    return resident("VmHWM") - before, result


def check(result: Any, phase: str, x: np.ndarray) -> None:
    """Value, and gradient where there is one, against float64 NumPy."""
    value, derivative = reference(layers(LAYERS), x[::SAMPLE_STEP])
    require_close(to_numpy(result[0])[::SAMPLE_STEP], value, "value")
    if phase == GRADIENT:
        gradient = to_numpy(result[1])[::SAMPLE_STEP]
        require_close(gradient, derivative, "gradient", rtol=1e-3)


def sample(phase: str, peer: str) -> float:
    """The peak in MiB of one phase of one peer, measured in this process."""
    x = np.random.default_rng(12).uniform(-1, 1, ELEMENTS).astype(np.float32)
    chain = chain_of(peer, layers(LAYERS), x)
    warm_up = chain if peer == JAX_JIT.column else chain_of(peer, layers(WARM_UP_LAYERS), x)
    peak_of(warm_up, phase)
    del warm_up
    peak, result = peak_of(chain, phase)
    check(result, phase, x)
    return peak


def main() -> int:
    peers = PEERS[1:]
    eager = [peer for peer in peers if peer != JAX_JIT]
    rows = [Row(FORWARD, "peak MiB"), Row(GRADIENT, "peak MiB"), Row(READ, "MiB")]
    samples = measure_fresh(
        {FORWARD: eager, GRADIENT: peers},
        lambda phase, peer: command("memory", phase, peer.column),
        rounds=3,
        extra_environment=ONE_MAPPING_PER_ARRAY,
    )
    samples.add(READ, GTAPE.column, LAYERS * ARRAY_MIB)
    title = "Memory: a chain of 50 layers over a million elements"
    return publish("memory", title, samples, rows, peers, REMARKS)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        channel = channel_of_stdout()
        channel.write(json.dumps({"cost": sample(*sys.argv[1:])}))
        channel.close()
    else:
        sys.exit(main())
