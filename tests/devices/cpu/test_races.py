"""The pool and compiled programs under ThreadSanitizer: no races, and planted ones are found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gtape.devices.compiler import output
from gtape.devices.cpu import toolchain

pytestmark = [pytest.mark.native, pytest.mark.slow]
_HERE = Path(__file__).resolve()


@pytest.fixture(scope="module")
def start() -> list[str]:
    """What a command begins with: addresses as ThreadSanitizer expects them, where that can be."""
    usual = ["setarch", "-R"]
    works = shutil.which(usual[0]) and not subprocess.run(
        [*usual, "true"], capture_output=True, check=False).returncode
    return usual if works else []


def run(start: list[str], scenario: str) -> subprocess.CompletedProcess[str]:
    command = toolchain.recipe().compiler.command
    found = output(*command, "-print-file-name=libtsan.so").strip()
    if not os.path.isabs(found):
        pytest.skip(f"{command[0]} has no ThreadSanitizer")
    path = [str(_HERE.parents[3]), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [*start, sys.executable, str(_HERE.parent / "raced.py"), scenario], text=True,
        capture_output=True, timeout=280, check=False,
        env={**os.environ, "LD_PRELOAD": found, "GTAPE_GUARD_ZONES": "0",
             "PYTHONPATH": os.pathsep.join(filter(None, path)),
             "TSAN_OPTIONS": "die_after_fork=0:report_signal_unsafe=0"})


@pytest.mark.parametrize("scenario", ["callers", "forks", "programs"])
def test_threads_do_not_race(start: list[str], scenario: str) -> None:
    done = run(start, scenario)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr[-6000:]


@pytest.mark.parametrize("scenario", ["planted", "planted order"])
def test_planted_races_are_found(start: list[str], scenario: str) -> None:
    done = run(start, scenario)
    assert done.returncode and "WARNING: ThreadSanitizer: data race" in done.stderr
