"""Every public function, given odd arguments, works or raises a class that says what is wrong."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import _names

_SPACES = ("bitwise", "compat", "image", "linalg", "math", "nn", "random", "signal", "strings")
#: What they do is not the business of arguments: they run the caller's own function, or print.
_SKIPPED = {
    "case", "cond", "control_dependencies", "custom_gradient", "device", "foldl", "foldr",
    "get_logger", "grad_pass_through", "group", "map_fn", "no_gradient", "no_op",
    "nondifferentiable_batch_function", "numpy_function", "print", "py_function",
    "recompute_grad", "scan", "switch_case", "vectorized_map", "while_loop"}
_PROPER = (TypeError, ValueError, LookupError, NotImplementedError, OverflowError, RuntimeError,
           tf.errors.OpError)
#: Subclasses of the above that only a slip of ours raises.
_SLIPS = (IndexError, KeyError, RecursionError)


def _functions() -> dict[str, Any]:
    found = {name: getattr(tf, name) for name in _names.ROOT if name not in _SKIPPED}
    for space in _SPACES:
        module = getattr(tf, space)
        for name in getattr(module, "__all__", None) or dir(module):
            if not name.startswith("_") and name not in _SKIPPED:
                found[f"{space}.{name}"] = getattr(module, name)
    return {name: f for name, f in sorted(found.items()) if inspect.isroutine(f)}


_FUNCTIONS = _functions()


def _required(function: Any) -> int:
    """How many arguments must be given."""
    if hasattr(function, "op"):
        return len(function.op.params)
    parameters = inspect.signature(function).parameters.values()
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
               for p in parameters)


def _odd() -> list[Any]:
    return [tf.zeros([0]), tf.zeros([0, 3]), tf.constant(1.5), tf.constant([1, 2]),
            tf.constant(["a"]), tf.constant([1j]), tf.constant([True]), tf.Variable([1.0, 2.0]),
            None, "x", object(), [], {}, -1, float("nan"), 1e300, [[1], [2, 3]]]


def _lists(count: int) -> list[list[Any]]:
    usual = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    made = [[value] * count for value in _odd()]
    if count > 1:
        made += [[usual] + [value] * (count - 1) for value in _odd()]
        made += [[value] + [usual] * (count - 1) for value in _odd()]
    return made


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_odd_arguments_raise_proper_errors(name: str) -> None:
    function = _FUNCTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in _lists(_required(function)):
            try:
                function(*args)
            except _SLIPS as error:
                pytest.fail(f"{name}{tuple(args)!r:.200}: {type(error).__name__}: {error}")
            except _PROPER as error:
                assert str(error).strip(), f"{name}{tuple(args)!r:.200}: no text"


def test_odd_arguments_inside_a_tape_leave_it_usable() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
        for function in (tf.add, tf.matmul, tf.reshape, tf.concat, tf.gather, tf.reduce_sum):
            for value in _odd():
                try:
                    function(x, value)
                except _PROPER:
                    continue
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 4.0])
