"""CudaDevice: one GPU, its arrays CuPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtape.core.device import Device
from gtape.core.errors import ResourceExhaustedError


class CudaDevice(Device):
    """GPU `index`. Arrays are made and freed in CuPy's memory pool, shared with the user's code."""

    def __init__(self, index: int, cupy: Any) -> None:
        super().__init__("GPU", index, cupy)
        self._cupy = cupy

    def upload(self, array: np.ndarray) -> Any:
        with self._cupy.cuda.Device(self.index), self._out_of_memory(array.nbytes):
            return self._cupy.asarray(array)

    def download(self, array: Any) -> np.ndarray:
        return self._cupy.asnumpy(array)

    def owns(self, array: Any) -> bool:
        return isinstance(array, self._cupy.ndarray) and array.device.id == self.index

    def synchronize(self) -> None:
        """Wait until the device has done everything it was given."""
        with self._cupy.cuda.Device(self.index):
            self._cupy.cuda.get_current_stream().synchronize()

    def _out_of_memory(self, wanted: int) -> Any:
        return _MemoryErrors(self, self._cupy, wanted)


class _MemoryErrors:
    """CuPy's OutOfMemoryError as gtape's, saying what was wanted."""

    def __init__(self, device: CudaDevice, cupy: Any, wanted: int) -> None:
        self._device, self._cupy, self._wanted = device, cupy, wanted

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None and isinstance(error, self._cupy.cuda.memory.OutOfMemoryError):
            raise ResourceExhaustedError(
                f"{self._device.name} is out of memory: {self._wanted:,} bytes more were needed. "
                f"tape.memory() lists what a tape keeps") from error
