"""`python -m gtape simulate`: what it starts, and what it refuses."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gtape.cli.commands import main
from gtape.core.errors import SimulatorError
from gtape.devices.simulated import build


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What the command would become; the simulated GPU counts as built."""
    calls: list[Any] = []
    monkeypatch.setattr(build, "folder", lambda: tmp_path)
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call) or sys.exit(0))
    return calls


def test_the_program_is_started_with_its_arguments_and_settings(
        started: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.touch()
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    with pytest.raises(SystemExit):
        main(["simulate", "--devices", "2", "--async", "1", str(program), "--devices", "x"])
    (path, command, environment), = started
    assert (path, command) == (sys.executable, [sys.executable, str(program), "--devices", "x"])
    assert environment["GTAPE_DEVICE"] == "simulated"
    assert environment["GTAPE_SIMULATED_DEVICES"] == "2"
    assert environment["GTAPE_SIMULATED_ASYNC"] == "1"
    assert "GTAPE_SIMULATED_SEED" not in environment
    start, elsewhere = environment["PYTHONPATH"].split(os.pathsep)
    assert elsewhere == "/elsewhere" and (Path(start) / "sitecustomize.py").is_file()


def test_a_module_is_started(started: list[Any]) -> None:
    with pytest.raises(SystemExit):
        main(["simulate", "-m", "pytest", "-q"])
    assert started[0][1] == [sys.executable, "-m", "pytest", "-q"]


def test_a_program_that_is_not_there(started: list[Any], capsys: pytest.CaptureFixture[str],
                                     ) -> None:
    assert main(["simulate", "nowhere.py"]) == 2
    assert "nowhere.py is not a file" in capsys.readouterr().err and not started


def test_what_is_missing_is_said(started: list[Any], monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    def refused() -> Path:
        raise SimulatorError("the simulated GPU runs the real CuPy, which is not installed")

    monkeypatch.setattr(build, "folder", refused)
    assert main(["simulate", "-m", "pytest"]) == 2
    assert "which is not installed" in capsys.readouterr().err and not started
