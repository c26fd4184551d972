"""Whether operations on GPUs must give the same bits every time they run."""

from __future__ import annotations

_state = {"required": False}


def enable_op_determinism() -> None:
    """From now on the same program on the same GPU gives the same bits every time.

    Kernels add in a fixed order anyway, but for scatter and the gradient of gather in float32 and
    float64, which then sort their indices instead of using atomics. cuBLASLt is deterministic on
    one stream.
    """
    _state["required"] = True


def determinism_required() -> bool:
    """Whether `enable_op_determinism` was called."""
    return _state["required"]
