"""Libraries of kernels: errors of the compiler, and a cache folder that fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gtape.core.errors import KernelError
from gtape.devices import cache
from gtape.devices.compiler import compiler
from gtape.devices.kernel_source import expand
from gtape.kernelcheck.emulator.build import library


def test_text_that_does_not_compile_shows_its_line(emulator: None) -> None:
    text = expand('#include "gtape.cuh"\n__global__ void f(float* x) {\n    x[0] = y;\n}\n', "f.cu")
    with pytest.raises(KernelError, match=r"(?s)does not compile with .*f.cu:3:\d+: error: .*y.*"
                                          r">    3 \|     x\[0\] = y;"):
        library(text, ("f",))


@pytest.mark.parametrize("head, value", [
    ("", "INFINITY"), ("", "(float)(int64_t)1"), ("#include <math.h>\n", "1.0f")])
def test_what_needs_a_header_of_the_system_does_not_compile(
        emulator: None, head: str, value: str) -> None:
    with pytest.raises(KernelError, match=r"(?s)does not compile.*(INFINITY|int64_t|math\.h)"):
        library(f"{head}__global__ void f(float* x) {{ x[0] = {value}; }}\n", ("f",))


def test_no_compiler(emulator: None, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(KernelError, match="CXX=no-such-compiler is none: install g"):
        library("__global__ void f(float* x) {}", ("f",))
    monkeypatch.undo()
    compiler.cache_clear()


SCRIPT = """
import numpy as np
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck.emulator.executor import emulated_executor
gpu = emulated_executor()
x = gpu.zeros(4, np.float32)
kernel = Kernel("__global__ void f(float* x) { x[threadIdx.x] = 1; }", "f")
gpu.launch(kernel, (1, 1, 1), (4, 1, 1), (x,))
print(x.sum())
"""


def started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[str]:
    monkeypatch.setenv(cache.VARIABLE, str(folder))
    return subprocess.Popen([sys.executable, "-c", SCRIPT], text=True, stdout=subprocess.PIPE)


def test_processes_that_build_at_once(emulator: None, tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    for process in [started(tmp_path, monkeypatch) for _ in range(3)]:
        assert process.communicate(timeout=200)[0] == "4.0\n"
    assert len(list((tmp_path / "emulator").iterdir())) == 2  # the runtime and the kernel


def test_a_damaged_library_is_built_again(emulator: None, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    assert started(tmp_path, monkeypatch).communicate(timeout=200)[0] == "4.0\n"
    for path in (tmp_path / "emulator").rglob("*.so"):
        path.write_bytes(path.read_bytes()[:100])
    assert started(tmp_path, monkeypatch).communicate(timeout=200)[0] == "4.0\n"


def test_a_cache_folder_that_cannot_be_written_to(emulator: None, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    process = started(tmp_path / "file", monkeypatch)
    assert process.communicate(timeout=200)[0] == "4.0\n"
