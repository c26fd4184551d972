"""Programs compiled for the CPU: the cache and what can go wrong with it, errors, and cores."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from gtape.core.errors import KernelError
from gtape.devices import cache, compiler
from gtape.devices.cpu import cores, toolchain
from gtape.devices.cpu.toolchain import library, why_not

pytestmark = pytest.mark.native(required=False)
needs_compiler = pytest.mark.skipif(bool(why_not()), reason=why_not() or "native")

ANSWER = '#include "cpu_threads.h"\nGTAPE_EXPORT int answer() { return %d; }\n'
SCRIPT = f"""
from gtape.devices.cpu.toolchain import library
print(library({ANSWER % 42!r}, name="answer").answer())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own, in a process that has loaded nothing."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(compiler, "_LOADED", {})
    yield tmp_path / "cpu"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled during the test, by name."""
    names: list[str] = []
    compile_file = compiler._compile

    def counted(recipe: compiler.Recipe, source: Path, target: Path, program: str) -> None:
        names.append(source.stem)
        compile_file(recipe, source, target, program)

    monkeypatch.setattr(compiler, "_compile", counted)
    return names


def answer(number: int = 42) -> int:
    return library(ANSWER % number, name="answer").answer()


def again() -> int:
    """The answer in a process that has loaded nothing yet."""
    compiler._LOADED.clear()
    return answer()


@needs_compiler
def test_a_program_is_compiled_once(folder: Path, compilations: list[str]) -> None:
    assert [answer(), again(), again()] == [42] * 3
    assert compilations == ["answer"]
    assert answer(43) == 43
    assert compilations == ["answer"] * 2


@needs_compiler
def test_a_loaded_program_needs_no_file(folder: Path) -> None:
    first = library(ANSWER % 42)
    for path in folder.rglob("*.so"):
        path.unlink()
    assert library(ANSWER % 42) is first


@needs_compiler
@pytest.mark.parametrize("kept", [0, 100, 4096, -1])
def test_a_file_that_was_cut_short_is_made_again(folder: Path, compilations: list[str],
                                                 kept: int) -> None:
    process = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True,
                             check=True)
    assert process.stdout == "42\n"
    for path in folder.rglob("*.so"):
        path.write_bytes(path.read_bytes()[:kept])
    assert again() == 42
    assert compilations == ["answer"]
    assert [path.stem for path in folder.rglob("*.so")
            if path.stem == compiler._digest(path.read_bytes())]


@needs_compiler
def test_a_file_of_another_content_is_not_loaded(folder: Path, compilations: list[str]) -> None:
    assert answer() == 42
    (path,) = (p for p in folder.rglob("*.so") if b"answer" in p.read_bytes())
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 2] ^= 1
    path.unlink()  # the loaded file stays what it is
    path.write_bytes(changed)
    assert again() == 42
    assert compilations == ["answer"] * 2


@needs_compiler
def test_a_cache_folder_that_cannot_be_written_to(tmp_path: Path, compilations: list[str],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(compiler, "_LOADED", {})
    assert answer() == 42
    assert compilations == ["answer"]


@needs_compiler
def test_no_temporary_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.tempfile, "tempdir", str(folder / "missing"))
    with pytest.raises(KernelError, match=r"needs a temporary folder.*set TMPDIR"):
        answer(44)


@needs_compiler
def test_processes_that_compile_at_once(folder: Path) -> None:
    started = [subprocess.Popen([sys.executable, "-c", SCRIPT], text=True, stdout=subprocess.PIPE)
               for _ in range(3)]
    assert [process.communicate(timeout=200)[0] for process in started] == ["42\n"] * 3
    assert not [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".so"]


@needs_compiler
def test_threads_that_compile_at_once(folder: Path, compilations: list[str]) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(answer, [42, 43] * 4)) == [42, 43] * 4
    assert sorted(compilations) == ["answer"] * 2


@needs_compiler
def test_a_process_killed_while_it_compiles(folder: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\ncase "$*" in *--version*) echo 1; exit;; esac\n'
                    f'touch {tmp_path}/started; sleep 60\n')
    slow.chmod(0o755)
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], env={**os.environ, "CXX": str(slow)})
    while not (tmp_path / "started").exists():
        assert process.poll() is None
    process.kill()
    process.wait()
    assert not list(folder.rglob("*.so"))
    assert answer() == 42


@needs_compiler
def test_an_error_shows_the_line(folder: Path) -> None:
    text = '#include "cpu_threads.h"\n\nint f(int x) {\n  return y;\n}\n'
    with pytest.raises(KernelError, match=r"(?s)does not compile with .*\nstep:4:\d+: error: .*y.*"
                                          r">    4 \|   return y;"):
        library(text, name="step")


@needs_compiler
def test_a_function_that_nothing_defines(folder: Path) -> None:
    with pytest.raises(KernelError, match=r"cannot be loaded: .*nowhere"):
        library('extern "C" int nowhere();\nint (*const f)() = nowhere;\n'
                'extern "C" __attribute__((visibility("default"))) int g() { return f(); }')


@needs_compiler
def test_floating_point_is_strict(folder: Path) -> None:
    program = library('#include "cpu_threads.h"\n'
                      "GTAPE_EXPORT float f(float a, float b, float c) { return a * b + c; }\n"
                      "GTAPE_EXPORT int nan(float x) { return x != x; }\n")
    program.f.argtypes, program.f.restype = [ctypes.c_float] * 3, ctypes.c_float
    program.nan.argtypes = [ctypes.c_float]
    rounded = 1 + 2 ** -12
    assert program.f(rounded, rounded, -1 - 2 ** -11) == 0  # a fused multiply-add gives 2 ** -24
    assert program.nan(float("nan")) == 1


@needs_compiler
def test_the_key_has_all_that_the_result_depends_on() -> None:
    recipe = toolchain.recipe()
    keys = {recipe.key("int x;"), recipe.key("int y;"), toolchain.recipe("-O1").key("int x;"),
            recipe._replace(machine="another").key("int x;"),
            recipe._replace(compiler=recipe.compiler._replace(version="13")).key("int x;"),
            recipe._replace(optional=()).key("int x;")}
    assert len(keys) == 6
    assert recipe.machine


@needs_compiler
def test_an_option_that_the_compiler_does_not_know(folder: Path, monkeypatch: pytest.MonkeyPatch,
                                                   ) -> None:
    monkeypatch.setattr(toolchain, "_optional", lambda: ("-march=no-such-cpu", "-O1"))
    assert answer() == 42


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTAPE_NATIVE", "0")
    assert re.search("switched off by GTAPE_NATIVE=0", why_not())
    with pytest.raises(KernelError, match="GTAPE_NATIVE=0"):
        answer()


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    compiler.compiler.cache_clear()
    toolchain._trial.cache_clear()
    try:
        assert re.search(r"CXX=no-such-compiler is none: install g\+\+", why_not())
    finally:
        compiler.compiler.cache_clear()
        toolchain._trial.cache_clear()


def test_cores_of_a_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/self/cgroup": "0::/inner/most\n"}
    monkeypatch.setattr(cores, "_GROUPS", tmp_path)
    monkeypatch.setattr(cores, "_text", lambda path: files.get(str(path), ""))
    available = SimpleNamespace(sched_getaffinity=lambda _: set(range(8)), cpu_count=lambda: 8,
                                environ={})
    monkeypatch.setattr(cores, "os", available)
    assert cores.wanted() == 8
    files[f"{tmp_path}/inner/cpu.max"] = "350000 100000\n"
    assert cores.wanted() == 3
    files[f"{tmp_path}/inner/most/cpu.max"] = "50000 100000"
    assert cores.wanted() == 1
    available.environ["OMP_NUM_THREADS"] = "5"
    assert cores.wanted() == 5
    available.environ["GTAPE_NUM_THREADS"] = "2"
    assert cores.wanted() == 2


def test_hardware_threads_of_one_core_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_text", lambda path: f"{int(str(path).split('/')[5][3:]) // 2}"
                        if "topology" in str(path) else "")
    monkeypatch.setattr(cores, "os", SimpleNamespace(sched_getaffinity=lambda _: set(range(8)),
                                                     environ={}))
    assert cores.wanted() == 4
