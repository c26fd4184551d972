"""Public functions given hostile values: none hangs, hoards memory or raises a slip of ours.

A share of the calls that hostile.py makes, others at every run; the seed is in the message.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("resource")

_SCRIPT = Path(__file__).with_name("hostile.py")
#: Of about 130,000 calls; some 15 seconds each.
_SHARES = {"eager": 0.06, "traced": 0.03}
#: Seconds after which a call that Python cannot interrupt has ended the test.
_PATIENCE = 240


def _report(folder: Path, *arguments: str) -> tuple[list[str], list[Any]]:
    """What is bad, and the last line."""
    command = [sys.executable, str(_SCRIPT), "--folder", str(folder), *arguments]
    environment = os.environ | {"GTAPE_NATIVE": "0", "PYTHONPATH": str(_SCRIPT.parents[2])}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE,
                              env=environment)
        text, errors, status = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        text = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        errors, status = f"longer than {_PATIENCE} s", -1
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("[")]
    bad = [f"{line[1]}: {line[2]}" for line in lines if line[0] == "bad"]
    last = lines[-1] if lines else ["nothing"]
    if status or last[0] != "done":
        bad.append(f"the process ended with {status} at {last}: {errors[-1000:]}")
    return bad, last


@pytest.mark.parametrize("mode", _SHARES)
def test_hostile_values(mode: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("GTAPE_HOSTILE_SEED") or secrets.randbits(32))
    share = float(os.environ.get("GTAPE_HOSTILE_SHARE") or _SHARES[mode])
    bad, last = _report(tmp_path, "--seed", str(seed), "--share", str(share),
                        *(["--traced"] if mode == "traced" else []))
    assert not bad, f"GTAPE_HOSTILE_SEED={seed}, {mode}:\n" + "\n".join(bad)
    assert last[1] > 500, f"only {last[1]} calls were made"


def test_planted_offenders_are_reported(tmp_path: Path) -> None:
    bad, _ = _report(tmp_path, "--plant")
    for name, what in {"slip": "IndexError", "hang": "takes longer", "hoard": "MemoryError",
                       "words": "unsupported operand", "wrapped": "UnknownError of Attribute",
                       "spoiled": "changed it"}.items():
        assert any(f"planted {name}(" in line and what in line for line in bad), (name, bad)
