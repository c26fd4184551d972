"""`optimizer.apply` called eagerly: as one program, and nobody can tell but by the clock."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import gtape as tf
from gtape.compile import gradual
from gtape.engine import training
from tests.keras.sparse_updates import makers

keras = tf.keras
optimizers = keras.optimizers

_SHAPES = [(6, 5), (5,), (3, 4, 2), ()]
_STEPS = 9


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native programs from the fourth call on."""
    monkeypatch.setattr(gradual, "COMPILED", 1)
    monkeypatch.setattr(gradual, "NATIVE", 2)


@pytest.fixture
def never_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradual, "COMPILED", 1 << 60)
    monkeypatch.setattr(gradual, "NATIVE", 1 << 60)


def _drawn(seed: int, shapes: Any = None) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype("float32") for s in shapes or _SHAPES]


def _tensors(seed: int, shapes: Any = None) -> list[Any]:
    return [tf.constant(a) for a in _drawn(seed, shapes)]


def _variables(seed: int = 0, shapes: Any = None) -> list[Any]:
    return [keras.Variable(a) for a in _drawn(seed, shapes)]


def _trained(make: Callable[[], Any], steps: int = _STEPS, shapes: Any = None,
             ) -> list[np.ndarray]:
    """Variables and state after some steps."""
    variables, optimizer = _variables(0, shapes), make()
    for step in range(steps):
        optimizer.apply_gradients(zip(_tensors(step + 1, shapes), variables))
    assert _programs(optimizer) or training._eagerly.get()
    return [v.numpy() for v in (*variables, *optimizer.variables)]


def _programs(optimizer: Any) -> list[Any]:
    """The programs by which an optimizer updates."""
    updates = optimizer.__dict__.get("_updates_of_the_engine")
    return [] if updates is None else [u.program for u in updates.known.values() if u.program]


def _by_keras(make: Callable[[], Any], shapes: Any = None) -> list[np.ndarray]:
    with training.own_way():
        return _trained(make, shapes=shapes)


def _rate() -> Any:
    return optimizers.schedules.CosineDecay(0.1, 6, warmup_target=0.2, warmup_steps=2)


#: Those that are compared with TensorFlow's too, and what has nothing to do with embeddings. Muon
#: has a test of its own.
_MAKERS: dict[str, Callable[[], Any]] = {
    **{name: make for name, make in makers(optimizers).items() if name != "Muon"},
    "accumulation, decay": lambda: optimizers.Adam(
        0.1, gradient_accumulation_steps=3, weight_decay=0.1),
    "loss_scale_factor": lambda: optimizers.SGD(0.1, loss_scale_factor=8.0),
    "schedule": lambda: optimizers.Adam(_rate()),
}


@pytest.mark.parametrize("name", _MAKERS)
def test_an_update_node_by_node_is_keras_bit_for_bit(name: str, never_native: None) -> None:
    for a, b in zip(_trained(_MAKERS[name]), _by_keras(_MAKERS[name]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", _MAKERS)
def test_a_compiled_update_is_keras_but_for_rounding(name: str, early: None) -> None:
    for a, b in zip(_trained(_MAKERS[name]), _by_keras(_MAKERS[name]), strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-4, atol=1e-5)


@pytest.mark.native
@pytest.mark.parametrize("name", ["Adam", "accumulation, decay", "global_clipnorm",
                                  "LossScaleOptimizer, Adam"])
def test_native_code_is_keras_but_for_rounding(name: str, early: None) -> None:
    test_a_compiled_update_is_keras_but_for_rounding(name, early)


def test_muon_of_matrices(early: None) -> None:
    def make() -> Any:
        return optimizers.Muon(0.1)

    shapes = [(6, 5), (4, 4)]
    for a, b in zip(_trained(make, shapes=shapes), _by_keras(make, shapes), strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-3, atol=1e-4)


def test_the_same_script_gives_the_same_numbers_again(early: None) -> None:
    for a, b in zip(_trained(_MAKERS["Adam"]), _trained(_MAKERS["Adam"]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_short_script_compiles_nothing() -> None:
    optimizer, variables = optimizers.Adam(0.1), _variables()
    for step in range(8):
        optimizer.apply(_tensors(step), variables)
    (program,) = _programs(optimizer)
    assert program._thread is None


def test_an_optimizer_goes_when_nobody_holds_it(early: None) -> None:
    optimizer, variables = optimizers.Adam(0.1), _variables()
    for step in range(6):
        optimizer.apply(_tensors(step), variables)
    gone = [weakref.ref(optimizer), weakref.ref(optimizer.variables[-1])]
    del optimizer, variables
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


# ---------------------------------------------------------------------- what users write


class _Counting(optimizers.SGD):
    """Says how often Python ran its rule, where no trace could know."""

    ran: ClassVar[list[int]] = []

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        self.ran.append(1)
        super().update_step(gradient, variable, learning_rate)


@pytest.fixture
def ran() -> list[int]:
    """One entry for each time that Python ran the rule of `_Counting`."""
    _Counting.ran = []
    return _Counting.ran


def _updated(optimizer: Any, variables: list[Any], steps: int = 8) -> list[np.ndarray]:
    for step in range(steps):
        optimizer.apply(_tensors(step, [v.shape for v in variables]), variables)
    return [v.numpy() for v in variables]


def test_python_runs_for_two_quiet_calls_and_a_trace(ran: list[int], early: None) -> None:
    optimizer, variables = _Counting(0.1), _variables()
    optimizer.build(variables)
    _updated(optimizer, variables)
    assert len(ran) == 3 * len(_SHAPES)
    assert int(optimizer.iterations) == 8


def test_a_rule_that_counts_in_an_attribute_runs_in_python(early: None) -> None:
    class Noting(optimizers.SGD):
        seen = 0

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            self.seen += 1
            super().update_step(gradient, variable, learning_rate)

    optimizer = Noting(0.1)
    _updated(optimizer, _variables())
    assert optimizer.seen == 8 * len(_SHAPES)
    assert not _programs(optimizer)


def test_a_rule_that_fills_a_list_runs_in_python(early: None) -> None:
    class Noting(optimizers.SGD):
        def __init__(self) -> None:
            super().__init__(0.1)
            self.norms: list[Any] = []

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            self.norms.append(tf.norm(gradient))
            super().update_step(gradient, variable, learning_rate)

    optimizer = Noting()
    _updated(optimizer, _variables())
    assert len([float(n) for n in optimizer.norms]) == 8 * len(_SHAPES)


def test_a_rule_that_asks_for_numbers_runs_in_python(early: None) -> None:
    class Careful(optimizers.SGD):
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            if float(tf.norm(gradient).numpy()) > 1:
                super().update_step(gradient, variable, learning_rate)

    optimizer, variables = Careful(1.0), [keras.Variable([0.0])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for g in (2.0, 2.0, 2.0, 0.5, 2.0, 0.5):
            optimizer.apply([tf.constant([g])], variables)
    assert variables[0].numpy() == [-8.0]


def test_a_rule_of_ones_own_is_compiled(early: None) -> None:
    class Sign(optimizers.Optimizer):
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            self.assign_sub(variable, keras.ops.sign(gradient) * learning_rate)

    optimizer, variables = Sign(0.5), [keras.Variable([1.0, 1.0])]
    for _ in range(6):
        optimizer.apply([tf.constant([3.0, -3.0])], variables)
    assert variables[0].numpy().tolist() == [-2.0, 4.0]
    assert _programs(optimizer)


def test_a_learning_rate_that_is_a_function_is_asked_in_every_step(early: None) -> None:
    rates = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    optimizer, variable = optimizers.SGD(lambda: next(rates)), keras.Variable(0.0)
    for _ in range(6):
        optimizer.apply([tf.constant(1.0)], [variable])
    assert variable.numpy() == -21.0


def test_a_schedule_that_asks_for_numbers_runs_in_python(early: None) -> None:
    class Steps(optimizers.schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> float:
            return 1.0 if int(step) < 5 else 0.0

    optimizer, variable = optimizers.SGD(Steps()), keras.Variable(0.0)
    for _ in range(9):
        optimizer.apply([tf.constant(1.0)], [variable])
    assert variable.numpy() == -5.0


# ---------------------------------------------------------------------- changes on the way


def _descended(change: Callable[[Any, Any], None], make: Callable[[], Any]) -> np.ndarray:
    """A variable after six steps, a change, and six more."""
    optimizer, variable = make(), keras.Variable([1.0, -2.0])
    for step in range(12):
        if step == 6:
            change(optimizer, variable)
        optimizer.apply([tf.constant([0.3, 0.7])], [variable])
    return variable.numpy()


def _set(**values: Any) -> Callable[[Any, Any], None]:
    def change(optimizer: Any, variable: Any) -> None:
        for name, value in values.items():
            setattr(optimizer, name, value)
    return change


_CHANGES: dict[str, tuple[Callable[[Any, Any], None], Callable[[], Any]]] = {
    "the learning rate": (_set(learning_rate=0.5), _MAKERS["Adam"]),
    "a constant": (_set(beta_1=0.1), _MAKERS["Adam"]),
    "momentum": (_set(momentum=0.1), _MAKERS["momentum"]),
    "a limit": (_set(clipvalue=0.01), _MAKERS["SGD"]),
    "weight decay": (_set(weight_decay=0.5), _MAKERS["SGD"]),
    "loss_scale_factor": (_set(loss_scale_factor=100.0), _MAKERS["SGD"]),
    "the schedule": (_set(learning_rate=_rate()), _MAKERS["SGD"]),
    "a schedule's number": (
        lambda o, v: setattr(o._learning_rate, "warmup_target", 3.0),
        lambda: optimizers.SGD(optimizers.schedules.CosineDecay(
            0.1, 20, warmup_target=0.2, warmup_steps=20))),
    "an inner optimizer": (lambda o, v: setattr(o.inner_optimizer, "beta_1", 0.1),
                           _MAKERS["LossScaleOptimizer, Adam"]),
    "the variable": (lambda o, v: v.assign([5.0, 6.0]), _MAKERS["Adam"]),
    "the state": (lambda o, v: o.variables[2].assign([5.0, 6.0]), _MAKERS["Adam"]),
    "iterations": (lambda o, v: o.iterations.assign(1000), _MAKERS["Adam"]),
    "a constraint": (lambda o, v: setattr(v, "constraint", keras.constraints.NonNeg()),
                     _MAKERS["SGD"]),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_a_change_counts_from_the_next_step_on(name: str, early: None) -> None:
    change, make = _CHANGES[name]
    made = _descended(change, make)
    with training.own_way():
        expected = _descended(change, make)
        unchanged = _descended(lambda o, v: None, make)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-6)
    assert np.abs(made - unchanged).max() > 1e-3


def test_the_same_number_again_is_no_change(ran: list[int], early: None) -> None:
    optimizer, variable = _Counting(0.1), keras.Variable(1.0)
    for _ in range(8):
        optimizer.weight_decay = float("0.25")
        optimizer.apply([tf.constant(1.0)], [variable])
    assert len(ran) == 4


def test_who_changes_the_optimizer_all_the_time_gets_keras_own_way(ran: list[int], early: None,
                                                                   ) -> None:
    optimizer, variable = _Counting(0.1), keras.Variable(1.0)
    for step in range(60):
        optimizer.weight_decay = 0.25 + step // 5
        optimizer.apply([tf.constant(1.0)], [variable])
    assert optimizer._updates_of_the_engine.traces <= 8
    assert not _programs(optimizer)


# ---------------------------------------------------------------------- who asks


def test_other_gradients_are_another_update(early: None) -> None:
    optimizer, variables = optimizers.SGD(1.0), [keras.Variable([0.0]), keras.Variable([0.0])]
    one = tf.constant([1.0])
    with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
        for step in range(24):
            optimizer.apply([one, None] if step % 3 == 0 else [one, one], variables)
    assert [v.numpy().tolist() for v in variables] == [[-24.0], [-16.0]]
    assert len(_programs(optimizer)) == 2


def test_missing_gradients_are_told_in_every_call(early: None) -> None:
    optimizer, variables = optimizers.SGD(1.0), _variables()
    grads = [*_tensors(1)[:-1], None]
    told = []
    for _ in range(8):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            optimizer.apply(grads, variables)
        told.append([str(w.message) for w in seen])
    assert len(told[0]) == 1 and all(t == told[0] for t in told)


def test_some_of_the_variables_and_other_orders(early: None) -> None:
    optimizer, variables = optimizers.SGD(1.0), _variables(0, [(2,), (2,)])
    start = [v.numpy() for v in variables]
    a, b = tf.constant([1.0, 2.0]), tf.constant([10.0, 20.0])
    optimizer.build(variables)
    for _ in range(8):
        optimizer.apply([a, b], variables)
        optimizer.apply([b, a], variables[::-1])
        optimizer.apply([b], variables[:1])
    np.testing.assert_allclose(variables[0].numpy() - start[0], [-96, -192], rtol=1e-5)
    np.testing.assert_allclose(variables[1].numpy() - start[1], [-160, -320], rtol=1e-5)


def test_gradients_that_are_arrays_or_of_another_dtype(early: None) -> None:
    optimizer, variable = optimizers.SGD(1.0), keras.Variable([0.0])
    for _ in range(6):
        optimizer.apply([tf.constant([1.0])], [variable])
        optimizer.apply([np.array([1.0], "float32")], [variable])
        optimizer.apply([tf.constant([1.0], "float64")], [variable])
    assert variable.numpy() == [-18.0]


@pytest.mark.parametrize("make", [lambda: optimizers.Adam(0.1), lambda: optimizers.SGD(0.1),
                                  lambda: optimizers.RMSprop(0.1)])
def test_sparse_gradients(make: Callable[[], Any], early: None) -> None:
    def trained() -> np.ndarray:
        optimizer, variable = make(), keras.Variable(np.ones((5, 2), "float32"))
        for step in range(12):
            rows = [0, 3] if step % 3 else [1, 4, 4]
            values = tf.constant(np.full((len(rows), 2), 1.0 + step, "float32"))
            optimizer.apply([tf.IndexedSlices(values, tf.constant(rows), (5, 2))], [variable])
        return variable.numpy()

    made = trained()
    with training.own_way():
        np.testing.assert_allclose(made, trained(), rtol=1e-5)


def test_a_tape_that_records_sees_keras_own_way(ran: list[int], early: None) -> None:
    optimizer, variable = _Counting(0.5), keras.Variable(3.0)
    for _ in range(6):
        with tf.GradientTape() as tape:
            loss = variable * variable
            optimizer.apply([tf.constant(1.0)], [variable])
            after = variable * 2.0
    assert len(ran) == 6
    assert tape.gradient([loss, after], variable.value).numpy() == 2 * 0.5 + 2


def test_run_functions_eagerly_is_keras_own_way(ran: list[int], early: None) -> None:
    optimizer, variable = _Counting(0.5), keras.Variable(3.0)
    tf.config.run_functions_eagerly(True)
    try:
        for _ in range(6):
            optimizer.apply([tf.constant(1.0)], [variable])
    finally:
        tf.config.run_functions_eagerly(False)
    assert len(ran) == 6


def test_a_model_that_runs_eagerly_has_an_optimizer_that_does(ran: list[int], early: None) -> None:
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    model.compile(_Counting(0.1), "mse", run_eagerly=True)
    for _ in range(6):
        model.train_on_batch(np.ones((4, 2)), np.ones((4, 1)))
    assert len(ran) == 6


def test_inside_a_function_it_is_part_of_its_program(ran: list[int], early: None) -> None:
    optimizer, variable = _Counting(0.5), keras.Variable(3.0)
    optimizer.build([variable])
    step = tf.function(lambda g: optimizer.apply([g], [variable]))
    for _ in range(6):
        step(tf.constant(1.0))
    assert variable.numpy() == 0.0
    assert len(ran) == 1


# ---------------------------------------------------------------------- what is wrong


def _said(optimizer: Any, *call: Any) -> str:
    with pytest.raises(ValueError) as caught:
        optimizer.apply(*call)
    return str(caught.value)


def test_errors_are_keras_own_after_many_calls(early: None) -> None:
    one, other = tf.constant([1.0]), keras.Variable([1.0])
    optimizer, variables = optimizers.SGD(1.0), [keras.Variable([0.0]), keras.Variable([0.0])]
    wrong: list[Any] = [([one, one], [variables[0], other]), ([None, None], variables), ([one],)]
    _updated(optimizer, variables)
    before = [v.numpy() for v in optimizer.variables]
    made = [_said(optimizer, *call) for call in wrong]
    with training.own_way():
        assert made == [_said(optimizer, *call) for call in wrong]
    assert made[0].startswith("Unknown variable") and "No gradients provided" in made[1]
    assert [v.numpy() for v in optimizer.variables] == before


def test_a_gradient_of_another_shape_is_refused(early: None) -> None:
    optimizer, variables = optimizers.SGD(1.0), [keras.Variable([0.0, 0.0])]
    _updated(optimizer, variables)
    for _ in range(4):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
            optimizer.apply([tf.ones(3)], variables)


def test_gradients_that_are_not_finite_leave_the_variables_alone(early: None) -> None:
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(1.0), initial_scale=8.0,
                                              dynamic_growth_steps=4)
    variable = keras.Variable([0.0, 0.0])
    scales = []
    for step in range(12):
        value = [8.0, np.inf if step % 6 == 5 else 8.0]
        optimizer.apply([tf.constant(value)], [variable])
        scales.append(float(optimizer.dynamic_scale))
    assert scales == [8, 8, 8, 16, 16, 8, 8, 8, 8, 16, 16, 8]
    np.testing.assert_allclose(variable.numpy(), [-9.0, -9.0])
    assert _programs(optimizer) and not _programs(optimizer.inner_optimizer)
