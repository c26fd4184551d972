"""CudaDevice: one GPU, its arrays CuPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType, TracebackType
from typing import Any

import numpy as np

from gtape.autodiff.tape_memory import exhausted_now
from gtape.core.device import Device
from gtape.devices.cuda.elementwise.maps import DeviceMaps
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.uploads import Uploads


class CudaDevice(Device):
    """GPU `index`. Arrays are made and freed in CuPy's memory pool, shared with the user's code.
    `alone` says that the process sees no other GPU, so that CuPy's current device is this one.
    Without an `executor`, CuPy's own functions compute everything."""

    def __init__(self, index: int, cupy: ModuleType, alone: bool = True,
                 executor: Executor | None = None) -> None:
        self.cupy = cupy
        self.alone = alone
        self.executor = executor
        self.maps = None if executor is None else DeviceMaps(executor)
        self._uploads = Uploads(cupy, self.scope)
        super().__init__("GPU", index, cupy if alone else Namespace(cupy, self.scope))

    def scope(self) -> DeviceScope:
        return DeviceScope(self)

    def upload(self, array: object) -> Any:
        with self.scope():
            return self.cupy.array(array)

    def send(self, arrays: Sequence[np.ndarray]) -> Callable[[], list[Any]]:
        return self._uploads.send(arrays)

    def download(self, array: object) -> np.ndarray:
        return self.cupy.asnumpy(array)

    def owns(self, array: object) -> bool:
        return isinstance(array, self.cupy.ndarray) and array.device.id == self.index

    def adopt(self, array: object) -> Any:
        """A CuPy array that shares the memory of `array`, which speaks DLPack or
        `__cuda_array_interface__`."""
        with self.scope():
            if hasattr(array, "__dlpack__"):
                return self.cupy.from_dlpack(array)
            return self.cupy.asarray(array)


class DeviceScope:
    """Inside, a device is CuPy's current one, and running out of its memory is gtape's error."""

    __slots__ = ("_current", "_device")

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        # With one GPU there is nothing to enter, and only errors are looked after.
        self._current = None if device.alone else device.cupy.cuda.Device(device.index)

    def __enter__(self) -> None:
        if self._current is not None:
            self._current.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._current is not None:
            self._current.__exit__(kind, error, trace)
        if error is not None and isinstance(error, self._device.cupy.cuda.memory.OutOfMemoryError):
            raise exhausted_now(error, self._device.name) from error


class Namespace:
    """`module` with functions that run inside `scope()`; its types and constants as they are."""

    def __init__(self, module: ModuleType, scope: Callable[[], AbstractContextManager[object]],
                 ) -> None:
        self._module = module
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType):
            value = Namespace(value, self._scope)
        elif callable(value) and not isinstance(value, type):
            value = Bound(value, self._scope)
        # From now on it is an attribute, and `__getattr__` is not asked.
        setattr(self, name, value)
        return value


class Bound:
    """A function that runs inside `scope()`, with its methods, such as `add.at`."""

    def __init__(self, function: Any, scope: Callable[[], AbstractContextManager[object]]) -> None:
        self._function = function
        self._scope = scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self._scope():
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Bound:
        value = getattr(self._function, name)
        return Bound(value, self._scope) if callable(value) else value
