"""Bit operations on integers. None is differentiable."""

from __future__ import annotations

from typing import Any

from gtape.ops.elementwise.scalars import letter

_INTEGER: dict[str, Any] = {"types": "integer", "d_a": None, "d_b": None}

bitwise_and = letter("bitwise_and(a, b)", cuda="a & b", doc="x & y, bit by bit.", **_INTEGER)
bitwise_or = letter("bitwise_or(a, b)", cuda="a | b", doc="x | y, bit by bit.", **_INTEGER)
bitwise_xor = letter("bitwise_xor(a, b)", cuda="a ^ b", doc="x ^ y, bit by bit.", **_INTEGER)
left_shift = letter("left_shift(a, b)", cuda="shifted_left(a, b)",
                    doc="x shifted left by y bits.", **_INTEGER)
right_shift = letter("right_shift(a, b)", cuda="shifted_right(a, b)",
                     doc="x shifted right by y bits.", **_INTEGER)
invert = letter("invert(x)", cuda="~x", types="integer", doc="Every bit of x flipped.", d_x=None)
