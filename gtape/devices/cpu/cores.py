"""How many cores this process really has."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_GROUPS = Path("/sys/fs/cgroup")
#: Threads at most, as in kernels/cpu_pool.h.
MOST = 1024


def cores() -> int:
    """Cores that the process may run on, within the time that its control group grants.

    Hardware threads of one core share its arithmetic units, so they count once.
    """
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if not allowed:
        return os.cpu_count() or 1
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
