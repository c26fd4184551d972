"""Batches: every op on many elements at once equals the op on one after another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import testing
from gtape.core.convert import convert
from gtape.core.errors import InternalError, NotTraceableError
from gtape.core.op import Case, Op, declared
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.composite import Composite
from gtape.opdef.elementwise import Elementwise
from gtape.ops import every_module
from gtape.ops.elementwise.scalars import divide
from gtape.trace.tracer import trace
from gtape.vmap import batch_trace
from gtape.vmap.batch_trace import BatchTracer
from gtape.vmap.operand import Operand, keeps_zero

every_module()

_SIZE = 3
#: Ops that go one by one: a rule would not pay.
_ONE_BY_ONE = {
    "cells_", "changed_piece_", "changed_rows_", "changed_slices_", "columns_", "counts_",
    "ctc_curve_", "ctc_loss_", "ctc_slope_", "folded_seeds_", "group_", "invert_permutation_",
    "nudge_", "order_", "pick_cells_", "places_", "position_of_state_", "premise_",
    "projective_samples_", "put_cells_", "row_ids_", "sequence_", "sizes_", "skipped_state_",
    "stateless_position_", "twice_", "unravel_index_"}


def _items() -> list[Any]:
    made = []
    for op in declared():
        for number, case in enumerate(testing.op_cases(op)):
            dtype = "float64" if "float64" in case.dtypes else case.dtypes[0]
            made.append(pytest.param(op, case, dtype, id=f"{op.name}-{number}-{dtype}"))
    return made


def _elements(case: Case, dtype: str) -> list[list[np.ndarray]]:
    """The inputs of each element; given arrays are varied a little."""
    drawn = [testing.draw(case, dtype, seed) for seed in range(_SIZE)]
    rng = np.random.default_rng(0)
    for i, item in enumerate(case.inputs):
        fixed = not isinstance(item, tuple)
        for row in drawn:
            if fixed and row[i].dtype.kind in "fc":
                row[i] = (row[i] * rng.uniform(0.99, 1.01)).astype(row[i].dtype)
    return drawn


def _batched(op: Op, case: Case, rows: list[list[np.ndarray]], which: Sequence[int],
             ) -> list[np.ndarray]:
    batch = BatchTracer(_SIZE)
    inputs = [batch.enter(convert(np.stack([row[i] for row in rows]))) if i in which
              else convert(rows[0][i]) for i in range(len(rows[0]))]
    made = batch.run(testing.call, op, inputs, case)
    return [y.numpy() for y in batch.results(made)]


def _looped(op: Op, case: Case, rows: list[list[np.ndarray]], which: Sequence[int],
            ) -> list[np.ndarray]:
    made = [testing.call(op, [convert(row[i] if i in which else rows[0][i])
                              for i in range(len(row))], case) for row in rows]
    return [np.stack([np.asarray(y) for y in column]) for column in zip(*made)]


def _close(got: np.ndarray, wanted: np.ndarray) -> None:
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, wanted)
        return
    bound = 1e-10 if wanted.dtype.itemsize >= 8 and wanted.dtype.name != "complex64" else 1e-4
    np.testing.assert_allclose(got, wanted, rtol=bound, atol=bound)


def _subsets(rows: list[list[np.ndarray]]) -> list[tuple[int, ...]]:
    """Every choice of inputs that differ; of many, each alone and all."""
    count = len(rows[0])
    if count > 3:
        return [*((i,) for i in range(count)), tuple(range(count))]
    return [s for n in range(1, count + 1) for s in itertools.combinations(range(count), n)]


@pytest.mark.parametrize(("op", "case", "dtype"), _items())
def test_a_batch_equals_a_loop(op: Op, case: Case, dtype: str) -> None:
    rows = _elements(case, dtype)
    for which in _subsets(rows):
        for got, wanted in zip(_batched(op, case, rows, which), _looped(op, case, rows, which),
                               strict=True):
            _close(got, wanted)


def _pulled(op: Op, case: Case, inputs: list[Any], run: Any) -> list[np.ndarray]:
    """The gradients of a weighted sum of the results for the inputs that have any, but for those by
    which a composite declares none: a batch opens it, and finds its definition's."""
    partly = isinstance(op, Composite) and op.vjp_rules.any
    floats = [x for i, x in enumerate(inputs) if x.dtype.is_differentiable
              and not (partly and op.vjp_rules.rule_of(i) is None)]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        made = [part for y in run(inputs) if y.dtype.is_differentiable
                for part in ((tf.math.real(y), tf.math.imag(y)) if y.dtype.is_complex else (y,))]
        total = tf.add_n([tf.reduce_sum(tf.cos(tf.cast(tf.reshape(tf.range(tf.size(y)), y.shape),
                                                       y.dtype)) * y) for y in made])
    return [np.asarray(g) for g in tape.gradient(total, floats, unconnected_gradients="zero")]


def _differentiable() -> list[Any]:
    return [p for p in _items() if p.values[2] in ("float64", "complex128")
            and p.values[0].has_gradient and not p.values[0].nondifferentiable
            and p.values[0].name not in ("reduce_all_", "reduce_any_")]


@pytest.mark.parametrize(("op", "case", "dtype"), _differentiable())
def test_gradients_through_a_batch_equal_those_through_a_loop(op: Op, case: Case,
                                                              dtype: str) -> None:
    rows = _elements(case, dtype)
    wholes = [convert(np.stack(column)) for column in zip(*rows)]

    def batched(inputs: list[Any]) -> list[Any]:
        batch = BatchTracer(_SIZE)
        return batch.results(batch.run(testing.call, op, [batch.enter(x) for x in inputs], case))

    def looped(inputs: list[Any]) -> list[Any]:
        made = [testing.call(op, [tf.squeeze(x[i: i + 1], 0) for x in inputs], case)
                for i in range(_SIZE)]
        return [tf.stack(column) for column in zip(*made)]

    for got, want in zip(_pulled(op, case, wholes, batched), _pulled(op, case, wholes, looped),
                         strict=True):
        scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * scale)


@pytest.mark.parametrize(("op", "case", "dtype"), [p for p in _items() if p.id.endswith("float64")])
def test_a_batch_in_a_trace_becomes_its_nodes(op: Op, case: Case, dtype: str) -> None:
    rows = _elements(case, dtype)
    wholes = [convert(np.stack(column)) for column in zip(*rows)]

    def run(*inputs: Tensor) -> tuple[Tensor, ...]:
        batch = BatchTracer(_SIZE)
        made = batch.run(testing.call, op, [batch.enter(x) for x in inputs], case)
        return tuple(batch.results(made))

    eager = run(*wholes)
    graph = trace(run, [x.spec for x in wholes])
    assert [y.spec for y in graph.outputs] == [y.spec for y in eager]
    for got, wanted in zip(graph(*wholes), eager, strict=True):
        _close(np.asarray(got), np.asarray(wanted))


# ------------------------------------------------------------------------ the rules


def test_every_primitive_has_a_rule_or_is_listed() -> None:
    found = [op for op in declared() if not isinstance(op, (Elementwise, Composite))]
    assert {op.name for op in found if op.batch is None} == _ONE_BY_ONE


def _op(name: str) -> Op:
    return next(op for op in declared() if op.name == name)


def _summed(batch: BatchTracer, x: Tensor) -> Tensor:
    return batch.results([batch.run(lambda e: tf.reduce_sum(e, axis=0), batch.enter(x))])[0]


def test_a_rule_that_makes_the_wrong_shape_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_op("reduce_sum_"), "batch",
                        lambda op, xs, attrs: tf.reduce_sum(xs[0].tensor, axis=0))
    with pytest.raises(InternalError, match="the batching rule of reduce_sum_"):
        _summed(BatchTracer(2), tf.ones((2, 3, 4)))


def test_a_rule_with_wrong_numbers_is_caught_by_the_comparison(
        monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = _op("cumsum_").batch
    monkeypatch.setattr(_op("cumsum_"), "batch", lambda op, xs, attrs: right(
        op, xs, attrs | {"reverse": not attrs["reverse"]}))
    op, case, dtype = next(p.values for p in _items() if p.values[0].name == "cumsum_")
    with pytest.raises(AssertionError):
        test_a_batch_equals_a_loop(op, case, dtype)


def _applied_ops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    inner = batch_trace.apply_to_all

    def noted(op: Any, *rest: Any) -> Any:
        found.append(op.name)
        return inner(op, *rest)

    monkeypatch.setattr(batch_trace, "apply_to_all", noted)
    return found


def test_a_product_with_one_matrix_is_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    from gtape.ops.linalg.products import matmul_

    shapes = []
    function = matmul_._fn
    monkeypatch.setattr(matmul_, "_fn", lambda xp, a, b, **attrs: (
        shapes.append((a.shape, b.shape)), function(xp, a, b, **attrs))[1])
    w = tf.constant(np.random.default_rng(0).standard_normal((4, 5)))
    x, v = tf.ones((6, 3, 4), tf.float64), tf.ones((6, 5, 1), tf.float64)
    batch = BatchTracer(6)
    batch.results(batch.run(lambda a, b: [a @ w, w @ b], batch.enter(x), batch.enter(v)))
    assert shapes == [((18, 4), (4, 5)), ((6, 5), (4, 5))]


# ------------------------------------------------------------------------ batches


def test_what_nothing_needs_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _applied_ops(monkeypatch)
    batch = BatchTracer(2)
    x = batch.enter(tf.ones((2, 3)))
    made = batch.run(lambda: (tf.exp(x), tf.sin(x))[1])
    assert batch.results([made])[0].shape == (2, 3)
    assert found == ["sin"]


def test_what_no_element_changes_is_computed_once() -> None:
    w = tf.constant([1.0, 2.0])
    batch = BatchTracer(3)
    x = batch.enter(tf.ones((3, 2)))
    shared, own = batch.run(lambda: (tf.exp(w), x * tf.exp(w)))
    assert isinstance(shared, EagerTensor)
    assert not isinstance(own, EagerTensor)
    np.testing.assert_allclose(batch.results([shared])[0], np.tile(np.exp([1.0, 2.0]), (3, 1)),
                               rtol=1e-6)


def test_tapes_around_a_batch_see_what_is_shared() -> None:
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        batch = BatchTracer(3)
        x = batch.enter(tf.ones((3, 2)))
        y = batch.results([batch.run(lambda: x * (w * w))])[0]
    np.testing.assert_allclose(tape.gradient(y, w), [6.0, 12.0])


def test_accumulators_around_a_batch_see_it_too() -> None:
    w = tf.Variable([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(w, tf.constant([1.0, 0.0])) as accumulator:
        batch = BatchTracer(3)
        x = batch.enter(tf.ones((3, 2)))
        y = batch.results([batch.run(lambda: x * (w * w))])[0]
    np.testing.assert_allclose(accumulator.jvp(y), [[2.0, 0.0]] * 3)


def test_state_cannot_change_in_a_batch() -> None:
    v = tf.Variable(1.0)
    with pytest.raises(NotTraceableError, match="every element"):
        BatchTracer(2).run(lambda: v.assign(2.0))
    with pytest.raises(NotTraceableError, match="every element"):
        BatchTracer(2).run(lambda: tf.random.normal((2,)))
    with pytest.raises(NotTraceableError, match="cannot be created"):
        BatchTracer(2).run(lambda: tf.Variable(1.0))
    assert float(v) == 1.0


def test_values_of_a_batch_have_none_after_it() -> None:
    batch = BatchTracer(2)
    x = batch.enter(tf.ones((2, 3)))
    batch.results([x])
    with pytest.raises(TypeError, match="out of scope"):
        tf.exp(x)


def test_ops_without_a_rule_are_one_step_of_a_trace() -> None:
    def run(x: Tensor) -> Tensor:
        batch = BatchTracer(40)
        made = batch.run(lambda e: tf.unravel_index(e, (3, 4)), batch.enter(x))
        return batch.results([made])[0]

    x = tf.constant(np.arange(80).reshape(40, 2) % 12)
    graph = trace(run, [x.spec])
    assert [node.op.name for node in graph.nodes] == ["unravel_index_ of each element"]
    np.testing.assert_array_equal(graph(x)[0], run(x))


# ------------------------------------------------------------------------ one-hot operands


@pytest.mark.parametrize("lead", [0, 1])
def test_a_diagonal_stands_for_one_hot_elements(lead: int) -> None:
    d = np.arange(1.0, 7.0).reshape(2, 3)
    whole = np.asarray(Operand.onehot(convert(d), lead).tensor)
    if lead:
        np.testing.assert_array_equal(whole, np.eye(3)[:, None] * d)
    else:
        np.testing.assert_array_equal(whole, np.eye(6).reshape(6, 2, 3) * d)


def _hot(fn: Any, lead: int, shape: tuple[int, ...] = (2, 3)) -> tuple[Any, Any]:
    """fn of one-hot elements, given as a diagonal and as they are."""
    hot = Operand.onehot(convert(np.linspace(1, 2, int(np.prod(shape))).reshape(shape)), lead)
    made = []
    for operand in (Operand.onehot(hot.diagonal, lead), Operand.of(hot.tensor)):
        batch = BatchTracer(hot.size)
        made.append(batch.results([batch.run(fn, batch.enter(operand))])[0])
    return made[0], made[1]


@pytest.mark.parametrize("lead", [0, 1])
@pytest.mark.parametrize("fn", [
    lambda g: g * 2.0, lambda g: g + g, lambda g: -g, lambda g: g + 1.0, lambda g: tf.exp(g),
    lambda g: g * tf.ones((4, 2, 3), tf.float64), lambda g: tf.reshape(g, (2, 3, 1)),
    lambda g: tf.reshape(g, (6,)), lambda g: g * tf.reshape(g, (2, 3)), lambda g: g * g,
    lambda g: tf.where(tf.constant([[True], [False]]), g, 0.0),
    lambda g: g @ tf.ones((3, 5), tf.float64), lambda g: tf.ones((4, 2), tf.float64) @ g,
    lambda g: tf.matmul(g, tf.ones((5, 3), tf.float64), transpose_b=True),
    lambda g: tf.matmul(g, tf.ones((2, 5), tf.float64), transpose_a=True),
    lambda g: tf.reduce_sum(g * 3.0, axis=0)])
def test_diagonals_give_what_whole_operands_give(fn: Any, lead: int) -> None:
    np.testing.assert_allclose(*_hot(fn, lead), rtol=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_one_hot_rows_pick_rows_of_a_matrix(turned: bool) -> None:
    w = convert(np.random.default_rng(0).standard_normal((4, 5)[::-1] if turned else (4, 5)))
    for lead, shape in ((0, (1, 4)), (1, (3, 4)), (0, (4,))):
        np.testing.assert_allclose(*_hot(
            lambda g: tf.matmul(tf.reshape(g, (-1, 4)), w, transpose_b=turned), lead, shape),
            rtol=1e-12)
    v = tf.transpose(w)
    np.testing.assert_allclose(*_hot(
        lambda g: tf.matmul(v, tf.reshape(g, (4, 1)), transpose_a=turned), 0, (4,)), rtol=1e-12)


def test_which_ops_keep_zeros() -> None:
    assert keeps_zero(tf.multiply.op, (0,))
    assert keeps_zero(tf.add.op, (0, 1))
    assert not keeps_zero(tf.add.op, (0,))
    assert not keeps_zero(tf.exp.op, (0,))
    assert keeps_zero(tf.negative.op, (0,))
    assert keeps_zero(divide.op, (0,))
    assert not keeps_zero(divide.op, (1,))
