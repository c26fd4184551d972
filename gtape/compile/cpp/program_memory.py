"""ProgramMemory: what one call at a time works in, the native functions bound to it, and the zones
that tell what a program wrote beside its values.

A native function finds a program's table of pointers as the `self` of a Python function. The table
holds CPython's description of that function too, and keeps the library with its code: so what a
call needs is there for as long as anything can call it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gtape.compile.cpp.module_source import ProgramSource, PythonApi
from gtape.compile.ir.nodes import IrNode, Value
from gtape.compile.schedule.plan import MemoryPlan, Place, nbytes
from gtape.core import buffers
from gtape.core.buffers import Damage
from gtape.core.errors import GuardZoneError
from gtape.core.locks import lock
from gtape.devices.compiler import Library, function

_FASTCALL = 0x0080  # METH_FASTCALL of CPython's methodobject.h
_NAME = b"segment\0"  # in the table's memory, for CPython keeps its address alone


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
        # The table as `self`: it lives as long as the function.
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
    # In CPython the id is the address.
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


class Zones:
    """The guard zones of one program.

    Args:
        shared: arrays by the name of their slots that all calls use; those that have zones are
            looked at.
    """

    def __init__(self, plan: MemoryPlan, source: ProgramSource, arguments: int,
                 shared: Mapping[str, Sequence[np.ndarray]]) -> None:
        self._plan, self._source = plan, source
        self._arguments, self._shared = arguments, shared
        #: A memory is used by one thread at a time; without zones a call is one step for Python.
        self._lock = lock()
        #: The latest value at each place that has memory of its own.
        self._values: dict[Place, Value] = {}
        for node in plan.module.nodes:
            for value in node.outputs:
                if value.number in plan.places:
                    self._values[plan.places[value.number]] = value

    def watch(self, memory: ProgramMemory) -> None:
        """Check the zones after every call of the memory's native functions."""
        held: list[Any] = []
        memory.calls = [self._watched(memory, call, held, i == 0)
                        for i, call in enumerate(memory.calls)]

    def _watched(self, memory: ProgramMemory, call: Callable[..., object], held: list[Any],
                 first: bool) -> Callable[..., Any]:
        """`held` is what the first native function was given, which later ones use too."""
        def run(*arrays: Any) -> Any:
            with self._lock:
                if first:
                    self._clear(memory)
                    held[:] = [buffers.guarded_copy(a) if _readable(a) else a
                               for a in arrays[:self._arguments]]
                    held.extend(arrays[self._arguments:])
                state = call(*held) if first else call()
                for what, damage in self._looked(memory, held):
                    if any(damage):
                        raise GuardZoneError(_message(what, damage))
                return state

        return run

    def _clear(self, memory: ProgramMemory) -> None:
        """Nothing is left of an earlier call."""
        buffers.fill_pattern(memory.arena)
        for each in memory.scratch:
            buffers.fill_pattern(each)

    def _looked(self, memory: ProgramMemory, held: Sequence[np.ndarray],
                ) -> Iterator[tuple[str, Damage]]:
        """Everything with zones: what it is, and what was written beside it."""
        plan = self._plan
        for value in plan.between:
            start = plan.places[value.number].at
            yield _named(value), buffers.damage(memory.arena, start, nbytes(value))
        for node, array in zip(self._source.scratches, memory.scratch):
            yield f"the scratch memory of {_step(node)}", buffers.damage_around(array)
        groups = {"argument": held[:self._arguments], "result": held[self._arguments:], **{
            name.removesuffix("s"): arrays for name, arrays in self._shared.items()}}
        for role, arrays in groups.items():
            for i, array in enumerate(arrays):
                known = self._values.get(Place(role, i))
                what = f"the {role} {_named(known)}" if known is not None else f"{role} {i}"
                yield what, buffers.damage_around(array)


def _readable(array: np.generic | np.ndarray) -> bool:
    """Whether a native function takes it as it is."""
    return type(array) is np.ndarray and array.flags.c_contiguous and array.flags.aligned


def _named(value: Value) -> str:
    return f"{value!r} of {_step(value.node)}"


def _step(node: IrNode) -> str:
    return f"the step '{node.label}'"


def _message(what: str, damage: Damage) -> str:
    ends = [f"{count} bytes {where}" for count, where in zip(damage, ("before", "behind")) if count]
    return (f"a compiled program may write to its values only; it wrote {' and '.join(ends)} "
            f"{what}. This is a fault of gtape: please report it with the text of f.inspect(…)")
