"""Core calls a few functions that are built on it. Here, and nowhere else, it is given them."""

from __future__ import annotations

from types import ModuleType

from gtape.core import recording
from gtape.core.device import Device
from gtape.core.installed import installed
from gtape.core.tensor import Tensor
from gtape.ops.elementwise.scalars import conj
from gtape.ops.indexing.gathering import dense_rows, gather, gather_nd, slice_tensor
from gtape.ops.indexing.variable_scatter import scatter, scatter_nd
from gtape.ops.shape.identity import identity_, optimization_barrier_, renewed, stop_gradient_
from gtape.ops.shape.layout import broadcast_to_, sum_to
from gtape.ops.shape.packing import concat_, pack


def install() -> None:
    """Fill the slots of `core.installed`, and let tapes see what leaves them."""
    Tensor._on_exit = staticmethod(recording.mark_exit)
    installed.find_default_device = _default_device
    installed.pack = pack
    installed.jacobians = _jacobians
    installed.broadcast_to, installed.sum_to, installed.conj = broadcast_to_, sum_to, conj
    installed.optimization_barrier = optimization_barrier_
    installed.stop_gradient = stop_gradient_
    installed.slice_tensor = slice_tensor
    installed.dense_rows = dense_rows
    installed.concat = lambda parts: concat_(*parts, axis=0)
    installed.identity = identity_
    installed.gather, installed.gather_nd = gather, gather_nd
    installed.scatter, installed.scatter_nd = scatter, scatter_nd
    installed.renewed = renewed


def _jacobians() -> ModuleType:
    from gtape.vmap import jacobian  # batches, by rules of ops that stand above these

    return jacobian


def _default_device() -> Device:
    from gtape.devices.probe import default_device  # looks for GPUs, which importing gtape does not

    return default_device()
