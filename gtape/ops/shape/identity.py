"""Ops that pass values on: identities, stop_gradient, moves between devices; and an order of
execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from gtape.autodiff.backward import Grads, add_to, on_arrays
from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import CPU, Array, ArrayModule, Device, _scoped
from gtape.core.op import Op, case
from gtape.core.recording import INPUT_KEYS, PAYLOAD, record_general, trace_or_none
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.core.variable import is_variable
from gtape.opdef.primitive import Primitive, primitive
from gtape.ops.arguments import as_int, as_items


@primitive(linear="x", tf_name="Identity")
def identity_(xp: ArrayModule, x: object) -> Any:
    """y = x, as a new tensor."""
    return x


identity_.infer(lambda x: x)
identity_.vjp(x=lambda g: g)
identity_.sparse = True
identity_.cases = [case((2, 3))]


@primitive(linear="x", tf_name="Identity")
def optimization_barrier_(xp: ArrayModule, x: Array) -> Array:
    """y = x; what a compiled program computes of y is computed anew, not taken from x's."""
    return x


optimization_barrier_.infer(lambda x: x)
optimization_barrier_.vjp(x=lambda g: g)
optimization_barrier_.cases = [case((2, 3))]


@primitive(nondifferentiable=True, tf_name="StopGradient")
def stop_gradient_(xp: ArrayModule, x: object) -> Any:
    """y = x; no gradient flows back."""
    return x


stop_gradient_.infer(lambda x: x)
stop_gradient_.cases = [case((2, 3))]


@partial(Primitive, tf_name="AssignVariableOp")
def assigned_(xp: ArrayModule, value: object, previous: object) -> Any:
    """`value`: what a Variable whose value was `previous` was given while a function is traced. The
    gradient goes to `previous`: one by the Variable is the sum of those by all its values."""
    return value


assigned_.infer(lambda value, previous: value)
assigned_.vjp(previous=lambda g: g)


def renewed(value: Tensor, previous: Tensor) -> Tensor:
    """The new value of a Variable, which no gradient of what it was computed from reaches."""
    cut = stop_gradient_(value)
    # The sum of gradients over all values needs one shape, dtype and device.
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
            # A new tensor: a tape that watches the Variable knows its value by identity.
            value = EagerTensor(value._a, value._t)
        return stop_gradient_(value)
    return stop_gradient_(convert(input))


@takes_composites
def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """A new tensor with the value of `input`, on the current device; nests are mapped.

    The gradient passes unchanged; on another device it is moved back.
    """
    # Lists and tuples become tensors, as everywhere; other nests cannot.
    if nest.is_nested(input) and not isinstance(input, (list, tuple)):
        return nest.map_structure(identity, input)
    x = convert(input)
    place = _scoped.get()
    return identity_(x) if place is None or place is x._t.device else move(x, place)


def identity_n(input: Sequence[object], name: str | None = None) -> list[Tensor]:
    """Each tensor as a new tensor."""
    return [identity(x) for x in as_items(input, "identity_n: input")]


def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """`input` as a new tensor."""
    return identity(input)


def tuple_(tensors: Any, control_inputs: object = None, name: str | None = None) -> list[Any]:
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
    # TensorFlow calls a function among them when it runs eagerly.
    if callable(control_inputs):
        control_inputs()
    yield


# ---------------------------------------------------------------- to other devices
class Move(Op):
    """y = x on another device; the cotangent is moved back."""

    def __init__(self) -> None:
        super().__init__("move", ("x",), "The same values on another device.", "Identity")
        self.attr_names = ("device",)

    def run(self, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        (x,), (device,) = inputs, attrs
        emitted = trace_or_none(self, inputs, attrs, lambda: [x.spec],
                               [device.typed(x.dtype)])
        if emitted is None:
            emitted = (_moved(x, device),)
        record_general(self, inputs, emitted, attrs)
        return emitted

    def reapply(self, inputs: Sequence[Tensor], attrs: tuple[object, ...]) -> tuple[Tensor, ...]:
        return self.run(tuple(inputs), attrs)

    def record(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               attrs: tuple[Any, ...]) -> Any:
        if not outputs[0]._t.differentiable:
            return None
        return _backward, inputs[0]._k, (inputs[0]._t.device,)


def _moved(x: Tensor, device: Device) -> EagerTensor:
    source, target = x._t.device, device.typed(x.dtype)
    if target.device is source:
        array = x._a
    else:
        array = source.download(x._a) if device.is_host else device.upload(x._a)
    return note_origin(EagerTensor(array, target))


def _tensors(grads: Grads, g: Tensor, record: Any) -> None:
    add_to(grads, record[INPUT_KEYS], move(g, record[PAYLOAD]))


_backward = on_arrays(_tensors)
move_ = Move()


def move(x: Tensor, device: Device) -> Tensor:
    """`x` on `device`; a new tensor even when it is there already. Strings stay on the host."""
    return move_.run((x,), (device,))[0]


def moved(structure: object, device: Device) -> Any:
    """A nest with its tensors on `device`, those of composites too."""
    return nest.map_structure(lambda x: move(x, device) if isinstance(x, Tensor) else x, structure,
                              expand_composites=True)


def cpu(self: Tensor) -> Tensor:
    """The tensor in host memory."""
    return self if self._t.device.is_host else move(self, CPU)


def gpu(self: Tensor, gpu_index: int = 0) -> Tensor:
    """The tensor on GPU `gpu_index`. Raises InvalidArgumentError when there is none."""
    from gtape.devices.probe import device_named  # looks for GPUs, which an import must not

    device = device_named(f"GPU:{as_int(gpu_index, 'gpu_index')}")
    return self if self._t.device is device else move(self, device)


Tensor.cpu = cpu  # type: ignore[method-assign]
Tensor.gpu = gpu  # type: ignore[method-assign]
