"""How programs are compiled for the CPU of this machine."""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from pathlib import Path

from gtape.core.errors import MissingError
from gtape.devices.compiler import Recipe, compiler, output

#: Rounding stays what the program says: no reordered sums, no contraction, NaN and infinity kept.
#: Only errno and floating-point traps are given up, which nobody reads here and which would keep
#: loops from being vectorised.
_STRICT = ("-std=c++17", "-O3", "-fPIC", "-w", "-fwrapv", "-fno-math-errno", "-fno-trapping-math",
           "-ffp-contract=off", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
           "-fvisibility=hidden")
_IDENTITY = re.compile(r"^(model name|flags|CPU implementer|CPU part|Features)\s*:.*$",
                       re.MULTILINE)


def switched_off() -> bool:
    """Whether the user forbids native code: GTAPE_NATIVE=0 in the environment."""
    return os.environ.get("GTAPE_NATIVE", "1").strip().lower() in ("0", "false", "off", "no")


def recipe(*more: str) -> Recipe:
    """How to compile a program, with `more` options that replace those before them. Raises
    MissingError: native code is switched off, or there is no C++ compiler; KernelError: the
    compiler does not answer.

    Where a product and its addition may be one operation, they are one everywhere: for some CPUs
    GCC spares short chains of them, and an element's last digits would depend on its tile.
    """
    if switched_off():
        raise MissingError("native code is switched off by GTAPE_NATIVE=0 in the environment")
    if sys.platform == "win32":
        raise MissingError("native code is compiled on Linux and macOS; this is Windows")
    chains = ("--param=avoid-fma-max-bits=0",) if "-ffp-contract=fast" in more else ()
    return Recipe(compiler("native code"), _STRICT + more, (*_optional(), *chains), _libraries(),
                  _machine())


# -march=native is in the key by `_machine`: a cache folder shared between machines must not give
# one of them what the other's CPU alone can run.
@cache
def _optional() -> tuple[str, ...]:
    """Options for this CPU. Compilers prefer 32-byte vectors for fear of lower clocks; on the
    CPUs with AVX-512 that are common now, 64-byte ones are faster."""
    native = "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"
    wide = ("-mprefer-vector-width=512",) if "avx512f" in _machine() else ()
    return (native, "-fopenmp-simd", *wide)


@cache
def _machine() -> str:
    """Model and instruction sets of the CPU, which the compiler reads too."""
    if sys.platform == "darwin":
        return output("sysctl", "-n", "machdep.cpu.brand_string")
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8").split("\n\n", 1)[0]
    except OSError:
        return platform.processor()
    return "\n".join(line[0] for line in _IDENTITY.finditer(text))


@cache
def _libraries() -> tuple[str, ...]:
    if sys.platform == "darwin":
        # macOS refuses undefined symbols in a library; those of the runtime are there when it is
        # loaded.
        return ("-undefined", "dynamic_lookup")
    return ("-lpthread", "-lm")
