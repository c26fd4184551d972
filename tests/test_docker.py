"""The images install what the README says, run without root, and keep their kernels."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent
_README = (_ROOT / "README.md").read_text("utf-8")
_IMAGES = ("cpu", "cuda")


def _lines(name: str) -> list[str]:
    text = (_ROOT / "docker" / f"{name}.Dockerfile").read_text("utf-8")
    return [line for line in text.replace("\\\n", " ").splitlines()
            if line and not line.startswith("#")]


def _instruction(name: str, instruction: str) -> list[str]:
    return [line.removeprefix(instruction).strip() for line in _lines(name)
            if line.startswith(f"{instruction} ")]


def _installs(text: str) -> list[str]:
    return re.findall(
        r'python3 -m venv \.venv && \.venv/bin/python -m pip install [^&\n]*?"\.\[[^"]*"', text)


@pytest.mark.parametrize("name", _IMAGES)
def test_the_install_command_is_one_of_the_readme(name: str) -> None:
    (command,) = [run for run in _instruction(name, "RUN") if "pip install" in run]
    assert _installs(command) == [command]
    assert command in _installs(_README)


def test_the_images_install_different_things() -> None:
    commands = {name: _installs("\n".join(_lines(name))) for name in _IMAGES}
    assert "cuda" not in commands["cpu"][0]
    assert "cuda13" in commands["cuda"][0]


@pytest.mark.parametrize("name", _IMAGES)
def test_it_runs_the_demo_and_with_one_argument_the_tests(name: str) -> None:
    (entry,) = _instruction(name, "ENTRYPOINT")
    (command,) = _instruction(name, "CMD")
    assert json.loads(entry) == [".venv/bin/python", "-m", "gtape"]
    assert json.loads(command) == ["demo"]
    tag = {"cpu": "gtape", "cuda": "gtape-cuda"}[name]
    options = {"cpu": "--rm", "cuda": "--rm --gpus all"}[name]
    assert f"docker build -f docker/{name}.Dockerfile -t {tag} . && docker run {options} {tag}" in (
        _README)
    assert f"docker run {options} {tag} test" in _README


@pytest.mark.parametrize("name", _IMAGES)
def test_it_is_slim_has_no_root_and_keeps_compiled_kernels(name: str) -> None:
    (base,) = _instruction(name, "FROM")
    assert re.fullmatch(r"python:3\.1[1-9]-slim", base)
    assert _instruction(name, "USER") == ["gtape"]
    assert _lines(name).index("USER gtape") < _lines(name).index("COPY --chown=gtape . .")
    (volume,) = _instruction(name, "VOLUME")
    assert any(f"GTAPE_CACHE_DIR={volume}" in line for line in _instruction(name, "ENV"))
