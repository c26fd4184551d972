"""Arrays that compiled programs write to in place: the buffers of variables, and guard zones.

A tensor somebody read must never change, so eager code gets copies of a buffer: one for each time
that a program has written since the last copy. Programs count their runs; nothing else is done per
run.

Guard zones are a pattern before and behind the memory of a program's values: a debugging aid, off
unless GTAPE_GUARD_ZONES=1 is in the environment while a program is made. The pattern is not a
number in every floating-point type, so that what is read of it shows as well.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtape.core.context import new_key, tracer_now
from gtape.core.device import ArrayType
from gtape.core.tensor import EagerTensor, StateRef, Tensor

if TYPE_CHECKING:
    import numpy as np


class BufferWriter:
    """What a variable knows of a program that writes to it, and keeps when the program is gone:
    `runs`, how often it wrote, and `lock`, which is held while it does."""

    __slots__ = ("lock", "runs")

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.runs = 0


class SharedBuffer:
    """`array` never moves; `writers` write to it."""

    __slots__ = ("_copy", "array", "writers")

    def __init__(self, value: Any, held: EagerTensor) -> None:
        self.array = value
        self.writers: list[BufferWriter] = []
        #: How often programs had written when the tensor was copied, and the tensor: one object,
        #: so that no thread sees one without the other.
        self._copy = (0, held)

    def _written(self) -> int:
        runs = 0  # asked at every read: no frame of a comprehension
        for writer in self.writers:
            runs += writer.runs
        return runs

    def join(self, writer: BufferWriter) -> None:
        """`writer` writes to the array from now on."""
        if not any(w is writer for w in self.writers):
            self.writers.append(writer)
            # What it wrote before was elsewhere, and makes no copy of this array stale.
            self._copy = (self._copy[0] + writer.runs, self._copy[1])

    def fresh(self) -> EagerTensor:
        """The present value, copied if something was written since the last copy."""
        # Without a lock where nothing was written, which is nearly always. A run that is under way
        # counts when it ends: until then the copy of before is the value.
        seen, held = self._copy
        if self._written() == seen:
            return held
        with ExitStack() as stack:
            for writer in self.writers:
                stack.enter_context(writer.lock)
            tensor = EagerTensor(held._t.xp.array(self.array), held._t)
            self._copy = (self._written(), tensor)
            return tensor

    def put(self, value: EagerTensor) -> None:
        """Eager code assigned a value of the same shape."""
        with ExitStack() as stack:
            for writer in self.writers:
                stack.enter_context(writer.lock)
            # Into the array and not in its place: programs have its address.
            if isinstance(self.array, np.ndarray):
                np.copyto(self.array, value._a)
            else:
                self.array[...] = value._a
            self._copy = (self._written(), value)


class ArrayState(StateRef):
    """State of traces (see `trace.tracer`) over an array. Reads copy it, writes go into it."""

    __slots__ = ("__weakref__", "_k")

    #: What tapes ask of state that is read.
    trainable = False

    def __init__(self) -> None:
        self._k = new_key()

    @property
    def name(self) -> str:
        raise NotImplementedError

    def _array(self) -> Any:
        """The array, always the same memory."""
        raise NotImplementedError

    def _type(self) -> ArrayType:
        raise NotImplementedError

    def _initial_(self) -> EagerTensor:
        """For a trace: a copy of the state at this moment."""
        array_type = self._type()
        # A copy: the array is written in place, and a tensor never changes.
        return EagerTensor(array_type.xp.array(self._array()), array_type)

    @property
    def _value(self) -> Tensor:
        tracer = tracer_now()
        return self._initial_() if tracer is None else tracer.read(self)

    @_value.setter
    def _value(self, value: Tensor) -> None:
        tracer = tracer_now()
        if tracer is not None:
            tracer.write(self, value)
        else:
            self._array()[...] = value._array_()

    def _read_(self) -> Tensor:
        return self._value

    def _commit_(self, value: Tensor) -> None:
        """A traced function left this value."""
        self._value = value

    def _buffer_(self, writer: object) -> np.ndarray:
        """The array that a compiled program reads, and in which it leaves new values."""
        return self._array()


#: Bytes of a zone: whole rows that a kernel writes too much are still inside.
ZONE = 16384
#: Where values begin, as in programs without zones.
_ALIGNMENT = 64
#: 0xFFFD again and again: NaN in float16, bfloat16, float32 and float64, and no number that a
#: kernel is likely to write.
_PATTERN = np.frombuffer(b"\xfd\xff" * (2 * ZONE), np.uint8)


def zones_wanted() -> bool:
    """Whether programs that are made now get guard zones."""
    return os.environ.get("GTAPE_GUARD_ZONES", "").strip().lower() not in (
        "", "0", "false", "off", "no")


class Damage(NamedTuple):
    """How far before and behind a value something was written, in bytes."""

    before: int
    behind: int


class Guarded(bytearray):
    """Zone, `size` bytes, zone. It is no array, so that views of an array in it hold that one."""

    __slots__ = ("size", "start")

    size: int
    start: int

    @property
    def bytes(self) -> np.ndarray:
        return np.ndarray(len(self), np.uint8, self)


def guarded(count: int) -> Guarded:
    """Memory of `count` bytes between zones, filled with the pattern."""
    block = Guarded(count + 2 * ZONE + _ALIGNMENT)
    block.size = count
    block.start = ZONE + -(block.bytes.ctypes.data + ZONE) % _ALIGNMENT
    fill_pattern(block.bytes)
    return block


def guarded_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array between zones."""
    kind = np.dtype(dtype)
    memory = guarded(prod(shape) * kind.itemsize)
    return np.ndarray(shape, kind, memory, memory.start)


def guarded_copy(array: np.ndarray) -> np.ndarray:
    """A dense copy between zones."""
    copy = guarded_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def fill_pattern(memory: np.ndarray) -> None:
    """Leave nothing but the pattern in bytes."""
    for i in (0, 1):
        memory[i::2] = _PATTERN[i]


def damage(memory: np.ndarray, start: int, count: int) -> Damage:
    """What was written within a zone's length of the `count` bytes from `start` on. The zones are
    as new afterwards."""
    end = start + count
    before, behind = _changed(memory, start - ZONE), _changed(memory, end)
    return Damage(start - int(before[0]) if len(before) else 0,
                  int(behind[-1]) + 1 - end if len(behind) else 0)


def damage_around(array: np.ndarray) -> Damage:
    """What was written beside an array; nothing where it has no zones."""
    memory = array.base
    if type(memory) is not Guarded:
        return Damage(0, 0)
    return damage(memory.bytes, memory.start, memory.size)


def _changed(memory: np.ndarray, begin: int) -> np.ndarray:
    """Where the zone that begins there differs from the pattern, which is put back."""
    zone, expected = memory[begin: begin + ZONE], _PATTERN[begin % 2:][:ZONE]
    places = begin + np.flatnonzero(zone != expected)
    if len(places):
        zone[...] = expected
    return places
