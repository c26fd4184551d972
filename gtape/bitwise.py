"""gtape.bitwise: operations on the bits of integers."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.elementwise.scalars": """
        bitwise_and bitwise_or bitwise_xor invert left_shift right_shift""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
