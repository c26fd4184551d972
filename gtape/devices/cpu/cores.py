"""How many cores this process really has, and how many threads NumPy's OpenBLAS computes with.

OpenBLAS divides a product of some 260,000 multiplications or more among all cores, and its threads
spin until the last of them is done. Where one shares its core with a compiler, all wait for a time
slice of the system, some milliseconds, and a product of 10 us takes as long: the first epoch of an
LSTM took 25 s of processor time on two cores, and takes 2 s with a core left to the compiler.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from gtape.core.locks import lock

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_GROUPS = Path("/sys/fs/cgroup")
#: Threads at most, as in kernels/cpu_pool.h.
MOST = 1024


def cores() -> int:
    """Cores that the process may run on, within the time that its control group grants. Hardware
    threads of one core share its arithmetic units, so they count once."""
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not allowed:
        return os.cpu_count() or 1
    # The affinity mask, not `os.cpu_count`: containers and `taskset` grant fewer than there are.
    distinct = len({_text(_TOPOLOGY.format(cpu)) or str(cpu) for cpu in allowed})
    return max(1, int(min(distinct, _granted())))


def wanted() -> int:
    """The threads that the environment asks for, GTAPE_NUM_THREADS before OMP_NUM_THREADS, `MOST`
    at most; else `cores()`."""
    for variable in ("GTAPE_NUM_THREADS", "OMP_NUM_THREADS"):
        with contextlib.suppress(ValueError):
            count = int(os.environ.get(variable, "").split(",")[0])
            if count > 0:
                return min(count, MOST)
    return min(cores(), MOST)


def _granted() -> float:
    """Processor time per time that the control groups of this process allow."""
    limits = [float("inf")]
    for line in (_text("/proc/self/cgroup") or "").splitlines():
        number, controllers, path = line.split(":", 2)
        # cgroups of the second version have one hierarchy, numbered 0; of the first, one for each
        # controller.
        if number == "0":
            limits += map(_second_version, _upward(_GROUPS, path))
        elif "cpu" in controllers.split(","):
            limits += map(_first_version, _upward(_GROUPS / "cpu", path))
    return min(limits)


def _upward(root: Path, path: str) -> list[Path]:
    inner = root / path.lstrip("/")
    return [inner, *(parent for parent in inner.parents if parent.is_relative_to(root))]


def _second_version(group: Path) -> float:
    return _ratio(*(_text(group / "cpu.max") or "max 1").split())


def _first_version(group: Path) -> float:
    return _ratio(_text(group / "cpu.cfs_quota_us") or "-1",
                  _text(group / "cpu.cfs_period_us") or "1")


def _ratio(quota: str, period: str = "100000") -> float:
    with contextlib.suppress(ValueError, ZeroDivisionError):
        if int(quota) > 0:
            return int(quota) / int(period)
    return float("inf")


def _text(path: str | Path) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text("utf-8").strip()
    return ""


class _Blas(NamedTuple):
    """OpenBLAS' own functions, called without giving up the interpreter: they take 0.1 us."""

    get_threads: Callable[[], int]
    set_threads: Callable[[int], None]


@cache
def _openblas() -> _Blas | None:
    """The one that NumPy is linked with; None: it is another library, which is left as it is."""
    try:
        linked = import_module("numpy._core._multiarray_umath")
        # PyDLL keeps the interpreter's lock: giving it up and taking it back costs more than the
        # call.
        library = ctypes.PyDLL(str(linked.__file__))  # and what that is linked with
    except (ImportError, OSError):
        return None
    # NumPy's wheels prefix the symbols of their OpenBLAS, and suffix those with 64-bit integers;
    # distributions do neither.
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            with suppress(AttributeError):
                return _Blas(library[f"{prefix}_get_num_threads{suffix}"],
                             library[f"{prefix}_set_num_threads{suffix}"])
    return None


class _Fewer:
    """The calls under way that leave a core, and the threads that there were before."""

    lock = lock()
    calls = 0
    threads = 1


def leaving_a_core(run: Callable[..., object]) -> Callable[..., Any]:
    """`run`, with NumPy's matrix products on a thread fewer than there are cores while it runs."""
    blas = _openblas()
    if blas is None or blas.get_threads() == 1:
        return run
    get_threads, set_threads = blas

    def fewer(*args: object) -> Any:
        with _Fewer.lock:
            if not _Fewer.calls:
                _Fewer.threads = get_threads()
                set_threads(max(_Fewer.threads - 1, 1))
            _Fewer.calls += 1
        try:
            return run(*args)
        finally:
            with _Fewer.lock:
                _Fewer.calls -= 1
                if not _Fewer.calls:
                    set_threads(_Fewer.threads)

    return fewer
