"""The fast way through elementwise functions gives what `Elementwise.apply` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core.tensor import Tensor
from gtape.opdef.eager_functions import operands, vjp_slot, vjp_slots
from gtape.opdef.elementwise import Elementwise
from gtape.ops import every_module
from gtape.ops.elementwise import scalars

#: The typing rules that take real floating tensors and give the same.
_TYPES = ("number", "real", "float", "real_float", "any")
_TOLERANCE = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-14}


def _functions(arity: int) -> list[Any]:
    found: dict[str, Any] = {}
    for module in every_module():
        space = vars(module)
        for value in space.values():
            op = getattr(value, "op", None)
            if isinstance(op, Elementwise) and len(op.params) == arity and (
                    value.__module__ == "gtape" and op.types in _TYPES):
                found.setdefault(op.name, value)
    return [pytest.param(found[name], id=name) for name in sorted(found)]


def _draw(op: Elementwise, shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    low, high = op.domain or (-1.5, 1.5)  # type: ignore[attr-defined]
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def _kept(record: Any) -> tuple[Any, ...]:
    """What must agree between two records of one op: the op, how many inputs, what is kept.

    The fast way may leave out the shapes, where no input was broadcast.
    """
    values = record[-1 - len(record[4].params):]
    return record[4], np.shape(record[5]), tuple(isinstance(v, Tensor) for v in values)


def _run(function: Callable[..., Any], args: list[Any]) -> tuple[Any, list[Any], list[Any]]:
    """The result, what the records keep, and the gradients of the arguments that are tensors."""
    sources = [a for a in args if isinstance(a, Tensor)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*args)
    kept = [_kept(r) for r in tape._records]
    try:
        grads = tape.gradient(y, sources)
    except LookupError as error:
        grads = [str(error)]
    return y, kept, grads


def _compare(function: Any, args: list[Any], dtype: str) -> None:
    op = function.op
    fast, fast_kept, fast_grads = _run(function, args)
    tensors = operands(op.name, args)
    slow, slow_kept, slow_grads = _run(lambda *xs: op.apply(list(xs)), tensors)
    assert fast.spec == slow.spec
    assert fast._array_().dtype == slow._array_().dtype == np.dtype(dtype)
    tolerance = _TOLERANCE[dtype]
    np.testing.assert_allclose(np.asarray(fast), np.asarray(slow), rtol=tolerance)
    if all(isinstance(a, Tensor) for a in args):
        assert fast_kept == slow_kept
    slow_grads = [g for a, g in zip(args, slow_grads) if isinstance(a, Tensor)] if len(
        slow_grads) == len(args) else slow_grads
    for got, wanted in zip(fast_grads, slow_grads, strict=True):
        _compare_gradient(got, wanted, tolerance)


def _compare_gradient(got: Any, wanted: Any, tolerance: float) -> None:
    if got is None or isinstance(got, str):
        assert got == wanted
        return
    assert got.spec == wanted.spec
    scale = max(1.0, float(np.max(np.abs(np.asarray(wanted, np.float64)), initial=0.0)))
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(wanted, np.float64),
                               rtol=10 * tolerance, atol=10 * tolerance * scale)


@pytest.mark.parametrize("dtype", list(_TOLERANCE))
@pytest.mark.parametrize("function", _functions(1))
def test_unary(function: Any, dtype: str) -> None:
    for shape in ((2, 3), (), (0,), (1, 4)):
        _compare(function, [tf.constant(_draw(function.op, shape, dtype, 1))], dtype)


@pytest.mark.parametrize("dtype", list(_TOLERANCE))
@pytest.mark.parametrize("function", _functions(2))
def test_binary_on_tensors(function: Any, dtype: str) -> None:
    for a, b in (((2, 3), (2, 3)), ((3, 1), (4,)), ((), (2,)), ((2,), ()), ((), ()), ((0,), (1,))):
        _compare(function, [tf.constant(_draw(function.op, a, dtype, 1)),
                            tf.constant(_draw(function.op, b, dtype, 2))], dtype)


@pytest.mark.parametrize("dtype", list(_TOLERANCE))
@pytest.mark.parametrize("function", _functions(2))
def test_binary_with_python_numbers_on_either_side(function: Any, dtype: str) -> None:
    x = tf.constant(_draw(function.op, (2, 3), dtype, 1))
    scalar = tf.constant(_draw(function.op, (), dtype, 2))
    for number in (0.75, 1):
        for tensor in (x, scalar):
            _compare(function, [tensor, number], dtype)
            _compare(function, [number, tensor], dtype)


@pytest.mark.parametrize("dtype", list(_TOLERANCE))
@pytest.mark.parametrize("function", _functions(3))
def test_ternary(function: Any, dtype: str) -> None:
    whole = tf.constant(_draw(function.op, (2, 3), dtype, 1))
    row, one = (tf.constant(_draw(function.op, s, dtype, 2)) for s in ((3,), ()))
    for args in ((whole, whole, whole), (whole, row, one), (one, whole, row), (whole, 0.25, 0.75),
                 (whole, 1, row), (row, whole, 0.75), (one, one, 1)):
        _compare(function, list(args), dtype)


_SHAPES = [((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), (2, 3)), ((2, 3), (), (3,)), ((), (2,), (2,)),
           ((), (), ()), ((0,), (1,), (0,))]


@pytest.mark.parametrize("dtype", list(_TOLERANCE))
@pytest.mark.parametrize("shapes", _SHAPES, ids=str)
def test_a_choice_under_a_condition(shapes: Any, dtype: str) -> None:
    chosen, x, y = (_draw(scalars.where.op, s, dtype, i) for i, s in enumerate(shapes))
    condition, x, y = tf.constant(chosen > 0), tf.constant(x), tf.constant(y)
    for args in ((x, y), (x, 2), (0.5, y)):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x, y])
            with tf.GradientTape(persistent=True) as tape:
                tape.watch([x, y])
                fast = scalars.where(condition, *args)
                slow = scalars.where.op.apply([condition, *operands("where", [*args])])
                squares = fast * fast, slow * slow
            slopes = [tape.gradient(r, [x, y]) for r in squares]
        assert fast.spec == slow.spec and np.array_equal(fast, slow)
        for got, wanted in zip(*slopes, strict=True):
            assert (got is None) == (wanted is None)
            if got is not None:
                assert got.spec == wanted.spec and np.array_equal(got, wanted)
                seconds = [outer.gradient(g, [x, y], unconnected_gradients="zero")
                           for g in (got, wanted)]
                for one, two in zip(*seconds, strict=True):
                    assert one.spec == two.spec and np.array_equal(one, two)


def test_three_operands_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> Any:
        raise AssertionError(f"the slow way, for {given}")

    def step() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.exp(x) + scalars.clip(x, 0.25, y) + scalars.where(chosen, x, 0.0)
        return tape.gradient(z, x)

    x, y, chosen = tf.constant([1.0, 2.0]), tf.constant([3.0, 0.5]), tf.constant([True, False])
    # Building a pullback calls functions on expressions, once.
    step()
    for function in (tf.exp, tf.add, scalars.clip, scalars.where):
        monkeypatch.setitem(function.__globals__, "slow_path", refuse)
    assert step().numpy() == pytest.approx([np.e + 2, np.exp(2)])
    for args in ((x, y, x), (chosen, 1.0, 2.0), (tf.constant(True), x, tf.cast(y, tf.float64))):
        with pytest.raises(AssertionError, match="the slow way"):
            scalars.where(*args)


@pytest.mark.parametrize("arity", [1, 2, 3])
def test_every_slot_has_a_place_of_its_own(arity: int) -> None:
    """The printed text knows the places as numbers; `fill_vjp_slot` reads them back."""
    op = _functions(arity)[0].values[0].op
    array_type = tf.constant(1.0)._t
    slots = vjp_slots(arity)
    for wanted in range(1, 1 << arity):
        for numbers in range(1 << arity):
            for same in (False, True):
                at = vjp_slot(arity, wanted, numbers, same)
                assert slots[at] is None
                filled = op.fill_vjp_slot(slots, array_type, at)
                program = op.vjp_program((array_type,) * arity, wanted, numbers, same)
                assert filled is slots[at] and filled.backward is program.backward
                kept = (filled.keeps_x, filled.keeps_y, filled.keeps_z)[:arity]
                assert (*kept, filled.keeps_result) == program.reads


def test_the_same_tensor_on_both_sides() -> None:
    for function in (tf.add, tf.multiply, tf.subtract, tf.maximum, tf.pow):
        x = tf.constant([0.5, 1.5])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, x)
        got = tape.gradient(y, x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function.op.apply([x, x])
        np.testing.assert_allclose(got, tape.gradient(y, x), rtol=1e-6)


def test_the_slow_way_takes_over_where_it_must() -> None:
    x = tf.constant([1.0, 2.0])
    assert (x + tf.Variable([1.0, 1.0])).numpy().tolist() == [2.0, 3.0]
    assert (x + np.array([1.0, 1.0])).dtype == tf.float32
    assert (tf.constant([1, 2]) + 1).dtype == tf.int32
    with pytest.raises(tf.errors.InvalidArgumentError):
        x + tf.constant([1.0, 2.0], tf.float64)
    with pytest.raises(tf.errors.InvalidArgumentError):
        x + tf.constant([1.0, 2.0, 3.0])
    with pytest.raises(TypeError):
        tf.constant([1, 2]) + 1.5


def test_parameter_names_are_tensorflows() -> None:
    x, y = tf.constant(2.0), tf.constant(3.0)
    assert float(tf.add(x=x, y=y, name="sum")) == 5.0
    assert float(tf.exp(x=tf.constant(0.0))) == 1.0
    assert float(tf.math.log(x=tf.constant(1.0), name="log")) == 0.0


def test_several_tapes_and_accumulators_see_the_same_op() -> None:
    x = tf.constant(0.5)
    with tf.GradientTape() as one, tf.GradientTape() as two:
        one.watch(x)
        two.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
            y = tf.exp(x) * 2.0
    wanted = 2 * np.exp(0.5)
    assert float(one.gradient(y, x)) == pytest.approx(wanted, rel=1e-6)
    assert float(two.gradient(y, x)) == pytest.approx(wanted, rel=1e-6)
    assert float(acc.jvp(y)) == pytest.approx(wanted, rel=1e-6)
