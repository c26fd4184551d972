"""gtape.test: what a program asks about the machine before it runs its tests."""

from __future__ import annotations

from typing import Any

from gtape.config import list_physical_devices

__all__ = ["gpu_device_name", "is_built_with_cuda", "is_built_with_gpu_support", "is_gpu_available"]


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: object = None) -> bool:
    """Whether gtape can use a GPU; all that it can use are NVIDIA's, and none too old for it,
    whatever `min_cuda_compute_capability` says."""
    return bool(list_physical_devices("GPU"))


def gpu_device_name() -> str:
    """The name of the first GPU; empty where there is none."""
    return "/device:GPU:0" if is_gpu_available() else ""


def is_built_with_cuda() -> bool:
    """Whether CuPy, through which gtape uses GPUs, is installed."""
    from importlib.util import find_spec

    return find_spec("cupy") is not None


def is_built_with_gpu_support() -> bool:
    """As `is_built_with_cuda`."""
    return is_built_with_cuda()


def __getattr__(name: str) -> Any:
    raise AttributeError(f"gtape.test has no '{name}'; it has {', '.join(__all__)}. Write tests "
                         f"with pytest and numpy.testing, and gradients' with gtape.testing")
