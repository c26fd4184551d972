"""ResourceVariable: the variable that owns a value. VariableView: another face of one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from gtape.core import guard_zones, variable
from gtape.core.context import init_scope, new_key, tracer_now
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype
from gtape.core.formatting import shown
from gtape.core.name_scope import scope_prefix
from gtape.core.recording import STATE, mark_all
from gtape.core.shape import TensorShape
from gtape.core.tensor import EagerTensor, Tensor, noted
from gtape.core.variable import Variable
from gtape.core.variable_buffer import SharedBuffer

_NOTHING: Any = nullcontext()


def _full_name(name: str | None) -> str:
    if name is None:
        name = "Variable"
    if not isinstance(name, str):
        raise ValueError(f"the name of a Variable must be a string; got {shown(name)}")
    return f"{scope_prefix.get()}{name}:0"


class ResourceVariable(Variable):
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

    def __init__(self, initial_value: Any = None, trainable: bool | None = None,
                 validate_shape: bool = True, caching_device: Any = None,
                 name: str | None = None, variable_def: Any = None, dtype: Any = None,
                 import_scope: Any = None, constraint: Any = None, synchronization: Any = None,
                 aggregation: Any = None, shape: Any = None,
                 experimental_enable_variable_lifting: bool = True) -> None:
        if initial_value is None:
            raise ValueError("a Variable needs an initial_value")
        full_name = _full_name(name)
        tracer = tracer_now()
        if tracer is not None:
            tracer.creating(self)
            initial_value = tracer.lifted(initial_value)
        wanted = None if dtype is None else as_dtype(dtype)
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
        self._held = noted(EagerTensor(value._array_(), value._t))
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
            if value._a.shape == self._shared.array.shape:
                self._shared.put(value)
            else:
                self._shared = None
        self._held = value

    def _initial_(self) -> EagerTensor:
        """For a trace: the value at this moment."""
        return self._value

    def _commit_(self, value: Any) -> None:
        """A traced function left this value."""
        self._written(value, False, value, self)

    def _buffer_(self, writer: Any) -> Any:
        """The array in which a compiled program finds the value, and where `writer` leaves it."""
        if self._shared is None:
            value = self._held
            guarded = value._t.device.is_host and guard_zones.wanted()
            array = guard_zones.copied(value._a) if guarded else (
                value._t.xp.array(value._a, order="C"))
            self._shared = SharedBuffer(array, value)
        if writer is not None:
            self._shared.join(writer)
        return self._shared.array

    def __deepcopy__(self, memo: dict[int, Any]) -> ResourceVariable:
        made = _rebuild(self._read_(), self._name, self._trainable, self._constraint,
                        self._declared)
        memo[id(self)] = made
        return made

    def __reduce__(self) -> Any:
        return _rebuild, (self._value._peek().copy(), self._name, self._trainable,
                          self._constraint, self._declared)


def _rebuild(value: Any, name: str, trainable: bool, constraint: Any,
             declared: TensorShape | None) -> ResourceVariable:
    made = ResourceVariable(value, trainable, constraint=constraint, shape=declared)
    made._name = name
    return made


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


UnreadVariable.__name__ = "_UnreadVariable"


variable.hooks.update(resource=ResourceVariable, unread=UnreadVariable)
