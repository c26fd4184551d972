"""The documentation is true: every Python block runs and prints what stands below it.

The blocks of a page share one namespace. A block whose first line is `# needs a GPU` is left out;
a block of kind `text` right after one of kind `python` is what that one prints.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import gtape as tf
from gtape.core import op
from gtape.devices.emulator.build import why_not

ROOT = Path(__file__).resolve().parents[1]
PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if p.exists()]
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?", re.M | re.S)
_ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|", re.M)


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """(source, expected output) of the blocks that run here."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(source, expected or None) for source, expected in found
            if not source.startswith("# needs a GPU")]


def run(source: str, space: dict[str, object]) -> str:
    """What the block prints; it goes by the name program.py."""
    linecache.cache["program.py"] = (len(source), None, source.splitlines(True), "program.py")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "program.py", "exec"), space)
    return printed.getvalue()


@pytest.fixture(scope="module")
def generate_ops():
    """The program that writes ops.md, with every op declared."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        found = importlib.import_module("generate_ops")
    finally:
        sys.path.remove(str(ROOT / "docs"))
    found.modules()
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
@pytest.mark.filterwarnings("ignore")
def test_the_blocks_run(page, tmp_path, monkeypatch, generate_ops):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(op, "_declared", list(op.declared()))
    space: dict[str, object] = {"__name__": "__main__"}
    for source, expected in blocks(page):
        if "emulated_executor" in source and why_not():
            pytest.skip(why_not())
        printed = run(source, space)
        if expected is not None:
            assert printed.rstrip() == expected.rstrip(), source


def test_the_page_of_ops_is_up_to_date(generate_ops):
    assert generate_ops.PATH.read_text(encoding="utf-8") == generate_ops.text(), (
        "run python docs/generate_ops.py")


def _numbers(text: str) -> list[object]:
    """The values of a cell: Python literals between semicolons."""
    space = {"nan": np.nan, "inf": np.inf}
    return [eval(part, space) for part in text.split(";")]


@pytest.mark.parametrize("expression, at, gradient", _ROW.findall(
    (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")))
def test_the_table_of_conventions(expression, at, gradient):
    values = [np.array(v) for v in _numbers(at)]
    leaves = [tf.constant(v.astype(np.float32) if v.dtype.kind == "f" else v) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(leaves)
        y = eval(expression, {"tf": tf, "x": leaves[0], "y": leaves[-1]})
    for found, expected in zip(tape.gradient(y, leaves), _numbers(gradient), strict=True):
        if expected is None:
            assert found is None
        else:
            np.testing.assert_allclose(tf.convert_to_tensor(found), expected, rtol=1e-3, atol=1e-6)


def test_what_is_absent_is_listed():
    from gtape import _names

    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    assert [n for n in _names.ABSENT if f"`{n}`" not in page] == []


def test_the_pages_are_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    names = {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {n for n in names if f"\n{n}\n" not in index} == set()
