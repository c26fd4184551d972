"""The libraries that are measured, each behind the same few words.

A peer has `library` (which method of a workload is its program), `clock`, `versions()`,
`put(array)` and `get(value)` (to the device, and back as float64), `rows(value, which)`,
`allow_tf32(bool)` and `free()`, which gives unused memory back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.gpu.peers.peer import Peer, Unavailable


def _gtape() -> Peer:
    from benchmarks.gpu.peers.gtape_peer import GtapePeer

    return GtapePeer.on_gpu()


def _kernels() -> Peer:
    from benchmarks.gpu.peers.gtape_peer import KernelPeer

    return KernelPeer.on_gpu()


def _torch(mode: str | None) -> Callable[[], Peer]:
    def make() -> Peer:
        from benchmarks.gpu.peers.torch_peer import TorchPeer

        return TorchPeer(mode)

    return make


def _jax() -> Peer:
    from benchmarks.gpu.peers.jax_peer import JaxPeer

    return JaxPeer()


GTAPE, KERNELS = "gtape", "gtape kernels"
TORCH, TORCH_COMPILE, TORCH_GRAPHS = "torch", "torch compile", "torch reduce-overhead"
JAX = "jax jit"

#: Every column of the tables, and what makes its peer.
PEERS: dict[str, Callable[[], Any]] = {
    GTAPE: _gtape,
    KERNELS: _kernels,
    TORCH: _torch(None),
    TORCH_COMPILE: _torch("default"),
    TORCH_GRAPHS: _torch("reduce-overhead"),
    JAX: _jax,
}
#: The columns of gtape, which marks are for.
OURS = (GTAPE, KERNELS)
#: The columns whose programs are compiled for long, and are warmed up beforehand.
COMPILED = (TORCH_COMPILE, TORCH_GRAPHS, JAX)

__all__ = ["COMPILED", "GTAPE", "JAX", "KERNELS", "OURS", "PEERS", "TORCH", "TORCH_COMPILE",
           "TORCH_GRAPHS", "Peer", "Unavailable"]
