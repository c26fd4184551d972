"""Writes gpu.md and gpu.json, after every workload anew."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.results import (
    Results,
    details_table,
    marks_text,
    measures_table,
    record,
    times_table,
)
from benchmarks.gpu.workload import Workload
from benchmarks.report import circumstances

#: Names the commit where the checkout is a copy without its history.
COMMIT = "GTAPE_COMMIT"

TITLE = "gtape on a GPU"

REMARKS = (
    (
        "Times are medians in microseconds of up to 50 steps after 10 that are not timed, by CUDA"
        " events; JAX's by the wall clock, waiting for every fifth step. G1 is per operation."
        " floor: the bytes or products that the workload needs, at the speeds of G0."
    ),
    (
        "gtape: eager, as users write it. gtape kernels: the same work by the host functions of"
        " its kernels. of copy: the bytes needed in the time taken, as a part of the bandwidth of"
        " the best copy of G0; of gtape / gtape kernels. x torch: their time as a multiple of"
        " torch's, eager: below 1, gtape is faster."
    ),
    (
        "TF32 is off for all, except in G5t. JAX's backward of G2 and G3 computes what it needs of"
        " the forward pass again. In G4, gtape kernels does not take the mean of the losses, and"
        " torch's and gtape's eager losses are means in bfloat16."
    ),
)


def driver() -> str:
    """The version of NVIDIA's driver, or unknown."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip().partition("\n")[0] or "unknown"


def facts(results: Results) -> dict[str, Any]:
    """Date, card, driver, versions and commit."""
    found = circumstances()
    found["commit"] = os.environ.get(COMMIT) or found["commit"]
    found["versions"] |= results.versions
    found["driver"] = driver()
    return found


def heading(found: dict[str, Any]) -> str:
    versions = dict(found["versions"])
    card = versions.pop("card", "unknown card")
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"# {TITLE}\n\n{found['date']}; {card}, driver {found['driver']}; {named}; "
        f"commit {found['commit'] or 'none'}."
    )


def text(results: Results, workloads: Sequence[Workload], found: dict[str, Any]) -> str:
    """The page."""
    problems = [f"{column}: {why}, skipped." for column, why in results.skipped.items()]
    problems += results.notes
    problems += [f"FAILED {line}" for line in results.failed]
    parts = [
        heading(found),
        times_table(results, workloads),
        *REMARKS,
        *problems,
        "## Marks",
        marks_text(results, workloads),
        "## What the card can do",
        measures_table(results),
        "## Spread, wall time, time of the host",
        details_table(results, workloads),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(
    results: Results, workloads: Sequence[Workload], found: dict[str, Any], folder: Path
) -> str:
    """Write both files into `folder`; the page."""
    page = text(results, workloads, found)
    folder.mkdir(parents=True, exist_ok=True)
    data = {"benchmark": "gpu", **found, **record(results, workloads)}
    (folder / "gpu.md").write_text(page)
    (folder / "gpu.json").write_text(json.dumps(data, indent=1) + "\n")
    return page
