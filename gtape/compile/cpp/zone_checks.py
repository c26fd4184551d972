"""Zones: what a program wrote beside its values, found after each of its native functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gtape.compile.cpp.module_source import ProgramSource
from gtape.compile.cpp.program_memory import ProgramMemory
from gtape.compile.ir.nodes import IrNode, Value
from gtape.compile.schedule.plan import MemoryPlan, Place, nbytes
from gtape.core import buffers
from gtape.core.buffers import Damage
from gtape.core.errors import GuardZoneError
from gtape.core.locks import lock


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
