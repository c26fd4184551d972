"""gtape.debugging: assertions and checks."""

from __future__ import annotations

from gtape.ops.checks.assertions import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_scalar,
)
from gtape.ops.checks.numerics import (
    assert_all_finite,
    check_numerics,
    disable_check_numerics,
    enable_check_numerics,
    get_log_device_placement,
    set_log_device_placement,
)
from gtape.ops.checks.type_assertions import (
    assert_integer,
    assert_proper_iterable,
    assert_same_float_dtype,
    assert_shapes,
    assert_type,
    is_numeric_tensor,
)

__all__ = [
    "Assert", "assert_all_finite", "assert_equal", "assert_greater", "assert_greater_equal",
    "assert_integer", "assert_less", "assert_less_equal", "assert_near", "assert_negative",
    "assert_non_negative", "assert_non_positive", "assert_none_equal", "assert_positive",
    "assert_proper_iterable", "assert_rank", "assert_rank_at_least", "assert_rank_in",
    "assert_same_float_dtype", "assert_scalar", "assert_shapes", "assert_type", "check_numerics",
    "disable_check_numerics", "disable_traceback_filtering", "enable_check_numerics",
    "enable_traceback_filtering", "get_log_device_placement", "is_numeric_tensor",
    "is_traceback_filtering_enabled", "set_log_device_placement",
]


def is_traceback_filtering_enabled() -> bool:
    """False: tracebacks always show every frame."""
    return False


def enable_traceback_filtering() -> None:
    """Nothing: tracebacks always show every frame."""


def disable_traceback_filtering() -> None:
    """Nothing: tracebacks always show every frame."""
