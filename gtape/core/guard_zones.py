"""Guard zones: a pattern before and behind the memory of a compiled program's values.

A debugging aid, off unless GTAPE_GUARD_ZONES=1 is in the environment while a program is made. The
pattern is not a number in every floating-point type, so that what is read of it shows as well.
"""

from __future__ import annotations

import os
from math import prod
from typing import Any, NamedTuple

import numpy as np

#: Bytes of a zone: whole rows that a kernel writes too much are still inside.
ZONE = 16384
#: Where values begin, as in programs without zones.
_ALIGNMENT = 64
#: 0xFFFD again and again: NaN in float16, bfloat16, float32 and float64, and no number that a
#: kernel is likely to write.
_PATTERN = np.frombuffer(b"\xfd\xff" * (2 * ZONE), np.uint8)


def wanted() -> bool:
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
    fill(block.bytes)
    return block


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array between zones."""
    kind = np.dtype(dtype)
    memory = guarded(prod(shape) * kind.itemsize)
    return np.ndarray(shape, kind, memory, memory.start)


def copied(array: np.ndarray) -> np.ndarray:
    """A dense copy between zones."""
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def fill(memory: np.ndarray) -> None:
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
