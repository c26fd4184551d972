"""A module shaped like CuPy whose device memory is NumPy arrays: it proves the device path.

Its arrays are no NumPy arrays. Like CuPy's they cannot be mixed with NumPy arrays, are never
converted to one in silence, and NumPy functions called on them become functions of this module.
A function works on arrays of the current device only, as on cards without peer access. What it
offers is the list in `cupy_names.txt`: a name or keyword that CuPy lacks is missing here too.
"""

from __future__ import annotations

import operator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.fakes import fake_cuda as cuda
from tests.fakes import fake_cupyx, fake_streams

__version__ = "14.0 (fake)"

_UPLOADS = {"array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray"}
_COUNTS = {"count_nonzero", "array_equal", "allclose"}
_VIEWS = {"reshape", "transpose", "swapaxes", "moveaxis", "expand_dims", "squeeze", "broadcast_to",
          "ravel", "diagonal", "shape", "ndim", "size", "result_type", "can_cast"}
#: What the atomic operations behind `ufunc.at` take.
_ATOMIC = {"add": "int32 uint32 uint64 float16 float32 float64",
           "subtract": "int32 uint32",
           "maximum": "int32 uint32 int64 uint64 float32 float64",
           "minimum": "int32 uint32 int64 uint64 float32 float64"}

#: Every copy between host and device: ("up" or "down", bytes).
copies: list[tuple[str, int]] = []


# ---------------------------------------------------------------- arrays


class ndarray:
    """A device array. `_host` stands for its memory; only this module may look at it."""

    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray, device: int, base: ndarray | None = None) -> None:
        self._host = host
        self.device = cuda.Device(device)
        self.base = base
        self._owned = 0
        self._memory = fake_streams.Memory() if base is None else base._memory
        if base is None:
            cuda.allocate(device, host.nbytes)
            self._owned = host.nbytes

    def __del__(self) -> None:
        cuda.release(self.device.id, self._owned)
        if self.base is None:
            self._memory.free()

    def _use(self) -> None:
        cuda.check(self.device.id)
        self._memory.use()

    # attributes
    dtype = property(lambda self: self._host.dtype)
    shape = property(lambda self: self._host.shape)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: self._host.flags)
    data = property(lambda self: SimpleNamespace(
        ptr=self._host.__array_interface__["data"][0]))
    T = property(lambda self: _wrap(self._host.T, [self]))
    real = property(lambda self: _wrap(self._host.real, [self]))
    imag = property(lambda self: _wrap(self._host.imag, [self]))

    def set(self, arr: np.ndarray, stream: Any = None) -> None:
        if not isinstance(arr, np.ndarray) or arr.dtype != self.dtype:
            raise TypeError(f"set takes a NumPy array of {self.dtype}")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        cuda.check(self.device.id)
        copies.append(("up", self.nbytes))
        stream = stream or fake_streams.current()
        self._memory.use(stream)
        stream.copy(arr, self._host)

    # conversions, all of them asked for
    def get(self) -> np.ndarray:
        self._memory.use()
        copies.append(("down", self.nbytes))
        return self._host.copy()

    def item(self, *args: Any) -> Any:
        return self._host.item(*args)

    def tolist(self) -> Any:
        return self._host.tolist()

    def __float__(self) -> float:
        return float(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __complex__(self) -> complex:
        return complex(self._host)

    def __bool__(self) -> bool:
        return bool(self._host)

    def __index__(self) -> int:
        raise TypeError("a device array is no index")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed; use .get()")

    def __repr__(self) -> str:
        return f"device {self._host!r}"

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> ndarray:
        self._use()
        return _wrap(self._host[_index(key)], [self])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._use()
        self._host[_index(key)] = _plain(value, "__setitem__")

    # methods: those of NumPy's arrays, through the functions of this module's rules
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("ctypes", "resize", "setflags", "to_device"):
            raise AttributeError(name)
        method = getattr(self._host, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if name not in _VIEWS:
                self._use()
            _only(name, kwargs)
            made = method(*_plain(args, name), **_plain(kwargs, name))
            return _wrap(made, [self])

        return call

    # interchange
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        pointer = self._host.__array_interface__["data"][0]
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (pointer, False),
                "version": 3, "strides": None, "stream": 1}

    def __dlpack__(self, **kwargs: Any) -> PyCapsule:
        return PyCapsule(self._host, self.device.id)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    # NumPy functions on device arrays
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        if method != "__call__" or name not in NAMES:
            return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        return _function(name)(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        path = [*func.__module__.split(".")[1:], func.__name__]
        name = ".".join(path)
        if name not in NAMES or any(t not in (ndarray, np.ndarray) for t in types):
            return NotImplemented
        return _function(name)(*args, **kwargs)


class PyCapsule:
    """What stands for a DLPack capsule of device memory."""

    def __init__(self, host: np.ndarray, device: int) -> None:
        self.host, self.device = host, device


def _index(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_index(k) for k in key)
    return key._host if isinstance(key, ndarray) else key


def _plain(value: Any, name: str) -> Any:
    """Device memory behind the arrays in `value`; NumPy arrays are refused, as CuPy does."""
    if isinstance(value, ndarray):
        if name not in _VIEWS and name != "array":
            value._use()
        return value._host
    if isinstance(value, np.ndarray) and name not in _UPLOADS:
        raise TypeError(f"{name}: Unsupported type {type(value)}")
    if isinstance(value, np.ndarray) and value.dtype.kind in "OSUV":
        raise ValueError(f"Unsupported dtype {value.dtype}")
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(v, name) for v in value])
    if isinstance(value, dict):
        return {k: _plain(v, name) for k, v in value.items()}
    return value


def _wrap(made: Any, inputs: list[Any]) -> Any:
    """NumPy results as device arrays; those that show an input's memory are views of it."""
    if isinstance(made, np.generic):
        return ndarray(np.asarray(made), cuda.current())
    if isinstance(made, np.ndarray):
        for array in inputs:
            if isinstance(array, ndarray) and made.base is not None and (
                    made.base is array._host or made.base is array._host.base):
                return ndarray(made, array.device.id, array if array.base is None else array.base)
            if isinstance(array, ndarray) and made is array._host:
                return array
        return ndarray(made, cuda.current())
    if type(made) is tuple or type(made) is list:
        return type(made)(_wrap(m, inputs) for m in made)
    if isinstance(made, tuple):
        return type(made)(*[_wrap(m, inputs) for m in made])
    return made


# ---------------------------------------------------------------- functions


def _read_names() -> dict[str, tuple[str, ...] | None]:
    """Each function with its parameters; None for a ufunc."""
    names: dict[str, tuple[str, ...] | None] = {}
    for line in Path(__file__).with_name("cupy_names.txt").read_text().splitlines():
        if line.startswith("ufunc: "):
            names.update(dict.fromkeys(line.split()[1:]))
        elif line and not line.startswith("#"):
            name, _, params = line.rstrip(")").partition("(")
            names[name] = tuple(params.split())
    return names


NAMES = _read_names()
_UFUNC_KEYWORDS = ("out", "dtype", "casting", "where")


def _only(name: str, kwargs: dict[str, Any]) -> None:
    params = NAMES.get(name, ("**",))
    if params is None:
        params = _UFUNC_KEYWORDS
    wrong = [k for k in kwargs if k not in params]
    if wrong and not any(p.startswith("**") for p in params):
        raise TypeError(f"{name}() got an unexpected keyword argument '{wrong[0]}'")


class Function:
    """NumPy's function of that name on device arrays."""

    def __init__(self, name: str, numpy: Any) -> None:
        self.__name__ = name.rpartition(".")[2]
        self._name, self._numpy = name, numpy
        if isinstance(numpy, np.ufunc):
            self.nin, self.nout = numpy.nin, numpy.nout

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _only(self._name, kwargs)
        copied = self._name in _UPLOADS and args and isinstance(args[0], np.ndarray)
        if copied:
            copies.append(("up", args[0].nbytes))
        plain = _plain(args, self._name)
        try:
            made = self._numpy(*plain, **_plain(kwargs, self._name))
        except np.linalg.LinAlgError:
            if fake_cupyx.told.get():
                raise
            made = np.full_like(plain[-1], np.nan)
        if "out" in kwargs and isinstance(kwargs["out"], ndarray):
            return kwargs["out"]
        if copied or self._name == "array":
            return ndarray(np.array(made), cuda.current())
        if self._name in _COUNTS:
            made = np.asarray(made)
        return _wrap(made, [*args, *kwargs.values()])

    def at(self, array: ndarray, index: Any, value: Any) -> None:
        if array.dtype.name not in _ATOMIC.get(self._name, "").split():
            raise TypeError(f"{self._name}.at does not support {array.dtype}")
        self._numpy.at(_plain(array, "at"), _index(index), _plain(value, "at"))

    def reduce(self, array: ndarray, axis: Any = 0, dtype: Any = None, keepdims: bool = False,
               ) -> Any:
        made = self._numpy.reduce(_plain(array, "reduce"), axis, dtype, keepdims=keepdims)
        return _wrap(made, [])

    def accumulate(self, array: ndarray, axis: int = 0) -> Any:
        return _wrap(self._numpy.accumulate(_plain(array, "accumulate"), axis), [])


class _Namespace:
    """A submodule: linalg, fft, lib."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return _find(f"{self._path}.{name}")


_made: dict[str, Function] = {}


def _function(name: str) -> Function:
    if name not in _made:
        _made[name] = Function(name, operator.attrgetter(name)(np))
    return _made[name]


def _find(name: str) -> Any:
    if name in NAMES:
        return _function(name)
    if any(known.startswith(f"{name}.") for known in NAMES):
        return _Namespace(name)
    found = getattr(np, name, None) if "." not in name else None
    if isinstance(found, (type, float)) or (found is None and name == "newaxis"):
        return found
    raise AttributeError(f"module 'cupy' has no attribute '{name}'")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _find(name)


def get_default_memory_pool() -> cuda.Pool:
    return cuda.Pool()


def asnumpy(array: Any) -> np.ndarray:
    return array.get() if isinstance(array, ndarray) else np.asarray(array)


def from_dlpack(array: Any) -> ndarray:
    capsule = array.__dlpack__()
    return ndarray(capsule.host.view(), capsule.device)


def asarray(a: Any, dtype: Any = None, order: Any = None) -> ndarray:
    """CuPy's: shares the memory of device arrays and of `__cuda_array_interface__`."""
    if isinstance(a, ndarray) and dtype in (None, a.dtype):
        return a
    interface = getattr(a, "__cuda_array_interface__", None)
    if interface is not None and not isinstance(a, ndarray):
        return ndarray(_memory_at(interface), cuda.current())
    return _function("asarray")(a, dtype=dtype)


def _memory_at(interface: dict[str, Any]) -> np.ndarray:
    """The memory that an array interface names, without a copy."""
    return np.asarray(SimpleNamespace(__array_interface__={
        k: interface[k] for k in ("shape", "typestr", "data", "version")}))


def _operators() -> None:
    pairs = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv":
             "floor_divide", "mod": "remainder", "pow": "power", "and": "bitwise_and", "or":
             "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
             "matmul": "matmul"}
    for symbol, name in pairs.items():
        setattr(ndarray, f"__{symbol}__", _binary(name, False, False))
        setattr(ndarray, f"__r{symbol}__", _binary(name, True, False))
        if symbol != "matmul":
            setattr(ndarray, f"__i{symbol}__", _binary(name, False, True))
    for symbol, name in {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
                         "gt": "greater", "ge": "greater_equal"}.items():
        setattr(ndarray, f"__{symbol}__", _binary(name, False, False))
    for symbol, name in {"neg": "negative", "pos": "positive", "abs": "absolute",
                         "invert": "invert"}.items():
        setattr(ndarray, f"__{symbol}__", _unary(name))


def _binary(name: str, swapped: bool, inplace: bool) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if not isinstance(other, (ndarray, np.ndarray, np.generic, bool, int, float, complex)):
            return NotImplemented
        args = (other, self) if swapped else (self, other)
        return _function(name)(*args, out=self) if inplace else _function(name)(*args)

    return method


def _unary(name: str) -> Any:
    return lambda self: _function(name)(self)


_operators()
