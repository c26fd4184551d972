"""Metric: a state that batches are added to, and a result computed from it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype
from gtape.core.module import is_variable
from gtape.core.state import paused, tracer_now
from gtape.core.tensor import Tensor
from gtape.keras import config, naming
from gtape.keras.variables import KerasVariable


def host(value: Any) -> np.ndarray:
    """A tensor, variable or array as a NumPy array, unseen by tapes."""
    if is_variable(value):
        value = value._resource_()._value
    return np.asarray(value._peek()) if hasattr(value, "_peek") else np.asarray(value)


def tensor(value: Any) -> Tensor:
    """A result as a tensor of the default floating dtype."""
    return convert(np.asarray(value, config.floatx()))


def over(a: Any, b: Any) -> np.ndarray:
    """a / b, and 0 where b is 0."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)


def _unrecorded(method: Any) -> Any:
    @functools.wraps(method)
    def wrapped(self: Metric, *args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if isinstance(value, Tensor):
                Tensor._on_exit(value, f"{type(self).__name__}.{method.__name__}")
        with paused():
            if tracer_now() is None:
                return method(self, *args, **kwargs)
            from gtape.keras.metrics.traced import traced

            return traced(self, method, args, kwargs)

    return wrapped


class Metric:
    """Base class: make state with `add_weight`; override `update_state` and `result`.

    Neither is recorded by tapes. Calling the metric updates the state and gives the result.

    Args:
        dtype: of the state; `keras.config.floatx()` unless given.
        name: for logs.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method in ("update_state", "result"):
            if method in cls.__dict__:
                setattr(cls, method, _unrecorded(cls.__dict__[method]))

    def __init__(self, dtype: Any = None, name: str | None = None) -> None:
        self.name = name or naming.numbered(naming.snake_case(type(self).__name__))
        self._dtype = as_dtype(dtype or config.floatx())
        self._variables: list[KerasVariable] = []

    @property
    def dtype(self) -> str:
        return self._dtype.name

    @property
    def variables(self) -> list[KerasVariable]:
        """The state."""
        return self._variables

    def add_variable(self, shape: Any, initializer: Any = "zeros", dtype: Any = None,
                     aggregation: str = "sum", name: str | None = None) -> KerasVariable:
        """A new part of the state."""
        from gtape.keras import initializers

        wanted = as_dtype(dtype or self._dtype)
        with naming.scope(self.name.replace("/", "_")):
            made = KerasVariable(initializers.get(initializer)(tuple(shape), dtype=wanted),
                                 wanted, False, name or "variable")
        self._variables.append(made)
        return made

    def add_weight(self, shape: Any = (), initializer: Any = "zeros", dtype: Any = None,
                   name: str | None = None) -> KerasVariable:
        """A new part of the state, a scalar unless `shape` is given."""
        return self.add_variable(shape, initializer, dtype, name=name)

    def _add(self, variable: KerasVariable, amount: Any) -> None:
        """Add an array to a part of the state."""
        variable.assign_add(np.asarray(amount, variable.dtype.np_dtype), read_value=False)

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch to the state."""
        raise NotImplementedError(f"{type(self).__name__} must define update_state")

    def result(self) -> Any:
        """The metric of all batches so far."""
        raise NotImplementedError(f"{type(self).__name__} must define result")

    def reset_state(self) -> None:
        """Forget all batches."""
        for variable in self._variables:
            variable.assign(np.zeros(tuple(variable.shape), variable.dtype.np_dtype))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.update_state(*args, **kwargs)
        return self.result()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"
