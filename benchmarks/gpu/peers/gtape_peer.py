"""gtape: as its users write it, and by the host functions of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.peers.peer import Peer, Unavailable
from benchmarks.gpu.timing import EventClock


def gpu_device() -> Any:
    """GPU:0 of gtape, with its kernels.

    Raises:
        Unavailable: there is none.
    """
    from gtape.devices.probe import probe, why_not

    devices = [d for d in probe().devices if d.index == 0]
    if not devices:
        raise Unavailable(f"gtape finds no usable GPU: {why_not()}")
    return devices[0]


def cupy_clock() -> EventClock:
    import cupy

    def wait() -> None:
        cupy.cuda.runtime.deviceSynchronize()

    return EventClock(cupy.cuda.Event, cupy.cuda.get_elapsed_time, wait)


def cupy_versions() -> dict[str, str]:
    import cupy

    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(0)["name"]
    return {
        "card": name.decode() if isinstance(name, bytes) else str(name),
        "CUDA runtime": str(runtime.runtimeGetVersion()),
        "CUDA of the driver": str(runtime.driverGetVersion()),
        "cupy": cupy.__version__,
    }


def free_pools() -> None:
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


class GtapePeer(Peer):
    """Programs in the words of TensorFlow; tensors go to gtape's default device.

    On the CPU, where workloads are tried at small sizes, there is no clock.
    """

    library = "gtape"

    @staticmethod
    def on_gpu() -> GtapePeer:
        gpu_device()
        peer = GtapePeer()
        peer.clock = cupy_clock()
        return peer

    def versions(self) -> dict[str, str]:
        import gtape

        return {"gtape": gtape.__version__, **cupy_versions()}

    def put(self, array: np.ndarray) -> Any:
        import gtape as tf

        return tf.constant(array)

    def get(self, value: Any) -> np.ndarray:
        return np.asarray(value.numpy()).astype(np.float64)

    def allow_tf32(self, allowed: bool) -> None:
        import gtape as tf

        tf.config.experimental.enable_tensor_float_32_execution(allowed)

    def free(self) -> None:
        free_pools()


class KernelPeer(GtapePeer):
    """Host functions of kernels on arrays of the device.

    Args:
        gpu: the executor.
        upload, download: to its memory and back.
    """

    library = "kernels"

    def __init__(
        self,
        gpu: Any,
        upload: Callable[[np.ndarray], Any],
        download: Callable[[Any], np.ndarray],
    ) -> None:
        self.gpu = gpu
        self._upload, self._download = upload, download

    @staticmethod
    def on_gpu() -> KernelPeer:
        device = gpu_device()
        if device.executor is None:
            raise Unavailable("gtape uses CuPy's functions here, not its own kernels")
        peer = KernelPeer(device.executor, device.upload, device.download)
        peer.clock = cupy_clock()
        return peer

    def put(self, array: np.ndarray) -> Any:
        return self._upload(array)

    def get(self, value: Any) -> np.ndarray:
        return np.asarray(self._download(value)).astype(np.float64)
