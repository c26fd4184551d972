"""Commands whose output leads nowhere, or to a terminal of another age: a status, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
_FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not _FULL.exists(), reason="this system has no /dev/full")
#: Commands that print much, little, by argparse, and by a program of their own.
_COMMANDS = [["kernels", "--list"], ["info"], ["--help"], ["examples", "broken"]]


def _run(arguments: list[str], stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE,
         **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "gtape", *arguments], cwd=ROOT, stdout=stdout,
                          stderr=stderr, timeout=120, env=os.environ | environment)


@pytest.mark.parametrize("arguments", _COMMANDS, ids=" ".join)
def test_a_terminal_that_knows_ascii_only(arguments: list[str]) -> None:
    done = _run(arguments, LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.isascii() and b"Traceback" not in done.stderr


@needs_full
@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("arguments", _COMMANDS, ids=" ".join)
def test_a_full_disk(arguments: list[str], buffered: str) -> None:
    with _FULL.open("w") as full:
        done = _run(arguments, stdout=full, PYTHONUNBUFFERED=buffered)
    told = done.stderr.decode()
    assert "Traceback" not in told and "Exception ignored" not in told
    if arguments == ["--help"] and buffered:
        return  # argparse itself drops what it cannot write
    assert done.returncode in (1, 2)
    assert "the output could not be written: No space left on device" in told


@needs_full
def test_errors_to_a_full_disk_keep_their_status() -> None:
    with _FULL.open("w") as full:
        assert _run(["explain", "nothere.py"], stderr=full).returncode == 2


@pytest.mark.parametrize("arguments", _COMMANDS, ids=" ".join)
def test_a_reader_that_has_gone(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = _run(arguments, stdout=gone)
    told = done.stderr.decode()
    assert "Traceback" not in told and "Exception ignored" not in told
    assert done.returncode in (0, 1, 130)


@pytest.mark.parametrize("arguments", _COMMANDS, ids=" ".join)
def test_a_closed_output(arguments: list[str]) -> None:
    command = f"{sys.executable} -m gtape {' '.join(arguments)} >&-"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_an_explanation_is_printed_by_any_terminal() -> None:
    code = ("import gtape as tf\nx = tf.Variable(1.)\nwith tf.GradientTape() as t:\n"
            "    y = tf.sqrt(x).numpy() * x\n    z = tf.constant(x.numpy())\n"
            "t.explain(z, x)\nfrom gtape.core.formatting import say\nsay('½ … é')")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=120,
                          env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.endswith(b"\\xbd \\u2026 \\xe9\n")


@pytest.mark.parametrize("arguments", [["kernels", "--list"], ["kernels"], ["info"]], ids=" ".join)
def test_without_the_package_of_bfloat16(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "ml_dtypes.py").write_text("raise ImportError('not installed')\n")
    done = _run(arguments, PYTHONPATH=str(tmp_path))
    told = done.stderr.decode()
    assert "Traceback" not in told
    if arguments[0] == "kernels":
        assert done.returncode == 2
        assert "ml-dtypes" in told and "pip install" in told
    else:
        assert done.returncode == 0
