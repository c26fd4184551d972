"""cuBLASLt on the CPU (fake_blaslt.cpp), behind gtape's own binding."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from gtape.devices.cuda.gemm.blaslt import BlasLt
from gtape.devices.cuda.gemm.gemm import Gemm, install
from gtape.devices.cuda.runtime.executor import Executor
from gtape.kernelcheck.checks.bench import Bench

_SOURCE = Path(__file__).with_suffix(".cpp")
_FOLDER = TemporaryDirectory(prefix="gtape-blaslt-")
SCRATCH = 4096


@cache
def library() -> BlasLt:
    """The compiled fake, bound; skips the test where there is no compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the stand-in for cuBLASLt is C++, and there is no g++")
    file = Path(_FOLDER.name) / "libcublasLt.so"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(_SOURCE), "-o", str(file)], check=True)
    return BlasLt(ctypes.CDLL(str(file)), str(file))


def count(what: str) -> int:
    """How many handles or descriptors live, or how often the fake was called."""
    place = ("handles", "descriptors", "heuristics", "products").index(what)
    return int(library()._library.fake_count(place))


class _Loader:
    """An executor's loader that has no kernels."""

    def load(self, kernel: Any) -> Any:
        raise AssertionError("matrix products need no kernel")

    def stream(self) -> int:
        return 0


def host_executor() -> Executor:
    """NumPy arrays as device arrays, and the fake as their cuBLASLt."""
    gpu = Executor(np, np.empty, _Loader(), 4)
    install(gpu, Gemm(library(), SCRATCH))
    return gpu


def host_bench(gpu: Executor) -> Bench:
    return Bench(gpu, np.array, np.asarray)
