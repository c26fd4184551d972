"""What core calls that is built on core: `gtape.ops.installation` puts it here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gtape.core.device import Device
    from gtape.core.dtypes import DType
    from gtape.core.op import Op
    from gtape.core.tensor import Tensor


class Installed:
    """One slot for each function; a slot is empty until `gtape.ops` was imported."""

    __slots__ = ("broadcast_to", "concat", "conj", "dense_rows", "find_default_device", "gather",
                 "gather_nd", "identity", "jacobians", "optimization_barrier", "pack", "renewed",
                 "scatter", "scatter_nd", "slice_tensor", "stop_gradient", "sum_to")

    #: The device of new tensors outside any `tf.device` block, found at the first need of one.
    find_default_device: Callable[[], Device]
    #: A tensor of a nested list that holds tensors, in a dtype or in theirs.
    pack: Callable[[Any, DType | None], Tensor]

    #: The module of `GradientTape.jacobian`: a batch of gradients, by the batching rules of ops.
    jacobians: Callable[[], ModuleType]

    # What tracing and pulling back are written in.
    broadcast_to: Op
    conj: Callable[[Tensor], Tensor]
    optimization_barrier: Callable[[Tensor], Tensor]
    stop_gradient: Callable[[Tensor], Tensor]
    sum_to: Callable[[Tensor, tuple[int, ...]], Tensor]

    # IndexedSlices: its parts as tensors, all rows of (values, indices, shape), slices joined.
    slice_tensor: Callable[[Any], Tensor]
    dense_rows: Callable[[Tensor, Tensor, tuple[int, ...]], Tensor]
    concat: Callable[[Sequence[Tensor]], Tensor]

    # Variables: reading; writing rows (variable, slices, how) and slices (variable, indices,
    # updates, how); and a value as the new state of one that had `old`, of which no tape knows.
    identity: Callable[[Tensor], Tensor]
    gather: Callable[[Any, Any], Any]
    gather_nd: Callable[[Any, Any], Any]
    scatter: Callable[[Any, Any, str], Any]
    scatter_nd: Callable[[Any, Any, Any, str], Any]
    renewed: Callable[[Tensor, Tensor], Tensor]


installed = Installed()
