"""The cache folder stays within its limits, and nothing that is not gtape's is removed from it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from gtape.cli import main as gtape
from gtape.devices import cache, compiler
from gtape.devices.cache import BYTES, DAY, DAYS, CacheEntry

NAMES = [cache.key(str(n)) for n in range(9)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(cache, "_WARNED", set())
    return tmp_path / "kept"


def aged(file: Path, days: float) -> Path:
    os.utime(file, (time.time() - days * DAY,) * 2)
    return file


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


def test_the_least_recently_used_goes_first() -> None:
    now, third = 1e9, BYTES // 3
    files = [CacheEntry(f"/{i}", "cpu", third, now - days * DAY)
             for i, days in enumerate((3, 1, DAYS + 1, 2, 0))]
    assert [f.path for f in cache.surplus(files[:3], now)] == ["/2"]
    assert [f.path for f in cache.surplus(files, now)] == ["/0", "/2"]
    assert cache.surplus([files[0]._replace(size=BYTES)], now) == []


def test_one_that_is_being_written_stays() -> None:
    now = 1e9
    new, left = (CacheEntry(f"/{cache.UNFINISHED}x", "cpu", 2 * BYTES, now - age)
                 for age in (DAY / 2, 2 * DAY))
    assert cache.surplus([new, left], now) == [left]


def test_a_sweep_a_day(folder: Path) -> None:
    old, kept, library = (folder / "cpu" / NAMES[0], folder / "cpu" / NAMES[1],
                          folder / "emulator" / NAMES[2] / f"{NAMES[2]}.so")
    for file in (old, kept, library):
        assert cache.write(file.parent.relative_to(folder).as_posix(), file.name, b"x") == file
    aged(old, DAYS + 1)
    aged(library, DAYS + 1)
    cache.write("cpu", NAMES[3], b"x")
    assert old.exists()  # today there was one
    aged(folder / ".swept", 1.1)
    cache.write("cpu", NAMES[4], b"x")
    assert names(folder) == {".swept", *(f"cpu/{NAMES[n]}" for n in (1, 3, 4))}
    assert not library.parent.exists()


def test_what_is_read_is_in_use(folder: Path) -> None:
    file = cache.write("cubins", NAMES[0], b"content")
    assert file is not None
    aged(file, DAYS + 1)
    assert cache.read("cubins", NAMES[0]) == b"content"
    aged(folder / ".swept", 2)
    cache.write("cubins", NAMES[1], b"x")
    assert file.exists()


def foreign(folder: Path) -> set[str]:
    """Files that gtape did not make, in its folder; one is behind a link."""
    outside = folder.with_name("outside")
    outside.mkdir()
    (outside / NAMES[5]).write_text("")
    files = (folder / "notes", folder / "cpu" / "notes.txt", folder / "cpu" / NAMES[0] / "notes.so",
             folder / "cupy" / NAMES[0], folder / "cpu" / NAMES[6] / NAMES[6] / f"{NAMES[6]}.so")
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        aged(file, 9 * DAYS)
    (folder / "cpu" / NAMES[7]).symlink_to(outside)
    return {f.relative_to(folder).as_posix() for f in files}


def test_clear_removes_what_is_kept_and_nothing_else(folder: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    others = foreign(folder)
    kept = [cache.write("cubins", NAMES[0], b"x" * 2**20),
            cache.write(f"cpu/{NAMES[1]}", f"{NAMES[1]}.so", b"y" * 2**20)]
    (folder / "cpu" / f"{cache.UNFINISHED}abc").write_text("")
    assert gtape(["cache"]) == 0
    shown = capsys.readouterr().out
    assert f"{folder} holds 3 files, 2.0 MiB" in shown and "cubins        1 files, 1.0" in shown
    assert gtape(["cache", "--clear"]) == 0
    assert "removed 3 files, 2.0 MiB" in capsys.readouterr().out
    assert not any(path is None or path.exists() for path in kept)
    assert names(folder) == {".swept", *others}
    assert (folder.with_name("outside") / NAMES[5]).exists()
    assert gtape(["cache", "--clear"]) == 0


def test_the_sweep_leaves_other_files_alone(folder: Path) -> None:
    others = foreign(folder)
    aged(folder / "notes", 0)
    cache.write("cpu", NAMES[8], b"x")
    assert names(folder) == {".swept", f"cpu/{NAMES[8]}", *others}


def test_a_refused_folder_is_not_touched(folder: Path, capsys: pytest.CaptureFixture[str],
                                         ) -> None:
    kept = cache.write("cubins", NAMES[0], b"x")
    folder.chmod(0o777)
    assert gtape(["cache", "--clear"]) == 2
    assert re.search(r"others may write to .*chmod go-w .*set GTAPE_CACHE_DIR",
                     capsys.readouterr().err)
    assert kept is not None and kept.exists()
    gtape(["info"])
    assert f"{folder}, not used: others may write to" in capsys.readouterr().out


def test_info_names_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gtape(["info"])
    assert re.search(rf"^cache +{folder}$", capsys.readouterr().out, re.MULTILINE)


def test_an_interrupted_write_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                             ) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(cache.os, "replace", interrupted)
        cache.write("cpu", NAMES[0], b"x")
    assert names(folder) == set()


def test_what_killed_compilations_left_is_swept(folder: Path, tmp_path: Path) -> None:
    left, young, other = (tmp_path / name for name in (
        "gtape-compile-abc", "gtape-compile-def", "gtape-notes"))
    for place in (left, young, other):
        place.mkdir()
        (place / "program.cpp").write_text("")
    aged(left, 1.1)
    aged(other, 9)
    compiler._sweep(tmp_path)
    assert (left.exists(), young.exists(), other.exists()) == (False, True, True)
