"""Whether float32 matrix products on GPUs may round their factors to TF32.

TF32 keeps float32's exponents and 10 of its 23 bits of fraction; Ampere and later GPUs multiply it
on tensor cores. TensorFlow allows it; gtape does not until it is asked to, because float32 promises
float32.
"""

from __future__ import annotations

_state = {"enabled": False}


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Allow float32 matrix products on GPUs to round their factors to TF32, or forbid it again.

    It is off at first, unlike in TensorFlow. Sums are in float32 either way.
    """
    _state["enabled"] = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """Whether float32 matrix products on GPUs may round their factors to TF32."""
    return _state["enabled"]
