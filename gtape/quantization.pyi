"""Names of gtape.quantization; written by `python -m gtape._stub`."""

from gtape.ops.nn.projections import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from gtape.ops.nn.projections import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from gtape.ops.nn.projections import (
    fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel,
)
