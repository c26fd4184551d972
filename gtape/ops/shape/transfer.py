"""Moving tensors between devices: always asked for, and differentiable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.autodiff.backward import Grads, add_to, on_arrays
from gtape.core import nest
from gtape.core.device import CPU, Device
from gtape.core.op import Op
from gtape.core.recording import INPUT_KEYS, PAYLOAD, record_general, trace_or_none
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.ops.arguments import as_int


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
    from gtape.devices.placing import device_named

    device = device_named(f"GPU:{as_int(gpu_index, 'gpu_index')}")
    return self if self._t.device is device else move(self, device)


Tensor.cpu = cpu  # type: ignore[method-assign]
Tensor.gpu = gpu  # type: ignore[method-assign]
