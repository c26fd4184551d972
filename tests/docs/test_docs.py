"""The documentation is true: every Python block runs and prints what stands below it.

The blocks of a page share one namespace. A block whose first line is `# needs a GPU` is left out,
one whose first line is `# needs a C++ compiler` where there is none. A block of kind `text` right
after one of kind `python` is what that one prints; `…` on a line of its own stands for any lines,
and within a line for anything.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import gtape as tf
from gtape.cli import checkout
from gtape.core import op
from gtape.devices.cpu import toolchain
from gtape.kernelcheck.emulator.build import why_not

pytestmark = pytest.mark.native(required=False, zones=False)

ROOT = Path(__file__).resolve().parents[2]
PAGES = [p for p in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")),
                     *sorted((ROOT / "gtape").glob("*/README.md"))) if p.exists()]
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?", re.M | re.S)
_LEFT_OUT = "…"
_COMPILED = "# needs a C++ compiler"
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


def shows(expected: str, printed: str) -> bool:
    """Whether `printed` is what the page says, but for what the page leaves out."""
    lines = printed.rstrip().splitlines()
    parts: list[list[str]] = [[]]
    for line in expected.rstrip().splitlines():
        if line.strip() == _LEFT_OUT:
            parts.append([])
        else:
            parts[-1].append(line.rstrip())
    first, *later = parts
    if not _here(first, lines, 0):
        return False
    at = len(first)
    for part in later[:-1]:
        while not _here(part, lines, at):
            at += 1
            if at >= len(lines):
                return False
        at += len(part)
    end = len(lines) - len(parts[-1])
    return at <= end and _here(parts[-1], lines, end) if later else at == len(lines)


def _here(part: list[str], lines: list[str], at: int) -> bool:
    """Whether the lines of a part stand at one place."""
    patterns = [".*".join(map(re.escape, line.split(_LEFT_OUT))) for line in part]
    found = [line.rstrip() for line in lines[at: at + len(part)]]
    return len(found) == len(part) and all(map(re.fullmatch, patterns, found))


_PRINTED = "one\n  two 2\nthree\nfour\n"


@pytest.mark.parametrize("expected", [
    "one\n  two 2\nthree\nfour", "one\n…\nfour", "…\n  two …\n…", "…\none\n…\nfour\n…",
    "o…e\n  two 2\n…", "…\nfour", "one\n…\n  two 2\n…\nthree\nfour", "…"])
def test_an_excerpt_shows_what_was_printed(expected):
    assert shows(expected, _PRINTED)


@pytest.mark.parametrize("expected", [
    "one\nfour", "one\n  two 2\nthree", "two\n…", "…\nthree\n…\n  two 2\n…", "…\n  two 3\n…", "",
    "one\n…\nthree", "…\nfive\n…", "one…four", "…\ntwo 2\n…", "…\nfour\n…\nfour",
    "one\n  two 2\nthree\nfour\nfive", "…\nfour\n…\nthree\nfour"])
def test_an_excerpt_shows_nothing_else(expected):
    assert not shows(expected, _PRINTED)


@pytest.fixture(scope="module")
def generate_ops():
    """The program that writes ops.md, with every op declared."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        found = importlib.import_module("generate_ops")
    finally:
        sys.path.remove(str(ROOT / "docs"))
    found.every_module()
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
        if source.startswith(_COMPILED) and toolchain.why_not():
            continue
        printed = run(source, space)
        if expected is not None:
            assert shows(expected, printed), f"{source}\nprints\n\n{printed}"


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


def test_every_file_of_the_kernels_has_a_row():
    folder = ROOT / "kernels"
    patterns = re.findall(r"`([\w*]+\.(?:cuh?|h|cpp))`", (folder / "README.md").read_text("utf-8"))
    files = [p.name for p in folder.iterdir() if p.suffix in (".cu", ".cuh", ".h", ".cpp")]
    assert [f for f in files if not any(fnmatch(f, p) for p in patterns)] == []
    assert [p for p in patterns if not any(fnmatch(f, p) for f in files)] == []


def test_every_benchmark_has_a_row():
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    programs = checkout.programs(ROOT / "benchmarks")
    assert len(programs) > 5
    assert [p for p in programs if f"\n| `{p}` |" not in page] == []


def test_the_page_on_installing_names_what_the_environment_decides():
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    read = {name for path in (ROOT / "gtape").rglob("*.py")
            for name in re.findall(r"\bGTAPE_(?!EXPORT)[A-Z_]+\b", path.read_text("utf-8"))}
    assert len(read) > 2
    assert {name for name in read if f"| `{name}` |" not in page} == set()
