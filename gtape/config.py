"""gtape.config: which devices there are and what they hold, and how functions run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from gtape.compile.function import Mode
from gtape.core.device import CPU, Device
from gtape.core.excess_precision import enable_excess_precision, excess_precision_enabled
from gtape.devices.cuda.determinism import enable_op_determinism
from gtape.devices.cuda.tensor_float_32 import (
    enable_tensor_float_32_execution,
    tensor_float_32_execution_enabled,
)
from gtape.devices.placing import device_named
from gtape.devices.probe import probe


class PhysicalDevice(NamedTuple):
    """A device by name and kind."""

    name: str
    device_type: str


def _devices() -> list[Device]:
    return [CPU, *probe().devices]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that can be used, all or of one kind ('CPU', 'GPU')."""
    return [PhysicalDevice(f"/physical_device:{d.kind}:{d.index}", d.kind) for d in _devices()
            if device_type in (None, d.kind)]


def list_logical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The same devices under their logical names."""
    return [PhysicalDevice(f"/device:{d.kind}:{d.index}", d.kind) for d in _devices()
            if device_type in (None, d.kind)]


def get_memory_info(device: str) -> dict[str, int]:
    """Bytes in use on a device: at least 'current' and 'peak'.

    Raises:
        InvalidArgumentError: there is no such device.
    """
    from gtape.devices.telemetry import gpu_memory, host_memory

    found = device_named(device)
    return host_memory() if found.is_host else gpu_memory(found)


def get_device_details(device: Any) -> dict[str, Any]:
    """What is known of a device from `list_physical_devices`."""
    from gtape.devices.probe import report

    name = device.name.split(":", 1)[1]
    return {"device_name": next((f.reason for f in report() if f.name == name), "unknown")}


def get_utilization(device: str) -> dict[str, Any]:
    """Percent busy, temperature and power of a GPU, through NVML.

    Raises:
        UnavailableError: the CPU was asked for, or nvidia-ml-py is missing.
    """
    from gtape.devices.telemetry import utilization

    return utilization(device_named(device))


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether functions made by `tf.function` run as Python at every call, as for debugging."""
    Mode.eager = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """What `run_functions_eagerly` said last."""
    return Mode.eager


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Use `num_threads` threads for the loops of compiled functions; 0 stands for the default.

    The default is GTAPE_NUM_THREADS or OMP_NUM_THREADS, else the cores that the process may use.

    Raises:
        InvalidArgumentError: the number is negative.
    """
    from gtape.devices.cpu.runtime import set_threads

    set_threads(num_threads)


def get_intra_op_parallelism_threads() -> int:
    """How many threads the loops of compiled functions use."""
    from gtape.devices.cpu.runtime import threads

    return threads()


threading = SimpleNamespace(
    set_intra_op_parallelism_threads=set_intra_op_parallelism_threads,
    get_intra_op_parallelism_threads=get_intra_op_parallelism_threads)

experimental = SimpleNamespace(get_memory_info=get_memory_info,
                               get_device_details=get_device_details,
                               get_utilization=get_utilization,
                               enable_op_determinism=enable_op_determinism,
                               enable_tensor_float_32_execution=enable_tensor_float_32_execution,
                               tensor_float_32_execution_enabled=tensor_float_32_execution_enabled,
                               enable_excess_precision=enable_excess_precision,
                               excess_precision_enabled=excess_precision_enabled)

__all__ = ["PhysicalDevice", "experimental", "functions_run_eagerly", "get_device_details",
           "get_memory_info", "get_utilization", "list_logical_devices", "list_physical_devices",
           "run_functions_eagerly", "threading"]
