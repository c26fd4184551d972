"""What building the simulated GPU needs, and what it says where that is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gtape.core.errors import SimulatorError
from gtape.devices.simulated import activation, build, device_arrays, sources
from tests.devices.simulated.running import needs_simulator


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Distributions that count as installed, by version; CuPy's folder is there."""
    versions = {"cupy-cuda13x": sources.VERSION}

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(
        submodule_search_locations=["/site/cupy_backends"]))
    return versions


def test_cupy_must_be_there_in_the_version_that_is_simulated(
        installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert build.cupy_folder() == Path("/site")
    installed["cupy-cuda13x"] = "14.3.0"
    with pytest.raises(SimulatorError, match=f"made for CuPy {sources.VERSION}, and CuPy 14.3.0"):
        build.cupy_folder()
    del installed["cupy-cuda13x"]
    with pytest.raises(SimulatorError, match="build for CUDA 13"):
        build.cupy_folder()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SimulatorError, match=r'not installed: pip install "gtape\[simulator\]"'):
        build.cupy_folder()


def test_cupy_may_not_be_imported_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    monkeypatch.setattr(device_arrays._Simulated, "core", None)
    with pytest.raises(SimulatorError, match="CuPy was imported before"):
        activation.activate()


def _archive(tmp_path: Path, name: str = "cupy-14.2.0/file.txt") -> Path:
    path = tmp_path / "archive.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = 4
        tar.addfile(member, io.BytesIO(b"text"))
    return path


def test_only_the_archive_that_was_expected_is_unpacked(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, kept = _archive(tmp_path), tmp_path / "kept"
    monkeypatch.setenv("GTAPE_SIMULATED_SDIST", str(path))
    with pytest.raises(SimulatorError, match="must have the SHA-256 digest"):
        sources.archive(kept)
    monkeypatch.setattr(sources, "_fetched", path.read_bytes)
    monkeypatch.delenv("GTAPE_SIMULATED_SDIST")
    with pytest.raises(SimulatorError, match="what the index sent has"):
        sources.archive(kept)
    assert not kept.exists()
    monkeypatch.setattr(sources, "_DIGEST", sha256(path.read_bytes()).hexdigest())
    sources.unpack(sources.archive(kept), tmp_path / "to")
    assert kept.is_file() and (tmp_path / "to/cupy-14.2.0/file.txt").read_text() == "text"


def test_an_index_that_cannot_be_reached_is_named(tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GTAPE_SIMULATED_SDIST", raising=False)
    monkeypatch.setattr(sources, "_ATTEMPTS", 1)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "nothing").as_uri())
    with pytest.raises(SimulatorError, match=r"could not be fetched from file:.*SDIST"):
        sources.archive(tmp_path / "kept")


@pytest.mark.parametrize("kind, page", [
    ("application/vnd.pypi.simple.v1+json",
     '{"files": [{"filename": "cupy-14.2.0.tar.gz", "url": "../f/cupy-14.2.0.tar.gz"}]}'),
    ("text/html", '<a href="../f/cupy-14.2.0.tar.gz#sha256=0">cupy-14.2.0.tar.gz</a>'),
])
def test_an_index_is_read_in_both_forms(kind: str, page: str) -> None:
    address = sources._address(page, kind, "https://index.org/simple/cupy/")
    assert address.startswith("https://index.org/simple/f/cupy-14.2.0.tar.gz")


def test_a_compiler_and_room_are_needed(installed: dict[str, str], tmp_path: Path,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    def usage(path: Any) -> Any:
        return SimpleNamespace(free=1 << 20)

    monkeypatch.setattr(build.shutil, "disk_usage", usage)
    with pytest.raises(SimulatorError, match="needs 200 MB"):
        build._build(tmp_path, tmp_path, tmp_path, tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


def test_two_processes_build_one_after_the_other(tmp_path: Path) -> None:
    needs_simulator()
    program = ("from gtape.devices.simulated import build; print(build.folder())")
    environment = {**os.environ, "GTAPE_CACHE_DIR": str(tmp_path / "cache")}
    both = [subprocess.Popen([sys.executable, "-c", program], env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)]
    said = [process.communicate(timeout=280) for process in both]
    assert {process.returncode for process in both} == {0}, said
    assert said[0][0] == said[1][0] != ""
    assert sum("once" in errors for _, errors in said) == 1, said
