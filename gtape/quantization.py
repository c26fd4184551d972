"""gtape.quantization: training with the rounding that quantized models do."""

from __future__ import annotations

from gtape.ops.nn.quantization import (
    fake_quant_with_min_max_args,
    fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_per_channel,
)

__all__ = ["fake_quant_with_min_max_args", "fake_quant_with_min_max_vars",
           "fake_quant_with_min_max_vars_per_channel"]
