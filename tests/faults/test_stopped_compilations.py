"""Compilations that are interrupted or killed at their lines: the next one does not suffer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gtape.devices import cache, compiler, ownership
from gtape.devices.cpu.toolchain import library, why_not
from tests.faults import settings, stops

pytestmark = [
    pytest.mark.native(required=False),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "native")]
MODULES = (cache, compiler, ownership)
#: A compilation has some 200 lines, and takes longer than a save.
APART = 1 if settings.TIMES > 1 else 17


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folders for the cache and for temporary files, in a process that has loaded nothing."""
    for name in ("kept", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(compiler.tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(compiler, "_LOADED", {})
    compiler._sweep.cache_clear()
    yield tmp_path
    compiler._sweep.cache_clear()


def answer(number: int) -> int:
    compiler._LOADED.clear()
    program = f'#include "cpu_threads.h"\nGTAPE_EXPORT int answer() {{ return {number}; }}\n'
    return library(program, name="answer").answer()


def unfinished(folder: Path) -> list[Path]:
    return [*(folder / "kept").rglob(".new-*"), *(folder / "temporary").iterdir()]


def age(folder: Path) -> None:
    """All that is there is of the day before yesterday."""
    for place in [*unfinished(folder), *(folder / "kept").glob(".swept")]:
        os.utime(place, (time.time() - 2 * 86400,) * 2)
    compiler._sweep.cache_clear()


def test_interrupted(folder: Path) -> None:
    left: set[Path] = set()
    number = settings.SEED % APART
    while True:
        try:
            compiler._LOADED.clear()  # libraries go now, and not amid what is stopped
            with stops.at_line(number, stops.interrupt, *MODULES) as lines:
                assert answer(number) == number
            if len(lines) <= number:
                break
        except KeyboardInterrupt:
            # A `with` line is traced again where its block ends, before the lock is released:
            # Python looks for signals after that.
            compiler._LOCKS.clear()
        left.update(unfinished(folder))
        assert answer(number) == number
        number += APART
    # Of all lines two leave something: where a file has just been made, and where the folder of a
    # compilation is about to be removed.
    assert number > 100 and len(left) <= 2
    age(folder)
    assert answer(-1) == -1 and not unfinished(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed(folder: Path) -> None:
    number = settings.SEED % APART

    def work() -> None:
        compiler._LOADED.clear()
        with stops.at_line(number, stops.die, *MODULES):
            answer(number)

    while stops.killed(work):
        assert answer(number) == number
        number += APART
    assert number > 100 and unfinished(folder)
    age(folder)
    assert answer(-1) == -1 and not unfinished(folder)
