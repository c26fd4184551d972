"""gtape.bitwise: operations on the bits of integers."""

from __future__ import annotations

from gtape.ops.elementwise.bitwise import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
