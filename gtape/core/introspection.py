"""Small questions about values and about how gtape runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NoReturn

from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import tracer_now
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import is_variable

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike


def executing_eagerly() -> bool:
    """Whether operations run when they are called; False while a `tf.function` is traced."""
    return tracer_now() is None


def inside_function() -> bool:
    """Whether a `tf.function` is being traced."""
    return tracer_now() is not None


def is_symbolic_tensor(tensor: TensorLike) -> bool:
    """Whether `tensor` is a traced value, whose numbers are not known."""
    return isinstance(tensor, Tensor) and not isinstance(tensor, EagerTensor)


def is_tensor(x: object) -> bool:
    """Whether `x` is a Tensor, a Variable or a composite (an IndexedSlices, SparseTensor or
    RaggedTensor); arrays and numbers are not."""
    if isinstance(x, (Tensor, CompositeTensor)):
        return True
    return is_variable(x)


def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """The value of a tensor as a NumPy array, or None where it may change or is not known.

    Values that are no tensors are given back. Unlike `tensor.numpy()`, this does not count as
    leaving the tape.
    """
    if isinstance(tensor, EagerTensor):
        value = tensor._peek().copy()
        return value if value.ndim else value[()]
    return None if is_tensor(tensor) else tensor


def get_logger() -> logging.Logger:
    """The logger `gtape`."""
    return logging.getLogger("gtape")


def gradients(ys: object, xs: object, grad_ys: object = None, name: str = "gradients",
              **ignored: object) -> NoReturn:
    """Raises RuntimeError: there is no graph to differentiate; record with `tf.GradientTape`."""
    raise RuntimeError("tf.gradients works on graphs, and gtape runs eagerly. Compute inside "
                       "`with tf.GradientTape() as tape:` and call tape.gradient(ys, xs)")


def hessians(ys: object, xs: object, name: str = "hessians", **ignored: object) -> NoReturn:
    """Raises RuntimeError: use nested tapes and `jacobian`."""
    raise RuntimeError("tf.hessians works on graphs, and gtape runs eagerly. Take the gradient in "
                       "an inner tape, and outer_tape.jacobian(gradient, xs) of it")
