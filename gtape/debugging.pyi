"""Names of gtape.debugging; written by `python -m gtape._stub`."""

from gtape.ops.checks.assertions import Assert as Assert
from gtape.ops.checks.assertions import assert_equal as assert_equal
from gtape.ops.checks.assertions import assert_greater as assert_greater
from gtape.ops.checks.assertions import assert_greater_equal as assert_greater_equal
from gtape.ops.checks.assertions import assert_integer as assert_integer
from gtape.ops.checks.assertions import assert_less as assert_less
from gtape.ops.checks.assertions import assert_less_equal as assert_less_equal
from gtape.ops.checks.assertions import assert_near as assert_near
from gtape.ops.checks.assertions import assert_negative as assert_negative
from gtape.ops.checks.assertions import assert_non_negative as assert_non_negative
from gtape.ops.checks.assertions import assert_non_positive as assert_non_positive
from gtape.ops.checks.assertions import assert_none_equal as assert_none_equal
from gtape.ops.checks.assertions import assert_positive as assert_positive
from gtape.ops.checks.assertions import assert_proper_iterable as assert_proper_iterable
from gtape.ops.checks.assertions import assert_rank as assert_rank
from gtape.ops.checks.assertions import assert_rank_at_least as assert_rank_at_least
from gtape.ops.checks.assertions import assert_rank_in as assert_rank_in
from gtape.ops.checks.assertions import assert_same_float_dtype as assert_same_float_dtype
from gtape.ops.checks.assertions import assert_scalar as assert_scalar
from gtape.ops.checks.assertions import assert_shapes as assert_shapes
from gtape.ops.checks.assertions import assert_type as assert_type
from gtape.ops.checks.assertions import is_numeric_tensor as is_numeric_tensor
from gtape.ops.checks.numerics import assert_all_finite as assert_all_finite
from gtape.ops.checks.numerics import check_numerics as check_numerics
from gtape.ops.checks.numerics import disable_check_numerics as disable_check_numerics
from gtape.ops.checks.numerics import disable_traceback_filtering as disable_traceback_filtering
from gtape.ops.checks.numerics import enable_check_numerics as enable_check_numerics
from gtape.ops.checks.numerics import enable_traceback_filtering as enable_traceback_filtering
from gtape.ops.checks.numerics import get_log_device_placement as get_log_device_placement
from gtape.ops.checks.numerics import (
    is_traceback_filtering_enabled as is_traceback_filtering_enabled,
)
from gtape.ops.checks.numerics import set_log_device_placement as set_log_device_placement
