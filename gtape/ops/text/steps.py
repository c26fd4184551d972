"""How functions of strings run: on the host, element by element."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.dtypes import DType
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_strings, host
from gtape.trace.host_steps import step, symbolic, untraceable


def strings(value: TensorLike, name: str) -> Tensor:
    """`value` as a string tensor. Raises InvalidArgumentError: it is none."""
    return as_strings(value, f"tf.strings.{name}")


def one_string(value: TensorLike, name: str, what: str) -> Tensor:
    """`value`, `what` a function of strings takes beside them, as a scalar string tensor."""
    scalar = strings(value, f"{name}: {what}")
    if scalar.ndim:
        raise InvalidArgumentError(f"tf.strings.{name}: the {what} must be one string; got "
                                   f"{scalar.spec}")
    return scalar


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    """`value`. Raises InvalidArgumentError: it is none of `allowed`."""
    if value not in allowed:
        raise InvalidArgumentError(f"{name} must be one of {', '.join(map(repr, allowed))}; got "
                                   f"{shown(value)}")
    return value


def array_of(items: Sequence[object], shape: Sequence[int], dtype: DType) -> np.ndarray:
    """An array of these elements; strings keep the NULs at their end."""
    array = np.empty(len(items), dtype.np_dtype)
    array[:] = items  # np.array(items) would make a fixed width of strings, and cut their NULs off
    return array.reshape(tuple(shape))


def each(name: str, function: Callable[[Any], Any], x: Tensor, dtype: DType) -> Tensor:
    """`function` of every element."""
    return of_all(name, lambda items: array_of([function(v) for v in items], [len(items)], dtype),
                  x, dtype)


def of_all(name: str, function: Callable[[list[Any]], Any], x: Tensor, dtype: DType) -> Tensor:
    """`function` of the list of all elements, giving an array of as many."""
    def run(array: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(function(list(array.reshape(-1)))).reshape(array.shape)]

    # `rows`: as each element stands for itself, a batch of calls is one call on the batch.
    return step(name, run, [x], [Spec(x.spec.shape, dtype)], rows=run)[0]


def known(name: str, *tensors: Tensor) -> list[np.ndarray]:
    """The values of tensors, where the shape of a result depends on them. Raises NotTraceableError:
    they are not known while a function is traced; it then runs eagerly."""
    # The number of pieces is a shape, which a trace must know: the function is run in Python
    # instead.
    if symbolic(*tensors):
        raise untraceable(f"tf.strings.{name}")
    return [host(x) for x in tensors]


def per_value(function: Callable[..., object]) -> Callable[..., Any]:
    """Decorator: of a ragged first argument, `function` of its flat values, as ragged as it is."""
    first = next(iter(inspect.signature(function).parameters))

    @wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        given: Any = args[0] if args else kwargs.get(first)
        if not hasattr(given, "with_flat_values"):
            return function(*args, **kwargs)
        flat = given.flat_values
        result = function(flat, *args[1:], **kwargs) if args else function(**kwargs | {first: flat})
        return given.with_flat_values(result)

    return run
