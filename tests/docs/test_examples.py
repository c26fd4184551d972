"""The example programs run, and `broken.py` names the line of each bug."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "examples"
PROGRAMS = sorted(FOLDER.glob("*.py"))
BROKEN = FOLDER / "broken.py"
#: For each bug the text of the line that breaks the path.
CULPRITS = ("x = x + 1.0", "np.mean(squares", "y = tf.cast(x", "total.assign_add(x)",
            "doubled = 2.0 * x")


def run(program: Path) -> str:
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True,
                          timeout=120, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def line_of(text: str) -> int:
    lines = BROKEN.read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def test_there_are_examples() -> None:
    assert len(PROGRAMS) >= 7


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_example_runs(program: Path) -> None:
    assert run(program).strip()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_example_has_a_one_line_summary_and_uses_only_numpy(program: Path) -> None:
    tree = ast.parse(program.read_text())
    assert (ast.get_docstring(tree) or "").partition("\n")[0].endswith(".")
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                for name in node.names}
    assert imported <= {"numpy", "gtape"}


def test_broken_names_the_line_of_every_bug() -> None:
    sections = re.split(r"^\d\. ", run(BROKEN), flags=re.MULTILINE)[1:]
    assert len(sections) == len(CULPRITS)
    for section, culprit in zip(sections, CULPRITS, strict=True):
        assert f"broken.py:{line_of(culprit)}" in section
