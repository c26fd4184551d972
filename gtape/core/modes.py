"""What a program may ask of all computing from then on: excess precision, TF32, determinism.

Excess precision: fused formulas of float16 and bfloat16 may keep float32 between two operations.
They may at first, as in XLA and inductor: the sums and products of a chain that nothing looks into
are rounded once, at its end. Without it every operation rounds its result, which is what operations
do one by one; compiled programs then give the bits of eager ones.

TF32: float32 matrix products on GPUs may round their factors to float32's exponents and 10 of its
23 bits of fraction, which Ampere and later GPUs multiply on tensor cores. TensorFlow allows it;
gtape does not until it is asked to, because float32 promises float32.

Determinism: operations on GPUs give the same bits every time they run.
"""

from __future__ import annotations

import os

_NO = ("0", "false", "off", "no")


class Modes:
    """What holds in this process."""

    excess_precision = os.environ.get("GTAPE_EXCESS_PRECISION", "1").strip().lower() not in _NO
    tensor_float_32 = False
    deterministic = False
    #: What tf.function makes runs as Python at every call: `tf.config.run_functions_eagerly`.
    eager_functions = False


def enable_excess_precision(enabled: bool) -> None:
    """Allow functions that are traced from now on to keep float32 between operations on float16 and
    bfloat16, or let every operation round its result.

    It is allowed at first, unless the environment says GTAPE_EXCESS_PRECISION=0. Results, stored
    values, casts, comparisons, reductions and values that are read more than once are rounded
    either way.
    """
    Modes.excess_precision = bool(enabled)


def excess_precision_enabled() -> bool:
    """Whether functions may keep float32 between operations on float16 and bfloat16."""
    return Modes.excess_precision


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Allow float32 matrix products on GPUs to round their factors to TF32, or forbid it again.

    It is off at first, unlike in TensorFlow. Sums are in float32 either way.
    """
    Modes.tensor_float_32 = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """Whether float32 matrix products on GPUs may round their factors to TF32."""
    return Modes.tensor_float_32


def enable_op_determinism() -> None:
    """From now on the same program on the same GPU gives the same bits every time.

    Kernels add in a fixed order anyway, but for scatter and the gradient of gather in float32 and
    float64, which then sort their indices instead of using atomics. cuBLASLt is deterministic on
    one stream.
    """
    Modes.deterministic = True
