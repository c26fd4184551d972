"""Optimizers and the gradients of embeddings: rows, with the numbers of Keras on TensorFlow."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape.compile import gradual
from gtape.compile.frontend.signature import Arguments
from gtape.core.errors import EagerFunctionWarning
from gtape.engine import training
from tests.keras.sparse_updates import fitted, makers, updated

keras = tf.keras
optimizers = keras.optimizers
MAKERS = makers(optimizers)
WANTED = np.load(Path(__file__).parent / "files" / "sparse_updates.npz")
#: Those that divide rows by something as large as the table.
DIVIDING = ["RMSprop", "RMSprop, centered", "Adagrad", "Adadelta", "Adafactor",
            "ScheduleFreeAdamW", "LossScaleOptimizer"]


@pytest.fixture
def all_traced() -> Iterator[None]:
    """No function runs as Python, nor a call of one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", EagerFunctionWarning)
        yield


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager updates are programs from the fourth call on."""
    monkeypatch.setattr(gradual, "COMPILED", 1)
    monkeypatch.setattr(gradual, "NATIVE", 2)


def _same(made: np.ndarray, name: str, what: str) -> None:
    np.testing.assert_allclose(made, WANTED[f"{name}: {what}"], rtol=2e-4, atol=2e-6)


def test_every_optimizer_is_here() -> None:
    known = {type(make()).__name__ for make in MAKERS.values()}
    classes = {name for name, c in vars(optimizers).items()
               if isinstance(c, type) and issubclass(c, optimizers.Optimizer)}
    assert known == classes - {"Optimizer"}


@pytest.mark.parametrize("name", MAKERS)
def test_keras_own_way(name: str) -> None:
    with training.own_way():
        _same(updated(tf, MAKERS[name]()), name, "updated")


@pytest.mark.parametrize("name", MAKERS)
def test_updates_called_again_and_again_are_programs(name: str, early: None) -> None:
    optimizer = MAKERS[name]()
    _same(updated(tf, optimizer), name, "updated")
    assert [u for u in optimizer._updates_of_the_engine.known.values() if u.program]


@pytest.mark.usefixtures("all_traced")
@pytest.mark.parametrize("name", MAKERS)
def test_in_a_function_it_is_one_trace(name: str) -> None:
    traces: list[Any] = []

    def traced(step: Callable[..., Any]) -> Any:
        traces.append(tf.function(step))
        return traces[0]

    _same(updated(tf, MAKERS[name](), traced), name, "updated")
    assert traces[0].experimental_get_tracing_count() == 1


@pytest.mark.native
@pytest.mark.usefixtures("all_traced")
@pytest.mark.parametrize("name", DIVIDING)
def test_native_programs(name: str) -> None:
    _same(updated(tf, MAKERS[name](), tf.function), name, "updated")


@pytest.mark.gpu
@pytest.mark.usefixtures("all_traced")
@pytest.mark.parametrize("name", DIVIDING)
def test_on_a_gpu(name: str) -> None:
    with tf.device("GPU:0"):
        _same(updated(tf, MAKERS[name](), tf.function), name, "updated")


@pytest.mark.usefixtures("all_traced")
@pytest.mark.parametrize("name", MAKERS)
def test_fit(name: str) -> None:
    _same(fitted(keras, MAKERS[name]()), name, "fitted")


@pytest.mark.native(zones=False)
@pytest.mark.parametrize(("name", "tables"), [("SGD", 0), ("momentum", 1), ("Adagrad", 1),
                                              ("RMSprop", 1)])
def test_memory_beside_the_table_and_the_slots(name: str, tables: int) -> None:
    """What is divided by is computed for the rows alone; Keras on TensorFlow makes a table of it.
    What a premise looks at is kept until it is known to hold."""
    shape = (2000, 16)
    table, optimizer = keras.Variable(np.ones(shape, "float32")), MAKERS[name]()
    optimizer.build([table])
    step = tf.function(lambda values, rows: optimizer.apply(
        [tf.IndexedSlices(values, rows, tf.constant(shape))], [table]))
    given = tf.ones((20, 16)), tf.range(20)
    program = step._cache.find(Arguments(given, {})).compile()
    assert program.plan.arena < (tables + 0.2) * 4 * 2000 * 16


# ---------------------------------------------------------------------- nothing to divide by
def _undivided(traced: Callable[..., Any], rows: list[list[int]]) -> list[np.ndarray]:
    """With epsilon 0 what no gradient has reached is 0 / 0, as in dense updates."""
    optimizer = optimizers.RMSprop(0.1, epsilon=0.0)
    table = keras.Variable(np.ones((5, 2), "float32"))
    optimizer.build([table])
    step = traced(lambda values, at: optimizer.apply(
        [tf.IndexedSlices(values, at, tf.constant((5, 2)))], [table]))
    found = []
    for at in rows:
        step(tf.ones((len(at), 2)), tf.constant(at))
        found += [table.numpy(), optimizer.variables[-1].numpy(), optimizer.iterations.numpy()]
        table.assign(tf.where(tf.math.is_nan(table), 0.5, table))
    return found


@pytest.mark.parametrize("way", ["NumPy", pytest.param("native", marks=pytest.mark.native)])
def test_calls_that_divide_by_0_are_keras_own(way: str) -> None:
    rows = [[0, 1, 2], [1, 3, 4], [0, 4, 1], [2, 1, 3], [2, 1, 0]]
    with training.own_way():
        wanted = _undivided(lambda step: step, rows)
    with pytest.warns(EagerFunctionWarning, match=r"runs eagerly in a call: .*where\(condition\)"):
        made = _undivided(tf.function, rows)
    for a, b in zip(made, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert [bool(np.isnan(a).any()) for a in made[::3]] == [True, False, False, False, False]


def test_eager_updates_that_divide_by_0_are_keras_own(early: None) -> None:
    rows = [[0, 1, 2], [1, 3, 0], [0, 3, 1], [2, 1, 3], [2, 4, 0], [1, 0, 4], [3, 2, 1]]
    with training.own_way():
        wanted = _undivided(lambda step: step, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = _undivided(lambda step: step, rows)
    for a, b in zip(made, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert [bool(np.isnan(a).any()) for a in made[::3]] == [True] * 4 + [False] * 3
