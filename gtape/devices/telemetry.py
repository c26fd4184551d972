"""Memory and utilisation of devices: CuPy's pool, NVML for the card, the system for the host."""

from __future__ import annotations

from typing import Any

from gtape.core.device import Device
from gtape.core.errors import UnavailableError


def _nvml() -> Any:
    try:
        import pynvml
    except ImportError:
        raise UnavailableError("device utilisation needs the package nvidia-ml-py: "
                               "pip install nvidia-ml-py") from None
    try:
        pynvml.nvmlInit()
    except Exception as error:
        raise UnavailableError(f"device utilisation cannot be read: {error}") from error
    return pynvml


def _handle(pynvml: Any, device: Device) -> str:
    """NVML's handle of the card, found by PCI address: NVML ignores CUDA_VISIBLE_DEVICES."""
    address = device.xp.cuda.runtime.deviceGetPCIBusId(device.index)
    return pynvml.nvmlDeviceGetHandleByPciBusId(address)


def gpu_memory(device: Device) -> dict[str, int]:
    """Bytes: `current` in use by arrays, `peak` the most that CuPy's pool reserved since it was
    last emptied, and the card's `free` and `total`."""
    with device.xp.cuda.Device(device.index):
        # What CuPy's pool holds is not free on the card, though arrays may take it at once.
        pool = device.xp.get_default_memory_pool()
        free, total = device.xp.cuda.runtime.memGetInfo()
        return {"current": pool.used_bytes(), "peak": pool.total_bytes(),
                "free": free, "total": total}


def limit_gpu_memory(device: Device, size: int) -> None:
    """Let CuPy's pool of a device hold at most `size` bytes."""
    with device.xp.cuda.Device(device.index):
        device.xp.get_default_memory_pool().set_limit(size=size)


def host_memory() -> dict[str, int]:
    """Bytes of this process: `current` resident, `peak` the most so far."""
    try:
        import resource
    except ImportError:
        raise UnavailableError("the memory of the process cannot be read on this system") from None
    import sys

    scale = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, the others KiB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
    return {"current": _resident(peak), "peak": peak}


def _resident(fallback: int) -> int:
    import os

    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return fallback


def utilization(device: Device) -> dict[str, float]:
    """Of a card, through NVML: percent busy, percent of memory traffic, temperature, watts. Raises
    UnavailableError: the device is the CPU, or nvidia-ml-py is missing or finds no driver."""
    if device.is_host:
        raise UnavailableError("utilisation is known of GPUs only")
    pynvml = _nvml()
    handle = _handle(pynvml, device)
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"gpu_percent": rates.gpu, "memory_percent": rates.memory,
            "temperature_c": pynvml.nvmlDeviceGetTemperature(
                handle, pynvml.NVML_TEMPERATURE_GPU),
            "power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1000}
