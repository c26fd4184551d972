"""Memory of the emulated device: arrays between guard zones, poisoned until they are written."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from gtape.devices.cuda.runtime.executor import numpy_dtype

GUARD = 256
#: That of cudaMalloc.
ALIGNMENT = 256
#: A quiet NaN in every float type, and no likely integer.
_PATTERN = b"\xfd\xff"
_ZONE = _PATTERN * (GUARD // 2)


class _Block(np.ndarray):
    """The bytes of one allocation: guard, contents, guard."""

    contents: int
    size_asked: int


#: Every allocation in use.
_BLOCKS: weakref.WeakValueDictionary[int, _Block] = weakref.WeakValueDictionary()


class DeviceMemory:
    """Allocates arrays as a GPU's memory pool does: aligned to 256 bytes, contents undefined.
    sanitize: AddressSanitizer is told of the guard zones, so a kernel may not read them either."""

    def __init__(self, sanitize: bool = False) -> None:
        self._sanitizer = ctypes.CDLL(None) if sanitize else None

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array of NaN (odd integers where the dtype is no float)."""
        kind = numpy_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        size = math.prod(shape) * kind.itemsize
        raw = np.empty(size + size % 2 + 2 * GUARD + ALIGNMENT, np.uint8).view(_Block)
        raw.contents = GUARD + -(raw.ctypes.data + GUARD) % ALIGNMENT
        raw.size_asked = size
        start = raw.contents - GUARD
        whole = raw[start:start + size + size % 2 + 2 * GUARD].view(np.ndarray)
        whole.view(np.uint16)[...] = int.from_bytes(_PATTERN, "little")
        if self._sanitizer is None:
            _BLOCKS[id(raw)] = raw
        else:
            _forbid(self._sanitizer, raw)
        return raw[raw.contents:raw.contents + size].view(np.ndarray).view(kind).reshape(shape)

    def copy(self, array: np.ndarray) -> np.ndarray:
        """`array` in memory of its own, C-contiguous."""
        new = self.empty(array.shape, array.dtype)
        new[...] = array
        return new


def damage(arrays: Iterable[tuple[str, object]], everywhere: bool) -> str:
    """What was written into guard zones of the named arrays, or of all arrays in use; empty where
    nothing was."""
    for name, array in arrays:
        block = _block(array)
        harm = "" if block is None else _written(block)
        if harm:
            return f"wrote outside the array {name}: {harm}"
    if everywhere:
        for block in list(_BLOCKS.values()):
            harm = _written(block)
            if harm:
                return f"wrote outside an array that is no argument: {harm}"
    return ""


def _forbid(sanitizer: ctypes.CDLL, raw: _Block) -> None:
    """Forbid the guard zones of a block as long as it lives."""
    place = raw.ctypes.data + raw.contents
    zones = [(place - GUARD, GUARD), (place + raw.size_asked, GUARD)]
    for start, size in zones:
        sanitizer.__asan_poison_memory_region(ctypes.c_void_p(start), ctypes.c_size_t(size))
        weakref.finalize(raw, sanitizer.__asan_unpoison_memory_region, ctypes.c_void_p(start),
                         ctypes.c_size_t(size))


def _block(array: object) -> Any:
    while isinstance(array, np.ndarray):
        if id(array) in _BLOCKS:
            return array
        array = array.base
    return None


def _written(block: _Block) -> str:
    start, end = block.contents, block.contents + block.size_asked
    odd = block.size_asked % 2
    for zone, wanted, offset in (
            (block[start - GUARD:start], _ZONE, -GUARD),
            (block[end:end + odd + GUARD], _ZONE[-odd:] * odd + _ZONE, block.size_asked)):
        if zone.tobytes() != wanted:
            first = int(np.flatnonzero(zone != np.frombuffer(wanted, np.uint8))[0]) + offset
            return f"byte {first} of an array of {block.size_asked} bytes"
    return ""
