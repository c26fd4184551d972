"""Which GPUs can really be used: found by compiling and running a kernel, not by counting.

A driver without a toolkit, or a toolkit without a driver, counts devices and then fails at the
first kernel. So the probe adds two numbers on each device and reads the answer back.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection
from typing import Any, NamedTuple

from gtape.core.device import CPU, Device, forget_default, register, unregister
from gtape.core.errors import InvalidArgumentError
from gtape.core.locks import lock

VARIABLE = "GTAPE_DEVICE"
_CHOICES = ("auto", "cpu", "gpu")


class Finding(NamedTuple):
    """What the probe says of one device or library."""

    name: str
    usable: bool
    reason: str


class Probe(NamedTuple):
    """The outcome: usable GPUs, and what was found on the way."""

    devices: tuple[Device, ...]
    findings: tuple[Finding, ...]


_done: list[Probe] = []
_once = lock()
#: The names of GPUs that the program does not want: `show`.
_hidden: set[str] = set()


def wanted() -> str:
    """The choice in GTAPE_DEVICE: auto, cpu, gpu or gpu:N.

    Raises:
        InvalidArgumentError: it is something else.
    """
    choice = os.environ.get(VARIABLE, "auto").strip().lower() or "auto"
    if choice in _CHOICES or (choice.startswith("gpu:") and choice[4:].isdigit()):
        return choice
    raise InvalidArgumentError(f"{VARIABLE} must be auto, cpu, gpu or gpu:N; got {choice!r}")


def _said(error: BaseException) -> str:
    """The first line of what an error's cause says; CuPy wraps it in a page of advice."""
    cause = error.__cause__ or error
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0]}" if lines else type(cause).__name__


def _load_cupy() -> tuple[object, Finding]:
    try:
        if importlib.util.find_spec("cupy") is None:
            return None, Finding("CuPy", False, (
                "CuPy is not installed; on a machine with an NVIDIA GPU: "
                'pip install "gtape[cuda12]" or "gtape[cuda13]"'))
        import cupy

        return cupy, Finding("CuPy", True, f"CuPy {cupy.__version__}")
    except Exception as error:
        return None, Finding("CuPy", False, f"CuPy could not be imported: {_said(error)}")


def _count(cupy: Any) -> tuple[int, str]:
    try:
        return int(cupy.cuda.runtime.getDeviceCount()), ""
    except Exception as error:
        return 0, f"no CUDA device can be reached: {_said(error)}"


def _try(cupy: Any, index: int, alone: bool) -> tuple[Device | None, Finding]:
    from gtape.devices.cuda.runtime.device import CudaDevice

    name = f"GPU:{index}"
    try:
        with cupy.cuda.Device(index):
            ok = float((cupy.arange(2) + 1).sum()) == 3.0
            label = cupy.cuda.runtime.getDeviceProperties(index)["name"]
    except Exception as error:
        return None, Finding(name, False, f"a test kernel failed: {_said(error)}")
    if not ok:
        return None, Finding(name, False, "a test kernel gave a wrong sum")
    text = label.decode() if isinstance(label, bytes) else str(label)
    return CudaDevice(index, cupy, alone, _executor(cupy, index)), Finding(name, True, text)


def _executor(cupy: object, index: int) -> Any:
    from gtape.devices.cuda.runtime.cupy_loader import cuda_executor

    return cuda_executor(cupy, index)


def _run() -> Probe:
    if wanted() == "cpu":
        return Probe((), (Finding("GPU", False, f"{VARIABLE}=cpu: no GPU was looked for"),))
    cupy, finding = _load_cupy()
    findings = [finding]
    devices: list[Device] = []
    if cupy is not None:
        count, problem = _count(cupy)
        if not count:
            findings.append(Finding("GPU", False, problem or "the driver reports no device"))
        for index in range(count):
            device, tried = _try(cupy, index, count == 1)
            findings.append(tried)
            if device is not None:
                devices.append(device)
                register(device)
    return Probe(tuple(devices), tuple(findings))


def probe() -> Probe:
    """The usable GPUs; looked for once."""
    with _once:
        if not _done:
            _done.append(_run())
    return _done[0]


def visible() -> tuple[Device, ...]:
    """The usable GPUs that are not hidden."""
    return tuple(d for d in probe().devices if d.name not in _hidden)


def show(names: Collection[str]) -> None:
    """Hide all GPUs but these: no tensor is made on one unless some already lives there."""
    _hidden.clear()
    _hidden.update(d.name for d in probe().devices if d.name not in names)
    forget_default()


def forget() -> None:
    """Probe again at the next question: the environment changed."""
    with _once:
        for device in _done[0].devices if _done else ():
            unregister(device)
        _done.clear()
    forget_default()


def report() -> list[Finding]:
    """Every device and library with whether it can be used, and why not."""
    return [Finding(CPU.name, True, "NumPy"), *probe().findings]


def why_not() -> str:
    """What was looked for and cannot be used, with the reasons, in one line."""
    return "; ".join(f"{f.name}: {f.reason}" for f in probe().findings if not f.usable)


def default_device() -> Device:
    """The device for new tensors: GTAPE_DEVICE, else the first usable GPU, else the CPU.

    Raises:
        InvalidArgumentError: GTAPE_DEVICE asks for a GPU that cannot be used.
    """
    choice = wanted()
    if choice == "cpu":
        return CPU
    devices = visible()
    if choice.startswith("gpu:"):
        devices = tuple(d for d in devices if d.index == int(choice[4:]))
    if not devices and choice != "auto":
        raise InvalidArgumentError(f"{VARIABLE}={choice}, but there is no such usable GPU. "
                                   f"{why_not()}")
    return devices[0] if devices else CPU
