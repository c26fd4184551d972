"""tf.device and device names."""

from __future__ import annotations

import re

from gtape.core.device import CPU, Device, on, registered
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.devices.probe import probe, visible, why_not

_NAME = re.compile(r"^(?:.*/)?(?:device:)?(cpu|gpu)(?::(\d+|\*))?$", re.IGNORECASE)


def device_named(name: str) -> Device:
    """The device called 'CPU', 'CPU:0', 'GPU', 'GPU:1' or '/device:GPU:0', or of a DeviceSpec.

    Raises:
        InvalidArgumentError: there is no such device; the text says why.
    """
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
    """`with tf.device("CPU:0"):` new tensors go there, and tf.identity moves there.

    None lifts an outer choice.

    Raises:
        InvalidArgumentError: there is no such device.
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
