"""The way to a GPU through CuPy, with a stub in the place of CuPy: what it is asked, in what order.

The stub has CuPy 14's names and signatures; numbers on a GPU are no matter of this file.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gtape.core.errors import KernelError, UnavailableError
from gtape.devices.cuda.runtime import cubins, cupy_loader, nvrtc
from gtape.devices.cuda.runtime.cupy_loader import CupyLoader, architecture, cuda_executor
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand

PLAIN = Kernel(expand("""#include "gtape.cuh"
__global__ void scale(float* x, double by, long long n) {
    for (long long i = grid_index(); i < n; i += grid_size()) x[i] *= by;
}
""", "scale.cu"), "scale")
SHARED = Kernel(PLAIN.text.replace("{\n    for", "{\n    DYNAMIC_SHARED(float, all);\n    for"),
                "scale")


class DriverError(RuntimeError):
    """CUDADriverError."""


class CompileError(Exception):
    """CompileException."""


class Stub:
    """CuPy: writes down what is done, each with the device current at the time."""

    def __init__(self, capability: str = "90") -> None:
        self.done: list[tuple[Any, ...]] = []
        self.current = 0
        self.failing: Exception | None = None
        self.ndarray = object()
        self.cuda = SimpleNamespace(
            Device=lambda index: Device(self, index, capability), Module=lambda: Module(self),
            get_current_stream=lambda: "stream",
            runtime=SimpleNamespace(runtimeGetVersion=lambda: 13020, getDeviceCount=lambda: 1),
            compiler=SimpleNamespace(CompileException=CompileError),
            driver=SimpleNamespace(
                CUDADriverError=DriverError, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES=1,
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
                funcGetAttribute=lambda attribute, pointer: {1: 1000}[attribute],
                funcSetAttribute=lambda pointer, attribute, value: self.note(
                    "set", pointer, attribute, value)))

    def note(self, *what: Any) -> None:
        self.done.append((*what, self.current))
        if self.failing is not None:
            raise self.failing

    def RawModule(self, *, code: str, options: tuple[str, ...],
                  name_expressions: tuple[str, ...]) -> Any:
        self.done.append(("RawModule", options, name_expressions, self.current))
        return SimpleNamespace(get_function=lambda name: SimpleNamespace(kernel=Function(self)))


class Device:
    """cupy.cuda.Device."""

    def __init__(self, stub: Stub, index: int, capability: str) -> None:
        self.stub, self.id, self.compute_capability = stub, index, capability
        self.attributes = {"MultiProcessorCount": 132, "MaxSharedMemoryPerBlockOptin": 232448}

    def __enter__(self) -> None:
        self.before, self.stub.current = self.stub.current, self.id

    def __exit__(self, *exc: object) -> None:
        self.stub.current = self.before


class Module:
    """cupy.cuda.function.Module."""

    def __init__(self, stub: Stub) -> None:
        self.stub = stub

    def load(self, cubin: bytes) -> None:
        self.stub.note("load", cubin)

    def get_function(self, name: str) -> Function:
        return Function(self.stub, name)


class Function:
    """cupy.cuda.function.Function."""

    ptr = 77

    def __init__(self, stub: Stub, name: str = "") -> None:
        self.stub, self.name = stub, name

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Any,
                 shared_mem: int = 0, stream: Any = None) -> None:
        self.stub.note("launch", self.name, grid, block, args, shared_mem, stream)


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """An NVRTC that needs no library."""
    found = SimpleNamespace(architectures=(75, 90, 100), version="13.0")
    monkeypatch.setattr(nvrtc, "find", lambda major=None: found)
    monkeypatch.setattr(cupy_loader, "cubin", lambda kernel, arch, with_: cubins.Cubin(
        f"{arch} {with_.version}".encode(), f"_Z{kernel.entry}"))
    cupy_loader._compiler.cache_clear()
    return found


def _array() -> np.ndarray:
    return np.zeros(4, np.float32)


def test_a_kernel_is_loaded_on_its_device_and_launched_on_the_current_stream() -> None:
    stub, array = Stub(), _array()
    gpu = cuda_executor(stub, 1)
    gpu.launch(PLAIN, (2, 1, 1), (128, 1, 1), (array, 0.5, 4), 16)
    assert stub.done[0] == ("load", b"sm_90 13.0", 1)
    assert stub.done[1:] == [
        ("launch", "_Zscale", (2, 1, 1), (128, 1, 1), (array, 0.5, 4), 16, "stream", 0)]
    gpu.launch(PLAIN, (2, 1, 1), (128, 1, 1), (array, 0.5, 4))
    assert [what[0] for what in stub.done] == ["load", "launch", "launch"]


def test_memory_is_that_of_cupys_arrays() -> None:
    stub = Stub()
    gpu = cuda_executor(stub, 0)
    assert gpu.empty is stub.ndarray and gpu.xp is stub
    assert gpu.multiprocessors == 132


def test_dynamic_shared_memory_may_be_all_that_the_static_leaves() -> None:
    stub = Stub()
    CupyLoader(stub, 0).load(PLAIN)
    assert [what[0] for what in stub.done] == ["load"]
    CupyLoader(stub, 1).load(SHARED)
    assert stub.done[-1] == ("set", 77, 8, 232448 - 1000, 1)


def test_errors_of_the_driver_name_the_kernel_and_the_geometry() -> None:
    stub = Stub()
    gpu = cuda_executor(stub, 0)
    gpu.function(PLAIN)
    stub.failing = DriverError("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources")
    said = (r"^scale cannot be launched with a grid of \(2, 1, 1\), blocks of \(1024, 1, 1\) "
            r"threads and 99 bytes of dynamic shared memory: CUDA_ERROR_LAUNCH_OUT_OF")
    with pytest.raises(KernelError, match=said):
        gpu.launch(PLAIN, (2, 1, 1), (1024, 1, 1), (_array(), 1.0, 4), 99)
    with pytest.raises(KernelError, match="scale cannot be loaded on GPU:1: CUDA_ERROR"):
        CupyLoader(stub, 1).load(PLAIN)
    assert stub.current == 0


def test_a_newer_gpu_gets_ptx_and_an_older_one_an_error(compiler: Any) -> None:
    assert [architecture(c, compiler) for c in (75, 90, 89, 103, 120)] == [
        "sm_75", "sm_90", "compute_75", "compute_100", "compute_100"]
    with pytest.raises(UnavailableError, match=r"capability 6\.1, and NVRTC 13\.0 compiles for "
                                               r"7\.5 and newer; .*gtape\[cuda12\]"):
        architecture(61, compiler)


def test_without_nvrtc_cupy_compiles_and_one_warning_says_so(
        monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    def absent(major: int | None = None) -> None:
        raise UnavailableError(f"NVRTC for {major} was not found")

    monkeypatch.setattr(nvrtc, "find", absent)
    stub = Stub()
    gpu = cuda_executor(stub, 0)
    gpu.launch(PLAIN, (1, 1, 1), (32, 1, 1), (_array(), 1.0, 4))
    gpu.function(SHARED)
    assert stub.done[0] == ("RawModule", ("--std=c++17",), ("scale",), 0)
    (warning,) = recwarn
    assert "NVRTC for 13 was not found. Until then CuPy compiles" in str(warning.message)


def test_what_cupy_cannot_compile_is_a_kernel_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy_loader, "_compiler", lambda major: None)
    stub = Stub()

    def get_function(name: str) -> None:
        raise CompileError("planted")

    monkeypatch.setattr(stub, "RawModule",
                        lambda **options: SimpleNamespace(get_function=get_function))
    with pytest.raises(KernelError, match="CuPy cannot compile scale: planted"):
        CupyLoader(stub, 0).load(PLAIN)


def test_the_stub_has_the_names_of_the_installed_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    for path in ("cuda.Device", "cuda.Module", "cuda.get_current_stream", "RawModule", "ndarray",
                 "cuda.runtime.runtimeGetVersion", "cuda.runtime.getDeviceCount",
                 "cuda.compiler.CompileException",
                 "cuda.driver.CUDADriverError", "cuda.driver.funcGetAttribute",
                 "cuda.driver.funcSetAttribute", "cuda.Module.load", "cuda.Module.get_function",
                 "cuda.Function.ptr", "cuda.Device.attributes", "cuda.Device.compute_capability",
                 "cuda.runtime.cudaDevAttrMultiProcessorCount",
                 "cuda.runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin"):
        found = cupy
        for name in path.split("."):
            found = getattr(found, name)
    driver = cupy.cuda.driver
    assert driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES == 1
    assert driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == 8
