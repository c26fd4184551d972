"""gtape.config: which devices there are and what they hold, and how functions run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from gtape.core.device import CPU, Device
from gtape.core.errors import InvalidArgumentError, UnimplementedError
from gtape.core.formatting import shown
from gtape.core.modes import (
    Modes,
    enable_excess_precision,
    enable_op_determinism,
    enable_tensor_float_32_execution,
    excess_precision_enabled,
    tensor_float_32_execution_enabled,
)
from gtape.devices.probe import device_named, probe, report, show, visible
from gtape.devices.telemetry import gpu_memory, host_memory, limit_gpu_memory, utilization


class PhysicalDevice(NamedTuple):
    """A device by name and kind."""

    name: str
    device_type: str


def _listed(prefix: str, devices: list[Device], kind: str | None) -> list[PhysicalDevice]:
    return [PhysicalDevice(f"/{prefix}:{d.kind}:{d.index}", d.kind) for d in devices
            if kind in (None, d.kind)]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that can be used, all or of one kind ('CPU', 'GPU')."""
    return _listed("physical_device", [CPU, *probe().devices], device_type)


def list_logical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The same devices under their logical names."""
    return _listed("device", [CPU, *visible()], device_type)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices of `list_physical_devices` that tensors may be made on."""
    return _listed("physical_device", [CPU, *visible()], device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Make tensors on these of `list_physical_devices` only, or on this one, and hide the others of
    `device_type`, None for all kinds: `set_visible_devices([], "GPU")` leaves the CPU. Raises
    ValueError: one is not in `list_physical_devices`, or of another kind than `device_type`;
    InvalidArgumentError: the CPU is left out: strings and many results live there."""
    # A device is a tuple itself.
    wanted = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    for device in wanted:
        if device not in list_physical_devices(device_type):
            raise ValueError(f"set_visible_devices: {shown(device)} is none of "
                             f"{list_physical_devices(device_type)}")
    # What is asked of one kind only leaves the other as it is.
    if device_type != "GPU" and PhysicalDevice("/physical_device:CPU:0", "CPU") not in wanted:
        raise InvalidArgumentError("set_visible_devices: the CPU cannot be hidden; name it too, or "
                                   "give device_type='GPU' to choose among GPUs")
    if device_type != "CPU":
        show({_name(d) for d in wanted})


def _name(device: PhysicalDevice) -> str:
    return device.name.split(":", 1)[1]


class LogicalDeviceConfiguration(NamedTuple):
    """What a device is to be used as: `memory_limit` in MiB of a GPU, None for all."""

    memory_limit: int | None = None


def set_logical_device_configuration(device: PhysicalDevice, logical_devices: Any) -> None:
    """Limit the memory of a GPU of `list_physical_devices`, by a list of one
    LogicalDeviceConfiguration: a device is one logical device. Raises InvalidArgumentError: the
    list has another length, the limit is not positive, or the device is the CPU and has a limit."""
    given = list(logical_devices)
    if len(given) != 1:
        raise InvalidArgumentError(f"set_logical_device_configuration: gtape uses a device as one "
                                   f"logical device; got {len(given)} configurations. Give one, "
                                   f"and run one process for each device")
    limit = given[0].memory_limit
    if limit is None:
        return
    if device.device_type == "CPU":
        raise InvalidArgumentError("set_logical_device_configuration: the CPU has no memory limit; "
                                   "leave memory_limit out")
    if limit <= 0:
        raise InvalidArgumentError(f"set_logical_device_configuration: memory_limit must be "
                                   f"positive, in MiB; got {limit}")
    # MiB, as in TensorFlow.
    limit_gpu_memory(device_named(_name(device)), int(limit * (1 << 20)))


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Whether memory of a device is taken as it is needed: True."""
    return True


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Take memory of a device as it is needed, which gtape does anyway. Raises UnimplementedError:
    `enable` is False."""
    # Refused and not passed over: such a program counts on the memory being reserved.
    if not enable:
        raise UnimplementedError("set_memory_growth: gtape takes the memory of a GPU as it is "
                                 "needed; to set a limit, use "
                                 "tf.config.set_logical_device_configuration")


def get_soft_device_placement() -> bool:
    """Whether an operation goes elsewhere where its device cannot run it: False."""
    return False


def set_soft_device_placement(enabled: bool) -> None:
    """Ask for operations to run elsewhere where their device cannot. Every operation of gtape runs
    where its tensors are, on every device, so there is nothing to move: both values leave programs
    as they are."""


def get_memory_info(device: str) -> dict[str, int]:
    """Bytes in use on a device: at least 'current' and 'peak'. Raises InvalidArgumentError: there
    is no such device."""
    found = device_named(device)
    return host_memory() if found.is_host else gpu_memory(found)


def get_device_details(device: PhysicalDevice) -> dict[str, str]:
    """What is known of a device from `list_physical_devices`."""
    return {"device_name": next((f.reason for f in report() if f.name == _name(device)), "unknown")}


def get_utilization(device: str) -> dict[str, float]:
    """Percent busy, temperature and power of a GPU, through NVML. Raises UnavailableError: the CPU
    was asked for, or nvidia-ml-py is missing."""
    return utilization(device_named(device))


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether functions made by `tf.function` run as Python at every call, as for debugging."""
    Modes.eager_functions = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """What `run_functions_eagerly` said last."""
    return Modes.eager_functions


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Use `num_threads` threads for the loops of compiled functions; 0 stands for the default.
    Raises InvalidArgumentError: the number is negative. The default is GTAPE_NUM_THREADS or
    OMP_NUM_THREADS, else the cores that the process may use."""
    # Here, since it loads the runtime of compiled programs, which most settings do not need.
    from gtape.devices.cpu.toolchain import set_threads

    set_threads(num_threads)


def get_intra_op_parallelism_threads() -> int:
    """How many threads the loops of compiled functions use."""
    from gtape.devices.cpu.toolchain import threads

    return threads()


threading = SimpleNamespace(
    set_intra_op_parallelism_threads=set_intra_op_parallelism_threads,
    get_intra_op_parallelism_threads=get_intra_op_parallelism_threads)

experimental = SimpleNamespace(
    VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    set_virtual_device_configuration=set_logical_device_configuration,
    **{function.__name__: function for function in (
        enable_excess_precision, enable_op_determinism, enable_tensor_float_32_execution,
        excess_precision_enabled, get_device_details, get_memory_growth, get_memory_info,
        get_utilization, get_visible_devices, list_logical_devices, list_physical_devices,
        set_memory_growth, set_visible_devices, tensor_float_32_execution_enabled)})

__all__ = ["LogicalDeviceConfiguration", "PhysicalDevice", "experimental", "functions_run_eagerly",
           "get_device_details", "get_memory_info", "get_soft_device_placement", "get_utilization",
           "get_visible_devices", "list_logical_devices", "list_physical_devices",
           "run_functions_eagerly", "set_logical_device_configuration",
           "set_soft_device_placement", "set_visible_devices", "threading"]
