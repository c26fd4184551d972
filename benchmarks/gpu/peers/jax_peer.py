"""JAX: everything under jit."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gpu.peers.peer import Peer, Unavailable
from benchmarks.gpu.timing import WallClock


class JaxPeer(Peer):
    """JAX on its default device.

    Raises:
        Unavailable: JAX is not installed, or its default device is no GPU.
    """

    library = "jax"

    def __init__(self) -> None:
        try:
            import jax
        except ImportError as error:
            raise Unavailable("JAX is not installed") from error
        platform = jax.devices()[0].platform
        if platform not in ("gpu", "cuda"):
            raise Unavailable(f"JAX runs on the {platform}, not on a GPU")
        self.jax = jax
        self.clock = WallClock(jax.block_until_ready)

    def versions(self) -> dict[str, str]:
        return {"jax": self.jax.__version__}

    def put(self, array: np.ndarray) -> Any:
        return self.jax.device_put(array)

    def get(self, value: Any) -> np.ndarray:
        return np.asarray(value).astype(np.float64)

    def allow_tf32(self, allowed: bool) -> None:
        self.jax.config.update(
            "jax_default_matmul_precision", "tensorfloat32" if allowed else "highest"
        )

    def free(self) -> None:
        """Arrays go back to JAX's pool, which asks for memory only as it needs it."""
