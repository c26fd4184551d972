"""Whether fused formulas of float16 and bfloat16 may keep float32 between two operations.

They may at first, as in XLA and inductor: the sums and products of a chain that nothing looks into
are rounded once, at its end. Without it every operation rounds its result, which is what operations
do one by one; compiled programs then give the bits of eager ones.
"""

from __future__ import annotations

import os

_NO = ("0", "false", "off", "no")
_state = {"enabled": os.environ.get("GTAPE_EXCESS_PRECISION", "1").strip().lower() not in _NO}


def enable_excess_precision(enabled: bool) -> None:
    """Allow functions that are traced from now on to keep float32 between operations on float16 and
    bfloat16, or let every operation round its result.

    It is allowed at first, unless the environment says GTAPE_EXCESS_PRECISION=0. Results, stored
    values, casts, comparisons, reductions and values that are read more than once are rounded
    either way.
    """
    _state["enabled"] = bool(enabled)


def excess_precision_enabled() -> bool:
    """Whether functions may keep float32 between operations on float16 and bfloat16."""
    return _state["enabled"]
