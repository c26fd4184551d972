"""gtape.debugging: assertions and checks."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.checks.assertions": """
        Assert assert_equal assert_greater assert_greater_equal assert_integer assert_less
        assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive
        assert_none_equal assert_positive assert_proper_iterable assert_rank assert_rank_at_least
        assert_rank_in assert_same_float_dtype assert_scalar assert_shapes assert_type
        is_numeric_tensor""",
    "gtape.ops.checks.numerics": """
        assert_all_finite check_numerics disable_check_numerics disable_traceback_filtering
        enable_check_numerics enable_traceback_filtering get_log_device_placement
        is_traceback_filtering_enabled set_log_device_placement""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
