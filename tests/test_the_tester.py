"""The checks of `gtape.testing` and test_declarations.py checked: wrong declarations are seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import testing
from gtape.core.op import Case, Rule, case
from gtape.core.spec import Spec
from gtape.errors import GradientMismatch
from gtape.opdef.composite import Composite
from gtape.opdef.elementwise import ScalarFunction, ScalarOp
from gtape.opdef.primitive import Primitive
from gtape.ops.elementwise import scalars as s
from tests import test_declarations as properties

_CASE = case((2, 3))


def _cube(factor: float, cut: bool = False) -> Primitive:
    """x³, whose rule is multiplied by `factor`, or hides its dependence on x."""
    def cube(xp: Any, x: Any) -> Any:
        return x * x * x

    op = Primitive(cube)
    op.infer(lambda x: x)

    @op.vjp("x")
    def rule(g, x):  # type: ignore[no-untyped-def]
        slope = factor * 3.0 * x * x
        return g * (tf.stop_gradient(slope) if cut else slope)

    return op


def test_a_right_rule_passes() -> None:
    testing.check_gradient(_cube(1.0), _CASE)
    testing.check_trace(_cube(1.0), _CASE)


def test_an_atom_wrong_by_a_thousandth_is_caught() -> None:
    wrong = ScalarOp("wrong(x)", numpy=lambda xp, x: xp.tanh(x),
                     d_x=lambda g, y: g * (1 - 0.999 * y * y))
    with pytest.raises(GradientMismatch, match="wrong: the derivative of order 1"):
        testing.check_gradient(wrong, _CASE)


def test_a_primitive_wrong_by_a_thousandth_is_caught() -> None:
    with pytest.raises(GradientMismatch, match="cube: the derivative of order 1"):
        testing.check_gradient(_cube(0.999), _CASE)


def test_a_primitive_wrong_at_second_order_only_is_caught() -> None:
    op = _cube(1.0, cut=True)
    testing.check_gradient(op, _CASE, order=1)
    with pytest.raises(GradientMismatch, match="order 2"):
        testing.check_gradient(op, _CASE)


def test_an_atom_wrong_at_second_order_only_is_caught() -> None:
    slope = ScalarOp("slope(x)", numpy=lambda xp, x: xp.cos(x), d_x=lambda g, x: g * s.sin(x))
    wrong = ScalarOp("wrong(x)", numpy=lambda xp, x: xp.sin(x),
                     d_x=lambda g, x: g * slope.expression(x.graph, [x]))
    testing.check_gradient(wrong, _CASE, order=1)
    with pytest.raises(GradientMismatch, match="order 2"):
        testing.check_gradient(wrong, _CASE)


def test_a_case_may_ask_for_one_order_only() -> None:
    once = Case(((2, 3),), orders=1)
    testing.check_gradient(_cube(1.0, cut=True), once)


def test_a_forgotten_input_is_caught() -> None:
    def product(xp: Any, a: Any, b: Any) -> Any:
        return a * b

    op = Primitive(product)
    op.infer(lambda a, b: a)
    op.vjp(a=lambda g, b: g * b)
    with pytest.raises(GradientMismatch, match="product"):
        testing.check_gradient(op, case((3,), (3,)))


def test_a_word_wrong_at_a_kink_is_right_elsewhere() -> None:
    def clipped(x):  # type: ignore[no-untyped-def]
        """min(x, 1)."""
        return s.minimum(x, 1.0)

    op = ScalarFunction(clipped)
    testing.check_gradient(op, case((2, 3), domain=(-1.0, 0.5)))


def test_a_missing_conjugate_is_caught() -> None:
    def by_two_i(xp: Any, x: Any) -> Any:
        return 2j * x

    op = Primitive(by_two_i, holomorphic=False)
    op.infer(lambda x: x)
    op.vjp(x=lambda g: 2j * g)
    with pytest.raises(GradientMismatch):
        testing.check_gradient(op, _CASE, "complex128")


def test_the_kind_conjugates_for_a_holomorphic_op() -> None:
    def by_two_i(xp: Any, x: Any) -> Any:
        return 2j * x

    op = Primitive(by_two_i)
    op.infer(lambda x: x)
    op.vjp(x=lambda g: 2j * g)
    testing.check_gradient(op, _CASE, "complex128")


def _row_sums(infer: Any) -> Primitive:
    def row_sums(xp: Any, x: Any) -> Any:
        return xp.sum(x, axis=1)

    op = Primitive(row_sums)
    op.infer(infer)
    return op


def test_a_wrong_infer_is_caught() -> None:
    testing.check_trace(_row_sums(lambda x: Spec(x.shape[:1], x.dtype)), _CASE)
    with pytest.raises(AssertionError, match="row_sums infers"):
        testing.check_trace(_row_sums(lambda x: Spec(x.shape, x.dtype)), _CASE)


def test_an_op_whose_result_changes_from_call_to_call_is_caught() -> None:
    drawn = np.random.default_rng(0)

    def noisy(xp: Any, x: Any) -> Any:
        return x + drawn.standard_normal()

    op = Primitive(noisy)
    op.infer(lambda x: x)
    with pytest.raises(AssertionError):
        testing.check_trace(op, _CASE)


def test_a_nan_gradient_is_caught() -> None:
    wrong = ScalarOp("wrong(x)", numpy=lambda xp, x: x * 2.0, d_x=lambda g: g * float("nan"))
    with pytest.raises(GradientMismatch):
        testing.check_gradient(wrong, _CASE)


# -------------------------------------------------------------------------- at declaration


def test_a_rule_that_asks_for_what_the_op_has_not_fails_at_once() -> None:
    op = _cube(1.0)
    with pytest.raises(TypeError, match=r"rule of cube asks for \['c'\]"):
        Rule(lambda g, c: g, op, ("x",), ())
    with pytest.raises(TypeError, match="first parameter must be g or gs"):
        Rule(lambda x: x, op, ("x",), ())
    with pytest.raises(TypeError, match=r"asks for \['w'\]"):
        Rule(lambda g: g, op, ("w",), ())
    with pytest.raises(TypeError, match=r"asks for \['z'\]"):
        ScalarOp("twice(x)", numpy=lambda xp, x: 2 * x, d_x=lambda g, z: g)
    with pytest.raises(TypeError, match=r"of each input \['x'\].* got \['z'\]"):
        ScalarOp("twice(x)", numpy=lambda xp, x: 2 * x, d_z=lambda g: g)


def test_drawn_inputs_are_those_asked_for() -> None:
    from gtape.core.op import Bools, ints

    drawn = testing.draw(case((2, 3), ints(4, below=3), Bools((5,)), np.array([1.5]),
                              domain=(0.5, 0.75)), "float32")
    assert [a.dtype.name for a in drawn] == ["float32", "int32", "bool", "float32"]
    assert [a.shape for a in drawn] == [(2, 3), (4,), (5,), (1,)]
    assert drawn[0].min() >= 0.5 and drawn[0].max() <= 0.75
    assert set(drawn[1]) <= {0, 1, 2}
    again = testing.draw(case((2, 3)), "complex128", seed=1)
    assert again[0].dtype == np.complex128 and np.abs(again[0].imag).max() > 0


# -------------------------------------------------------------------------- the properties too


def _primitive(fn: Any, rule: Any = None, **options: Any) -> Primitive:
    """An op that is not listed among the declared ones."""
    op = Primitive(fn, **options)
    op.infer(lambda x: x)
    if rule is not None:
        op.vjp(x=rule)
    return op


def test_a_result_of_another_dtype_than_inferred_is_seen() -> None:
    def widened(xp: Any, x: Any) -> Any:
        return x.astype(np.float64)

    with pytest.raises(AssertionError, match="the array itself holds float64"):
        properties.test_infer_equals_what_comes_out(_primitive(widened), _CASE, "float32")


def test_a_gradient_of_another_dtype_than_the_source_is_seen() -> None:
    def twice(xp: Any, x: Any) -> Any:
        return 2 * x

    op = _primitive(twice, lambda g: tf.cast(g, tf.float64) * 2.0)
    check = properties.test_gradient_has_the_dtype_and_shape_of_its_source
    with pytest.raises(AssertionError):
        check(op, _CASE, "float32")


def test_an_op_that_is_not_linear_is_seen() -> None:
    def squared(xp: Any, x: Any) -> Any:
        return x * x

    op = _primitive(squared, lambda g, x: 2.0 * g * x, linear="x")
    check = properties.test_linear_ops_obey_superposition_and_have_their_adjoint
    with pytest.raises(AssertionError):
        check(op, _CASE, "float64")


def test_keeping_what_no_rule_reads_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(xp: Any, x: Any) -> Any:
        return 2 * x

    op = _primitive(twice, lambda g: 2.0 * g)
    check = properties.test_the_tape_keeps_what_the_rules_read_and_nothing_else
    check(op, _CASE, "float64", "CPU:0")
    record = op.record
    monkeypatch.setattr(op, "record", lambda mask, inputs, outputs, attrs: (
        *record(mask, inputs, outputs, attrs)[:2],
        (*record(mask, inputs, outputs, attrs)[2], inputs)))
    with pytest.raises(AssertionError, match="but the tape keeps them"):
        check(op, _CASE, "float64", "CPU:0")


def test_a_rule_that_differs_from_its_definition_is_seen() -> None:
    def softened(x):  # type: ignore[no-untyped-def]
        """tanh(2 x)."""
        return tf.tanh(2.0 * x)

    op = Composite(softened)
    op.vjp(x=lambda g, y: g * (1.999 - 2.0 * y * y))
    with pytest.raises(AssertionError):
        properties.test_rule_equals_the_derivative_of_the_definition(op, _CASE, "float64")
