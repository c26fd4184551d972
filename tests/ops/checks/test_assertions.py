"""Every assertion of tf.debugging: silent where it holds, the right error where it does not."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

D = tf.debugging


@pytest.mark.parametrize("check, good, bad", [
    (D.assert_equal, ([1, 2], [1, 2]), ([1, 2], [1, 3])),
    (D.assert_none_equal, (1.0, 2.0), ([1, 2], 2)),
    (D.assert_less, ([1, 2], 3), ([1, 3], 3)),
    (D.assert_less_equal, ([1, 3], 3), (4, 3)),
    (D.assert_greater, (4, 3), ([4, 3], 3)),
    (D.assert_greater_equal, ([4, 3], 3), (2, 3)),
    (D.assert_near, (1.0, 1.0 + 1e-7), (1.0, 1.1)),
    (D.assert_positive, ([1.0],), ([0.0],)),
    (D.assert_negative, ([-1.0],), ([0.0],)),
    (D.assert_non_negative, ([0.0],), ([-1.0],)),
    (D.assert_non_positive, ([0],), ([1],)),
    (D.Assert, (True, ["x"]), (tf.constant(False), ["x", 3]))])
def test_values(check, good, bad):
    assert check(*good) is None
    with pytest.raises(tf.errors.InvalidArgumentError):
        check(*bad)


def test_the_message_comes_first_and_the_place_is_named():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^mine: .*\[1\].*y = 3"):
        tf.assert_equal([1, 2], [1, 3], message="mine")


def test_nothing_holds_for_all_of_nothing():
    tf.assert_less(tf.zeros((0,)), tf.zeros((0,)))


def test_near_tolerances():
    D.assert_near(1.0, 1.05, atol=0.1)
    D.assert_near(100.0, 101.0, rtol=0.02)
    with pytest.raises(tf.errors.InvalidArgumentError, match="floating"):
        D.assert_near(1, 1)


def test_assertions_leave_no_trace_on_the_tape():
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        D.assert_positive(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == [2.0]


@pytest.mark.parametrize("check, good, bad, error", [
    (D.assert_rank, (tf.ones((2, 2)), 2), ([1.0], 2), ValueError),
    (D.assert_rank_at_least, ([1.0], 1), (1.0, 1), ValueError),
    (D.assert_rank_in, ([1.0], (0, 1)), ([[1.0]], (0, 1)), ValueError),
    (D.assert_type, ([1.0], tf.float32), ([1], tf.float32), TypeError),
    (D.assert_integer, ([1],), ([1.0],), TypeError),
    (D.assert_proper_iterable, ([1],), (tf.ones(1),), TypeError),
    (D.assert_proper_iterable, ((1,),), ("ab",), TypeError),
    (D.assert_proper_iterable, (range(3),), (3,), TypeError)])
def test_types_and_ranks(check, good, bad, error):
    assert check(*good) is None
    with pytest.raises(error):
        check(*bad)


def test_scalars_and_float_dtypes():
    assert D.assert_scalar(3.0).numpy() == 3
    with pytest.raises(ValueError):
        D.assert_scalar([3.0])
    assert D.assert_same_float_dtype([tf.ones(1, tf.float64), None]) == tf.float64
    assert D.assert_same_float_dtype() == tf.float32
    for bad in ([tf.ones(1), tf.ones(1, tf.float64)], [tf.ones(1, tf.int32)]):
        with pytest.raises(ValueError):
            D.assert_same_float_dtype(bad)
    assert D.is_numeric_tensor(tf.ones(1)) and not D.is_numeric_tensor(tf.constant(True))
    assert not D.is_numeric_tensor(1.0)


@pytest.mark.parametrize("shapes", [
    [((2, 3), ("N", "D")), ((3, 4), ("D", 4)), ((2, 4), ("N", 4))],
    [((2, 3), (None, 3)), ((2, 3), (".", 3)), ((), ())],
    [((5, 2, 3), (..., 2, "D")), ((3,), ("*", "D"))]])
def test_shapes_hold(shapes):
    D.assert_shapes([(tf.zeros(shape), wanted) for shape, wanted in shapes])


@pytest.mark.parametrize("shapes", [
    [((2, 3), ("N", "N"))], [((2, 3), (2,))], [((2,), ("N",)), ((3,), ("N",))],
    [((2,), (..., 1, 2))], [((2, 3), (2, 4))]])
def test_shapes_do_not_hold(shapes):
    with pytest.raises(ValueError, match="tensor"):
        D.assert_shapes([(tf.zeros(shape), wanted) for shape, wanted in shapes])


# ---------------------------------------------------------------- finite numbers


def test_check_numerics_passes_the_gradient():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = D.check_numerics(x, "here") * 3.0
    assert tape.gradient(y, x).numpy().tolist() == [3, 3]


@pytest.mark.parametrize("value, kind", [
    (np.nan, "NaN"), (np.inf, "Inf"), ([np.nan, np.inf], "Inf and NaN")])
def test_check_numerics_names_what_it_found(value, kind):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"here : Tensor had {kind} values"):
        D.assert_all_finite(value, "here")


def test_check_numerics_checks_the_gradient():
    x = tf.constant(0.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(D.check_numerics(x, "x"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="gradient"):
        tape.gradient(y, x)


def test_enabled_checks_name_the_op_forward_and_backward():
    D.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"log\(float32\[2\]\)"):
            tf.math.log(tf.constant([1.0, 0.0]))
        x = tf.constant(0.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sqrt(x)
        with pytest.raises(tf.errors.InvalidArgumentError, match="sqrt"):
            tape.gradient(y, x)
    finally:
        D.disable_check_numerics()
    assert np.isinf(tf.math.log(0.0).numpy())


def test_device_placement_log(caplog):
    assert not D.get_log_device_placement()
    D.set_log_device_placement(True)
    try:
        assert D.get_log_device_placement()
        tf.constant(1.0) + 1.0
    finally:
        D.set_log_device_placement(False)
    assert "add runs on CPU:0" in caplog.text
    assert not D.get_log_device_placement()
