"""Programs on the simulated GPU, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from textwrap import dedent
from typing import NamedTuple

import pytest

from gtape.core.errors import KernelError
from gtape.devices.simulated import build

_LONGEST = 240.0


class Ended(NamedTuple):
    """How a program ended, and what it printed."""

    status: int
    printed: str
    errors: str


@cache
def why_not() -> str:
    """Why there is no simulated GPU here; empty where there is."""
    try:
        build.cupy_folder()
        build.folder()
    except KernelError as error:
        return str(error)
    return ""


def needs_simulator() -> None:
    if why_not():
        pytest.skip(why_not())


def simulate(program: str, **settings: str) -> Ended:
    """Run a program's text; `settings` are those of GTAPE_SIMULATED_<NAME>."""
    needs_simulator()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GTAPE_SIMULATED_")}
    environment |= {f"GTAPE_SIMULATED_{k.upper()}": v for k, v in settings.items()}
    environment |= {"GTAPE_DEVICE": "simulated"}
    start = os.path.join(os.path.dirname(build.__file__), "start")
    environment["PYTHONPATH"] = os.pathsep.join(
        [start, os.getcwd(), environment.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", "import cupy\n" + dedent(program)],
                          env=environment, capture_output=True, text=True, timeout=_LONGEST)
    return Ended(done.returncode, done.stdout, done.stderr)
