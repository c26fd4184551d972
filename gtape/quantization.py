"""gtape.quantization: training with the rounding that quantized models do."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.nn.projections": """
        fake_quant_with_min_max_args fake_quant_with_min_max_vars
        fake_quant_with_min_max_vars_per_channel""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
