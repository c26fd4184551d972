"""Bit operations on integers. None is differentiable."""

from __future__ import annotations

from typing import Any

from gtape.ops.elementwise.scalars import scalar_op

_INTEGER: dict[str, Any] = {"types": "integer", "d_a": None, "d_b": None}

bitwise_and = scalar_op("bitwise_and(a, b)", cuda="a & b", doc="x & y, bit by bit.", **_INTEGER)
bitwise_or = scalar_op("bitwise_or(a, b)", cuda="a | b", doc="x | y, bit by bit.", **_INTEGER)
bitwise_xor = scalar_op("bitwise_xor(a, b)", cuda="a ^ b", doc="x ^ y, bit by bit.", **_INTEGER)
left_shift = scalar_op("left_shift(a, b)", cuda="shifted_left(a, b)",
                       doc="x shifted left by y bits.", **_INTEGER)
right_shift = scalar_op("right_shift(a, b)", cuda="shifted_right(a, b)",
                        doc="x shifted right by y bits.", **_INTEGER)
invert = scalar_op("invert(x)", cuda="~x", types="integer", doc="Every bit of x flipped.", d_x=None)
