"""Names of gtape.bitwise; written by `python -m gtape._stub`."""

from gtape.ops.elementwise.scalars import bitwise_and as bitwise_and
from gtape.ops.elementwise.scalars import bitwise_or as bitwise_or
from gtape.ops.elementwise.scalars import bitwise_xor as bitwise_xor
from gtape.ops.elementwise.scalars import invert as invert
from gtape.ops.elementwise.scalars import left_shift as left_shift
from gtape.ops.elementwise.scalars import right_shift as right_shift
