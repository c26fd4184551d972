"""CuPy's memory pools, which tell simulated CUDA what they give out: so that an access behind an
array, or to one that was freed, is found although the pool's memory around it is allocated."""

from __future__ import annotations

import ctypes
import os
import sys
from types import ModuleType
from typing import Any

_UNIT = 512  # what CuPy's pool rounds sizes to


def install(cupy: ModuleType, core: ctypes.CDLL) -> None:
    """Let the default pool, and those made from now on, be of the kind that tells."""
    own = (os.path.dirname(cupy.__file__ or ""), os.path.dirname(__file__))
    _declare(core)
    cuda = cupy.cuda
    base: Any = cuda.MemoryPool

    class Token:
        """Lives as long as an array's memory does."""

        def __init__(self, memory: Any, whole: int, stream: int) -> None:
            self.memory, self.whole, self.stream = memory, whole, stream
            self.address = memory.ptr

        def __del__(self) -> None:
            if core is not None:  # while Python ends
                core.gtape_simulated_array_freed(self.address, self.whole, self.stream)

    class MemoryPool(base):
        __doc__ = base.__doc__

        def malloc(self, size: int) -> Any:
            pointer = super().malloc(size)
            if not pointer.ptr:  # empty arrays have no memory to watch
                return pointer
            whole = -(-size // _UNIT) * _UNIT
            stream = cuda.get_current_stream().ptr
            core.gtape_simulated_array(pointer.ptr, size, whole, _place(own), stream)
            token = Token(pointer.mem, whole, stream)
            # Its owner is the token: with the last array it goes, and the pool's memory back.
            memory = cuda.UnownedMemory(pointer.ptr, size, token, pointer.device_id)
            return cuda.MemoryPointer(memory, 0)

    # cupy.cuda.memory keeps its own: compiled modules look there for a type of C.
    cuda.MemoryPool = MemoryPool
    pool = MemoryPool()
    vars(cupy)["_default_memory_pool"] = pool  # where cupy.get_default_memory_pool looks
    cuda.set_allocator(pool.malloc)


def _declare(core: ctypes.CDLL) -> None:
    core.gtape_simulated_array.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p]
    core.gtape_simulated_array_freed.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def _place(own: tuple[str, ...]) -> bytes:
    """The file and line of the program that made the array."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(own):
        if frame.f_back is None:
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}".encode()
