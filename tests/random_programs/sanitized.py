"""Programs built with AddressSanitizer and UndefinedBehaviorSanitizer, and run.

Every value, argument, result and Variable has a place of its own (GTAPE_GUARD_ZONES=1), and the
zones between them are poisoned, so that a kernel may neither write nor read beside its values.
The sanitizers must be in a process from its start: `hunt` starts such processes, each of which
compiles and runs programs until the time is over.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from gtape.compile.cpp import program
from gtape.compile.cpp.program_memory import ProgramMemory, Zones
from gtape.compile.schedule.plan import nbytes
from gtape.core import buffers
from gtape.devices.compiler import Recipe
from gtape.devices.cpu import toolchain
from gtape.kernelcheck.emulator.build import sanitized_environment

from .compare import Finding, findings
from .elaborate import Elaborated
from .generate import generate
from .hunt import GROUP, guarded, report
from .nasty import NASTY, disagreements
from .values import INTEGERS

#: Functions of the fixed list that are compiled together.
_TOGETHER = 6
_ROOT = Path(__file__).resolve().parents[2]
_DROPPED = ("-O3", "-O2", "-fwrapv")
#: Frames are kept, and the text has line numbers, so that reports can be read.
_OPTIONS = ("-O1", "-g1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
            "-fno-sanitize=vptr", "-fno-sanitize-recover=all")


class _Wrapping:
    """Whether integers may overflow: they wrap in programs of a user's integers, as they do in
    TensorFlow; elsewhere an overflow is a wrong address."""

    allowed = False

#: Before another stands in its place.
USUAL = toolchain.recipe


def recipe(*more: str) -> Recipe:
    """How programs are compiled here, in place of `toolchain.recipe`."""
    usual = USUAL(*more)
    kept = tuple(o for o in usual.options if o not in _DROPPED)
    wrapping = ("-fwrapv",) if _Wrapping.allowed else ()
    return usual._replace(options=(*kept, *_OPTIONS, *wrapping))


class Poisoned(Zones):
    """Zones that nothing may touch, in place of zones that are looked at."""

    def watch(self, memory: ProgramMemory) -> None:
        ends = [(self._plan.places[v.number].at, nbytes(v)) for v in self._plan.between]
        start = memory.arena.ctypes.data
        at = 0
        for begin, count in sorted(ends):
            _poison(start + at, begin - at)
            at = begin + count
        _poison(start + at, len(memory.arena) - at)
        for array in [*memory.scratch, *(a for each in self._shared.values() for a in each)]:
            _poison_around(array)
        super().watch(memory)

    def _watched(self, memory: ProgramMemory, call: Callable[..., Any], held: list[Any],
                 first: bool) -> Callable[..., Any]:
        def run(*arrays: Any) -> Any:
            if first:
                held[:] = [buffers.guarded_copy(a) if isinstance(a, np.ndarray) else a
                           for a in arrays[:self._arguments]]
                held.extend(arrays[self._arguments:])
                for array in held:
                    _poison_around(array)
            return call(*held) if first else call()

        return run


def _poison_around(array: Any) -> None:
    memory = getattr(array, "base", None)
    if type(memory) is buffers.Guarded:
        start = memory.bytes.ctypes.data
        _poison(start, memory.start)
        end = memory.start + memory.size
        _poison(start + end, len(memory) - end)


def _poison(start: int, count: int) -> None:
    if count > 0:
        ctypes.CDLL(None).__asan_poison_memory_region(ctypes.c_void_p(start),
                                                      ctypes.c_size_t(count))


def install() -> None:
    """Compile and run the programs of this process so."""
    os.environ["GTAPE_GUARD_ZONES"] = "1"
    toolchain.recipe = recipe  # type: ignore[assignment]
    program.Zones = Poisoned  # type: ignore[misc]


def environment() -> dict[str, str]:
    """The environment of a process with the sanitizers, in which this package is found."""
    made = sanitized_environment()
    made["ASAN_OPTIONS"] += ":max_free_fill_size=65536:free_fill_byte=221"
    path = [str(_ROOT), str(_ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    return made | {"PYTHONPATH": os.pathsep.join(filter(None, path)), "GTAPE_NATIVE": "1"}


# ------------------------------------------------------------------ in such a process


def check(members: Sequence[Elaborated]) -> list[tuple[int, Finding]]:
    """What is wrong with programs, where no sanitizer ends the process."""
    _Wrapping.allowed = any(_has_integers(m) for m in members)
    found = findings(members, ("native",))
    gc.collect()  # what is left of the functions must not be used any more
    return found


def _has_integers(made: Elaborated) -> bool:
    return any(f"tf.{d}" in made.text for d in INTEGERS) or any(
        g.dtype in INTEGERS and not g.limit for g in made.given)


def _check_nasty(cases: Sequence[Any]) -> list[tuple[int, Finding]]:
    return [(0, Finding("value", "native", said)) for said in disagreements(cases)]


def work(part: int, parts: int, seed: int, seconds: float, leave_out: Sequence[str] = ()) -> int:
    """The share of one process: the fixed list first, then random programs until time is over."""
    install()
    end, status, count = time.monotonic() + seconds, 0, 0
    cases = NASTY[part::parts]
    for start in range(0, len(cases), _TOGETHER):
        chosen: list[Any] = cases[start: start + _TOGETHER]
        for _, finding in guarded(chosen, _check_nasty):
            status = 1
            print(f"of {', '.join(c[0] for c in chosen)}: {finding}", flush=True)
    while time.monotonic() < end and not status:
        first = seed + (count * parts + part) * GROUP
        members = [generate(first + i) for i in range(GROUP)]
        found = [(i, f) for i, f in guarded(members, check) if f.kind not in leave_out]
        count += 1
        if found:
            status = 1
            report(first, members, found, check)
    print(f"{count * GROUP} programs with sanitizers from seed {seed}, part {part} of {parts}: "
          f"{'see above' if status else 'nothing found'}", flush=True)
    return status


# ------------------------------------------------------------------ from outside


def hunt(seed: int, seconds: float, jobs: int, leave_out: Sequence[str] = ()) -> int:
    """Programs with sanitizers for a time, in `jobs` processes; the status of the command."""
    def start(part: int) -> int:
        command = [sys.executable, "-W", "ignore", "-m", "tests.random_programs.sanitized",
                   str(part), str(jobs), str(seed), str(seconds), *leave_out]
        return subprocess.run(command, cwd=_ROOT, env=environment(), check=False).returncode

    with ThreadPoolExecutor(jobs) as pool:
        return max(pool.map(start, range(jobs)))


if __name__ == "__main__":
    part, parts, first = map(int, sys.argv[1:4])
    sys.exit(work(part, parts, first, float(sys.argv[4]), sys.argv[5:]))
