"""Libraries of CUDA that Python stands in for: C symbols whose calls arrive in Python functions.

A stand-in is a shared library of jumps, one for each symbol, through a table that Python fills with
its callbacks. Symbols that nothing fills name themselves and answer that they are not supported.
"""

from __future__ import annotations

import atexit
import ctypes
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
#: The jump through slot N of the table, for each machine that the emulator knows.
_JUMPS = """\
#if defined(__x86_64__)
#define JUMP(name, offset) asm(".globl " #name "\\n.type " #name ",@function\\n" #name \\
    ":\\n jmp *gtape_slots+" #offset "(%rip)\\n.size " #name ",.-" #name "\\n");
#elif defined(__aarch64__)
#define JUMP(name, offset) asm(".globl " #name "\\n.type " #name ",%function\\n" #name \\
    ":\\n adrp x16, gtape_slots+" #offset "\\n ldr x16, [x16, :lo12:gtape_slots+" #offset \\
    "]\\n br x16\\n.size " #name ",.-" #name "\\n");
#endif
"""


class Handles(dict[int, _T]):
    """What a library made, by the numbers that its callers have for addresses."""

    def add(self, made: _T, to: int) -> None:
        """Keep it, and put its number where `to` points."""
        number = max(self, default=0x1000) + 8  # like an address: null would mean none
        self[number] = made
        ctypes.c_void_p.from_address(to).value = number


class StandIn:
    """One library of CUDA: the functions that Python has for it.

    Args:
        soname: the name that other libraries ask the loader for.
        prefix: what all its symbols begin with.
        not_supported: the status of a function that is not there.
        failed: the status of one that raised.
    """

    def __init__(self, soname: str, prefix: str, not_supported: int = 1, failed: int = 1) -> None:
        self.soname, self.prefix = soname, prefix
        self.not_supported, self.failed = not_supported, failed
        self.functions: dict[str, Any] = {}
        self._loaded: ctypes.CDLL | None = None
        #: Where it was built.
        self.folder = Path()

    def function(self, name: str, *types: Any, returns: Any = ctypes.c_int) -> Callable[[_F], _F]:
        """Makes a Python function the symbol `prefix + name`; `types` are its arguments'."""
        def add(function: _F) -> _F:
            def call(*args: Any) -> Any:
                try:
                    result = function(*args)
                except Exception:  # C is the caller: ctypes would lose it
                    traceback.print_exc()
                    return self.failed
                return 0 if result is None else result

            # Kept with the library: C has the address alone, and Python would free it.
            self.functions[self.prefix + name] = ctypes.CFUNCTYPE(returns, *types)(call)
            return function

        return add

    def source(self, asked_for: Iterable[str]) -> str:
        """C text of the stand-in, which has the symbols of `asked_for` beside its own."""
        names = self.names(asked_for)
        lines = ["#include <stdio.h>", _JUMPS]
        for name in names:
            lines.append(f"static int missing_{name}(void) {{ fprintf(stderr, \"simulated GPU: "
                         f"{name} is not simulated\\n\"); return {self.not_supported}; }}")
        lines.append('__attribute__((used, visibility("hidden"))) void* gtape_slots[] = {')
        lines += [f"    (void*)missing_{name}," for name in names] + ["};"]
        lines.append("void** gtape_table(void) { return gtape_slots; }")
        lines.append("static int quiet(void) { return 0; }")
        lines.append(f"void gtape_end(void) {{ for (int i = 0; i < {len(names)}; ++i) "
                     "gtape_slots[i] = (void*)quiet; }")
        lines += [f"JUMP({name}, {8 * i})" for i, name in enumerate(names)]
        return "\n".join(lines) + "\n"

    def names(self, asked_for: Iterable[str]) -> list[str]:
        return sorted({*self.functions, *(n for n in asked_for if n.startswith(self.prefix))})

    def load(self, folder: Path, asked_for: Iterable[str]) -> None:
        """Load the stand-in that lies in `folder` so that others find it by its soname, and fill
        its table."""
        self.folder = folder
        loaded = ctypes.CDLL(str(folder / self.soname), mode=ctypes.RTLD_GLOBAL)
        loaded.gtape_table.restype = ctypes.c_void_p
        names = self.names(asked_for)
        table = (ctypes.c_void_p * len(names)).from_address(loaded.gtape_table())
        for i, name in enumerate(names):
            if name in self.functions:
                table[i] = ctypes.cast(self.functions[name], ctypes.c_void_p).value
        self._loaded = loaded
        # CuPy's handles are destroyed while Python ends, when nothing may call into it.
        atexit.register(loaded.gtape_end)
