"""Traced functions of unusual form: what they return, what they are given, how they are made."""

from __future__ import annotations

import copy
import dataclasses
import gc
import inspect
import weakref
from typing import Any

import numpy as np
import pytest

import gtape as tf

ONE = tf.constant(1.0)


# ---------------------------------------------------------------------- results

@pytest.mark.parametrize("count", [340, 2500])
def test_long_chains(count: int) -> None:
    @tf.function
    def f(x: Any) -> Any:
        for _ in range(count):
            x = x * 0.5 + 1.0
        return x

    np.testing.assert_allclose(f(tf.zeros((3,))), 2.0)


def test_complex_values_and_strings() -> None:
    text, numbers = tf.constant("s"), tf.constant([1 + 2j, 3j])
    v = tf.Variable([1 + 1j, 2.0])

    @tf.function
    def f(z: Any) -> Any:
        return {"one": 1 + 2j, "outer": numbers, "given": z, "sum": v.assign_add(numbers) * 1.0}

    for turn in range(1, 3):
        found = f(tf.constant([5j]))
        assert complex(found["one"]) == 1 + 2j
        np.testing.assert_array_equal(found["outer"], numbers)
        np.testing.assert_array_equal(found["given"], [5j])
        np.testing.assert_array_equal(found["sum"], [1 + 1j + turn * (1 + 2j), 2 + turn * 3j])
    assert tf.function(lambda x: ("text", text, x * 2.0))(ONE)[0].numpy() == b"text"
    assert tf.function(lambda x: (text, x * 2.0))(ONE)[0].numpy() == b"s"


def test_a_traced_tensor_in_an_f_string() -> None:
    seen: list[str] = []
    tf.function(lambda x: seen.append(f"{x} {x!r}"))(ONE)
    assert "float32" in seen[0]
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match=r"tf\.print"):
        tf.function(lambda x: seen.append(f"{x:.2f}"))(ONE)


# ---------------------------------------------------------------------- arguments

def test_specs_are_no_arguments() -> None:
    f = tf.function(lambda x: x * x)
    with pytest.raises(TypeError, match="get_concrete_function"):
        f(tf.TensorSpec([2]))
    with pytest.raises(ValueError, match="full shapes"):
        f.inspect(tf.TensorSpec([None]))
    assert "multiply" in str(f.inspect(tf.TensorSpec([2])).graph)


@pytest.mark.parametrize("signature", [["a"], [None], [tf.float32], [3], [[ONE]]])
def test_a_signature_holds_specs(signature: Any) -> None:
    with pytest.raises(TypeError, match="must hold TensorSpecs"):
        tf.function(lambda x: x, input_signature=signature)


def test_keys_that_cannot_be_sorted_are_named() -> None:
    with pytest.raises(TypeError, match="must be sortable"):
        tf.function(lambda d: d)({1: ONE, "a": ONE})


@dataclasses.dataclass(frozen=True)
class Held:
    value: Any


class Number(float):
    pass


@pytest.mark.parametrize("a, b", [
    (0.0, -0.0), (1, 1.0), (1, True), (Number(0.0), Number(-0.0)), (Held(0.0), Held(-0.0)),
    (Held(1), Held(1.0)), (Held((0.0,)), Held((-0.0,))), (frozenset([1]), frozenset([1.0])),
    ({1: ONE}, {1.0: ONE}), ({1: ONE}, {True: ONE}), (0j, -0j), (1.0, float("nan"))])
def test_values_that_are_only_equal_have_traces_of_their_own(a: Any, b: Any) -> None:
    f = tf.function(lambda x, k: x)
    for value in (a, b, a, b):
        f(ONE, value)
    assert f.experimental_get_tracing_count() == 2


def test_the_order_of_names_is_seen() -> None:
    listed = tf.function(lambda d: tf.stack(list(d.values())))
    np.testing.assert_array_equal(listed({"a": ONE, "b": ONE * 5}), [1.0, 5.0])
    np.testing.assert_array_equal(listed({"b": ONE * 5, "a": ONE}), [5.0, 1.0])
    named = tf.function(lambda **d: tf.stack(list(d.values())))
    np.testing.assert_array_equal(named(a=ONE, b=ONE * 5), [1.0, 5.0])
    np.testing.assert_array_equal(named(b=ONE * 5, a=ONE), [5.0, 1.0])


def test_variables_given_as_arguments_go_when_they_go() -> None:
    f = tf.function(lambda v: v.assign_add(1.0))
    for _ in range(3):
        v = tf.Variable(1.0)
        gone = weakref.ref(v._resource_())
        assert float(f(v)) == 2.0 and float(f(v)) == 3.0
        with tf.GradientTape() as tape:
            y = f(v) * v
        assert float(tape.gradient(y, v)) == 8.0
        del v, y, tape
        gc.collect()
        assert gone() is None
    f(tf.Variable(1.0))
    assert f.experimental_get_tracing_count() <= 2


def test_a_concrete_function_keeps_its_variables() -> None:
    f = tf.function(lambda v: v * 2.0)
    concrete = f.get_concrete_function(tf.Variable(3.0))
    gc.collect()
    assert float(concrete()) == 6.0
    assert float(concrete.variables[0]) == 3.0


# ---------------------------------------------------------------------- methods

class Model:
    scale = 3.0

    @tf.function
    def call(self, x: Any) -> Any:
        return x * self.scale

    @tf.function
    @staticmethod
    def static(x: Any) -> Any:
        return x + 1.0

    @tf.function
    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x + cls.scale


def test_methods_are_copied_and_wrapped_as_pythons_are() -> None:
    model = Model()
    for method in (model.call, copy.copy(model.call), copy.deepcopy(model.call),
                   tf.function(model.call)):
        assert float(method(ONE)) == 3.0
    assert str(inspect.signature(model.call)) == "(x: 'Any') -> 'Any'"
    assert model.call.__name__ == "call"
    other = copy.deepcopy(model.call).__self__
    assert isinstance(other, Model) and other is not model


def test_static_and_class_methods() -> None:
    for owner in (Model, Model()):
        assert float(owner.static(ONE)) == 2.0  # type: ignore[attr-defined]
        assert float(owner.of_class(ONE)) == 4.0  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- the diary

def test_traces_of_a_function_that_calls_itself_are_numbered() -> None:
    @tf.function
    def rec(x: Any, n: int) -> Any:
        return x if n == 0 else rec(x, n - 1) + 1.0

    with pytest.warns(tf.errors.RetraceWarning):
        assert float(rec(ONE, 5)) == 6.0
    diary = rec.explain_cache()
    assert [entry.number for entry in diary] == [1, 2, 3, 4, 5, 6]
    assert [entry.nearest for entry in diary] == [0, 1, 2, 3, 4, 5]


def test_numbers_of_traces_are_not_given_again() -> None:
    class Thing:
        pass

    f = tf.function(lambda x, thing: x)
    kept = Thing()
    f(ONE, Thing())
    gc.collect()
    f(ONE, kept)
    f(ONE, other := Thing())
    assert [entry.number for entry in f.explain_cache()] == [2, 3]
    assert other is not kept
