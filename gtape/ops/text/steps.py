"""How functions of strings run: on the host, element by element; in a traced function as steps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.device import Device
from gtape.core.dtypes import DType, string
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.placement import current_device
from gtape.core.sites import here, resolve
from gtape.core.spec import Spec
from gtape.core.state import tracer_now
from gtape.core.tensor import EagerTensor, Tensor, noted
from gtape.core.text import shown
from gtape.kinds.hosted import HostedOp, symbolic


def strings(value: Any, name: str) -> Tensor:
    """`value` as a string tensor. Raises InvalidArgumentError: it is none."""
    if isinstance(value, (list, tuple)) and not value:
        return convert(value, string)
    found = convert(value)
    if found.dtype is not string:
        raise InvalidArgumentError(f"tf.strings.{name} takes strings; got {found.spec}. Write "
                                   f"tf.strings.as_string(x) for the digits of numbers")
    return found


def one_of(name: str, value: Any, allowed: Sequence[str]) -> Any:
    """`value`. Raises InvalidArgumentError: it is none of `allowed`."""
    if value not in allowed:
        raise InvalidArgumentError(f"{name} must be one of {', '.join(map(repr, allowed))}; got "
                                   f"{shown(value)}")
    return value


def array_of(items: Sequence[Any], shape: Sequence[int], dtype: DType) -> np.ndarray:
    """An array of these elements; strings keep the NULs at their end."""
    made = np.empty(len(items), dtype.np_dtype)
    for i, item in enumerate(items):
        made[i] = item
    return made.reshape(tuple(shape))


def _placed(array: Any, device: Device, dtype: DType) -> EagerTensor:
    found = device.typed(dtype)
    array = np.asarray(array, dtype.np_dtype)
    return noted(EagerTensor(array if found.device.is_host else found.device.upload(array), found))


def step(name: str, run: Callable[..., Sequence[Any]], inputs: Sequence[Tensor],
         specs: Sequence[Spec], home: Device | None = None, *, lasting: bool = False,
         ) -> tuple[Tensor, ...]:
    """The arrays that `run(*arrays)` gives, as tensors of these specs.

    Numbers go to `home`, else to where new tensors go; strings stay on the host. What is `lasting`
    reads or writes something besides its inputs: a traced function does it at every call.
    """
    device = home or current_device()

    def call(*tensors: Any) -> list[Tensor]:
        made = run(*[x._peek() for x in tensors])
        return [_placed(a, device, s.dtype) for a, s in zip(made, specs)]

    if not (symbolic(*inputs) or (lasting and tracer_now() is not None)):
        return tuple(call(*inputs))
    return HostedOp(name, call, specs, [device.typed(s.dtype) for s in specs], refuses=True,
                    lasting=lasting, differentiable=False)(*inputs)


def each(name: str, function: Callable[[Any], Any], x: Tensor, dtype: DType) -> Tensor:
    """`function` of every element."""
    def run(array: np.ndarray) -> list[np.ndarray]:
        return [array_of([function(v) for v in array.reshape(-1)], array.shape, dtype)]

    return step(name, run, [x], [Spec(x.spec.shape, dtype)])[0]


def of_all(name: str, function: Callable[[list[Any]], Any], x: Tensor, dtype: DType) -> Tensor:
    """`function` of the list of all elements, giving an array of as many."""
    def run(array: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(function(list(array.reshape(-1)))).reshape(array.shape)]

    return step(name, run, [x], [Spec(x.spec.shape, dtype)])[0]


def known(name: str, *tensors: Tensor) -> list[np.ndarray]:
    """The values of tensors, where the shape of a result depends on them.

    Raises:
        NotTraceableError: they are not known while a function is traced; it then runs eagerly.
    """
    if symbolic(*tensors):
        raise NotTraceableError(f"{resolve(*here())}: the shape of the result of "
                                f"tf.strings.{name} depends on the strings, which are known only "
                                f"when the function runs")
    return [x._peek() for x in tensors]  # type: ignore[attr-defined]


def per_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: of a ragged first argument, `function` of its flat values, as ragged as it is."""
    first = next(iter(inspect.signature(function).parameters))

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        given: Any = args[0] if args else kwargs.get(first)
        if not hasattr(given, "with_flat_values"):
            return function(*args, **kwargs)
        flat = given.flat_values
        made = function(flat, *args[1:], **kwargs) if args else function(**kwargs | {first: flat})
        return given.with_flat_values(made)

    return run
