"""NVRTC for the simulated GPU: kernel text -> a shared library of host code, made by g++."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import NamedTuple

from gtape.core.errors import KernelError, PassingError
from gtape.devices import cache, compiler
from gtape.devices.simulated.kernel_text import adapted
from gtape.devices.simulated.stand_ins import Handles, StandIn

#: What no NVRTC of NVIDIA's is called, so that nothing made here is taken for its work.
VERSION = (13, 99)
ARCHITECTURES = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
_SUCCESS, _INVALID_OPTION, _COMPILATION, _NO_EXPRESSION, _INTERNAL = 0, 5, 6, 10, 11
_ERRORS = {_SUCCESS: b"NVRTC_SUCCESS", _INVALID_OPTION: b"NVRTC_ERROR_INVALID_OPTION",
           _COMPILATION: b"NVRTC_ERROR_COMPILATION",
           _NO_EXPRESSION: b"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
           _INTERNAL: b"NVRTC_ERROR_INTERNAL_ERROR"}
_IMAGE, _PTX = b"GTAPE SIMULATED IMAGE\n", b"// gtape simulated PTX "
_OPTIONS = (
    # Unique symbols would keep a library loaded for good and share variables among kernels;
    # contracting would round as the host's processor can; NVRTC lets more pass than g++.
    "-g1", "-fPIC", "-w", "-fvisibility=hidden", "-fno-gnu-unique", "-fsigned-char",
    "-fno-strict-aliasing", "-ffp-contract=off", "-fpermissive", "-fno-exceptions", "-fno-rtti",
    # Device code sees no headers of the host, nor its C++ library.
    "-nostdinc", "-nodefaultlibs", "-Dgtape_emulator=gtape_simulated_emulator",
    # A call before each access: simulated/checks.cpp.
    "-fsanitize=kernel-address,alignment", "--param=asan-instrumentation-with-call-threshold=0",
    "--param=asan-globals=0", "--param=asan-stack=0")

library = StandIn("libnvrtc.so.13", "nvrtc")
_P, _I, _T = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p


class Program:
    """What nvrtcCreateProgram makes."""

    def __init__(self, text: str, name: str, headers: dict[str, str]) -> None:
        self.text, self.name, self.headers = text, name, headers
        self.expressions: list[str] = []
        self.symbols: dict[str, bytes] = {}
        self.log, self.ptx, self.cubin = b"", b"", b""


class CompilerOptions(NamedTuple):
    """The options of a compilation that mean something to g++."""

    flags: tuple[str, ...]
    standard: str
    to_ptx: bool


_programs: Handles[Program] = Handles()


def _options(given: list[str]) -> CompilerOptions | None:
    """None where one of them asks for what is not simulated."""
    flags, standard, to_ptx = [], "c++17", True
    words = iter(given)
    for word in words:
        name, _, value = word.partition("=")
        if name in ("--std", "-std", "--include-path", "--define-macro", "--undefine-macro",
                    "--gpu-architecture", "-arch", "-I", "-D", "-U") and not value:
            value = next(words, "")
        if word in ("-dlto", "--dlink-time-opt"):
            return None
        if name in ("--std", "-std"):
            standard = value if value > "c++17" else "c++17"  # as a string: c++20, c++23
        elif name in ("--gpu-architecture", "-arch"):
            to_ptx = value.startswith("compute")
        elif name in ("--include-path", "-I"):
            flags += ["-I", value]
        elif name in ("--define-macro", "-D"):
            flags += ["-D", value]
        elif name in ("--undefine-macro", "-U"):
            flags += ["-U", value]
        elif word[:2] in ("-I", "-D", "-U"):
            flags.append(word)
    return CompilerOptions(tuple(flags), standard, to_ptx)


def compile_program(program: Program, given: list[str]) -> int:
    """The status; the program has its log and images."""
    options = _options(given)
    if options is None:
        return _INVALID_OPTION
    text = adapted(program.text, program.name or "kernel.cu", program.expressions)
    try:
        path = _built(program, options, text.text)
    except PassingError as error:
        program.log = str(error).encode()
        return _INTERNAL
    except KernelError as error:
        program.log = str(error).encode()
        return _COMPILATION
    binary = path.read_bytes()
    program.symbols = {name: symbol.encode() for name, symbol in text.symbols.items()}
    program.ptx = _PTX + bytes(path) + b"\n"
    program.cubin = b"" if options.to_ptx else (
        _IMAGE + struct.pack("<q", len(binary)) + binary + bytes(path))
    return _SUCCESS


def _built(program: Program, options: CompilerOptions, text: str) -> Path:
    root = library.folder
    with_headers = [f"{name}\0{content}" for name, content in sorted(program.headers.items())]
    recipe = compiler.Recipe(
        compiler.compiler("the simulated GPU", ("g++", "c++")),
        (f"-std={options.standard}", os.environ.get("GTAPE_SIMULATED_OPTIMISE") or "-O0",
         *_OPTIONS, "-I", str(root / "include"), *options.flags,
         "-include", str(root / "kernel.h")),
        libraries=(str(root / "checks.o"), "-lm", "-lc", "-lgcc"))
    key = cache.key(recipe.key(text), *with_headers)
    return compiler.file("simulated", key, text, recipe, name="kernel", headers=program.headers)


# ------------------------------------------------------------------ the interface


@library.function("Version", _P, _P)
def _version(major: int, minor: int) -> int:
    _put_int(major, VERSION[0])
    _put_int(minor, VERSION[1])
    return _SUCCESS


@library.function("GetNumSupportedArchs", _P)
def _count(count: int) -> int:
    _put_int(count, len(ARCHITECTURES))
    return _SUCCESS


@library.function("GetSupportedArchs", _P)
def _architectures(to: int) -> int:
    (ctypes.c_int * len(ARCHITECTURES)).from_address(to)[:] = list(ARCHITECTURES)
    return _SUCCESS


@library.function("GetErrorString", _I, returns=_P)
def _error_string(status: int) -> int:
    return ctypes.cast(_T(_ERRORS.get(status, b"NVRTC_ERROR")), _P).value or 0


@library.function("CreateProgram", _P, _T, _T, _I, _P, _P)
def _create(to: int, text: bytes, name: bytes | None, count: int, headers: int,
            names: int) -> int:
    listed = {_text_at(names, i).decode(): _text_at(headers, i).decode(errors="surrogateescape")
              for i in range(count)}
    # Bytes that are no UTF-8, in comments for example, must not raise.
    _programs.add(Program(text.decode(errors="surrogateescape"), (name or b"").decode(),
                                listed), to)
    return _SUCCESS


@library.function("DestroyProgram", _P)
def _destroy(at: int) -> int:
    _programs.pop(_P.from_address(at).value or 0, None)
    _P.from_address(at).value = 0
    return _SUCCESS


@library.function("AddNameExpression", _P, _T)
def _add(handle: int, expression: bytes) -> int:
    _programs[handle].expressions.append(expression.decode())
    return _SUCCESS


@library.function("CompileProgram", _P, _I, _P)
def _compile(handle: int, count: int, options: int) -> int:
    return compile_program(_programs[handle],
                           [_text_at(options, i).decode() for i in range(count)])


@library.function("GetLoweredName", _P, _T, _P)
def _lowered(handle: int, expression: bytes, to: int) -> int:
    symbol = _programs[handle].symbols.get(expression.decode())
    if symbol is None:
        return _NO_EXPRESSION
    _P.from_address(to).value = ctypes.cast(_T(symbol), _P).value
    return _SUCCESS


def _text_at(table: int, index: int) -> bytes:
    return _T.from_address(table + index * ctypes.sizeof(_P)).value or b""


def _put_int(to: int, value: int) -> None:
    ctypes.c_int.from_address(to).value = value


def _give(name: str, attribute: str, empty_is_one: bool) -> None:
    """nvrtcGet<name>Size and nvrtcGet<name> for an attribute of a program."""

    def size(handle: int, to: int) -> int:
        content = getattr(_programs[handle], attribute)
        # An empty log is its final 0; an empty image is not there.
        ctypes.c_size_t.from_address(to).value = len(content) + 1 if content or empty_is_one else 0
        return _SUCCESS

    def content(handle: int, to: int) -> int:
        data = getattr(_programs[handle], attribute) + b"\0"
        ctypes.memmove(to, data, len(data))
        return _SUCCESS

    library.function(f"Get{name}Size", _P, _P)(size)
    library.function(f"Get{name}", _P, _P)(content)


_give("PTX", "ptx", False)
_give("CUBIN", "cubin", False)
_give("LTOIR", "cubin", False)
_give("ProgramLog", "log", True)
