"""torch: eager, or compiled in one of its modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.peers.peer import Peer, Unavailable
from benchmarks.gpu.timing import EventClock


class TorchPeer(Peer):
    """torch on its current GPU.

    Args:
        mode: of torch.compile; None: eager.

    Raises:
        Unavailable: torch is not installed, or sees no GPU.
    """

    library = "torch"

    def __init__(self, mode: str | None) -> None:
        try:
            import torch
        except ImportError as error:
            raise Unavailable("torch is not installed") from error
        if not torch.cuda.is_available():
            raise Unavailable("torch sees no GPU")
        self.torch, self.mode = torch, mode
        if mode is not None:
            # A graph whose backward is run again and again must keep what forward has saved.
            import torch._functorch.config as functorch

            functorch.donated_buffer = False
        self.clock = EventClock(
            lambda: torch.cuda.Event(enable_timing=True),
            lambda before, after: before.elapsed_time(after),
            torch.cuda.synchronize,
        )

    def versions(self) -> dict[str, str]:
        return {"torch": self.torch.__version__, "CUDA of torch": str(self.torch.version.cuda)}

    def put(self, array: np.ndarray) -> Any:
        if array.dtype.name == "bfloat16":
            bits = self.torch.from_numpy(np.ascontiguousarray(array).view(np.int16))
            return bits.cuda().view(self.torch.bfloat16)
        return self.torch.from_numpy(np.ascontiguousarray(array)).cuda()

    def leaf(self, array: np.ndarray) -> Any:
        """`array` on the device, to be differentiated by."""
        return self.put(array).requires_grad_()

    def get(self, value: Any) -> np.ndarray:
        found: np.ndarray = value.detach().double().cpu().numpy()
        return found

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, compiled in this peer's mode."""
        if self.mode is None:
            return function
        compiled: Callable[..., Any] = self.torch.compile(function, mode=self.mode, dynamic=False)
        return compiled

    def allow_tf32(self, allowed: bool) -> None:
        self.torch.set_float32_matmul_precision("high" if allowed else "highest")

    def free(self) -> None:
        if self.mode is not None:
            self.torch.compiler.reset()
        self.torch.cuda.empty_cache()
