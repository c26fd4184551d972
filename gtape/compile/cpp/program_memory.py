"""ProgramMemory: what one call at a time works in, and the native functions bound to it.

A native function finds a program's table of pointers as the `self` of a Python function. The table
holds CPython's description of that function too, and keeps the library with its code: so what a
call needs is there for as long as anything can call it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gtape.compile.cpp.module_source import ProgramSource, PythonApi
from gtape.core import buffers
from gtape.devices.compiler import Library, function

_FASTCALL = 0x0080
_NAME = b"segment\0"


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (("name", ctypes.c_void_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("documentation", ctypes.c_void_p))


class _Table(bytearray):
    """The memory of a table, which keeps the library that it points into."""

    __slots__ = ("library",)

    library: Library


class ProgramMemory:
    """`calls` are the native functions, one for each segment; `flag` says which check of theirs
    failed, from 1 on.

    Args:
        given: arrays by the name of their slots; the arguments and results come with a call.
    """

    __slots__ = ("arena", "calls", "flag", "scratch", "table")

    def __init__(self, source: ProgramSource, library: Library, given: Mapping[str, Sequence[Any]],
                 ) -> None:
        slots, count = source.slots, len(source.segments)
        self.arena = _aligned(source.arena)
        self.scratch = [buffers.guarded_empty((n,), np.uint8) if slots.apart else _aligned(n)
                        for n in scratch_bytes(source, library)]
        self.flag = np.zeros(1, np.int32)
        memory = _Table(8 * slots.total + count * ctypes.sizeof(_MethodDef) + len(_NAME))
        memory.library = library
        memory[-len(_NAME):] = _NAME
        self.table: Any = np.ndarray(slots.total, np.int64, memory)
        _give_python(PythonApi.from_buffer(memory))
        arrays = {**given, "arena": [self.arena], "scratch": self.scratch, "flag": [self.flag]}
        for name, each in arrays.items():
            start = getattr(slots, name)
            for i, array in enumerate(each):
                self.table[start + i] = array.ctypes.data
        self.calls: list[Any] = [self._function(memory, i) for i in range(count)]

    def _function(self, memory: _Table, index: int) -> Any:
        """A segment as a Python function of arrays."""
        code = function(memory.library, f"gtape_segment{index}")
        base, at = self.table.ctypes.data, self.table.nbytes + index * ctypes.sizeof(_MethodDef)
        method = _MethodDef.from_buffer(memory, at)
        method.name = base + len(memory) - len(_NAME)
        method.function = ctypes.c_void_p.from_buffer(code).value
        # The convention by which Python hands over a C array of arguments, without a tuple made of
        # them.
        method.flags = _FASTCALL
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return make(base + at, self.table, None)


def scratch_bytes(source: ProgramSource, library: Library) -> list[int]:
    """The bytes of each scratch memory. Kernels know best what they need: the library says it."""
    if not source.scratches:
        return []
    sizes = list((ctypes.c_long * len(source.scratches)).in_dll(library, "gtape_scratch"))
    # Steps run one after another, so that one memory, of the largest, serves all; with guard zones
    # each has its own, and what it writes beside it is found.
    return sizes if source.slots.apart else [max(sizes)]


def _give_python(api: PythonApi) -> None:
    """Fill in the objects and functions of Python that a program uses."""
    api.none, api.wrong_layout, api.failed = id(None), id(False), id(True)
    api.array_type = id(np.ndarray)
    api.keep = _address(ctypes.pythonapi.Py_IncRef)
    api.release = _address(ctypes.pythonapi.PyEval_SaveThread)
    api.resume = _address(ctypes.pythonapi.PyEval_RestoreThread)


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


def _aligned(count: int) -> np.ndarray:
    """Zeroed memory that begins at a multiple of 64 bytes."""
    # A cache line, and the widest vector: aligned loads never cross two lines.
    memory = np.zeros(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start: start + count]
