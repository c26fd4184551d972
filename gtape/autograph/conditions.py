"""Conditions: which values are traced, and their truth."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gtape as tf
from gtape.core.errors import InvalidArgumentError
from gtape.core.tensor import Readable
from gtape.trace.symbolic_tensor import SymbolicTensor

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike

_MARK = "_gtape_traced_branch_"  # on the error itself, so that it goes wherever a user passes it


def traced_tensor(value: object) -> SymbolicTensor | None:
    """The traced tensor that `value` is, or that reading it, a Variable, gives."""
    if isinstance(value, SymbolicTensor):
        return value
    if isinstance(value, Readable):
        read = value._read_()
        if isinstance(read, SymbolicTensor):
            return read
    return None


def truth(value: SymbolicTensor) -> Any:
    """`value`, a single number, as a bool scalar.

    Raises:
        InvalidArgumentError: it has several elements.
    """
    # One element has a truth, whatever its shape, as bool() has it.
    if math.prod(value.spec.shape) != 1:
        raise InvalidArgumentError(
            f"a condition must be one value; got {value.spec}. Use tf.reduce_any(x) or "
            f"tf.reduce_all(x), or tf.where to choose element by element")
    scalar: Any = tf.reshape(value, ()) if value.spec.shape else value
    return scalar if scalar.dtype is tf.bool else tf.cast(scalar, tf.bool)


def not_(value: TensorLike) -> Any:
    found = traced_tensor(value)
    return not value if found is None else tf.logical_not(truth(found))


def any_of(*flags: object) -> Any:
    """Whether one of the flags is set."""
    traced = None
    for flag in flags:
        found = traced_tensor(flag)
        if found is not None:
            traced = truth(found) if traced is None else tf.logical_or(traced, truth(found))
        elif flag:
            return True  # whatever the traced ones are
    return False if traced is None else traced


def none_of(*flags: object) -> Any:
    """Whether no flag is set."""
    return not_(any_of(*flags))


def run_branch(function: Callable[..., object], where: str) -> Any:
    """`function()`; an error is marked as one of a branch that may never be taken."""
    try:
        return function()
    except Exception as error:
        if not hasattr(error, _MARK):  # the innermost branch tells; those around it would repeat it
            setattr(error, _MARK, where)
            error.add_note(f"{where}: the condition is a traced tensor, so every branch is traced, "
                           f"whether or not it will be taken. Use tf.debugging.assert_* for a "
                           f"check of values")
        raise


def caught() -> None:
    """Refuse to handle an error from a branch of which nobody knows whether it will be taken.

    Raises:
        RuntimeError: the error that is being handled is such a one.
    """
    error = sys.exc_info()[1]
    where = getattr(error, _MARK, None)
    if where is not None:
        raise RuntimeError(
            f"{where}: {type(error).__name__} was raised while tracing a branch whose condition "
            f"is a traced tensor. It cannot be caught inside the traced function, since only a "
            f"run tells whether the branch is taken. Use tf.cond with values on both sides"
        ) from error
