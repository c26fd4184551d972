"""`python -m gtape`: every command, its output and its status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gtape.cli import checkout, commands, info
from gtape.cli import main as gtape
from gtape.cli.output import CommandError

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("demo", "info", "test", "examples", "explain", "bench")


def status_of_exit(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        gtape(arguments)
    return int(caught.value.code or 0)


def test_module_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "gtape", "--help"], capture_output=True,
                          text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of_exit(["--version"]) == 0
    assert re.fullmatch(r"gtape \d+\.\d+\S*\n", capsys.readouterr().out)


def test_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen([sys.executable, "-m", "gtape", "examples"], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert "Traceback" not in running.stderr.read()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of_exit([command, "--help"]) == 0
    assert command in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [
    [], ["nonsense"], ["info", "--nonsense"], ["demo", "--steps", "0"], ["demo", "--seed", "-1"],
    ["demo", "--steps", "5", "--epochs", "2"], ["demo", "faces"], ["explain"]])
def test_wrong_usage_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str],
                                  ) -> None:
    assert status_of_exit(arguments) == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--steps", "--epochs", "--seed"])
def test_a_word_for_a_number_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of_exit(["demo", option, "many"]) == 2
    assert f"argument {option}: must be a whole number; got 'many'" in capsys.readouterr().err


def test_info_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert gtape(["info"]) == 0
    text = capsys.readouterr().out
    assert "gtape" in text and "numpy" in text and "CPU:0" in text and "new tensors" in text


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert gtape(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["Python"].startswith("3.")
    assert found["memory"]["CPU:0"].keys() <= {"total", "available"}
    by_name = {device["name"]: device for device in found["devices"]}
    assert by_name["CPU:0"]["usable"] is True
    assert all(device["reason"] for device in found["devices"])
    assert by_name[found["chosen"]]["usable"] is True


@pytest.mark.parametrize("wanted", ["gpu:99", "nonsense"])
def test_info_survives_an_impossible_choice(wanted: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gtape", "info"], capture_output=True, text=True, timeout=60,
        cwd=ROOT, env=os.environ | {"GTAPE_DEVICE": wanted})
    assert done.returncode == 1
    assert f"cannot be made: GTAPE_DEVICE={wanted} asks for" in done.stdout
    assert not done.stderr


def test_two_cupy_wheels_are_a_conflict() -> None:
    assert info.conflicts({"numpy": "2.4", "cupy-cuda13x": "14.2"}) == []
    (conflict,) = info.conflicts({"cupy": "13.6", "cupy-cuda13x": "14.2"})
    assert "pip uninstall cupy cupy-cuda13x" in conflict


def test_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert gtape(["examples", "--list"]) == 0
    assert re.search(r"^first_gradients +First gradients", capsys.readouterr().out, re.MULTILINE)


def test_an_example_runs(capfd: pytest.CaptureFixture[str]) -> None:
    assert gtape(["examples", "control_flow"]) == 0
    assert "[12.0, 12.0, 4.0]" in capfd.readouterr().out


def test_an_unknown_example_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert gtape(["examples", "nonsense"]) == 2
    assert "no example named nonsense; there are: broken," in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["test"], ["bench"], ["examples"]])
def test_without_a_checkout_the_message_says_what_to_do(
        arguments: list[str], monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(checkout, "root", lambda: None)
    assert gtape(arguments) == 2
    assert "Clone the repository" in capsys.readouterr().err


def test_pytest_receives_the_other_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[list[str]] = []
    monkeypatch.setattr(checkout, "run_python", lambda words: received.append(words) or 5)
    assert gtape(["test", "-k", "tape or nest", "-x", "tests/test_tape.py"]) == 5
    assert received == [["-m", "pytest", "-k", "tape or nest", "-x", "tests/test_tape.py"]]


def test_a_missing_pytest_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r'pip install "gtape\[test\]"'):
        checkout.COMMANDS["test"].execute(commands.parse(["test"]))


def test_only_files_that_run_are_programs(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text('"""Shared."""\n')
    (tmp_path / "speed.py").write_text('"""Speed.\n\nMore."""\nif __name__ == "__main__":\n  1\n')
    found = checkout.programs(tmp_path)
    assert {name: program.summary for name, program in found.items()} == {"speed": "Speed."}


def test_failed_programs_are_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_text('if __name__ == "__main__":\n    raise SystemExit(3)\n')
    good.write_text('import sys\nif __name__ == "__main__":\n    print("args", sys.argv[1:])\n')
    found = list(checkout.programs(tmp_path).values())
    assert checkout.run_programs(found, ["--rounds", "2"]) == 1
    out, err = capfd.readouterr()
    assert "args ['--rounds', '2']" in out and "failed: bad" in err


BROKEN = """
import sys
import gtape as tf
print(sys.argv[1:], __name__)
x = tf.constant(3.0)
with tf.GradientTape() as tape:
    y = x * x
print(tape.gradient(y, x))
"""


def test_explain_runs_a_script_and_says_why(tmp_path: Path,
                                            capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(BROKEN)
    assert gtape(["explain", str(script), "--rate", "3"]) == 0
    out, err = capfd.readouterr()
    assert out == "['--rate', '3'] __main__\nNone\n"
    assert "train.py:8" in err and "watch" in err
    assert "1 call of gradient answered None" in err


def test_explain_is_quiet_about_a_connected_gradient(
        tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(BROKEN.replace("constant", "Variable"))
    assert gtape(["explain", str(script)]) == 0
    assert "no gradient was None" in capfd.readouterr().err


def test_explain_leaves_no_trace(tmp_path: Path) -> None:
    script = tmp_path / "stops.py"
    script.write_text("raise SystemExit(7)\n")
    before = list(sys.argv), list(sys.path)
    assert status_of_exit(["explain", str(script)]) == 7
    assert (sys.argv, sys.path) == before


def test_explain_refuses_a_missing_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert gtape(["explain", "nowhere.py"]) == 2
    assert "nowhere.py is not a file" in capsys.readouterr().err
