"""Functions of host arrays as steps: called at once, or at every call of a traced function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.context import tracer_now
from gtape.core.convert import convert
from gtape.core.device import Device
from gtape.core.dtypes import DType
from gtape.core.errors import NotTraceableError
from gtape.core.placement import current_device
from gtape.core.source_location import here, resolve
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.trace.host_callback import HostCallback, symbolic

Run = Callable[..., Sequence[Any]]


def step(name: str, run: Run, inputs: Sequence[TensorLike],
         results: Sequence[Spec | DType], home: Device | None = None, *,
         has_side_effect: bool = False, rows: Run | None = None) -> tuple[Tensor, ...]:
    """The arrays that `run(*arrays of the inputs)` gives, as tensors.

    Args:
        results: the spec of each; its dtype where the shape is known only after `run`.
        home: where numbers go; to where new tensors go unless given. Strings stay on the host.
        has_side_effect: it reads or writes something besides its inputs: a traced function does it
            at every call.
        rows: `run` for many at once: for arrays with an axis more, the first, arrays with one more.

    Raises:
        NotTraceableError: it would be a step of a traced function, and a shape is not known.
    """
    device = home or current_device()
    tensors = [convert(x) for x in inputs]
    dtypes = [r if isinstance(r, DType) else r.dtype for r in results]

    def called(run: Run) -> Callable[..., list[Tensor]]:
        def call(*values: Any) -> list[Tensor]:
            arrays = run(*[x._peek() for x in values])
            return [_placed(array, device, dtype) for array, dtype in zip(arrays, dtypes)]

        return call

    if not (symbolic(*tensors) or (has_side_effect and tracer_now() is not None)):
        return tuple(called(run)(*tensors))
    specs = [r for r in results if isinstance(r, Spec)]
    if len(specs) < len(results):
        raise untraceable(name)
    return HostCallback(name, called(run), specs, [device.typed(d) for d in dtypes], refuses=True,
                        has_side_effect=has_side_effect, differentiable=False,
                        rows=None if rows is None else called(rows))(*tensors)


def _placed(array: TensorLike, device: Device, dtype: DType) -> EagerTensor:
    array_type = device.typed(dtype)
    array = np.require(array, dtype.np_dtype, ["C", "A", "W"])
    home = array_type.device  # strings stay on the host, whatever the device
    return note_origin(EagerTensor(array if home.is_host else home.upload(array), array_type))


def untraceable(name: str) -> NotTraceableError:
    """The error where the shape of a result depends on values, and a function is being traced: it
    then runs as Python."""
    return NotTraceableError(f"{resolve(*here())}: the shape of what {name} gives depends on "
                             f"values that are known only when the function runs, so it runs as "
                             f"Python")
