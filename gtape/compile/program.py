"""Program: a compiled graph, bound to the memory of its cells and ready to be called."""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.compile import bodies
from gtape.compile.applied import Applied, why_not
from gtape.compile.entry import entry_of
from gtape.compile.ir import Hosted, Node, Value
from gtape.compile.lower import lowered
from gtape.compile.numpy_program import NumpyProgram, on_host
from gtape.compile.plan import Plan, numpy_dtype
from gtape.compile.report import described
from gtape.compile.results import Result
from gtape.compile.source import Source, source_of
from gtape.compile.sparse import sparse_updates
from gtape.compile.traced import Traced
from gtape.core.device import CPU
from gtape.core.errors import InvalidArgumentError, KernelError, NativeCodeWarning
from gtape.core.locks import lock
from gtape.core.pinned import Writer
from gtape.core.tape_recording import stack_level
from gtape.core.tensor import EagerTensor
from gtape.devices.compiler import function

_FASTCALL = 0x0080
#: Held while a program writes to cells, and while they are copied; never while Python code runs,
#: which may wait for another thread that runs a program. The process forks while nobody has it, so
#: that the child finds no Variable half written.
_LOCK = threading.RLock()
_programs: weakref.WeakSet[Program] = weakref.WeakSet()


def _after_fork() -> None:
    _LOCK.release()
    for program in _programs:
        program._running &= program._turn._is_owned()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release,
                        after_in_child=_after_fork)


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p),
                ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class Program:
    """`run(tensors)` gives the results; the cells are updated where they lie.

    `writer` counts how often the cells were written.
    """

    def __init__(self, traced: Traced, plan: Plan, source: Source, library: ctypes.CDLL) -> None:
        self.traced, self.plan, self.source = traced, plan, source
        self.writer = Writer(_LOCK)
        self._turn = lock()
        self._guard = _LOCK if plan.cells else self._turn
        self._results = [Result(v.shape, numpy_dtype(v.dtype)) for v in plan.outputs]
        self._order = plan.result_of
        self._bind(library)
        self._running = False
        _programs.add(self)
        simple = len(source.segments) == 1 and not source.segments[0] and not source.releases
        #: Takes the arguments as tensors, and gives the result as the traced function does.
        self.entry = self._slow_entry if not simple else entry_of(
            self, self._calls[0], traced.structure, len(traced.arguments), self._results,
            self._order, len(plan.cells), bool(plan.module.writes), self._again)

    def _bind(self, library: ctypes.CDLL) -> None:
        slots, plan = self.source.slots, self.plan
        self._arena = _aligned(self.source.arena)
        self._flag = np.zeros(1, np.int32)
        written = {id(cell) for cell, _ in plan.module.writes}
        self._cells = [cell._storage_(self.writer if id(cell) in written else None)
                       for cell in plan.cells]
        self._constants = [np.ascontiguousarray(c) for c in plan.constants]
        captured = [np.ascontiguousarray(t._a) for t in self.traced.captured]
        self._held = captured
        table: Any = np.zeros(slots.total, np.int64)
        self._table = table
        table[0:3] = id(None), id(False), id(True)
        table[3] = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p).value
        table[4] = id(np.ndarray)
        table[5] = ctypes.cast(ctypes.pythonapi.PyEval_SaveThread, ctypes.c_void_p).value
        table[6] = ctypes.cast(ctypes.pythonapi.PyEval_RestoreThread, ctypes.c_void_p).value
        for start, arrays in ((slots.captures, captured), (slots.cells, self._cells),
                              (slots.constants, self._constants),
                              (slots.arena, [self._arena]), (slots.flag, [self._flag])):
            for i, array in enumerate(arrays):
                table[start + i] = array.ctypes.data
        self._methods: list[_Method] = []
        self._calls = [self._function(library, i) for i in range(len(self.source.segments))]

    def _function(self, library: ctypes.CDLL, index: int) -> Any:
        """A segment as a Python function of arrays."""
        address = ctypes.cast(function(library, f"gtape_segment{index}"), ctypes.c_void_p).value
        method = _Method(b"segment", address, _FASTCALL, None)
        self._methods.append(method)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return make(ctypes.addressof(method), self._table, None)

    def inspect(self) -> str:
        """The nodes, the plan, the bytes and the C++ text."""
        return described(self.plan, self.plan.arena, self.source.text)

    # ------------------------------------------------------------------ running

    def run(self, tensors: Sequence[EagerTensor]) -> tuple[Any, ...]:
        """The results for arguments of the right shapes and dtypes, as a flat tuple."""
        outs = [result.make() for result in self._results]
        with self._turn:
            if self._running:  # called again by a step in Python: its memory is in use
                return Applied(self.traced, "it calls itself").run(tensors)
            self._running = True
            try:
                self._segments(tensors, outs)
            finally:
                self._running = False
        made = [EagerTensor(a, r.array_type) for a, r in zip(outs, self._results)]
        return tuple([made[i] for i in self._order])

    def _slow_entry(self, *tensors: EagerTensor) -> Any:
        return self.traced.packed(self.run(tensors))

    def _again(self, state: bool, tensors: Sequence[EagerTensor], outs: list[Any]) -> None:
        """A first segment that did not finish: arrays it cannot read, or bad values."""
        if state:
            self._fail()
        arrays = [np.require(t._a, None, ("C", "A")) for t in tensors]
        if self._calls[0](*arrays, *outs):
            self._fail()

    def _fail(self) -> None:
        code = int(self._flag[0])
        self._flag[0] = 0
        raise InvalidArgumentError(self.source.failures[code - 1])

    def _segments(self, tensors: Sequence[EagerTensor], outs: list[Any]) -> None:
        arrays = [np.require(t._a, None, ("C", "A")) for t in tensors]
        for i, (call, nodes) in enumerate(zip(self._calls, self.source.segments)):
            with self._guard:
                failed = call(*arrays, *outs) if i == 0 else call()
                if call is self._calls[-1]:
                    self.writer.runs += 1
            if failed:
                self._fail()
            for node in nodes:
                self._host(node, arrays, outs)

    def _array(self, value: Value, arrays: Sequence[Any], outs: Sequence[Any]) -> np.ndarray:
        """A value where it lies."""
        place, strides, offset = self.plan.layout(value)
        dtype = numpy_dtype(value.dtype)
        groups = {"argument": arrays, "result": outs, "cell": self._cells,
                  "constant": self._constants, "capture": self._held}
        if place.role == "arena":
            base = self._arena[place.at:]
        else:
            base = groups[place.role][place.at].reshape(-1).view(np.uint8)
        start = offset * dtype.itemsize
        return np.ndarray(value.shape, dtype, base, start,
                          tuple(s * dtype.itemsize for s in strides))

    def _host(self, node: Node, arrays: Sequence[Any], outs: Sequence[Any]) -> None:
        assert isinstance(node, Hosted)
        inputs = [self._array(v, arrays, outs) for v in node.inputs]
        made = hosted(node, inputs)
        for value, array in zip(node.outputs, made):
            np.copyto(self._array(value, arrays, outs), array)


def hosted(node: Hosted, inputs: Sequence[np.ndarray]) -> list[Any]:
    """The arrays that an op gives in Python."""
    op = node.op
    tensors = [EagerTensor(np.array(a), CPU.type_of(a.dtype)) for a in inputs]
    made = op.reapply(tensors, node.attrs)
    return [t._a for t in made]


def _aligned(count: int) -> np.ndarray:
    """Zeroed memory that begins at a multiple of 64 bytes."""
    memory = np.zeros(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start: start + count]


def compiled(traced: Traced, *, fuse: bool = True,
             ) -> Program | NumpyProgram | Applied:
    """The program of a trace: native where that can be. Without `fuse` every node is a step."""
    from gtape.devices.cpu.toolchain import library

    reason = why_not(traced)
    if reason:
        return NumpyProgram(traced, reason) if on_host(traced) else Applied(traced, reason)
    module = sparse_updates(lowered(traced))
    module.check()
    plan = Plan(module, fused=fuse)
    source = source_of(plan, len(traced.arguments), len(traced.captured))
    try:
        return Program(traced, plan, source, library(source.text))
    except KernelError as error:
        warnings.warn(f"a traced function runs without native code, slower: {error}",
                      NativeCodeWarning, stacklevel=stack_level())
        return NumpyProgram(traced, str(error))


bodies.install()
