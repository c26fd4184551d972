"""Variable: the only value that can change. Reading one gives its present tensor.

A ResourceVariable owns a value; a VariableView and an UnreadVariable are other faces of one; a
Holder is an object of another library that stands for one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gtape.core import buffers, formatting
from gtape.core.buffers import SharedBuffer
from gtape.core.context import active, init_scope, new_key, paused, tracer_now
from gtape.core.convert import convert, host_array
from gtape.core.device import ArrayType
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.installed import installed
from gtape.core.recording import STATE, mark_all
from gtape.core.spec import Spec, TensorShape
from gtape.core.tensor import EagerTensor, Readable, Reference, StateRef, Tensor, note_origin

if TYPE_CHECKING:
    from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.buffers import BufferWriter

scope_prefix: ContextVar[str] = ContextVar("gtape.name_scope", default="")
_NOTHING: Any = nullcontext()


class name_scope:
    """Names of variables made inside the block begin with `name/`."""

    __slots__ = ("_name", "_tokens")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"a name scope must be a string; got {shown(name)}")
        self._name = name
        self._tokens: list[Any] = []

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        outer = scope_prefix.get()
        if not self._name:
            full = ""
        elif self._name.endswith("/"):
            full = self._name
        else:
            full = f"{outer}{self._name}/"
        self._tokens.append(scope_prefix.set(full))
        return full

    def __exit__(self, *exc: object) -> None:
        scope_prefix.reset(self._tokens.pop())


def _scatter(how: str, doc: str) -> Callable[..., Any]:
    """A method that writes rows of a variable from an IndexedSlices."""
    def method(self: Variable, sparse_delta: TensorLike, use_locking: bool = False,
               name: str | None = None) -> Variable:
        return installed.scatter(self, sparse_delta, how)

    method.__name__ = f"scatter_{how}"
    method.__doc__ = doc + "\n\nRaises:\n    TypeError: sparse_delta is no IndexedSlices."
    return method


class Variable(Readable):
    """A tensor that can be assigned to, watched by every tape that reads it while `trainable`.

    Args:
        initial_value: a value, Tensor, Variable, or a function returning one.
        trainable: whether tapes watch it when it is read; True unless given.
        name: for messages; `name_scope`s are put before it, ':0' behind it.
        dtype: the dtype, else that of the value.
        constraint: a function that optimizers apply after an update.
        shape: the shape that assignments must fit, with None for free lengths.

    Raises:
        ValueError: no initial value, or one that does not fit `shape`.
    """

    __slots__ = ()
    __array_priority__ = 100

    def __new__(cls, *args: object, **kwargs: object) -> Variable:
        return object.__new__(ResourceVariable if cls is Variable else cls)

    def __init__(self, *args: Any, **kwargs: object) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: a subclass of Variable has no value of its own; hold a "
            f"tf.Variable in a tf.Module, or make one with tf.Variable(...)")

    # ------------------------------------------------------------------ the state behind it

    def _resource_(self) -> ResourceVariable:
        """The one that owns the value."""
        raise NotImplementedError

    def _read_(self) -> Tensor:
        """The present value, noted by every tape of this thread."""
        state = self._resource_()
        value = state._value
        # Every recorder and not tapes alone: accumulators give the value its tangent.
        for recorder in active():
            recorder._on_read(state, value)
        return value

    @property
    def name(self) -> str:
        return self._resource_()._name

    @property
    def _unique_id(self) -> str:
        """What no other variable of the process is called, now or later."""
        return f"variable_{self._resource_()._k}"

    @property
    def trainable(self) -> bool:
        return self._resource_()._trainable

    @property
    def constraint(self) -> Any:
        return self._resource_()._constraint

    @property
    def dtype(self) -> DType:
        return self._resource_()._value.dtype

    @property
    def device(self) -> str:
        return self._resource_()._value.device

    @property
    def shape(self) -> TensorShape:
        state = self._resource_()
        return state._declared if state._declared is not None else state._value.shape

    @property
    def ndim(self) -> int:
        return self._resource_()._value.ndim

    @property
    def spec(self) -> Spec:
        return self._resource_()._value.spec

    @property
    def _t(self) -> ArrayType:
        return self._resource_()._value._t

    def get_shape(self) -> TensorShape:
        return self.shape

    # ------------------------------------------------------------------ reading

    def value(self) -> Tensor:
        """The present value as a tensor."""
        return installed.identity(self._read_())

    read_value = value

    def numpy(self) -> Any:
        """The present value as a NumPy array (a copy) or scalar; the gradient path ends here."""
        return self._read_().numpy()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self._read_().__array__(dtype)

    def __float__(self) -> float:
        return float(self._read_())

    def __int__(self) -> int:
        return int(self._read_())

    def __complex__(self) -> complex:
        return complex(self._read_())

    def __index__(self) -> int:
        return self._read_().__index__()

    def __bool__(self) -> bool:
        return bool(self._read_())

    def __len__(self) -> int:
        return len(self._resource_()._value)

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("a scalar Variable cannot be iterated over")
        return (self[i] for i in range(len(self)))  # type: ignore[index]

    def __format__(self, spec: str) -> str:
        return str(self) if not spec else format(self._read_(), spec)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Rows of the value; the gradient is an IndexedSlices."""
        return installed.gather(self, indices)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        return installed.gather_nd(self, indices)

    # ------------------------------------------------------------------ identity

    def ref(self) -> Reference:
        """A hashable stand-in for this very variable."""
        return Reference(self._resource_())

    def __hash__(self) -> int:
        raise TypeError("a Variable is unhashable, because == compares its elements; "
                        "use variable.ref() as the key")

    def __copy__(self) -> Variable:
        return self

    def __setitem__(self, key: object, value: TensorLike) -> NoReturn:
        raise TypeError("a Variable does not support item assignment; use "
                        "variable[...].assign(value), scatter_update or scatter_nd_update")

    def _no_inplace(self, other: TensorLike) -> NoReturn:
        raise RuntimeError(
            "`variable += value` is ambiguous: use variable.assign_add(value) to change the "
            "variable, or out = variable + value to make a tensor")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = _no_inplace

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        value = self._read_()
        return formatting.variable_repr(self._shown_name(), value._peek(), self.shape,
                                        self.dtype.name)

    def _shown_name(self) -> str:
        return self.name

    # ------------------------------------------------------------------ writing

    def assign(self, value: TensorLike, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> Any:
        """Replace the value. Tensors read before keep theirs; no gradient flows to `value`.

        Raises:
            ValueError: another shape, or a tensor of another dtype.
            TypeError: a Python value that does not fit the dtype.
        """
        state = self._resource_()
        return self._written(self._fitting(value, "assign", ValueError), read_value, value, state)

    def assign_add(self, delta: TensorLike, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:
        """value + delta, of the same shape. Raises as `assign`, shapes as InvalidArgumentError."""
        return self._shifted(delta, "assign_add", read_value)

    def assign_sub(self, delta: TensorLike, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Variable | None:
        """value - delta, of the same shape. Raises as `assign_add`."""
        return self._shifted(delta, "assign_sub", read_value)

    def _shifted(self, delta: TensorLike, how: str, read_value: bool) -> Variable | None:
        state = self._resource_()
        if isinstance(delta, IndexedSlices):
            delta = delta.to_dense()
        shift = self._fitting(delta, how, InvalidArgumentError)
        old = state._value
        # Inside a trace: a node like any other.
        if type(old) is not EagerTensor:
            with paused():
                shifted = old + shift if how == "assign_add" else old - shift
            return self._written(shifted, read_value, delta, state)
        with np.errstate(all="ignore"), old._t.device.scope():
            array = (old._a + shift._array_() if how == "assign_add" else
                     old._a - shift._array_())
        return self._written(EagerTensor(array, old._t), read_value, delta, state)

    def _fitting(self, value: Any, how: str, shape_error: type[Exception]) -> Tensor:
        """`value` as a tensor of this variable's dtype, shape and device."""
        state = self._resource_()
        wanted = state._value._t
        if isinstance(value, IndexedSlices):
            value = value.to_dense()
        if is_variable(value):
            value = value._resource_()._value
        if not isinstance(value, Tensor):
            # TensorFlow truncates the numbers without a word.
            if isinstance(value, np.ndarray) and value.dtype.kind in "fc" and not (
                    wanted.dtype.is_differentiable):
                raise TypeError(f"{how}: a {value.dtype} array would be truncated to "
                                f"{wanted.dtype!r}; cast it first if that is meant")
            value = convert(_plain(value, wanted.dtype), wanted.dtype, wanted.device)
        if value.dtype is not wanted.dtype:
            raise ValueError(f"{how}: the Variable '{self.name}' is {wanted.dtype!r}, the value "
                             f"{value.dtype!r}; write tf.cast(value, tf.{wanted.dtype.name})")
        if value._t is not wanted:
            raise InvalidArgumentError(
                f"{how}: the Variable '{self.name}' lives on {wanted.device.name}, the value on "
                f"{value.device}; move it first: value.gpu() or value.cpu()")
        accepted = state._declared if state._declared is not None else state._value.shape
        if not accepted.is_compatible_with(value.shape):
            raise shape_error(f"{how}: the Variable '{self.name}' has shape {accepted}, the value "
                              f"{value.shape}; shapes must be equal")
        return value

    def _written(self, value: Tensor, read_value: bool, given: TensorLike,
                 state: ResourceVariable) -> Any:
        stack = active()
        fresh = _renewed(value, state)
        if stack:
            source = given if isinstance(given, Tensor) else getattr(
                given, "_value", value)
            mark_all(STATE, state._name, (source,), (fresh,))
            for recorder in stack:
                recorder._on_write(state, fresh)
        state._value = fresh
        if not read_value:
            return None
        # As in TensorFlow, where an assignment gives what is read after it: tapes watch the
        # variable.
        self._read_()
        return UnreadVariable(state)

    # ------------------------------------------------------------------ sparse writing

    scatter_update = _scatter("update", "Replace rows: value[indices] = values.")
    scatter_add = _scatter("add", "Add to rows; repeated rows add up.")
    scatter_sub = _scatter("sub", "Subtract from rows; repeated rows add up.")
    scatter_mul = _scatter("mul", "Multiply rows; repeated rows multiply.")
    scatter_div = _scatter("div", "Divide rows; repeated rows divide again.")
    scatter_min = _scatter("min", "The smaller of row and value.")
    scatter_max = _scatter("max", "The larger of row and value.")

    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None,
                          ) -> Variable:
        return installed.scatter_nd(self, indices, updates, "update")

    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None,
                       ) -> Variable:
        return installed.scatter_nd(self, indices, updates, "add")

    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None,
                       ) -> Variable:
        return installed.scatter_nd(self, indices, updates, "sub")


def _renewed(value: Tensor, state: ResourceVariable) -> Tensor:
    """`value` as a tensor that no tape knows, to be the value of `state`."""
    traced = tracer_now() is not None
    # The array under another tensor: tapes know values by the keys of tensors, and are not to
    # follow this one into the variable.
    if type(value) is EagerTensor and not (traced and value._t.differentiable):
        return note_origin(EagerTensor(value._a, value._t))
    with paused():
        return installed.renewed(value, state._value)


def _plain(value: object, dtype: DType) -> Any:
    """Booleans assigned to a number variable become numbers."""
    if isinstance(value, (bool, list, tuple)) and not dtype.is_bool:
        array = host_array(value)
        if array.dtype.kind == "b":
            return array.astype(dtype.np_dtype)
    return value


def _full_name(name: str | None) -> str:
    if name is None:
        name = "Variable"
    if not isinstance(name, str):
        raise ValueError(f"the name of a Variable must be a string; got {shown(name)}")
    return f"{scope_prefix.get()}{name}:0"


class ResourceVariable(Variable, StateRef):
    """The variable that `tf.Variable(...)` makes: it owns the state."""

    __slots__ = (
        "__weakref__",
        "_constraint",
        "_declared",
        "_held",
        "_k",
        "_name",
        "_shared",
        "_trainable",
    )

    def __init__(self, initial_value: object = None, trainable: bool | None = None,
                 validate_shape: bool = True, caching_device: object = None,
                 name: str | None = None, variable_def: object = None, dtype: Any = None,
                 import_scope: object = None, constraint: Callable[..., object] | None = None,
                 synchronization: VariableSynchronization | None = None,
                 aggregation: VariableAggregation | None = None, shape: IntsLike | None = None,
                 experimental_enable_variable_lifting: bool = True) -> None:
        if initial_value is None:
            raise ValueError("a Variable needs an initial_value")
        full_name = _full_name(name)
        tracer = tracer_now()
        if tracer is not None:
            tracer.creating(self)
            initial_value = tracer.lifted(initial_value)
        wanted = None if dtype is None else as_dtype(dtype)
        # A variable that is made while a function is traced has one first value, not one of every
        # call.
        with init_scope() if tracer is not None else _NOTHING:
            if callable(initial_value) and not isinstance(initial_value, (Tensor, Variable)):
                initial_value = initial_value()
            if isinstance(initial_value, Variable):
                initial_value = initial_value._resource_()._value
            value = convert(initial_value, wanted)
        self._declared = None if shape is None else TensorShape(shape)
        if self._declared is not None and not self._declared.is_compatible_with(value.shape):
            raise ValueError(f"the initial value has shape {value.shape}, which does not fit the "
                             f"declared shape {self._declared}")
        self._name = full_name
        self._trainable = True if trainable is None else bool(trainable)
        self._constraint = constraint
        self._held = note_origin(EagerTensor(value._array_(), value._t))
        self._shared: SharedBuffer | None = None
        if value._k:
            mark_all(STATE, full_name, (value,), (self._held,))
        #: Later variables have larger keys, so keys sort by creation.
        self._k = new_key()

    def _resource_(self) -> ResourceVariable:
        return self

    @property
    def _value(self) -> Any:
        tracer = tracer_now()
        if tracer is not None:
            return tracer.read(self)
        shared = self._shared
        if shared is not None:
            self._held = shared.fresh()
        return self._held

    @_value.setter
    def _value(self, value: Any) -> None:
        tracer = tracer_now()
        if tracer is not None:
            tracer.write(self, value)
            return
        if self._shared is not None:
            # A buffer has one shape: programs for the new one make theirs when they are made.
            if value._a.shape == self._shared.array.shape:
                self._shared.put(value)
            else:
                self._shared = None
        self._held = value

    def _initial_(self) -> EagerTensor:
        """For a trace: the value at this moment."""
        return self._value

    def _commit_(self, value: Tensor) -> None:
        """A traced function left this value."""
        self._written(value, False, value, self)

    def _buffer_(self, writer: BufferWriter | None) -> Any:
        """The array in which a compiled program finds the value, and where `writer` leaves it."""
        if self._shared is None:
            value = self._held
            guarded = value._t.device.is_host and buffers.zones_wanted()
            array = buffers.guarded_copy(value._a) if guarded else (
                value._t.xp.array(value._a, order="C"))
            self._shared = SharedBuffer(array, value)
        if writer is not None:
            self._shared.join(writer)
        return self._shared.array

    def __deepcopy__(self, memo: dict[int, object]) -> ResourceVariable:
        copy = _rebuild(self._read_(), self._name, self._trainable, self._constraint,
                        self._declared)
        memo[id(self)] = copy
        return copy

    def __reduce__(self) -> Any:
        return _rebuild, (self._value._peek().copy(), self._name, self._trainable,
                          self._constraint, self._declared)


def _rebuild(value: TensorLike, name: str, trainable: bool, constraint: Any,
             declared: TensorShape | None) -> ResourceVariable:
    variable = ResourceVariable(value, trainable, constraint=constraint, shape=declared)
    variable._name = name
    return variable


class VariableView(Variable):
    """Another face of a variable: everything is the state's."""

    __slots__ = ("__weakref__", "_state")

    def __init__(self, state: ResourceVariable) -> None:
        self._state = state

    def _resource_(self) -> ResourceVariable:
        return self._state

    @property
    def _k(self) -> int:
        return self._state._k

    @property
    def _value(self) -> Tensor:
        return self._state._value


class UnreadVariable(VariableView):
    """What an assignment returns: reads the variable's value at the time it is asked."""

    __slots__ = ()

    def _shown_name(self) -> str:
        return "UnreadVariable"


# TensorFlow's name, by which programs tell what an assignment gave.
UnreadVariable.__name__ = "_UnreadVariable"


class Holder(Readable):
    """Base of classes whose `value` is taken wherever an instance is given for a tensor.

    `_value` is what the instance holds itself, None while there is nothing yet.
    """

    _value: Any
    value: Any

    @property
    def _t(self) -> Any:
        return self.value._t

    @property
    def spec(self) -> Any:
        return self.value.spec

    def _read_(self) -> Tensor:
        value = self.value
        return value._read_() if isinstance(value, Variable) else value

    @property
    def _resource_(self) -> Any:
        # None has no such method, so that an instance without its value yet is no resource.
        return self._value._resource_


def is_variable(value: object) -> bool:
    """Whether `value` is a Variable, or an object that holds one."""
    return isinstance(value, Variable) or (
        isinstance(value, Holder) and isinstance(getattr(value, "_value", None), Variable))


class VariableAggregation(enum.Enum):
    """How updates of several replicas become one."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """When the copies of a Variable are brought together."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3
