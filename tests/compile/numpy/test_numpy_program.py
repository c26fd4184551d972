"""Programs of NumPy's functions: equal to eager, however their steps are grouped."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import testing
from gtape.compile.cpp.program import compile_closed
from gtape.compile.frontend.closed_graph import ClosedGraph, trace_closed
from gtape.compile.numpy import blocks
from gtape.compile.numpy.program import NumpyProgram
from gtape.compile.schedule import regrouping
from gtape.core.convert import convert
from gtape.core.tensor import Tensor
from gtape.ops.elementwise import scalars
from gtape.trace.tracer import Tracer
from tests.compile import test_random_graphs as random_graphs
from tests.compile.lowering import test_every_op as every


@pytest.fixture(params=["as it comes", "in small blocks", "laid out", "both"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """How steps are grouped, by what their sizes decide otherwise."""
    if request.param in ("in small blocks", "both"):
        monkeypatch.setattr(blocks, "LARGE", 1)
        monkeypatch.setattr(blocks, "BLOCK", 4)
    if request.param in ("laid out", "both"):
        monkeypatch.setattr(regrouping, "_pays", lambda members, stored: True)
    yield request.param


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GTAPE_NATIVE", "0")


def graph_of(fn: Callable[..., Any], *tensors: Tensor) -> ClosedGraph:
    tracer = Tracer()
    symbols = [tracer.symbol(t.spec, t._t) for t in tensors]
    return trace_closed(lambda: fn(*symbols), tracer, symbols, "function")


def program_of(fn: Callable[..., Any], *tensors: Tensor) -> NumpyProgram:
    return NumpyProgram(graph_of(fn, *tensors), "a test")


def text_of(program: NumpyProgram) -> str:
    return program.entry.__source__  # type: ignore[attr-defined]


def test_no_compiler_makes_programs_of_numpy(without_compiler: None) -> None:
    program = compile_closed(graph_of(lambda x: tf.tanh(x) * 2.0, tf.constant([1.0])))
    assert isinstance(program, NumpyProgram)
    assert "GTAPE_NATIVE=0" in program.inspect() and "def program(t0)" in program.inspect()


# ---------------------------------------------------------------------- equal to eager

def chunks() -> list[list[Any]]:
    """The cases of all ops, those of the scalar ops too."""
    items = [(op, case, dtype) for op, case in testing.declared() for dtype in case.dtypes
             if dtype in ("float32", "float64", "int32", "bool", "complex64")]
    return [items[i: i + 60] for i in range(0, len(items), 60)]


@pytest.mark.parametrize("at", range(len(chunks())))
def test_every_op(at: int, way: str) -> None:
    check_ops(chunks()[at])


def check_ops(items: list[Any]) -> None:
    drawn = [[convert(a) for a in testing.draw(case, dtype, seed=1)] for _, case, dtype in items]
    tracer = Tracer()
    symbols = [[tracer.symbol(x.spec, x._t) for x in xs] for xs in drawn]
    graph = trace_closed(lambda: every._flat(items, symbols), tracer,
                         [s for xs in symbols for s in xs], "every op")
    got = graph.packed(NumpyProgram(graph, "a test").run([x for xs in drawn for x in xs]))
    for (op, case, dtype), ours, theirs in zip(items, got, every._flat(items, drawn), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            every._same(a, b, f"{op.name} {case} {dtype}")


def test_a_wrong_function_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalars.tanh.op, "ufunc", np.sin)
    with pytest.raises(AssertionError, match="tanh"):
        check_ops([item for chunk in chunks() for item in chunk if item[0].name == "tanh"])


@pytest.mark.parametrize("seed", range(24))
def test_random_graphs(seed: int, way: str) -> None:
    rng = np.random.default_rng(seed)
    shapes = [((3, 4), (4,), (3, 1)), ((5,), (5,), ()), ((2, 3, 4), (3, 4), (4,)),
              ((4, 4), (4, 4), (4, 4)), ((1, 6), (6, 1), (6,)), ((2, 1, 3), (1, 2, 3), (3,))]
    first, second, third = shapes[seed % 6]
    tensors = [tf.constant(rng.normal(size=s), tf.float32) for s in (first, second)]
    start = rng.normal(size=third).astype(np.float32)
    variable = tf.Variable(start)
    fn = random_graphs._program(1000 + seed, variable)
    want, after = fn(*tensors), variable.numpy()
    graph = graph_of(fn, *tensors)
    variable.assign(start)
    program = NumpyProgram(graph, "a test")
    for _ in range(2):
        variable.assign(start)
        random_graphs._close(graph.packed(program.run(tensors)), want)
        random_graphs._close(variable.read_value(), after)


def test_large_arrays_run_in_blocks() -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=(300, 400)), tf.float32)
    row, a = tf.constant(np.linspace(-1, 1, 400), tf.float32), tf.constant(0.3)

    def fn(x: Any, row: Any, a: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch((x, row, a))
            y = tf.reduce_sum(tf.nn.gelu(x * a) * tf.sigmoid(x + row))
        return y, tape.gradient(y, (x, row, a))

    program = program_of(fn, x, row, a)
    assert "for i0 in range" in text_of(program)
    random_graphs._close(program.entry(x, row, a), fn(x, row, a))


def test_cheap_steps_are_computed_again_in_the_backward_pass() -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=(300, 300)), tf.float32)
    w = tf.constant(np.random.default_rng(1).normal(size=(300, 300)) / 17, tf.float32)

    def fn(x: Any, w: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = tf.matmul(x, w)
            y = tf.reduce_sum(tf.square((z * (1 + tf.tanh(z))) @ w))
        return tape.gradient(y, x)

    program = program_of(fn, x, w)
    assert text_of(program).count("tanh(") == 1
    before = text_of(program).split(", = arena\n")[1].split("for i0 ")[0]
    stored = {*re.findall(r"\ba\d+", before)}
    assert len(stored) == 3  # the product, its tanh, the formula; nothing else of these
    np.testing.assert_allclose(program.entry(x, w), fn(x, w), rtol=1e-3, atol=1e-3)


# ---------------------------------------------------------------------- state

def training(make: Callable[[], Any], sizes: tuple[int, ...]) -> tuple[Any, list[Any], Any]:
    """A step of training a few layers, their variables and the optimizer."""
    rng = np.random.default_rng(0)
    variables = [tf.Variable(rng.normal(size=s), dtype=tf.float32)
                 for a, b in pairwise(sizes) for s in ((a, b), (b,))]
    optimizer = make()
    optimizer.build(variables)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            h = x
            for w, b in zip(variables[::2], variables[1::2]):
                h = tf.tanh(tf.matmul(h, w) + b)
            loss = tf.reduce_mean(tf.square(h))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step, variables, optimizer


@pytest.mark.parametrize("sizes", [(6, 5, 4, 3), (300, 300, 2)])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Lion"])
def test_optimizers(name: str, sizes: tuple[int, ...], way: str, without_compiler: None) -> None:
    make = getattr(tf.keras.optimizers, name)
    x = tf.constant(np.random.default_rng(1).normal(size=(7, sizes[0])), tf.float32)
    eager, want, theirs = training(lambda: make(0.01), sizes)
    step, got, ours = training(lambda: make(0.01), sizes)
    function = tf.function(step)
    for _ in range(3):
        np.testing.assert_allclose(function(x), eager(x), rtol=1e-5)
    for a, b in zip([*got, *ours.variables], [*want, *theirs.variables], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-4, atol=1e-6)


def test_an_optimizer_updates_its_small_variables_as_one() -> None:
    step, _, _ = training(lambda: tf.keras.optimizers.Adam(0.01), (6, 5, 4, 3))
    x = tf.ones((7, 6))
    assert text_of(program_of(step, x)).count("sqrt(") == 2  # one of them of a number


def test_what_was_read_before_does_not_change(without_compiler: None) -> None:
    for sizes in ((6, 5, 4), (300, 300)):
        step, variables, optimizer = training(lambda: tf.keras.optimizers.Adam(0.01), sizes)
        function = tf.function(step)
        x = tf.ones((7, sizes[0]))
        function(x)
        read = [tf.convert_to_tensor(v) for v in (*variables, *optimizer.variables)]
        before = [r.numpy() for r in read]
        function(x)
        for tensor, value, variable in zip(read, before, (*variables, *optimizer.variables)):
            np.testing.assert_array_equal(tensor.numpy(), value)
            if variable.shape.rank:
                assert not np.array_equal(variable.numpy(), value)


def test_results_are_not_written_again() -> None:
    x = tf.constant(np.random.default_rng(0).normal(size=(300, 300)), tf.float32)

    def fn(x: Any) -> Any:
        product = tf.matmul(x, x)
        other = tf.matmul(x, tf.tanh(product) * 2.0 + 1.0)
        return tf.transpose(product), tf.reshape(other, [-1]), product[1:], other * x + x

    program = program_of(fn, x)
    first = program.entry(x)
    before = [t.numpy() for t in first]
    program.entry(x * 2.0)
    for tensor, value in zip(first, before, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), value)


def test_a_failing_call_leaves_the_state_as_it_was() -> None:
    step, variables, optimizer = training(lambda: tf.keras.optimizers.Adam(0.01), (6, 5, 4))

    def checked(x: Any, n: Any) -> Any:
        return step(x), tf.constant(5) // n

    x = tf.ones((7, 6))
    program = program_of(checked, x, tf.constant(1))
    before = [v.numpy() for v in (*variables, *optimizer.variables)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        program.entry(x, tf.constant(0))
    for variable, value in zip((*variables, *optimizer.variables), before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


# ---------------------------------------------------------------------- how it runs

def test_no_warnings() -> None:
    program = program_of(lambda x: tf.math.log(x) / 0.0, tf.constant([-1.0, 0.0]))
    with np.errstate(all="raise"):
        assert np.all(~np.isfinite(program.entry(tf.constant([-1.0, 0.0])).numpy()))
        with pytest.raises(FloatingPointError):
            np.log(np.float32(-1))


def test_steps_in_python_have_the_warnings_of_their_caller(without_compiler: None) -> None:
    def loud(a: Any) -> Any:
        return np.log(a)

    @tf.function
    def fn(x: Any) -> Any:
        return tf.numpy_function(loud, [x * 1.0], tf.TensorSpec((), tf.float32))

    with np.errstate(all="raise"), pytest.raises(Exception, match="invalid value"):
        fn(tf.constant(-1.0))


def test_threads_side_by_side() -> None:
    xs = [tf.constant(np.random.default_rng(i).normal(size=(300, 300)), tf.float32)
          for i in range(4)]

    def fn(x: Any) -> Any:
        return tf.matmul(tf.tanh(tf.matmul(x, x)) * x + 1.0, x)

    program, wrong = program_of(fn, xs[0]), []

    def work(x: Tensor) -> None:
        want = fn(x).numpy()
        for _ in range(20):
            if not np.allclose(program.entry(x).numpy(), want, rtol=1e-4, atol=1e-3):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(x,)) for x in xs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_in_every_structure() -> None:
    x = tf.constant([1.0, 2.0])

    def fn(x: Any) -> Any:
        y = x * 2.0
        return {"a": y, "b": [y, None, (x,)], "c": tf.constant(3.0)}

    made = program_of(fn, x).entry(x)
    assert list(made) == ["a", "b", "c"] and made["b"][1] is None and float(made["c"]) == 3
    np.testing.assert_array_equal(made["a"], [2, 4])
    np.testing.assert_array_equal(made["b"][2][0], [1, 2])
    assert made["b"][2][0] is not x


@pytest.mark.parametrize("exponent", [2, 0.5, 1j])
def test_complex_numbers_to_the_power_of_a_python_number(exponent: complex) -> None:
    x = tf.constant([1.0 + 2.0j, -3.0j], tf.complex128)
    got = program_of(lambda x: x ** exponent, x).run([x])[0]
    np.testing.assert_array_equal(np.asarray(got), np.asarray(x ** exponent))
