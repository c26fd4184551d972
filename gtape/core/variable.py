"""Variable: the only value that can change. Reading one gives its present tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gtape.core import formatting
from gtape.core.context import active, paused, tracer_now
from gtape.core.convert import convert, host_array
from gtape.core.device import ArrayType
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.recording import STATE, mark_all
from gtape.core.references import Reference
from gtape.core.shape import TensorShape
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor, noted

if TYPE_CHECKING:
    from gtape.core.resource_variable import ResourceVariable

#: Installed by `ops`: scatter and slice assignment; by `core.resource`: its classes.
hooks: dict[str, Callable[..., Any]] = {}


def _scatter(how: str, doc: str) -> Callable[..., Any]:
    """A method that writes rows of a variable from an IndexedSlices."""
    def method(self: Variable, sparse_delta: Any, use_locking: bool = False,
               name: str | None = None) -> Any:
        return hooks["scatter"](self, sparse_delta, how)

    method.__name__ = f"scatter_{how}"
    method.__doc__ = doc + "\n\nRaises:\n    TypeError: sparse_delta is no IndexedSlices."
    return method


class Variable:
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

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(hooks["resource"] if cls is Variable else cls)  # type: ignore[arg-type]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: a subclass of Variable has no value of its own; hold a "
            f"tf.Variable in a tf.Module, or make one with tf.Variable(...)")

    # ------------------------------------------------------------------ the state behind it

    def _resource_(self) -> ResourceVariable:
        raise NotImplementedError

    def _read_(self) -> Tensor:
        """The present value, noted by every tape of this thread."""
        state = self._resource_()
        value = state._value
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
        return hooks["identity"](self._read_())

    read_value = value

    def numpy(self) -> Any:
        """The present value as a NumPy array (a copy) or scalar; the gradient path ends here."""
        return self._read_().numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
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

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Rows of the value; the gradient is an IndexedSlices."""
        return hooks["gather"](self, indices)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        return hooks["gather_nd"](self, indices)

    # ------------------------------------------------------------------ identity

    def ref(self) -> Reference:
        """A hashable stand-in for this very variable."""
        return Reference(self._resource_())

    def __hash__(self) -> int:
        raise TypeError("a Variable is unhashable, because == compares its elements; "
                        "use variable.ref() as the key")

    def __copy__(self) -> Variable:
        return self

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError("a Variable does not support item assignment; use "
                        "variable[...].assign(value), scatter_update or scatter_nd_update")

    def _no_inplace(self, other: Any) -> NoReturn:
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

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None,
               read_value: bool = True) -> Any:
        """Replace the value. Tensors read before keep theirs; no gradient flows to `value`.

        Raises:
            ValueError: another shape, or a tensor of another dtype.
            TypeError: a Python value that does not fit the dtype.
        """
        state = self._resource_()
        return self._written(self._fitting(value, "assign", ValueError), read_value, value, state)

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:
        """value + delta, of the same shape. Raises as `assign`, shapes as InvalidArgumentError."""
        return self._shifted(delta, "assign_add", read_value)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None,
                   read_value: bool = True) -> Any:
        """value - delta, of the same shape. Raises as `assign_add`."""
        return self._shifted(delta, "assign_sub", read_value)

    def _shifted(self, delta: Any, how: str, read_value: bool) -> Any:
        state = self._resource_()
        if isinstance(delta, IndexedSlices):
            delta = delta.to_dense()
        shift = self._fitting(delta, how, InvalidArgumentError)
        old = state._value
        if type(old) is not EagerTensor:
            with paused():
                made = old + shift if how == "assign_add" else old - shift
            return self._written(made, read_value, delta, state)
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
        if hasattr(value, "_read_"):
            value = value._resource_()._value
        if not isinstance(value, Tensor):
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

    def _written(self, value: Tensor, read_value: bool, given: Any,
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
        self._read_()
        return hooks["unread"](state)

    # ------------------------------------------------------------------ sparse writing

    scatter_update = _scatter("update", "Replace rows: value[indices] = values.")
    scatter_add = _scatter("add", "Add to rows; repeated rows add up.")
    scatter_sub = _scatter("sub", "Subtract from rows; repeated rows add up.")
    scatter_mul = _scatter("mul", "Multiply rows; repeated rows multiply.")
    scatter_div = _scatter("div", "Divide rows; repeated rows divide again.")
    scatter_min = _scatter("min", "The smaller of row and value.")
    scatter_max = _scatter("max", "The larger of row and value.")

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        return hooks["scatter_nd"](self, indices, updates, "update")

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        return hooks["scatter_nd"](self, indices, updates, "add")

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        return hooks["scatter_nd"](self, indices, updates, "sub")


def _renewed(value: Tensor, state: ResourceVariable) -> Tensor:
    """`value` as a tensor that no tape knows, to be the value of `state`."""
    traced = tracer_now() is not None
    if type(value) is EagerTensor and not (traced and value._t.differentiable):
        return noted(EagerTensor(value._a, value._t))
    with paused():
        return hooks["renewed"](value, state._value)


def _plain(value: Any, dtype: DType) -> Any:
    """Booleans assigned to a number variable become numbers."""
    if isinstance(value, (bool, list, tuple)) and not dtype.is_bool:
        found = host_array(value)
        if found.dtype.kind == "b":
            return found.astype(dtype.np_dtype)
    return value
