"""Tensor, an immutable value, and what is read where one is needed. EagerTensor holds an array; its
operators are installed by `ops`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from gtape.core import formatting
from gtape.core.context import here
from gtape.core.device import CPU, ArrayType, others, type_of
from gtape.core.dtypes import DType, string
from gtape.core.spec import Spec, TensorShape
from gtape.core.symbolic_dim import require_known

if TYPE_CHECKING:
    from gtape.core.annotations import IntsLike, TensorLike
    from gtape.core.buffers import BufferWriter


class Readable:
    """Base of what is read wherever it is given for a tensor."""

    __slots__ = ()

    def _read_(self) -> Tensor:
        """The present value, noted by every tape of this thread."""
        raise NotImplementedError

    @property
    def _t(self) -> ArrayType:
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        raise NotImplementedError


class StateRef(Readable):
    """State that outlives a call, as traces see it: a traced function takes its value when it is
    called, and leaves another."""

    __slots__ = ()

    #: Identity on tapes and in traces; later ones are larger.
    _k: int
    #: Whether tapes watch it when it is read.
    trainable: Any
    name: Any

    def _initial_(self) -> EagerTensor:
        """The value at this moment."""
        raise NotImplementedError

    def _commit_(self, value: Tensor) -> None:
        """A traced function left this value."""
        raise NotImplementedError

    def _buffer_(self, writer: BufferWriter | None) -> Any:
        """The array in which a compiled program finds the value, and where `writer` leaves it."""
        raise NotImplementedError


_NUMPY_NAMES = {
    "T": "tf.transpose(x)", "size": "tf.size(x)", "reshape": "tf.reshape(x, shape)",
    "astype": "tf.cast(x, dtype)", "ravel": "tf.reshape(x, [-1])", "flatten":
    "tf.reshape(x, [-1])", "tolist": "x.numpy().tolist()", "item": "x.numpy().item()",
    "clip": "tf.clip_by_value(x, low, high)", "sum": "tf.reduce_sum(x)", "mean":
    "tf.reduce_mean(x)", "max": "tf.reduce_max(x)", "min": "tf.reduce_min(x)", "assign":
    "tf.Variable(x), whose value can change", "dot": "tf.tensordot(x, y, 1)", "name":
    "tf.Variable(x, name=...); a tensor computed eagerly has no name"}


#: Named, because a literal () would tell type checkers that subclasses have no slots either.
_NO_SLOTS: tuple[str, ...] = ()


class Reference:
    """`tensor.ref()`: usable as a dict key; `deref()` gives the object back."""

    __slots__ = ("_object",)

    def __init__(self, target: object) -> None:
        self._object = target

    def deref(self) -> Any:
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._object is self._object

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference to {self._object!r}>"


class Tensor:
    """A value on a device. Tensors never change; operators and functions make new ones.

    Tensors are compared element by element with `==` and so cannot be keys of a dict: use `ref()`.
    """

    __slots__ = _NO_SLOTS
    # NumPy's operators step back for it: array + tensor is a tensor, and is recorded.
    __array_priority__ = 100
    #: How a tensor tells the recorders that its value left for NumPy or Python.
    _on_exit: ClassVar[Callable[[Tensor, str], None]] = lambda tensor, how: None

    _t: ArrayType
    _k: int

    if TYPE_CHECKING:  # installed by `ops.operators` and `ops.indexing`
        def __add__(self, other: TensorLike) -> Tensor: ...
        def __radd__(self, other: TensorLike) -> Tensor: ...
        def __sub__(self, other: TensorLike) -> Tensor: ...
        def __rsub__(self, other: TensorLike) -> Tensor: ...
        def __mul__(self, other: TensorLike) -> Tensor: ...
        def __rmul__(self, other: TensorLike) -> Tensor: ...
        def __truediv__(self, other: TensorLike) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike) -> Tensor: ...
        def __floordiv__(self, other: TensorLike) -> Tensor: ...
        def __mod__(self, other: TensorLike) -> Tensor: ...
        def __pow__(self, other: TensorLike) -> Tensor: ...
        def __rpow__(self, other: TensorLike) -> Tensor: ...
        def __matmul__(self, other: TensorLike) -> Tensor: ...
        def __rmatmul__(self, other: TensorLike) -> Tensor: ...
        def __lt__(self, other: TensorLike) -> Tensor: ...
        def __le__(self, other: TensorLike) -> Tensor: ...
        def __gt__(self, other: TensorLike) -> Tensor: ...
        def __ge__(self, other: TensorLike) -> Tensor: ...
        def __and__(self, other: TensorLike) -> Tensor: ...
        def __or__(self, other: TensorLike) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __getitem__(self, key: object) -> Tensor: ...
        def cpu(self) -> Tensor: ...
        def gpu(self, gpu_index: int = 0) -> Tensor: ...

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes."""
        raise NotImplementedError

    @property
    def spec(self) -> Spec:
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._t.dtype

    @property
    def device(self) -> str:
        """The name of the device that holds the value: 'CPU:0', 'GPU:0' …"""
        return self._t.device.name

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.spec.shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: IntsLike) -> None:
        """Raises ValueError when `shape` contradicts the shape known already."""
        self.shape.assert_is_compatible_with(shape)

    def ref(self) -> Reference:
        """A hashable stand-in for this very object."""
        return Reference(self)

    def _array_(self) -> Any:
        raise NotImplementedError

    def _exit(self, how: str) -> np.ndarray:
        """The value as a fresh NumPy array, noted as leaving by `how`."""
        raise NotImplementedError

    def numpy(self) -> Any:
        """The value as a NumPy array (a copy) or NumPy scalar; the gradient path ends here."""
        value = self._exit(".numpy()")
        return value if value.ndim else value[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        value = self._exit("NumPy (__array__)")
        return value if dtype is None else value.astype(dtype)

    def _scalar(self, how: str) -> Any:
        if self.ndim:
            raise TypeError(
                f"{how} needs a scalar tensor; got {self.spec}. Take one element, or reduce it, "
                f"as with tf.reduce_sum(x)")
        return self._exit(f"{how}")[()]

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"an index must be an integer tensor; got {self.spec}. "
                            f"Write tf.cast(x, tf.int32) or int(x)")
        return int(self._scalar("an index"))

    def __bool__(self) -> bool:
        value = self._exit("bool()")
        if value.size > 1:
            raise ValueError(
                f"the truth value of {self.spec} is ambiguous: it has {value.size} elements. "
                f"Use tf.reduce_any(x) or tf.reduce_all(x)")
        return bool(value.size and value.reshape(-1)[0])

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a scalar tensor has no len()")
        return require_known(self.spec.shape[:1])[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("a scalar tensor cannot be iterated over")
        return (self[i] for i in range(len(self)))

    def __hash__(self) -> int:
        raise TypeError("a Tensor is unhashable, because == compares its elements; "
                        "use tensor.ref() as the key")

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        return self

    def __setitem__(self, key: object, value: TensorLike) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} does not support item assignment. Use "
            f"tf.tensor_scatter_nd_update(x, indices, updates), or variable[...].assign(value)")

    def __format__(self, spec: str) -> str:
        value = self._exit("format()")
        return format(value[()] if not value.ndim else value, spec)

    def __getattr__(self, name: str) -> Any:
        advice = _NUMPY_NAMES.get(name)
        raise AttributeError(
            f"a Tensor has no attribute '{name}'" + (f"; use {advice}" if advice else ""))


#: Makes a Spec at half the cost of calling it.
_new_tuple = tuple.__new__


class ComputedFrom(NamedTuple):
    """The Variable from which a tensor was computed outside every tape, and the line."""

    variable: Any
    code: Any
    offset: int


class EagerTensor(Tensor):
    """A tensor whose value is an array. `_a` array, `_t` its type, `_k` its key on tapes."""

    __slots__ = ("__dict__", "__weakref__", "_a", "_k", "_origin", "_t")

    _a: Any
    #: (code, offset) of the line that made it, or a ComputedFrom, or what it is a slice of.
    _origin: Any

    def __init__(self, array: object, array_type: ArrayType) -> None:
        self._a = array
        self._t = array_type
        # Given by the first tape that sees the tensor: most tensors are never seen by one.
        self._k = 0

    @property
    def shape(self) -> TensorShape:
        return TensorShape.of_array(self._a.shape)

    @property
    def spec(self) -> Spec:
        return _new_tuple(Spec, (self._a.shape, self._t.dtype))

    def _array_(self) -> Any:
        return self._a

    def _filled_(self, value: int) -> EagerTensor | None:
        """A tensor like this one, all `value`; for strings, empty ones in place of zeros."""
        array_type = self._t
        if array_type.dtype is string:
            return None if value else EagerTensor(np.full(self._a.shape, b"", object), array_type)
        shape, dtype = self._a.shape, array_type.dtype
        # A NumPy scalar, with which NumPy computes in half the time that an array without axes
        # takes.
        if not shape and array_type.fast:
            return EagerTensor(dtype.as_numpy_dtype(value), array_type)
        fill = array_type.xp.ones if value else array_type.xp.zeros
        return EagerTensor(fill(shape, dtype.np_dtype), array_type)

    def _exit(self, how: str) -> np.ndarray:
        if self._k:
            Tensor._on_exit(self, how)
        if self._t.device.is_host:
            # A copy: whoever writes to it must not change the tensor, nor what tapes keep of it.
            return np.array(self._a)
        return self._t.device.download(self._a)

    def __dlpack__(self, **kwargs: Any) -> Any:
        """The array as a DLPack capsule, without a copy; the receiver must not write to it."""
        if self._k:
            Tensor._on_exit(self, "DLPack")
        return np.asarray(self._a).__dlpack__(**kwargs) if self._t.device.is_host else (
            self._a.__dlpack__(**kwargs))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self._t.device.is_host else self._a.__dlpack_device__()

    def _cuda_interface(self) -> dict[str, Any]:
        if self._t.device.is_host:
            raise AttributeError(
                f"__cuda_array_interface__: this tensor lives on {self.device}; move it with "
                f"x.gpu()")
        if self._k:
            Tensor._on_exit(self, "__cuda_array_interface__")
        return self._a.__cuda_array_interface__

    __cuda_array_interface__ = property(_cuda_interface)

    def __str__(self) -> str:
        return formatting.tensor_str(self._peek(), self._a.shape, self.dtype.name)

    def __repr__(self) -> str:
        return formatting.tensor_repr(self._peek(), self._a.shape, self.dtype.name)

    def _peek(self) -> np.ndarray:
        """The value for showing: not an exit from the tape."""
        device = self._t.device
        return np.asarray(self._a) if device.is_host else device.download(self._a)

    def __reduce__(self) -> Any:
        return _from_pickle, (np.array(self._peek()),)


def _from_pickle(array: np.ndarray) -> EagerTensor:
    return EagerTensor(array, CPU.type_of(array.dtype))


def wrap(array: object) -> EagerTensor:
    """An array that gtape owns, as a tensor."""
    return EagerTensor(array, type_of(array))


def note_origin(tensor: EagerTensor) -> EagerTensor:
    """`tensor`; where there is more than one device, it remembers the user's line for messages."""
    # Only where a message may have to say where two tensors came from: the walk to the user's frame
    # costs as much as a small op.
    if others:
        tensor._origin = here()
    return tensor
