"""CudaDevice: one GPU, its arrays CuPy's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from gtape.core.device import Device
from gtape.core.errors import ResourceExhaustedError
from gtape.devices.cuda.namespace import Namespace


class CudaDevice(Device):
    """GPU `index`. Arrays are made and freed in CuPy's memory pool, shared with the user's code.

    `alone` says that the process sees no other GPU, so that CuPy's current device is this one.
    """

    def __init__(self, index: int, cupy: Any, alone: bool = True) -> None:
        self._cupy = cupy
        self._alone = alone
        super().__init__("GPU", index, cupy if alone else Namespace(cupy, self._current))

    def _current(self) -> AbstractContextManager[Any]:
        return self._cupy.cuda.Device(self.index)

    def scope(self) -> AbstractContextManager[Any]:
        return super().scope() if self._alone else self._current()

    def upload(self, array: Any) -> Any:
        with self._current(), self._memory_errors(array.nbytes):
            return self._cupy.array(array)

    def download(self, array: Any) -> np.ndarray:
        return self._cupy.asnumpy(array)

    def owns(self, array: Any) -> bool:
        return isinstance(array, self._cupy.ndarray) and array.device.id == self.index

    def adopt(self, array: Any) -> Any:
        """A CuPy array that shares the memory of `array`, which speaks DLPack or
        `__cuda_array_interface__`."""
        with self._current():
            if hasattr(array, "__dlpack__"):
                return self._cupy.from_dlpack(array)
            return self._cupy.asarray(array)

    @contextmanager
    def _memory_errors(self, wanted: int) -> Iterator[None]:
        """CuPy's OutOfMemoryError as gtape's, saying what was wanted."""
        try:
            yield
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise ResourceExhaustedError(
                f"{self.name} is out of memory: {wanted:,} bytes more were needed. "
                f"tape.memory() lists what a tape keeps") from error
