"""Device: where arrays live, which array module computes with them, and which device is current.

A tensor carries an `ArrayType`, one interned object for each (device, dtype) pair. Comparing two
of them with `is` answers in one step whether two tensors can be combined.

Arithmetic goes without NumPy's warnings: 1/0 is inf and log(-1) is nan, silently, as on a GPU.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from contextvars import ContextVar
from functools import wraps
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from gtape.core import dtypes
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.installed import installed

#: An array of a device, or the scalar that its module gives in place of one. CuPy's have NumPy's
#: interface, and no types of their own that a type checker could read.
Array: TypeAlias = np.ndarray
#: The functions on such arrays: numpy or cupy.
ArrayModule: TypeAlias = ModuleType


class ArrayType:
    """The type of a tensor's array: its device and dtype."""

    __slots__ = ("device", "differentiable", "dtype", "fast", "xp")

    def __init__(self, device: Device, dtype: DType) -> None:
        self.device = device
        self.dtype = dtype
        self.xp = device.xp
        self.differentiable = dtype.is_differentiable
        #: NumPy's own operators are right for it: real floating numbers in host memory.
        self.fast = device.is_host and dtype.name in ("float32", "float64", "float16")

    def __repr__(self) -> str:
        return f"{self.dtype.name} on {self.device.name}"


_NOTHING: AbstractContextManager[Any] = nullcontext()


class Device:
    """A place for arrays. `xp` is the array module that computes there."""

    is_host = False
    #: Whether arrays of no other device can be current: nothing has to be entered to compute here.
    alone = False
    #: What launches kernels there; None: everything is computed by the functions of `xp`.
    executor: Any = None
    #: What applies formulas there, one launch each; None where `executor` is.
    maps: Any = None

    def __init__(self, kind: str, index: int, xp: Any) -> None:
        self.kind = kind
        self.index = index
        self.xp = xp
        self.name = f"{kind}:{index}"
        self._types: dict[Any, ArrayType] = {}

    def type_of(self, dtype: np.dtype) -> ArrayType:
        """The ArrayType of arrays here with this NumPy dtype."""
        array_type = self._types.get(dtype)
        if array_type is None:
            named = dtypes.of_numpy(dtype)
            # `setdefault`, because there may be one object only: types are compared with `is`, and
            # two threads may get here at once. NumPy has several equal dtypes (of byte orders, of C
            # names) for one of ours.
            array_type = self._types.setdefault(named.np_dtype, ArrayType(self, named))
            self._types[dtype] = array_type
        return array_type

    def typed(self, dtype: DType) -> ArrayType:
        """The ArrayType of tensors made here with this dtype; strings live on the host."""
        place = CPU if dtype is dtypes.string else self
        return place.type_of(np.dtype(dtypes.require_usable(dtype).as_numpy_dtype))

    def upload(self, array: Any) -> Any:
        """A copy of a host array, or of one on another GPU, in this device's memory."""
        raise NotImplementedError

    def send(self, arrays: Sequence[np.ndarray]) -> Callable[[], list[Any]]:
        """Begin to copy host arrays into this device's memory.

        Returns:
            A function that gives the copies; it is called once, by the thread that uses them. Until
            then a device that can copies them beside what it computes; others have copied them now.
        """
        uploaded = [self.upload(array) for array in arrays]
        return lambda: uploaded

    def download(self, array: Any) -> np.ndarray:
        """A copy of this device's array in host memory."""
        raise NotImplementedError

    def owns(self, array: Any) -> bool:
        """Whether `array` lives here."""
        raise NotImplementedError

    def scope(self) -> AbstractContextManager[Any]:
        """Inside, operators and functions on this device's arrays compute here."""
        return _NOTHING

    def __repr__(self) -> str:
        return f"<Device {self.name}>"


class HostDevice(Device):
    """The machine's main memory, through NumPy."""

    is_host = True
    alone = True

    def __init__(self) -> None:
        super().__init__("CPU", 0, np)

    def upload(self, array: Any) -> np.ndarray:
        return array.copy()

    def download(self, array: Any) -> np.ndarray:
        return np.array(array)

    def owns(self, array: Any) -> bool:
        return isinstance(array, (np.ndarray, np.generic))


CPU = HostDevice()
#: The devices besides the CPU that tensors can live on.
# Changed in place and never bound anew, for the printed functions of ops hold this very list.
others: list[Device] = []


def register(device: Device) -> None:
    """Make a device's arrays known, so that results computed from them find their type."""
    others.append(device)


def unregister(device: Device) -> None:
    others.remove(device)


def registered() -> tuple[Device, ...]:
    return (CPU, *others)


def device_of(array: Any) -> Device:
    """The device an array lives on.

    Raises:
        InvalidArgumentError: no registered device owns it.
    """
    if isinstance(array, (np.ndarray, np.generic)):
        return CPU
    for device in others:
        if device.owns(array):
            return device
    raise InvalidArgumentError(
        f"an array must be NumPy's or live on one of {', '.join(d.name for d in registered())}; "
        f"got {type(array).__module__}.{type(array).__name__}")


def scope_of(xp: Any) -> AbstractContextManager[Any]:
    """The scope of the device whose array module is `xp`."""
    return next((device.scope() for device in others if device.xp is xp), _NOTHING)


def add_arrays(a: Any, b: Any) -> Any:
    """The sum of two arrays, computed where they are."""
    # Asked at every sum of two cotangents: the host first, and without a loop.
    if isinstance(a, (np.ndarray, np.generic)) or not others:
        return a + b
    owner = next((device for device in others if device.owns(a)), CPU)
    if owner.alone and owner.maps is not None:
        return owner.maps.added(a, b)
    with owner.scope():
        return a + b if owner.maps is None else owner.maps.added(a, b)


def type_of(array: Any) -> ArrayType:
    """The ArrayType of an array."""
    if isinstance(array, (np.ndarray, np.generic)):
        return CPU.type_of(array.dtype)
    return device_of(array).type_of(array.dtype)


_scoped: ContextVar[Device | None] = ContextVar("gtape.device", default=None)
_default: list[Device] = []


def default_device() -> Device:
    """Where new tensors go outside any `tf.device` block."""
    if not _default:
        _default.append(installed.find_default_device())
    return _default[0]


def forget_default() -> None:
    """Probe again at the next use: the environment changed."""
    _default.clear()


def current_device() -> Device:
    """Where a new tensor goes now."""
    return _scoped.get() or default_device()


class on(ContextDecorator):
    """New tensors go to `device` inside the block, or the function that this decorates."""

    __slots__ = ("_device", "_tokens")

    def __init__(self, device: Device | None) -> None:
        self._device = device
        self._tokens: list[object] = []

    def _recreate_cm(self) -> on:
        return on(self._device)  # for each call, which other threads may make too

    def __enter__(self) -> on:
        self._tokens.append(_scoped.set(self._device))
        return self

    def __exit__(self, *exc: object) -> None:
        _scoped.reset(self._tokens.pop())  # type: ignore[arg-type]


def at_home(function: Callable[..., object]) -> Callable[..., Any]:
    """Decorator for functions that compute with bare arrays outside a primitive.

    They do so on the device of their first tensor, or where their first argument becomes one.
    """
    @wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        types = (getattr(value, "_t", None) for value in (*args, *kwargs.values()))
        home = next((t.device for t in types if t is not None), None) or current_device()
        with home.scope():
            return function(*args, **kwargs)

    return run


def _fast() -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    from numpy._core import umath

    variable: Any = umath._extobj_contextvar
    silent = umath._make_extobj(all="ignore")
    # Tried once, here: a NumPy in which it is something else takes the plain way.
    variable.reset(variable.set(silent))
    put = variable.set
    return (lambda: put(silent)), variable.reset


def _plain() -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    def enter() -> Any:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    return enter, lambda state: state.__exit__(None, None, None)


try:
    ignore, restore = _fast()
except (ImportError, AttributeError, TypeError):
    ignore, restore = _plain()


class _IgnoredContext(threading.local):
    """`ignored_context.run(function, *arrays)` calls NumPy with an error state that ignores all.

    Entering a context that stands ready costs 0.05 us, half of setting and resetting. A context
    can be entered once at a time, so each thread has one. A signal handler or finalizer that
    interrupts what runs inside finds it entered: `run` is then a RuntimeError, and `call` the way.
    """

    def __init__(self) -> None:
        context = contextvars.Context()
        context.run(ignore)
        self.run = context.run

    def call(self, function: Callable[..., Any], *args: Any, **options: object) -> Any:
        """`run`, also where this thread's context is entered already."""
        try:
            return self.run(function, *args, **options)
        except RuntimeError:
            state = ignore()
            try:
                return function(*args, **options)
            finally:
                restore(state)


ignored_context = _IgnoredContext()
