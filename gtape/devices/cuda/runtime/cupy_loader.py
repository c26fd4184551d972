"""Kernels on a GPU through CuPy: its memory, its streams, its launches; the text is compiled here.

CuPy's own compilation appends `-ftz=true`, which flushes denormals to zero, and knows CuPy's cache
alone; it serves only where NVRTC cannot be found.
"""

from __future__ import annotations

import re
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from gtape.core.errors import KernelError, UnavailableError
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.cubins import cubin
from gtape.devices.cuda.runtime.executor import Executor, Function, Grid
from gtape.devices.cuda.runtime.kernel import Kernel

if TYPE_CHECKING:
    from gtape.core.device import Array

_DYNAMIC_SHARED = re.compile(r"(?<!#define )\bDYNAMIC_SHARED\(")


class CupyLoader:
    """Loads kernels on GPU `index`. Their functions are called with that GPU current."""

    def __init__(self, cupy: Any, index: int) -> None:
        self.stream = cupy.cuda.get_current_stream
        self._cupy = cupy
        self._device = cupy.cuda.Device(index)

    def load(self, kernel: Kernel) -> Function:
        """The kernel on this GPU. Raises KernelError: it does not compile, or the driver refuses
        it; UnavailableError: the GPU is older than all that NVRTC compiles for."""
        driver_error = self._cupy.cuda.driver.CUDADriverError
        with self._device:
            try:
                function = self._function(kernel)
                # Only where it is used: the attribute is set by a call of the driver for each
                # kernel.
                if _DYNAMIC_SHARED.search(kernel.text):
                    self._allow_shared_memory(function)
            except driver_error as error:
                raise KernelError(f"{kernel.entry} cannot be loaded on GPU:{self._device.id}: "
                                  f"{error}") from error
        return _checked(kernel, function, driver_error)

    def _function(self, kernel: Kernel) -> Any:
        compiler = _compiler(self._cupy.cuda.runtime.runtimeGetVersion() // 1000)
        if compiler is None:
            return self._compiled_by_cupy(kernel)
        arch = architecture(int(self._device.compute_capability), compiler)
        image, name = cubin(kernel, arch, compiler)
        # Not `RawModule`, which would compile; the image is loaded as it is.
        module = self._cupy.cuda.Module()
        module.load(image)
        return module.get_function(name)

    def _compiled_by_cupy(self, kernel: Kernel) -> Any:
        module = self._cupy.RawModule(code=kernel.text, options=("--std=c++17",),
                                      name_expressions=(kernel.entry,))
        try:
            return module.get_function(kernel.entry).kernel
        except self._cupy.cuda.compiler.CompileException as error:
            raise KernelError(f"CuPy cannot compile {kernel.entry}: {error}") from error

    def _allow_shared_memory(self, function: Any) -> None:
        # Without this a launch gets 48 KB at most. The limit is of static and dynamic memory.
        driver = self._cupy.cuda.driver
        static = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function.ptr)
        limit = self._device.attributes["MaxSharedMemoryPerBlockOptin"]
        driver.funcSetAttribute(
            function.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit - static)


def _checked(kernel: Kernel, function: Any, driver_error: type[Exception]) -> Function:
    def launch(grid: Grid, block: Grid, args: tuple[Array, float, int], smem: int, stream: str,
               ) -> None:
        try:
            function(grid, block, args, smem, stream)
        except driver_error as error:
            raise KernelError(
                f"{kernel.entry} cannot be launched with a grid of {grid}, blocks of {block} "
                f"threads and {smem} bytes of dynamic shared memory: {error}") from error

    return launch


def architecture(capability: int, compiler: nvrtc.Nvrtc) -> str:
    """What to compile for on a GPU of this compute capability: its machine code, or, where NVRTC is
    older than the GPU, the PTX of the newest it knows, which the driver compiles. Raises
    UnavailableError: NVRTC knows only newer GPUs."""
    known = compiler.architectures
    if capability in known:
        return f"sm_{capability}"
    older = [a for a in known if a < capability]
    if not older:
        raise UnavailableError(
            f"the GPU has compute capability {capability / 10:.1f}, and NVRTC {compiler.version} "
            f"compiles for {known[0] / 10:.1f} and newer; install gtape for an older CUDA: "
            f'pip install "gtape[cuda12]"')
    return f"compute_{max(older)}"


@cache
def _compiler(major: int) -> nvrtc.Nvrtc | None:
    try:
        return nvrtc.find(major)
    except UnavailableError as error:
        warnings.warn(f"{error}. Until then CuPy compiles the kernels, with denormals flushed to "
                      f"zero.", stacklevel=2)
        return None


def cuda_executor(cupy: Any, index: int) -> Executor:
    """Kernels on GPU `index`. Use it with that GPU current. Memory comes from the allocator that
    the user has set in CuPy: `cupy.ndarray(shape, dtype)` asks for it, and is what `cupy.empty`
    calls."""
    # "_c_contiguous" is an attribute of CuPy's C class; `flags.c_contiguous` makes an object first.
    attributes = cupy.cuda.Device(index).attributes
    return Executor(cupy, cupy.ndarray, CupyLoader(cupy, index), attributes["MultiProcessorCount"],
                    attributes["MaxSharedMemoryPerBlockOptin"], "_c_contiguous",
                    cupy.cuda.runtime.getDeviceCount() == 1)
