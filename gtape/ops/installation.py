"""Core calls a few functions that are built on it. Here, and nowhere else, it is given them."""

from __future__ import annotations

from types import ModuleType

from gtape.core import recording
from gtape.core.device import Device
from gtape.core.installed import installed
from gtape.core.tensor import Tensor
from gtape.ops.indexing.gathering import dense_rows, gather, gather_nd, slice_tensor
from gtape.ops.indexing.variable_scatter import scatter, scatter_nd
from gtape.ops.shape.identity import renewed
from gtape.ops.shape.layout import identity_
from gtape.ops.shape.packing import concat_, pack


def install() -> None:
    """Fill the slots of `core.installed`, and let tapes see what leaves them."""
    Tensor._on_exit = staticmethod(recording.mark_exit)  # type: ignore[assignment]
    installed.find_default_device = _default_device
    installed.pack = pack
    installed.jacobians = _jacobians
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
