"""NativeProgram: a compiled graph, bound to the memory of its states and ready to be called; and
what it is made of, as text: its nodes, its plan, its traffic, its C++."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from gtape.compile.cpp.entry import Result, entry_of
from gtape.compile.cpp.module_source import ProgramSource, source_of
from gtape.compile.cpp.program_memory import ProgramMemory, Zones
from gtape.compile.frontend.closed_graph import ClosedGraph, CompiledProgram
from gtape.compile.ir.lower import lower
from gtape.compile.ir.nodes import Hosted, IrNode, LibraryCall, Product, Value
from gtape.compile.ir.sparse_updates import sparse_reads, sparse_updates
from gtape.compile.launches import InterpretedProgram, why_not
from gtape.compile.numpy.program import NumpyProgram, on_host
from gtape.compile.schedule.plan import MemoryPlan, nbytes, numpy_dtype
from gtape.core import buffers
from gtape.core.buffers import BufferWriter
from gtape.core.context import stack_level
from gtape.core.device import CPU
from gtape.core.errors import KernelError, NativeCodeWarning
from gtape.core.locks import lock
from gtape.core.tensor import EagerTensor
from gtape.devices.compiler import Library
from gtape.devices.cpu.toolchain import library


def floor_bytes(plan: MemoryPlan) -> int:
    """The bytes that have to move whatever the program does in between: arguments, states and
    constants read once, results and states written once."""
    read = {v.number: v for n in plan.module.nodes for v in n.outputs
            if plan.places.get(v.number, ("", 0))[0] in (
                "argument", "capture", "state", "constant") and not n.inputs}
    written = {v.number: v for v in plan.module.needed()}
    return sum(map(nbytes, read.values())) + sum(map(nbytes, written.values()))


def traffic_bytes(plan: MemoryPlan) -> int:
    """The bytes that the steps read and write, each array once a step."""
    total = 0
    by_number = {v.number: v for n in plan.module.nodes for v in n.outputs}
    for group in plan.groups:
        own = {o.number for n in group.nodes for o in n.outputs}
        total += sum(nbytes(by_number[n]) for n in group.reads if n not in own)
        total += sum(nbytes(by_number[n]) for n in own if n in plan.stored)
    return total


def flops(plan: MemoryPlan) -> int:
    """Multiplications and additions of the matrix products."""
    return sum(2 * n.outputs[0].size * n.inputs[0].shape[-1]
               for n in plan.module.nodes if isinstance(n, Product))


def _size(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 10240 or unit == "MiB":
            return f"{count:,} {unit}"
        count //= 1024
    return ""


def _step(plan: MemoryPlan, position: int) -> str:
    group = plan.groups[position]
    names = [_label(node) for node in group.nodes]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    stored = [f"%{o.number} at {_place(plan, o)}" for n in group.nodes for o in n.outputs
              if o.number in plan.stored]
    domain = "" if group.domain is None else f" over {list(group.domain)}"
    return f"{position:4d}  {shown}{domain} -> {'; '.join(stored) or 'nothing kept'}"


def _label(node: IrNode) -> str:
    if isinstance(node, Product):
        a, b = node.inputs
        return f"product {list(a.shape)} x {list(b.shape)}"
    return node.name if isinstance(node, LibraryCall) else node.label


def _place(plan: MemoryPlan, value: Value) -> str:
    role, at = plan.places[value.number]
    kept = " in place" if value.number in plan.in_place else ""
    return f"{role} {at}{kept}"


def described(plan: MemoryPlan, arena: int, text: str) -> str:
    """The nodes, the steps with the places of what they make, the bytes, and the source."""
    lines = ["nodes", *("  " + line for line in str(plan.module).split("\n")), "", "plan"]
    lines += ["  " + _step(plan, i) for i in range(len(plan.groups))]
    lines += ["", f"arena {_size(arena)}, traffic {_size(traffic_bytes(plan))}, of which "
                  f"{_size(floor_bytes(plan))} cannot be avoided; matrix products "
                  f"{flops(plan):,} operations", "", "source", *text.split("\n")]
    return "\n".join(lines)


#: Held while a program writes to states, and while they are copied; never while Python code runs,
#: which may wait for another thread that runs a program. The process forks while nobody has it, so
#: that the child finds no Variable half written.
_LOCK = threading.RLock()
#: Memories that a program with steps in Python keeps for later calls.
#: Calls within calls, or in several threads, each need one; more than a few at a time are rare.
_SPARE = 4

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release,
                        after_in_child=_LOCK.release)


class NativeProgram:
    """`run(tensors)` gives the results; the states are updated where they lie.

    `writer` counts how often the states were written.
    """

    def __init__(self, traced: ClosedGraph, plan: MemoryPlan, source: ProgramSource,
                 library: Library) -> None:
        self.traced, self.plan, self.source = traced, plan, source
        self.writer = BufferWriter(_LOCK)
        self._library = library
        empty = buffers.guarded_empty if plan.guarded else np.empty
        self._results = [Result(v.shape, numpy_dtype(v.dtype), empty) for v in plan.outputs]
        self._order = plan.result_of
        self._shared = self._arrays()
        self._zones = Zones(plan, source, len(traced.arguments), self._shared) if (
            plan.guarded) else None
        self._memory = self._new_memory()
        hosted = any(source.segments)
        #: Held by the thread that uses the memory, where calls share one.
        # Programs with steps in Python take a memory for each call (`_apart`): holding a lock while
        # Python runs might wait for a thread that waits for this one.
        self._turn = None if hosted else lock()
        self._spare = [self._memory] if hosted else []
        #: Takes the arguments as tensors, and gives the result as the traced function does.
        self.entry = self._slow_entry if hosted or source.releases else entry_of(
            self, self._memory.calls[0], traced.structure, len(traced.arguments), self._results,
            self._order, len(plan.states), bool(plan.module.writes), self._again)

    def _arrays(self) -> dict[str, list[np.ndarray]]:
        """What all calls read and write, by the name of its slots."""
        plan = self.plan
        kept = buffers.guarded_copy if plan.guarded else np.ascontiguousarray
        written = {id(state) for state, _ in plan.module.writes}
        return {
            "captures": [kept(t._a) for t in self.traced.captured],
            "states": [state._buffer_(self.writer if id(state) in written else None)
                      for state in plan.states],
            "constants": [kept(c) for c in plan.constants]}

    def _new_memory(self) -> ProgramMemory:
        memory = ProgramMemory(self.source, self._library, self._shared)
        if self._zones is not None:
            self._zones.watch(memory)
        return memory

    def inspect(self) -> str:
        """The nodes, the plan, the bytes and the C++ text."""
        return described(self.plan, self.plan.arena, self.source.text)

    # ------------------------------------------------------------------ running

    def run(self, tensors: Sequence[EagerTensor]) -> tuple[Any, ...]:
        """The results for arguments of the right shapes and dtypes, as a flat tuple."""
        outs = [result.make() for result in self._results]
        if self._turn is not None:
            with self._turn:
                self._segments(self._memory, tensors, outs)
        else:
            self._apart(tensors, outs)
        results = [EagerTensor(a, r.array_type) for a, r in zip(outs, self._results)]
        return tuple([results[i] for i in self._order])

    def _apart(self, tensors: Sequence[EagerTensor], outs: Sequence[np.ndarray]) -> None:
        """In memory that no other call uses: a step in Python may call the program again, or wait
        for a thread that does."""
        try:
            memory = self._spare.pop()  # in one step: no other thread can take it too
        except IndexError:
            memory = self._new_memory()
        try:
            self._segments(memory, tensors, outs)
        finally:
            if len(self._spare) < _SPARE:
                self._spare.append(memory)

    def _slow_entry(self, *tensors: EagerTensor) -> Any:
        return self.traced.packed(self.run(tensors))

    def _again(self, state: bool, tensors: Sequence[EagerTensor], outs: Sequence[np.ndarray],
               ) -> None:
        """A first segment that did not finish: arrays it cannot read, or bad values."""
        if state:
            self._fail(self._memory)
        # Strided or unaligned arrays: rare, so that only calls that fail for them look at flags.
        arrays = [np.require(t._a, None, ("C", "A")) for t in tensors]
        if self._memory.calls[0](*arrays, *outs):
            self._fail(self._memory)

    def _fail(self, memory: ProgramMemory) -> None:
        code = int(memory.flag[0])
        memory.flag[0] = 0
        kind, text = self.source.failures[code - 1]
        raise kind(text)

    def _segments(self, memory: ProgramMemory, tensors: Sequence[EagerTensor],
                  outs: Sequence[np.ndarray]) -> None:
        arrays = [np.require(t._a, None, ("C", "A")) for t in tensors]
        last = memory.calls[-1]
        for i, (call, nodes) in enumerate(zip(memory.calls, self.source.segments)):
            with _LOCK if self.plan.states else nullcontext():
                failed = call(*arrays, *outs) if i == 0 else call()
                if call is last:
                    self.writer.runs += 1
            if failed:
                self._fail(memory)
            for node in nodes:
                self._host(node, memory, arrays, outs)

    def _array(self, value: Value, memory: ProgramMemory, arrays: Sequence[np.ndarray],
               outs: Sequence[np.ndarray]) -> np.ndarray:
        """A value where it lies."""
        place, strides, offset = self.plan.layout(value)
        dtype = numpy_dtype(value.dtype)
        if place.role == "arena":
            base = memory.arena[place.at:]
        else:
            groups = {"arguments": arrays, "results": outs, **self._shared}
            base = groups[f"{place.role}s"][place.at].reshape(-1).view(np.uint8)
        start = offset * dtype.itemsize
        return np.ndarray(value.shape, dtype, base, start,
                          tuple(s * dtype.itemsize for s in strides))

    def _host(self, node: IrNode, memory: ProgramMemory, arrays: Sequence[Any],
              outs: Sequence[Any]) -> None:
        assert isinstance(node, Hosted)
        inputs = [self._array(v, memory, arrays, outs) for v in node.inputs]
        computed = run_hosted(node, inputs)
        for value, array in zip(node.outputs, computed):
            np.copyto(self._array(value, memory, arrays, outs), array)


def run_hosted(node: Hosted, inputs: Sequence[np.ndarray]) -> list[Any]:
    """The arrays that an op gives in Python."""
    op = node.op
    # Copies: later steps write to this memory, and a tensor never changes.
    tensors = [EagerTensor(np.array(a), CPU.type_of(a.dtype)) for a in inputs]
    results = op.reapply(tensors, node.attrs)
    return [t._a for t in results]


def compile_closed(traced: ClosedGraph, *, fuse: bool = True) -> CompiledProgram:
    """The program of a trace: native where that can be. Without `fuse` every node is a step."""
    return prepare(traced, fuse=fuse)()


def prepare(traced: ClosedGraph, *, fuse: bool = True) -> Callable[[], CompiledProgram]:
    """What gives the program of a trace. All that takes long is done here, which reads no state:
    it may be done in another thread, while this one assigns to Variables."""
    reason = why_not(traced)
    if reason:
        interpreter = NumpyProgram if on_host(traced) else InterpretedProgram
        return lambda: interpreter(traced, reason)
    module = sparse_updates(sparse_reads(lower(traced)))
    module.check()
    plan = MemoryPlan(module, fused=fuse, guarded=buffers.zones_wanted())
    source = source_of(plan, len(traced.arguments), len(traced.captured))
    try:
        loaded = library(source.text)
    except KernelError as error:
        return functools.partial(_without_native_code, traced, str(error))
    return lambda: NativeProgram(traced, plan, source, loaded)


def _without_native_code(traced: ClosedGraph, reason: str) -> NumpyProgram:
    warnings.warn(f"a traced function runs without native code, slower: {reason}",
                  NativeCodeWarning, stacklevel=stack_level())
    return NumpyProgram(traced, reason)
