"""An executor whose device is the CPU: kernels run under the emulator on NumPy arrays."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.errors import InternalError, InvalidArgumentError, KernelError
from gtape.devices.cuda.runtime.executor import Executor, Function, Grid
from gtape.devices.cuda.runtime.kernel import Kernel, address
from gtape.kernelcheck import SCHEDULES
from gtape.kernelcheck.checks.bench import Bench
from gtape.kernelcheck.emulator.build import EmulatorLibrary, KernelEntry, library, runtime
from gtape.kernelcheck.emulator.memory import DeviceMemory, damage

if TYPE_CHECKING:
    from gtape.core.annotations import IntsLike

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
