"""An executor whose device is the CPU: kernels run under the emulator on NumPy arrays, which lie
between guard zones and are poisoned until they are written.
"""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.errors import InternalError, InvalidArgumentError, KernelError
from gtape.devices.cuda.runtime.executor import Executor, Function, Grid, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, address
from gtape.kernelcheck import SCHEDULES
from gtape.kernelcheck.checks.bench import Bench
from gtape.kernelcheck.emulator.build import EmulatorLibrary, KernelEntry, library, runtime

if TYPE_CHECKING:
    from gtape.core.annotations import IntsLike

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


#: What a block of a Hopper GPU can have, so that the larger tiles run.
_SHARED_BYTES = 227 * 1024
_LETTERS = {"long long": "q", "double": "d"}
#: CuPy passes a number as what it is in Python: an int where a double is meant is other bits.
_NUMBERS: dict[str, Any] = {"long long": (int, ctypes.c_longlong),
                            "double": (float, ctypes.c_double)}
#: The runtime has one block at a time.
_LOCK = threading.Lock()


class _Launch(ctypes.Structure):
    """The structure Launch of emulator.cpp."""

    _fields_ = (
        ("body", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3), ("dynamic", ctypes.c_ulonglong), ("seed", ctypes.c_ulonglong),
        ("schedule", ctypes.c_int), ("seconds", ctypes.c_int), ("shared", ctypes.c_void_p * 2),
        ("message", ctypes.c_char_p), ("message_size", ctypes.c_ulonglong))


class Emulator:
    """Loads kernels for the CPU: a `Loader`.

    Args:
        schedule: in which order threads and blocks run: "ascending", "descending" or "random".
        seed: of the random schedule; each launch draws another one from it.
        sanitize: with AddressSanitizer and UBSan; see `build.sanitized_environment`.
        seconds: CPU time after which a launch is given up (not with `sanitize`).
    """

    def __init__(self, schedule: str = "ascending", seed: int = 0, sanitize: bool = False,
                 seconds: int = 60) -> None:
        if schedule not in SCHEDULES:
            raise InvalidArgumentError(f"schedule must be one of {', '.join(SCHEDULES)}; got "
                                       f"{schedule!r}")
        self.schedule = schedule
        self.seed = seed
        self.sanitize = sanitize
        self.seconds = seconds
        self._launches = 0
        self._prepared: dict[tuple[str, str], EmulatorLibrary] = {}

    def prepare(self, kernels: Iterable[Kernel]) -> None:
        """Build many kernels, those of one text at once."""
        texts: dict[str, list[str]] = {}
        for kernel in kernels:
            if (kernel.text, kernel.entry) not in self._prepared:
                texts.setdefault(kernel.text, []).append(kernel.entry)
        for text, entries in texts.items():
            # One library for all kernels of a text: reading it takes the compiler longer than a
            # kernel more does.
            built = library(text, tuple(dict.fromkeys(entries)), sanitize=self.sanitize)
            self._prepared.update(((text, entry), built) for entry in entries)

    def load(self, kernel: Kernel) -> Function:
        """The kernel as a function of this process. Raises KernelError: it does not compile."""
        self.prepare([kernel])
        built = self._prepared[kernel.text, kernel.entry]
        entry = built.entries[kernel.entry]
        _agree(kernel, entry)
        launch = runtime(self.sanitize).gtape_emulator_launch

        def run(grid: Grid, block: Grid, args: tuple[object, ...], smem: int, stream: None) -> None:
            values = [_value(kernel, i, arg) for i, arg in enumerate(args)]
            places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
            message = ctypes.create_string_buffer(2048)
            with _LOCK:
                self._launches += 1
                # Seeds are far apart, so that no two draw the same schedules one launch later.
                failed = launch(ctypes.byref(_Launch(
                    entry.body, ctypes.addressof(places), grid, block, smem,
                    self.seed * 1_000_003 + self._launches, SCHEDULES.index(self.schedule),
                    self.seconds, built.shared, ctypes.addressof(message), len(message))))
            harm = damage(zip((p.name for p in kernel.params), args), _indirect(kernel))
            if failed or harm:
                said = message.value.decode(errors="replace")
                raise KernelError(f"the kernel {kernel.entry}, grid {grid}, block {block}: "
                                  + "; ".join(filter(None, (said, harm))))

        return run

    def stream(self) -> None:
        """The CPU has no streams: a launch has ended when it returns."""


def _value(kernel: Kernel, index: int, arg: object) -> Any:
    param = kernel.params[index]
    if param.kind == "array":
        return ctypes.c_void_p(address(arg))
    wanted, passed = _NUMBERS[param.type]
    if type(arg) is not wanted:
        raise InternalError(f"the kernel {kernel.entry}: {param.name} must be a Python "
                            f"{wanted.__name__}; got {type(arg).__name__}")
    return passed(arg)


def _indirect(kernel: Kernel) -> bool:
    """Whether the kernel may reach memory that is no argument: through a table of pointers."""
    return any(p.kind == "array" and not p.type for p in kernel.params)


def _agree(kernel: Kernel, entry: KernelEntry) -> None:
    """The compiler's view of the parameters must be the one that `Kernel` read from the text."""
    read = "".join("p" if p.kind == "array" else _LETTERS[p.type] for p in kernel.params)
    if entry.signature.decode() != read:
        raise InternalError(f"the kernel {kernel.entry}: its declaration was read as {read!r}, and "
                            f"the compiler found {entry.signature.decode()!r}")


class EmulatedExecutor(Executor):
    """Memory of NumPy arrays, between guard zones that a launch must leave as they are."""

    def __init__(self, loader: Emulator, multiprocessors: int = 4) -> None:
        self.emulator = loader
        self._memory = DeviceMemory(loader.sanitize)
        super().__init__(np, self._memory.empty, loader, multiprocessors, _SHARED_BYTES)

    def zeros(self, shape: IntsLike, dtype: Any) -> Any:
        array = self.empty(shape, dtype)
        array[...] = 0
        return array

    def contiguous(self, array: Any) -> Any:
        return array if array.flags.c_contiguous else self._memory.copy(array)


def emulated_executor(schedule: str = "ascending", seed: int = 0, *,
                      sanitize: bool = False) -> EmulatedExecutor:
    """An executor with NumPy's arrays, whose kernels run under the emulator."""
    return EmulatedExecutor(Emulator(schedule, seed, sanitize))


def emulated_bench(schedule: str = "ascending", seed: int = 0, *, sanitize: bool = False) -> Bench:
    """A bench on the CPU."""
    gpu = emulated_executor(schedule, seed, sanitize=sanitize)
    return Bench(gpu, upload=gpu._memory.copy, download=np.array)
