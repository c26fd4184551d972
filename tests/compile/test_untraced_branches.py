"""Choices one of whose branches cannot be traced: a call that takes it runs as Python, and another
one does not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.core.errors import EagerFunctionWarning
from gtape.ops.control.branches import has_premises

_WARNS = r"^{} runs eagerly in a call: .*where\(condition\) has a result whose shape depends"


def _positive(x: Any) -> Any:
    """What no trace can have: how many there are is not known."""
    return tf.reduce_sum(tf.gather(x, tf.where(x > 0)[:, 0]))


class _Counted:
    """A function, and how often Python ran it."""

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        self.runs = 0
        self._fn = fn
        self.traced = tf.function(self._run, **options)

    def _run(self, *args: Any) -> Any:
        self.runs += 1
        return self._fn(*args)

    def __call__(self, *args: Any) -> Any:
        return self.traced(*args)


@pytest.fixture(params=["NumPy", pytest.param("native", marks=pytest.mark.native)])
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EagerFunctionWarning)
        yield


@pytest.mark.parametrize("swapped", [False, True])
def test_calls_of_the_traced_branch_run_the_program(way: str, swapped: bool) -> None:
    def fn(x: Any) -> Any:
        any_left = tf.reduce_any(x > 0)
        if swapped:
            return tf.cond(tf.logical_not(any_left), lambda: tf.reduce_sum(x),
                           lambda: _positive(x))
        return tf.cond(any_left, lambda: _positive(x), lambda: tf.reduce_sum(x))

    counted = _Counted(fn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [float(counted(tf.constant([-1.0, -i]))) for i in range(4)] == [-1, -2, -3, -4]
    assert counted.runs == 1
    with pytest.warns(EagerFunctionWarning, match=_WARNS.format("_run")):
        assert float(counted(tf.constant([3.0, -1.0]))) == 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(counted(tf.constant([3.0, 4.0]))) == 7.0
        assert float(counted(tf.constant([-3.0, -4.0]))) == -7.0
    assert counted.runs == 3
    assert has_premises(counted.traced.get_concrete_function(tf.constant([1.0, 1.0])).graph)


def _changing(x: Any) -> Any:
    y = x * 2.0
    if tf.reduce_max(x) > 0:
        y = tf.gather(y, tf.where(x > 0)[:, 0])
    return tf.reduce_sum(y)


def _setting(x: Any) -> Any:
    if tf.reduce_max(x) <= 0:
        found, kind = tf.reduce_sum(x), "none"
    else:
        found = tf.cast(tf.shape(tf.where(x > 0))[0], tf.float32)
        kind = "some"
    return found + len(kind)


def _returning(x: Any) -> Any:
    for i in range(2):
        if tf.reduce_max(x) > i:
            return tf.reduce_sum(tf.boolean_mask(x, x > i))
    return tf.reduce_min(x)


def _chosen(x: Any) -> Any:
    most = _positive(x) if tf.reduce_max(x) > 0 and tf.reduce_min(x) < -1 else x[0]
    return most * 2.0


@pytest.mark.parametrize("fn", [_changing, _setting, _returning, _chosen])
def test_an_if_of_the_program_s_own(way: str, quiet: None, fn: Any) -> None:
    run, calls = tf.function(fn), ([-1.0, -2.0], [1.0, -2.0], [-3.0, 0.0], [5.0, 3.0])
    for x in calls:
        assert float(run(tf.constant(x))) == float(fn(tf.constant(x))), x
    assert run.experimental_get_tracing_count() == 1


def test_state_is_what_the_python_code_makes_of_it(way: str, quiet: None) -> None:
    v, table = tf.Variable(0.0), tf.Variable([1.0, 2.0, 3.0])

    def fn(x: Any) -> None:
        v.assign_add(1.0)
        table.scatter_add(tf.IndexedSlices(tf.stack([v, v]), tf.constant([0, 2])))
        v.assign_add(tf.cond(tf.reduce_any(x > 0), lambda: _positive(x), lambda: 0.0))
        table.assign(table * v)

    def states(run: Callable[..., Any]) -> list[np.ndarray]:
        v.assign(0.0)
        table.assign([1.0, 2.0, 3.0])
        found = []
        for x in ([-1.0], [2.0], [-1.0], [-1.0], [0.5]):
            run(tf.constant(x))
            found += [v.numpy(), table.numpy()]
        return found

    counted = _Counted(fn)
    for a, b in zip(states(counted), states(fn), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert counted.runs == 3


def test_random_numbers_are_those_of_the_eager_program(way: str, quiet: None) -> None:
    def fn(x: Any) -> Any:
        noise = tf.random.uniform([2])
        return noise + tf.cond(tf.reduce_any(x > 0), lambda: _positive(x), lambda: 0.0)

    def drawn(run: Callable[..., Any]) -> list[np.ndarray]:
        tf.random.set_seed(5)
        return [run(tf.constant([v])).numpy() for v in (-1.0, 1.0, -1.0, 2.0)]

    np.testing.assert_allclose(drawn(tf.function(fn)), drawn(fn), rtol=1e-6)


def test_gradients_of_either_branch(quiet: None) -> None:
    x = tf.Variable([1.0, -2.0])
    run = tf.function(lambda: tf.cond(
        tf.reduce_any(x > 0), lambda: 3.0 * _positive(x), lambda: tf.reduce_sum(x * x)))

    def slope() -> list[float]:
        with tf.GradientTape() as tape:
            y = run()
        return tf.convert_to_tensor(tape.gradient(y, x)).numpy().tolist()

    assert slope() == [3.0, 0.0]
    x.assign([-1.0, -2.0])
    assert slope() == [-2.0, -4.0]
    x.assign([-1.0, 2.0])
    assert slope() == [0.0, 3.0]


def test_rows_of_a_gradient_stay_rows() -> None:
    """The result of the branch is what its function gave."""
    def fn(x: Any) -> Any:
        rows = tf.IndexedSlices(x, tf.constant([1, 1]), tf.constant([4]))
        made = tf.cond(tf.reduce_any(x > 0), lambda: tf.IndexedSlices(
            x, tf.where(x > 0)[:, 0], tf.constant([4])), lambda: rows)
        assert isinstance(made, tf.IndexedSlices)
        return made

    made = tf.function(fn)(tf.constant([-1.0, -2.0]))
    assert made.values.numpy().tolist() == [-1.0, -2.0]


@pytest.mark.usefixtures("quiet")
def test_in_loops_branches_and_functions_of_functions(way: str) -> None:
    inner = tf.function(lambda x: tf.cond(
        tf.reduce_any(x > 0), lambda: _positive(x), lambda: tf.reduce_sum(x)))

    def turns(x: Any, n: Any) -> Any:
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (
            i + 1, y + inner(x + tf.cast(i, tf.float32))), [0, 0.0])[1]

    def branch(x: Any, n: Any) -> Any:
        return tf.cond(n > 2, lambda: tf.cond(n > 3, lambda: inner(x), lambda: 1.0), lambda: 0.0)

    for fn in (lambda x, n: inner(x) + 1.0, turns, branch):
        run = tf.function(fn)
        for x, n in (([-5.0, -6.0], 4), ([-2.0, -6.0], 5), ([1.0, -1.0], 5), ([-5.0, -6.0], 2)):
            given = tf.constant(x), tf.constant(n)
            assert float(run(*given)) == float(fn(*given)), (x, n)


def test_what_comes_after_is_done_once(way: str, quiet: None) -> None:
    """Steps that last, and checks of what the branch gives, wait for the premise."""
    seen: list[float] = []

    @tf.function
    def fn(x: Any) -> Any:
        y = tf.cond(tf.reduce_sum(tf.exp(x)) > 1.0, lambda: _positive(x), lambda: x[0] * 0.0 - 1.0)
        tf.debugging.assert_equal(y > 0, x[0] > 0)
        tf.py_function(lambda: seen.append(1.0), [], [])
        tf.py_function(lambda v: seen.append(float(v)), [y], [])
        return y

    assert [float(fn(tf.constant([v]))) for v in (-3.0, 2.0, -4.0, 5.0)] == [-1.0, 2.0, -1.0, 5.0]
    assert seen == [1.0, -1.0, 1.0, 2.0, 1.0, -1.0, 1.0, 5.0]


def test_errors_of_the_python_code_stand_alone(quiet: None) -> None:
    def refuse() -> Any:
        tf.where(tf.constant([True]) & (v > 0))
        raise KeyError("mine")

    v = tf.Variable(-1.0)
    run = tf.function(lambda: tf.cond(v > 0, refuse, lambda: None))
    run()
    v.assign(1.0)
    with pytest.raises(KeyError, match="mine") as caught:
        run()
    assert caught.value.__context__ is None


_EAGER: dict[str, Callable[[Any], Any]] = {
    "a step before that lasts": lambda x: (
        tf.py_function(lambda: None, [], []), tf.cond(x > 0, lambda: _positive(x[None]),
                                                      lambda: x))[1],
    "a step that lasts in the same loop": lambda x: tf.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, (
            tf.cond(y > 0, lambda: _positive(y[None]), lambda: y),
            tf.py_function(lambda: None, [], []))[0]), [0, x])[1],
    "neither branch": lambda x: tf.cond(x > 0, lambda: _positive(x[None]),
                                        lambda: _positive(-x[None])),
}


@pytest.mark.parametrize("name", _EAGER)
def test_functions_that_run_eagerly_as_a_whole(name: str) -> None:
    counted = _Counted(_EAGER[name])
    with pytest.warns(EagerFunctionWarning, match="^_run runs eagerly: "):
        counted(tf.constant(-1.0))
    assert float(counted(tf.constant(4.0))) == 4.0
    assert counted.runs == 3


def test_elements_of_iterators_are_taken_once() -> None:
    iterator = iter(tf.data.Dataset.from_tensor_slices([-1.0, 2.0, -3.0]))

    @tf.function
    def fn(elements: Any) -> Any:
        x = next(elements)
        return tf.cond(x > 0, lambda: _positive(x[None]), lambda: x)

    with pytest.warns(EagerFunctionWarning, match="^fn runs eagerly: "):
        assert [float(fn(iterator)) for _ in range(3)] == [-1.0, 2.0, -3.0]


def test_datasets_and_shapes_know_no_python_code(quiet: None) -> None:
    def fn(x: Any) -> Any:
        return tf.cond(x > 0, lambda: _positive(x[None]), lambda: x)

    found = tf.data.Dataset.from_tensor_slices([-1.0, 2.0, -3.0]).map(fn)
    assert [float(x) for x in found] == [-1.0, 2.0, -3.0]
    traced = tf.function(fn)
    assert float(traced(tf.constant(-1.0))) == -1.0
    found = tf.data.Dataset.from_tensor_slices([-1.0, 2.0, -3.0]).map(lambda x: traced(x) * 1.0)
    assert [float(x) for x in found] == [-1.0, 2.0, -3.0]
    with pytest.raises(tf.errors.NotTraceableError):
        tf.inspect.specs(fn, tf.TensorSpec([], tf.float32))


@pytest.mark.gpu
def test_on_a_gpu(quiet: None) -> None:
    with tf.device("GPU:0"):
        v = tf.Variable([0.0, 0.0])

        @tf.function
        def fn(x: Any) -> None:
            v.assign_add(tf.cond(tf.reduce_any(x > 0), lambda: _positive(x) + x, lambda: x))

        for x in ([-1.0, -2.0], [1.0, -2.0], [-1.0, -1.0]):
            fn(tf.constant(x))
        assert v.numpy().tolist() == [0.0, -4.0]
