"""Shared libraries of kernels for the emulator: kernel text compiled by a C++ compiler.

A library is kept in the cache folder under a name made from all that it depends on. The runtime,
which schedules the threads, is one library of its own.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import NamedTuple

from gtape.core.errors import KernelError
from gtape.devices.compiler import Compiler, Recipe, compiler, load, output
from gtape.devices.kernel_source import expand, expand_file

_STRICT = ("-std=c++17", "-fPIC", "-w", "-fsigned-char", "-fno-strict-aliasing",
           "-ffp-contract=off")
_RUNTIME = ("-O2",)
#: NVRTC has no headers of the system: a kernel that includes one must not compile here either.
#: The sanitizers' calls are answered by what the process has loaded already; to link the compiler's
#: libraries for them, and that of C++, takes as long as compiling a small kernel.
_KERNELS = ("-fvisibility=hidden", "-nostdinc", "-nodefaultlibs")
#: What finds misaligned accesses and wrong indices of arrays: the emulator's runtime answers its
#: calls. Optimising would take longer to compile than it saves in the few milliseconds that a check
#: runs.
_CHECKED = ("-O0", "-fsanitize=alignment,bounds")
_SANITIZED = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_LIBRARIES = ("-lm", "-lc", "-lgcc")
_ENTRIES = """
#undef __shared__
extern "C" __attribute__((visibility("default")))
const gtape_emulator::Entry gtape_entries[] = {{
{entries}
}};
__attribute__((used)) unsigned char gtape_bss[16];  // without .bss its bounds would be anywhere
extern "C" unsigned char __bss_start[] __attribute__((visibility("hidden")));
extern "C" unsigned char _end[] __attribute__((visibility("hidden")));
extern "C" __attribute__((visibility("default")))
unsigned char* const gtape_shared[] = {{__bss_start, _end}};
"""
class KernelEntry(ctypes.Structure):
    """A kernel in a library: the function that calls it, and the letters of its parameters: p for
    a pointer, q for a `long long`, d for a `double`."""

    body: int
    signature: bytes
    _fields_ = (("body", ctypes.c_void_p), ("signature", ctypes.c_char_p))


class EmulatorLibrary(NamedTuple):
    """Loaded kernels by entry, and where the shared memory of all of them begins and ends."""

    entries: dict[str, KernelEntry]
    shared: tuple[int, int]


@cache
def library(text: str, entries: tuple[str, ...], *, sanitize: bool = False) -> EmulatorLibrary:
    """The kernels `entries` of the program `text`. Raises KernelError: there is no C++ compiler, or
    the text does not compile."""
    runtime(sanitize)
    listed = ",\n".join(f"gtape_emulator::entry<{entry}>()" for entry in entries)
    program = "".join((expand_file("emulator.h"), _neutral(text), '\n#line 1 "entries"',
                       _ENTRIES.format(entries=listed)))
    loaded = _loaded(program, sanitize)
    table = (KernelEntry * len(entries)).in_dll(loaded, "gtape_entries")
    begin, end = (ctypes.c_size_t * 2).in_dll(loaded, "gtape_shared")
    return EmulatorLibrary(dict(zip(entries, table)), (begin, end))


def runtime(sanitize: bool = False) -> ctypes.CDLL:
    """The library that schedules threads. Its symbols are there for the kernels'. Raises
    KernelError: this is not Linux, there is no C++ compiler, or `sanitize` in a process that was
    not started in `sanitized_environment()`."""
    if not sys.platform.startswith("linux"):
        raise KernelError(f"the emulator of kernels runs on Linux; this is {sys.platform}")
    if sanitize and "libasan" not in os.environ.get("LD_PRELOAD", ""):
        raise KernelError("sanitize=True needs AddressSanitizer in the process from its start: run "
                          "python -m gtape kernels --run --sanitize")
    return _loaded(expand_file("emulator.cpp"), sanitize, runtime=True)


@cache
def why_not() -> str:
    """Why kernels cannot be run on this machine's CPU; empty where they can."""
    try:
        runtime()
    except KernelError as error:
        return str(error)
    return ""


def sanitized_environment() -> dict[str, str]:
    """The environment in which a Python process can use `sanitize=True`: AddressSanitizer must be
    loaded before everything else."""
    command = _compiler().command
    libraries = [output(*command, f"-print-file-name={name}").strip()
                 for name in ("libasan.so", "libubsan.so")]
    if any(not os.path.isabs(path) for path in libraries):
        raise KernelError(f"{command[0]} has no AddressSanitizer; install it, or set CXX=g++")
    return {**os.environ, "LD_PRELOAD": " ".join(libraries), "PYTHONMALLOC": "malloc",
            # Python never frees all it has, and each library of kernels defines the same names.
            "ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0:detect_stack_use_after_return=0",
            "UBSAN_OPTIONS": "print_stacktrace=1"}


def _neutral(text: str) -> str:
    """Kernel text as it stands, with a name for compilers where it has none."""
    return text if text.startswith("#line") else expand(text, "kernel.cu")


@cache
def _loaded(program: str, sanitize: bool, runtime: bool = False) -> ctypes.CDLL:
    """It stays: entries and the memory of the runtime are addresses in it."""
    options = (*_STRICT, *(_SANITIZED if sanitize else () if runtime else _CHECKED),
               *(_RUNTIME if runtime else _KERNELS))
    libraries = ("-lpthread",) if runtime else _LIBRARIES
    return load("emulator", program, Recipe(_compiler(), options, libraries=libraries),
                name="kernels", mode=ctypes.RTLD_GLOBAL if runtime else ctypes.RTLD_LOCAL)


def _compiler() -> Compiler:
    """g++ before clang++, which lets misaligned copies of structures pass."""
    return compiler("running kernels on the CPU", ("g++", "clang++", "c++"))
