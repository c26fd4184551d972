"""NVRTC, NVIDIA's run-time compiler: kernel text -> machine code or PTX. It needs no GPU.

A binding of libnvrtc with ctypes; the calls are those of NVIDIA's document "NVRTC", section "User
Interface". Numbers are as in PyTorch and XLA: denormals are kept, division and square root are
correctly rounded, and a multiplication followed by an addition may become one fused operation
(`-fmad`, NVRTC's default), which rounds once.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import NamedTuple

from gtape.core.errors import KernelError, UnavailableError
from gtape.devices.cuda.runtime import toolkit
from gtape.devices.kernel_source import complaint

#: What every kernel is compiled with, beside the architecture.
FLAGS = ("--std=c++17", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
#: Makes the log tell each kernel's registers and spills.
VERBOSE = "--ptxas-options=-v"
_PROGRAM = "kernel.cu"
_INVALID_OPTION = 5
_POINTER, _SIZE, _TEXT, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int
_SIGNATURES = {
    "Version": [ctypes.POINTER(_INT), ctypes.POINTER(_INT)],
    "GetNumSupportedArchs": [ctypes.POINTER(_INT)],
    "GetSupportedArchs": [ctypes.POINTER(_INT)],
    "CreateProgram": [ctypes.POINTER(_POINTER), _TEXT, _TEXT, _INT, _POINTER, _POINTER],
    "AddNameExpression": [_POINTER, _TEXT],
    "CompileProgram": [_POINTER, _INT, ctypes.POINTER(_TEXT)],
    "GetLoweredName": [_POINTER, _TEXT, ctypes.POINTER(_TEXT)],
    "DestroyProgram": [ctypes.POINTER(_POINTER)],
    **{f"Get{what}Size": [_POINTER, ctypes.POINTER(_SIZE)]
       for what in ("CUBIN", "PTX", "ProgramLog")},
    **{f"Get{what}": [_POINTER, _POINTER] for what in ("CUBIN", "PTX", "ProgramLog")}}


class Compiled(NamedTuple):
    """A program: the `image` that a driver loads, the symbol of each entry, PTX, NVRTC's log."""

    image: bytes
    names: dict[str, str]
    ptx: str
    log: str


class Nvrtc:
    """One loaded libnvrtc, found at `path`. Threads may share it; they compile in turn."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        self.path = path
        self._library = library
        # Declared once: without types ctypes passes a 64-bit pointer as an int of 32.
        for name, types in _SIGNATURES.items():
            getattr(library, f"nvrtc{name}").argtypes = types
        library.nvrtcGetErrorString.argtypes = [_INT]
        library.nvrtcGetErrorString.restype = _TEXT

    @cached_property
    def version(self) -> str:
        """The version: "13.0"."""
        major, minor = _INT(), _INT()
        self._call("Version", ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    @cached_property
    def architectures(self) -> tuple[int, ...]:
        """The compute capabilities that code can be made for: 75, 80, ..."""
        count = _INT()
        self._call("GetNumSupportedArchs", ctypes.byref(count))
        numbers = (_INT * count.value)()
        self._call("GetSupportedArchs", numbers)
        return tuple(sorted(numbers))

    def compile(self, text: str, entries: Sequence[str], arch: str, *,
                options: Sequence[str] = ()) -> Compiled:
        """Compile the kernels `entries` of a program. Raises KernelError: it does not compile; the
        message shows the line.

        Args:
            text: CUDA C++ that includes nothing.
            entries: what to instantiate: "softmax_forward<float, 4>".
            arch: "sm_90" for machine code of compute capability 9.0, "compute_90" for PTX.
            options: more than `FLAGS`.
        """
        with self._program(text) as program:
            for entry in entries:
                self._call("AddNameExpression", program, entry.encode())
            given = [o.encode() for o in (f"--gpu-architecture={arch}", *FLAGS, *options)]
            status = self._library.nvrtcCompileProgram(program, len(given),
                                                       (_TEXT * len(given))(*given))
            log = self._bytes(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if status:
                raise KernelError(self._refusal(status, text, entries, arch, log))
            ptx = self._bytes(program, "PTX")
            image = self._bytes(program, "CUBIN") if arch.startswith("sm_") else ptx
            # Templates are mangled by NVRTC, and found in the image under that name alone.
            names = {entry: self._lowered(program, entry) for entry in entries}
        return Compiled(image, names, ptx.rstrip(b"\0").decode(), log)

    @contextlib.contextmanager
    def _program(self, text: str) -> Iterator[ctypes.c_void_p]:
        program = _POINTER()
        self._call("CreateProgram", ctypes.byref(program), text.encode(), _PROGRAM.encode(), 0,
                   None, None)
        try:
            yield program
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = _SIZE()
        self._call(f"Get{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"Get{what}", program, buffer)
        return buffer.raw

    def _lowered(self, program: ctypes.c_void_p, entry: str) -> str:
        name = _TEXT()
        self._call("GetLoweredName", program, entry.encode(), ctypes.byref(name))
        return (name.value or b"").decode()

    def _call(self, name: str, *args: object) -> None:
        status = getattr(self._library, f"nvrtc{name}")(*args)
        if status:
            raise KernelError(f"nvrtc{name}: {self._status(status)}")

    def _status(self, status: int) -> str:
        return (self._library.nvrtcGetErrorString(status) or b"").decode()

    def _refusal(self, status: int, text: str, entries: Sequence[str], arch: str, log: str) -> str:
        _, _, number = arch.partition("_")
        if status == _INVALID_OPTION and number.isdigit() and int(number) not in self.architectures:
            known = ", ".join(f"sm_{a}" for a in self.architectures)
            return f"NVRTC {self.version} does not know {arch}; it compiles for {known}"
        more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
        what = f"{entries[0]}{more}" if entries else "the program"
        parts = [f"NVRTC {self.version} cannot compile {what} for {arch} "
                 f"({self._status(status)})", complaint(text, log), log.strip()]
        return "\n".join(part for part in parts if part)


@cache
def find(major: int | None = None) -> Nvrtc:
    """The installed NVRTC: of the CUDA version `major` (12 or 13) where that matters. Raises
    UnavailableError: there is none.

    It is looked for among pip's wheels, in CUDA_PATH and CUDA_HOME, in /usr/local/cuda, in Python's
    own environment, and last by the system's loader.
    """
    majors = toolkit.MAJORS if major is None else (major,)
    library = toolkit.load("nvrtc", "cuda_nvrtc", majors, companion="nvrtc-builtins")
    if library is None:
        newest = max(majors)
        wheel = "nvidia-cuda-nvrtc" if newest >= 13 else f"nvidia-cuda-nvrtc-cu{newest}"
        raise UnavailableError(
            f"NVRTC, the compiler of kernels, was not found (CUDA "
            f"{' or '.join(str(m) for m in majors)}); run: pip install \"gtape[cuda{newest}]\", or "
            f"pip install {wheel}, or set CUDA_PATH to a CUDA toolkit")
    return Nvrtc(*library)
