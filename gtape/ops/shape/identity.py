"""Ops that pass values on: stop_gradient and the identities; and an order of execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import ArrayModule
from gtape.core.op import case
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.variable import is_variable
from gtape.opdef.primitive import Primitive, primitive
from gtape.ops.arguments import as_items
from gtape.ops.shape.layout import identity


@primitive(nondifferentiable=True, tf_name="StopGradient")
def stop_gradient_(xp: ArrayModule, x: object) -> Any:
    """y = x; no gradient flows back."""
    return x


stop_gradient_.infer(lambda x: x)
stop_gradient_.cases = [case((2, 3))]


@partial(Primitive, tf_name="AssignVariableOp")
def assigned_(xp: ArrayModule, value: object, previous: object) -> Any:
    """`value`: what a Variable whose value was `previous` was given while a function is traced.

    The gradient goes to `previous`: one by the Variable is the sum of those by all its values.
    """
    return value


assigned_.infer(lambda value, previous: value)
assigned_.vjp(previous=lambda g: g)


def renewed(value: Tensor, previous: Tensor) -> Tensor:
    """The new value of a Variable, which no gradient of what it was computed from reaches."""
    cut = stop_gradient_(value)
    if cut.spec != previous.spec or cut._t is not previous._t or not cut._t.differentiable:
        return cut
    return assigned_(cut, previous)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """The value of `input` as a new tensor through which no gradient flows.

    A Variable is not watched by being passed here.
    """
    if is_variable(input):
        value = input._resource_()._value
        if type(value) is EagerTensor:
            value = EagerTensor(value._a, value._t)
        return stop_gradient_(value)
    return stop_gradient_(convert(input))


def identity_n(input: Sequence[object], name: str | None = None) -> list[Tensor]:
    """Each tensor as a new tensor."""
    return [identity(x) for x in as_items(input, "identity_n: input")]


def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """`input` as a new tensor."""
    return identity(input)


def tuple(tensors: Any, control_inputs: object = None, name: str | None = None) -> list[Any]:
    """Each tensor as a new tensor; None stays None. Everything was computed already."""
    return [None if t is None else identity(t) for t in as_items(tensors, "tuple: tensors")]


def group(*inputs: object, **kwargs: object) -> None:
    """Nothing: eager operations have run when this is called."""
    nest.flatten(inputs)


def no_op(name: str | None = None) -> None:
    """Nothing."""


@contextmanager
def control_dependencies(control_inputs: object) -> Iterator[None]:
    """A block that begins after `control_inputs` were computed, as every line of Python does.

    A function among them is called first.
    """
    if callable(control_inputs):
        control_inputs()
    yield
