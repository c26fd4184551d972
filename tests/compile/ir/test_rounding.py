"""float16 and bfloat16 in compiled programs: a value is rounded wherever anything looks into it,
and is the same for all that read it; without excess precision every step is rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile.cpp.program import NativeProgram, compile_closed
from gtape.compile.launches import InterpretedProgram
from gtape.compile.numpy.program import NumpyProgram
from gtape.core.convert import convert
from tests.compile import test_random_graphs as random_graphs
from tests.compile.agreement import flat, same, trace_of

pytestmark = pytest.mark.native
HALVES = [tf.float16, tf.bfloat16]
WAYS = {"fused": compile_closed, "alone": lambda t: compile_closed(t, fuse=False),
        "NumPy": lambda t: NumpyProgram(t, "a test"),
        "applied": lambda t: InterpretedProgram(t, "a test")}


@pytest.fixture
def every_step() -> Iterator[None]:
    """Every step is rounded."""
    assert tf.config.experimental.excess_precision_enabled()
    tf.config.experimental.enable_excess_precision(False)
    yield
    tf.config.experimental.enable_excess_precision(True)


@pytest.fixture(params=HALVES, ids=lambda d: d.name)
def half(request: pytest.FixtureRequest) -> Any:
    return request.param


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0, scale: float = 1.0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape) * scale, dtype)


def eagerly(fn: Callable[..., Any], *args: Any) -> list[Any]:
    with np.errstate(all="ignore"):
        return flat(fn(*map(convert, args)))


def same_bits(fn: Callable[..., Any], *args: Any) -> list[Any]:
    """That every way of running `fn` gives what it gives eagerly, which is returned."""
    inputs = [convert(a) for a in args]
    want = eagerly(fn, *inputs)
    trace = trace_of(fn, *inputs)
    for name, make in WAYS.items():
        program = make(trace)
        assert isinstance(program, NativeProgram) == (name in ("fused", "alone"))
        same(flat(program.run(inputs)), want, 0.0)
    return want


# ---------------------------------------------------------------------- casts

def test_a_cast_there_and_back_is_rounded(half: Any) -> None:
    x = np.array([1.001, -3.14159, 70000.0, 65519.0, 3e-8, 1e-9, np.inf, np.nan, 0.0], np.float32)
    (got,) = same_bits(lambda x: tf.cast(tf.cast(x, half), tf.float32), x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, x.astype(half.as_numpy_dtype).astype(np.float32))


def test_casts_between_the_two(half: Any) -> None:
    other = tf.float16 if half is tf.bfloat16 else tf.bfloat16

    def casts(x: Any, y: Any) -> Any:
        there = tf.cast(tf.cast(x * x, other), half)
        return there + there, tf.cast(tf.cast(y, half), tf.bool), tf.cast(x * x, tf.int32)

    same_bits(casts, numbers((7, 5), half), numbers((40,), tf.float64, scale=1e-8))


def test_a_cast_begins_a_chain_rounded(half: Any) -> None:
    """The sum and the difference of rounded numbers is exact here."""
    (got,) = same_bits(lambda x: tf.cast(x, half) - 1.0, np.array([1.0009, 1.003], np.float32))
    assert np.abs(got.astype(np.float32) - [0.0009, 0.003]).max() > 1e-5


def test_float64_becomes_float16_in_one_rounding() -> None:
    """Halfway between two float16 numbers once it is float32, and not before."""
    x = 1 + 2.0 ** -11 + np.array([2.0 ** -40, -(2.0 ** -40), 0.0])
    near = np.concatenate([x, -x, x * 2.0 ** -14, x * 2.0 ** -16, [1e-300, 65519.999999999, 65520,
                                                                 1e300, -np.inf, np.nan]])
    (got, _) = same_bits(lambda x: (tf.cast(x, tf.float16), tf.cast(x, tf.float16) * 1.0), near)
    np.testing.assert_array_equal(got[:2], np.float16([1 + 2.0 ** -10, 1.0]))


# ---------------------------------------------------------------------- predicates

def test_overflow_is_seen() -> None:
    def overflowed(x: Any) -> Any:
        y = tf.cast(x, tf.float16) * 1000.0
        return (tf.math.is_inf(y), tf.math.is_finite(tf.cast(x, tf.float16) * 999.0),
                tf.math.is_nan(y - y),
                tf.reduce_all(tf.math.is_finite(tf.cast(x, tf.float16) * 997.0)))

    inf, finite, nan, everything = same_bits(overflowed, np.array([70.0, 1.0, -70.0], np.float32))
    assert inf.tolist() == [True, False, True] and finite.tolist() == [False, True, False]
    assert nan.tolist() == [True, False, True] and not everything


def test_underflow_is_seen() -> None:
    def vanished(x: Any) -> Any:
        small = tf.cast(x, tf.float16) * tf.constant(1e-4, tf.float16)
        return (small > 0, tf.sign(small * 1.0), tf.cast(small * 1.0, tf.bool),
                tf.math.divide_no_nan(tf.constant(1.0, tf.float16), small * 1.0),
                tf.where(small == 0, 1, 0))

    above, sign, whole, quotient, none = same_bits(vanished, np.array([1e-4, 1.0], np.float32))
    assert above.tolist() == [False, True] and sign.tolist() == whole.tolist() == [0, 1]
    assert quotient[0] == 0 and none.tolist() == [1, 0]


_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b, "where": lambda a, b: tf.where(a > b, a, b - 1.0),
    "floor": lambda a, b: tf.floor(a), "round": lambda a, b: tf.round(a),
    "floordiv": lambda a, b: a // b, "floormod": lambda a, b: tf.math.floormod(a, b),
    "ceil": lambda a, b: tf.math.ceil(a), "argmax": lambda a, b: tf.argmax(a, 0)}


def test_what_jumps_takes_rounded_operands(half: Any) -> None:
    """Products and quotients that are whole numbers, and equal, once they are rounded. Each test
    has its own, which nothing else reads."""
    whole = np.concatenate([np.arange(1, 200), -np.arange(99)])
    third = np.full_like(whole, 1 / 3, np.float64)

    def look(x: Any, y: Any) -> Any:
        return [test(x[i] * y[i], x[i] / 3.0) for i, test in enumerate(_TESTS.values())]

    x, y = ([tf.constant(v, half)] * len(_TESTS) for v in (whole, third))
    want = eagerly(look, tf.stack(x), tf.stack(y))
    for name, make in WAYS.items():
        trace = trace_of(look, tf.stack(x), tf.stack(y))
        for test, a, b in zip(_TESTS, flat(make(trace).run([tf.stack(x), tf.stack(y)])), want):
            np.testing.assert_array_equal(a.astype(np.float32), b.astype(np.float32),
                                          f"{test} {name}")


# ---------------------------------------------------------------------- one version of a value

@pytest.mark.parametrize("shape", [(5, 37), (3, 4, 50), (2, 3000)])
def test_a_maximum_is_among_the_elements(shape: tuple[int, ...], half: Any) -> None:
    def top(x: Any) -> Any:
        y = x * x * 1.1
        most = tf.reduce_max(y, -1, keepdims=True)
        return (y, tf.reduce_sum(tf.cast(y == most, tf.int32), -1),
                tf.where(y >= most, 1, 0), y == tf.reduce_min(y))

    for make in (compile_closed, WAYS["alone"]):
        x = numbers(shape, half)
        y, count, where, least = flat(make(trace_of(top, x)).run([x]))
        assert (count >= 1).all()
        y = y.astype(np.float32)
        np.testing.assert_array_equal(where, y == y.max(-1, keepdims=True))
        np.testing.assert_array_equal(least, y == y.min())


_EXTREMES: dict[str, Callable[[Any], Any]] = {
    "max": lambda y: tf.reduce_max(y, 1), "min": lambda y: tf.reduce_min(y, 1),
    "all": tf.reduce_max, "norm": lambda y: tf.norm(y, ord=np.inf, axis=1),
    "clip": lambda y: tf.clip_by_value(y, -0.5, 0.5), "maximum": lambda y: tf.maximum(y, 0.3 * y)}


def test_gradients_that_compare(half: Any) -> None:
    def gradients(*given: Any) -> Any:
        found = []
        for x, extreme in zip(given, _EXTREMES.values()):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * tf.constant(1 / 3, half)
                made = extreme(y)
            found.append((tape.gradient(made, x), y))
        return found

    given = [numbers((6, 33), half, seed) for seed in range(len(_EXTREMES))]
    for name, want in zip(_EXTREMES, same_bits(gradients, *given)[::2]):
        assert np.isfinite(want.astype(np.float32)).all() and want.any(), name


def test_what_is_given_out_is_what_was_read(half: Any) -> None:
    """Several readers, in the same pass over a row and in later ones."""
    def readers(x: Any, y: Any) -> Any:
        made = x * y + x
        whole = tf.reduce_sum(made, 1, keepdims=True)
        return made, made - x, tf.cast(made, tf.float32), whole, made * whole, whole + 1.0

    x, y = numbers((9, 40), half), numbers((9, 40), half, seed=1)
    for make in (compile_closed, WAYS["alone"]):
        made, less, wide, whole, scaled, more = flat(make(trace_of(readers, x, y)).run([x, y]))
        np.testing.assert_array_equal(made.astype(np.float32), wide)
        want = eagerly(lambda m, x, w: (m - x, m * w, w + 1.0), made, x, whole)
        for got, right in zip((less, scaled, more), want):
            np.testing.assert_array_equal(got, right)


#: One operation each, which IEEE 754 rounds correctly.
_SINGLE: list[Callable[[Any, Any], Any]] = [
    tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, lambda x, y: x / 3,
    lambda x, y: tf.abs(x), lambda x, y: tf.sqrt(tf.abs(x)),
    lambda x, y: x - tf.constant(0.3, x.dtype),
    lambda x, y: tf.where(x > y, x, y), lambda x, y: tf.floor(x), lambda x, y: tf.sign(y),
    lambda x, y: tf.cast(x == y, x.dtype), lambda x, y: tf.reduce_max(x, -1, keepdims=True),
    lambda x, y: tf.reduce_min(y, 0, keepdims=True),
    lambda x, y: tf.transpose(tf.transpose(x) / 3),
    lambda x, y: tf.cast(tf.cast(x, tf.float32) * 1.1, x.dtype)]


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_every_operation_holds_between_the_values_that_are_given_out(seed: int, half: Any) -> None:
    """A program that gives out all it computes: each value is what the operation makes of those it
    read, whichever of them lie in one kernel."""
    rng = np.random.default_rng(seed)
    plan = [(int(rng.integers(len(_SINGLE))), *map(int, rng.integers(max(0, n - 4), n, 2)))
            for n in range(2, 26)]

    def run(*given: Any) -> Any:
        pool = list(given)
        for op, i, j in plan:
            pool.append(_SINGLE[op](pool[i], pool[j]))
        return pool[2:]

    given = [numbers((9, 31), half, seed), numbers((31,), half, seed + 1)]
    trace = trace_of(run, *given)
    pool = [*given, *(tf.constant(a) for a in flat(trace.packed(compile_closed(trace).run(given))))]
    for at, (op, i, j) in enumerate(plan):
        (want,) = eagerly(_SINGLE[op], pool[i], pool[j])
        got = np.asarray(pool[at + 2])
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32),
                                      err_msg=f"step {at}, {op}")
        assert np.isfinite(want.astype(np.float32)).all()


def test_sums_take_rounded_numbers_and_round_once(half: Any) -> None:
    """Numbers of few digits, whose sums are exact in float32. Sums over axes apart from each other
    go in steps, which are not rounded; here they would overflow."""
    def sums(x: Any) -> Any:
        y = x * tf.constant(1.0 / 3.0, half)
        wide = tf.broadcast_to(x[:1, :1], [300, 7, 5]) * 4.0
        return (tf.reduce_sum(y), tf.reduce_sum(y * 1.0, 1), tf.reduce_mean(y * 1.0, [0, 2]),
                tf.reduce_sum(x[:, None] - 30.0 * x[:, None], [0, 2]),
                tf.reduce_sum(wide * 1.0, [0, 2]) - tf.reduce_sum(wide, [0, 1, 2]))

    same_bits(sums, tf.constant(np.random.default_rng(0).integers(0, 9, (6, 7, 5)), half))


def test_large_steps_of_a_sum_do_not_overflow() -> None:
    x = np.full((40, 3, 40), 1000.0, np.float16)
    x[20:] = -999.5
    (got,) = same_bits(lambda x: tf.reduce_sum(x, [0, 2]), x)
    np.testing.assert_array_equal(got, 400.0)
    (got,) = same_bits(lambda x: tf.reduce_sum(
        tf.broadcast_to(x, [40, 3000]), [0, 1]), np.repeat(np.float16([[30], [-30]]), 20, 0))
    assert got == 0


@tf.custom_gradient
def _peeked(v: Any, k: Any) -> Any:
    """k v, with the gradient 2 v for a positive v: it shows what backward passes take for v."""
    return v * k, lambda dy: (dy * (tf.abs(v) + tf.maximum(v, 0)), None)


def test_a_value_computed_again_is_rounded_as_before(half: Any) -> None:
    """The forward pass reads the sum once. What is computed again is read twice."""
    def block(x: Any) -> Any:
        return _peeked(x + tf.constant(37.3, half), tf.constant(1.7, half))

    def forward(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.recompute_grad(block)(x)
        return y, tape.gradient(y, x)

    x = numbers((400,), half)
    wave = x + tf.constant(37.3, half)
    y, slope = flat(compile_closed(trace_of(forward, x)).run([x]))
    np.testing.assert_array_equal(y, np.asarray(wave * tf.constant(1.7, half)))
    np.testing.assert_array_equal(slope, np.asarray(wave + wave))


def test_a_backward_program_has_the_forward_programs_values(half: Any) -> None:
    """A tape outside of a function runs two programs: each reads the sum once."""
    @tf.custom_gradient
    def peeked(v: Any, k: Any) -> Any:
        return v * k, lambda dy: (dy * v, None)

    @tf.function
    def f(x: Any) -> Any:
        return peeked(x + tf.constant(37.3, half), tf.constant(1.7, half))

    x = numbers((400,), half)
    wave = x + tf.constant(37.3, half)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(y, np.asarray(wave * tf.constant(1.7, half)))
    np.testing.assert_array_equal(tape.gradient(y, x), np.asarray(wave))


# ---------------------------------------------------------------------- loss scaling

@pytest.mark.parametrize("scale", [2.0 ** 15, 2.0 ** 8])
def test_a_step_with_loss_scaling(scale: float) -> None:
    """The overflow of a scaled gradient is found, and the step left out, as eagerly."""
    def step(w: Any, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = tf.cast(x, tf.float16) * tf.cast(w, tf.float16)
            loss = tf.reduce_mean(tf.square(y)) * tf.constant(scale, tf.float16)
        gradient = tape.gradient(loss, w)
        good = tf.reduce_all(tf.math.is_finite(gradient))
        return good, gradient, tf.where(good, w - 0.01 * gradient / scale, w)

    w, x = np.array([3.0, 5.0], np.float32), np.array([1.0, 6.0], np.float32)
    want = eagerly(step, w, x)
    assert want[0] == (scale < 1000) and np.isfinite(want[1]).all() == want[0]
    assert np.array_equal(want[2], w) != want[0]
    inputs = list(map(convert, (w, x)))
    for make in WAYS.values():
        same(flat(make(trace_of(step, *inputs)).run(inputs)), want, 1e-3)


@pytest.mark.parametrize("kept", [tf.float16, tf.float32], ids=lambda d: d.name)
def test_an_optimizer_that_scales_losses(kept: Any) -> None:
    """It leaves out the same steps, and halves its factor in them, whatever Variables are of."""
    def run(wrap: Callable[..., Any]) -> list[Any]:
        weight = tf.Variable(tf.constant([3.0, 5.0, 1.0], kept))
        optimizer = tf.keras.optimizers.LossScaleOptimizer(
            tf.keras.optimizers.SGD(2.0 ** -10), 2.0 ** 14)

        def step(x: Any) -> None:
            with tf.GradientTape() as tape:
                y = tf.cast(x, tf.float16) * tf.cast(weight, tf.float16)
                loss = optimizer.scale_loss(tf.reduce_sum(y * y))
            optimizer.apply([tape.gradient(loss, weight)], [weight])

        call, seen = wrap(step), []
        for x in (1.0, 0.25, 2.0, 0.1):
            call(tf.fill([3], x))
            seen += [optimizer.dynamic_scale, *map(float, weight.numpy())]
        return seen

    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run(tf.function), run(lambda f: f), rtol=1e-3)


# ---------------------------------------------------------------------- every step rounded

def _bits(values: list[Any]) -> list[Any]:
    return [None if v is None else np.asarray(v).view(np.uint16) for v in values]


@pytest.mark.parametrize("group", [0, 2, 3])
def test_random_programs_have_the_bits_of_eager_ones(group: int, half: Any,
                                                     every_step: None) -> None:
    """The programs of `test_random_graphs`, with their gradients."""
    rng = np.random.default_rng(group)
    shapes = [((3, 4), (4,), (3, 1)), ((5,), (5,), ()), ((2, 3, 4), (3, 4), (4,)),
              ((4, 4), (4, 4), (4, 4)), ((1, 6), (6, 1), (6,)), ((2, 1, 3), (1, 2, 3), (3,))][group]
    tensors = [tf.constant(rng.normal(size=s), half) for s in shapes[:2]]
    start = tf.constant(rng.normal(size=shapes[2]), half)
    variables = [tf.Variable(start) for _ in range(2)]
    programs = [random_graphs._program(100 * group + i, v) for i, v in enumerate(variables)]

    def every(*xs: Any) -> Any:
        return [p(*xs) for p in programs]

    want = _bits(eagerly(every, *tensors))
    after = _bits([v.numpy() for v in variables])
    graph = random_graphs._traced(every, tensors)
    for make in WAYS.values():
        for variable in variables:
            variable.assign(start)
        same(_bits(flat(graph.packed(make(graph).run(tensors)))), want, 0.0)
        same(_bits([v.numpy() for v in variables]), after, 0.0)


#: Operations that IEEE 754 rounds correctly, which run natively where every step is rounded.
_STEPS: list[Callable[[Any, Any], Any]] = [
    tf.add, tf.subtract, tf.multiply, lambda x, y: x / (tf.abs(y) + 0.5), tf.maximum, tf.minimum,
    lambda x, y: tf.square(x) - y, lambda x, y: tf.sqrt(tf.abs(x)), lambda x, y: x * 1.7 + 0.3,
    lambda x, y: tf.where(x > y, x, y * 0.7), lambda x, y: tf.nn.relu(x) - y,
    lambda x, y: tf.cast(tf.cast(x, tf.float32) * 1.1, x.dtype),
    lambda x, y: x - tf.reduce_max(y, -1, keepdims=True),
    lambda x, y: tf.cast(x == y, x.dtype) + tf.floor(4.0 * x) * 0.25,
    lambda x, y: x - 0.25 * tf.reduce_mean(tf.round(8.0 * tf.clip_by_value(y, -2, 2)), -1,
                                           keepdims=True)]


@pytest.mark.parametrize("seed, shape", [(0, (7, 33)), (1, (2, 3, 5)), (3, (7, 33))])
def test_random_arithmetic_has_the_bits_of_eager_arithmetic(
        seed: int, shape: tuple[int, ...], half: Any, every_step: None) -> None:
    def run(*given: Any) -> Any:
        rng = np.random.default_rng(seed)
        with tf.GradientTape() as tape:
            tape.watch(given)
            pool = list(given)
            for _ in range(20):
                x, y = (pool[i] for i in rng.integers(max(0, len(pool) - 5), len(pool), 2))
                pool.append(_STEPS[rng.integers(len(_STEPS))](x, y))
            last = tf.maximum(pool[-1], pool[-2])
        return pool[-3:], tape.gradient(last, given)

    given = [numbers(shape, half, seed), numbers(shape[-1:], half, seed + 1)]
    want = _bits(eagerly(run, *given))
    trace = trace_of(run, *given)
    for make in WAYS.values():
        same(_bits(flat(trace.packed(make(trace).run(given)))), want, 0.0)


def test_a_chain_keeps_float32_unless_it_is_told_not_to(half: Any) -> None:
    def chain(x: Any) -> Any:
        return x * tf.constant(1.1, half) * tf.constant(0.9, half) - x

    x = numbers((1000,), half)
    want = eagerly(chain, x)
    (kept,) = flat(tf.function(chain)(x))
    wide = np.asarray(x).astype(np.float32)
    factors = [np.float32(float(tf.constant(c, half))) for c in (1.1, 0.9)]
    exact = (wide * factors[0] * factors[1] - wide).astype(half.as_numpy_dtype)
    np.testing.assert_array_equal(kept, exact)
    assert (kept != want[0]).any()
    tf.config.experimental.enable_excess_precision(False)
    try:
        same(flat(tf.function(chain)(x)), want, 0.0)
    finally:
        tf.config.experimental.enable_excess_precision(True)
