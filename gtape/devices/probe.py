"""Which GPUs can really be used, and devices by their names, as `tf.device` takes them.

A driver without a toolkit, or a toolkit without a driver, counts devices and then fails at the
first kernel. So the probe does not count: it adds two numbers on each device and reads the answer
back.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from gtape.core.device import CPU, Device, forget_default, on, register, registered, unregister
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.locks import lock

VARIABLE = "GTAPE_DEVICE"
_CHOICES = ("auto", "cpu", "gpu", "simulated")


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
    """The choice in GTAPE_DEVICE: auto, cpu, gpu, gpu:N or simulated. Raises
    InvalidArgumentError: it is something else."""
    choice = os.environ.get(VARIABLE, "auto").strip().lower() or "auto"
    if choice in _CHOICES or (choice.startswith("gpu:") and choice[4:].isdigit()):
        return choice
    raise InvalidArgumentError(f"{VARIABLE} must be auto, cpu, gpu, gpu:N or simulated; got "
                               f"{choice!r}")


def _said(error: BaseException) -> str:
    """The first line of what an error's cause says; CuPy wraps it in a page of advice."""
    cause = error.__cause__ or error
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0]}" if lines else type(cause).__name__


def _load_cupy() -> tuple[object, Finding]:
    try:
        # Looking for the module imports nothing; CuPy's import takes long, and where it fails for a
        # driver's sake the reason is another one.
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
            # The sum compiles and launches; reading it waits, so that errors of the launch come
            # here.
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
    if wanted() == "simulated":
        from gtape.devices.simulated.activation import activate

        activate()
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
    """The device for new tensors: GTAPE_DEVICE, else the first usable GPU, else the CPU. Raises
    InvalidArgumentError: GTAPE_DEVICE asks for a GPU that cannot be used."""
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


_NAME = re.compile(r"^(?:.*/)?(?:device:)?(cpu|gpu)(?::(\d+|\*))?$", re.IGNORECASE)


def device_named(name: str) -> Device:
    """The device called 'CPU', 'CPU:0', 'GPU', 'GPU:1' or '/device:GPU:0', or of a DeviceSpec.
    Raises InvalidArgumentError: there is no such device; the text says why."""
    if isinstance(name, DeviceSpec):
        name = name.to_string()
    match = _NAME.match(name.strip()) if isinstance(name, str) else None
    if match is None:
        raise InvalidArgumentError(f"a device name is CPU:0, GPU:0 …; got {shown(name)}")
    kind, index = match.group(1).upper(), match.group(2)
    number = 0 if index in (None, "*") else int(index)
    if kind == "CPU" and number == 0:
        return CPU
    others = [d for d in registered() if d not in probe().devices]
    for device in (*visible(), *others):
        if device.kind == kind and device.index == number:
            return device
    raise InvalidArgumentError(f"there is no usable device {kind}:{number}. {why_not()}".strip())


def device(device_name: str | None) -> on:
    """`with tf.device("CPU:0"):` new tensors go there, and tf.identity moves there. Raises
    InvalidArgumentError: there is no such device.

    None lifts an outer choice.
    """
    if device_name is None:
        return on(None)
    return on(device_named(device_name))


class DeviceSpec:
    """The parts of a device name: kind and number."""

    __slots__ = ("device_index", "device_type")

    def __init__(self, job: str | None = None, replica: int | None = None, task: int | None = None,
                 device_type: str | None = None, device_index: int | None = None) -> None:
        self.device_type = device_type
        self.device_index = device_index

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The spec of a name such as '/device:GPU:0'. Raises InvalidArgumentError."""
        match = _NAME.match(spec)
        if match is None:
            raise InvalidArgumentError(f"a device name is CPU:0, GPU:0 …; got {spec!r}")
        index = match.group(2)
        return cls(device_type=match.group(1).upper(),
                   device_index=None if index in (None, "*") else int(index))

    def to_string(self) -> str:
        """The name: '/device:GPU:0'."""
        return f"/device:{self.device_type or 'CPU'}:{self.device_index or 0}"
