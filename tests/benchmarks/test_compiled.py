"""The benchmarks of compiled programs: their references, their table, and gtape's own column."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks import compiled, harness
from benchmarks.harness import Peer, Samples
from benchmarks.programs.compiled import (
    attention,
    conv_problem,
    derivatives,
    embedding,
    gelu,
    gpt_problem,
    table,
)
from benchmarks.programs.compiled.check import checked, gradients_program, losses_program
from benchmarks.programs.compiled.columns import COLUMNS, TORCH_COMPILE
from benchmarks.programs.compiled.transformer import Sizes
from benchmarks.programs.program import WrongResult

STEP = 1e-6


def difference(value_of, arrays, rng):
    """The change of a value along one random direction in all arrays, and that direction."""
    direction = [rng.normal(size=a.shape) for a in arrays]
    ends = [
        value_of([a + sign * STEP * d for a, d in zip(arrays, direction)]) for sign in (1, -1)
    ]
    return (ends[0] - ends[1]) / (2 * STEP), direction


def require_gradients(value_and_gradients, arrays):
    """The gradients agree with differences of the value, in each array alone and in all."""
    rng = np.random.default_rng(0)
    gradients = value_and_gradients(arrays)[1]
    for i, (array, gradient) in enumerate(zip(arrays, gradients, strict=True)):
        def value_of(changed, i=i):
            return value_and_gradients([*arrays[:i], *changed, *arrays[i + 1 :]])[0]

        slope, (direction,) = difference(value_of, [array], rng)
        along = np.sum(gradient * direction)
        scale = np.linalg.norm(gradient) + np.linalg.norm(direction) * 1e-6
        assert abs(slope - along) <= 1e-5 * scale, i


# ---------------------------------------------------------------- references
def test_the_reference_of_the_gpt(monkeypatch):
    sizes = Sizes(batch=2, time=4, width=8, heads=2, causal=True)
    monkeypatch.setattr(gpt_problem, "SIZES", sizes)
    monkeypatch.setattr(gpt_problem, "VOCABULARY", 5)
    problem = gpt_problem.Problem.random()
    arrays = [p.astype(np.float64) for p in problem.parameters]
    require_gradients(
        lambda p: gpt_problem.gradients(p, problem.tokens[0], problem.targets[0]), arrays
    )


def test_the_reference_of_attention(monkeypatch):
    monkeypatch.setattr(attention, "SIZES", Sizes(batch=2, time=4, width=8, heads=2))
    arrays = [a.astype(np.float64) for a in attention.inputs_of(attention.SIZES)]
    require_gradients(attention.reference, arrays)


def test_the_reference_of_convolutions():
    small = conv_problem.Problem.of(8, batch=2)
    arrays = [p.astype(np.float64) for p in small.parameters]

    def value_and_gradients(parameters):
        changed = conv_problem.Problem(small.images, small.labels, parameters)
        return conv_problem.reference(changed)

    require_gradients(value_and_gradients, arrays)


def test_the_reference_of_gelu(monkeypatch):
    x, step = np.linspace(-3, 3, 7), 2.0**-7  # a and b pass through float32

    def at(x, a=0.875, b=0.25):
        monkeypatch.setattr(gelu, "A", a)
        monkeypatch.setattr(gelu, "B", b)
        return gelu.reference(x)

    y, (by_x, by_a, by_b) = at(x)
    z = 0.875 * x + 0.25
    tanh = np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))
    assert np.isclose(y, np.sum(0.5 * z * (1 + tanh) / (1 + np.exp(-x))))
    ends = [at(x + step)[0] - at(x - step)[0]]
    ends += [at(x, a=0.875 + step)[0] - at(x, a=0.875 - step)[0]]
    ends += [at(x, b=0.25 + step)[0] - at(x, b=0.25 - step)[0]]
    np.testing.assert_allclose([by_x.sum(), by_a, by_b], np.array(ends) / (2 * step), rtol=1e-3)


def test_the_reference_of_derivatives():
    w1, b1, w2, b2 = derivatives.inputs_of(derivatives.JACOBIAN)[1]
    x = derivatives.inputs_of(derivatives.JACOBIAN)[0].astype(np.float64)
    jacobian = derivatives.reference(derivatives.JACOBIAN)
    for unit in (0, 57):
        shifted = x.astype(np.complex128)
        shifted[unit] += 1e-30j
        column = (np.tanh(shifted @ w1 + b1) @ w2 + b2).imag / 1e-30
        np.testing.assert_allclose(jacobian[:, unit], column, rtol=1e-10)
    x, (w, b, v) = derivatives.inputs_of(derivatives.HESSIAN)
    hessian = derivatives.reference(derivatives.HESSIAN)
    shifted = x.astype(np.complex128)
    shifted[3] += 1e-30j
    slope = w.astype(np.float64) @ (v * (1 - np.tanh(shifted @ w + b) ** 2))
    np.testing.assert_allclose(hessian[3], slope.imag / 1e-30, rtol=1e-10)


def test_the_reference_of_the_embedding(monkeypatch):
    monkeypatch.setattr(embedding, "ROWS", 50)
    monkeypatch.setattr(embedding, "BATCH", 30)
    monkeypatch.setattr(embedding, "RATE", 0.005 * 30)
    losses, met, change = embedding.reference()
    table_ = embedding.start().astype(np.float64)
    before = table_.copy()
    for loss, ids in zip(losses, embedding.batches(), strict=False):
        counts = np.bincount(ids, minlength=50)[:, None]
        assert np.isclose(loss, np.sum(counts * table_**2) / 30)
        table_ -= 0.01 * counts * table_
    np.testing.assert_allclose(change, (table_ - before)[met])


# ---------------------------------------------------------------- checks
def test_the_first_calls_are_timed_and_checked():
    losses, seen = iter([3.0, 2.0, 1.0, 0.0]), []
    program = checked(lambda: next(losses), lambda results: seen.extend(results), calls=3)
    assert program.first() >= 0
    program.check()
    assert [float(loss) for loss in seen] == [3, 2, 1]
    assert program.run() == 0


def test_wrong_results_are_no_results():
    right = gradients_program(lambda: (1.0, [np.ones(3)]), 1.0, [np.ones(3)])
    right.check()
    for wrong in (lambda: (1.1, [np.ones(3)]), lambda: (1.0, [np.ones(3) * 1.1])):
        with pytest.raises(WrongResult):
            gradients_program(wrong, 1.0, [np.ones(3)]).check()
    with pytest.raises(ValueError, match="2 expected"):
        gradients_program(lambda: (1.0, [np.ones(3)]), 1.0, [np.ones(3)] * 2).check()
    with pytest.raises(WrongResult, match="losses of 2 steps"):
        losses_program(lambda: 1.0, np.array([1.0, 0.9])).check()


@pytest.mark.parametrize("name", ["W1 (10,)", "W3 MLP", "W9 hessian"])
def test_gtape_computes_a_workload(name):
    (program,) = compiled.programs("gtape", name).values()
    assert program.first() > 0
    program.check()
    program.run()


# ---------------------------------------------------------------- table
def samples_of(row, own, peers):
    samples = Samples()
    for column, costs in {"gtape": own, **peers}.items():
        for cost in costs:
            samples.add(row.program, column, cost)
    return samples


def test_goals_are_held_against_the_best_peer():
    row = next(row for row in table.WORKLOADS if row.program == "W3 MLP")
    assert row.goal == 5
    samples = samples_of(row, [1.0, 1.0], {"torch": [9.0, 4.0], "jax jit": [5.0, 5.0]})
    median, best = table.goals_table(samples, [row], COLUMNS)[1:]
    assert median[-3:] == ["5.00", "5x", "met"]
    assert best[-3:] == ["4.00", "5x", "missed"]


def test_a_peak_is_held_against_its_goal():
    for peak, verdict in ((11.9, "met"), (12.1, "missed")):
        samples = samples_of(table.MEMORY, [peak], {"torch": [24.0]})
        assert table.goals_table(samples, [table.MEMORY], COLUMNS)[1][-1] == verdict


def test_what_is_not_there_is_neither_met_nor_missed():
    row = table.WORKLOADS[0]
    for samples in (Samples(), samples_of(row, [1.0], {}), samples_of(row, [], {"torch": [1.0]})):
        line = table.goals_table(samples, [row], COLUMNS)[1]
        assert line[-3] == line[-1] == "-"


def test_first_calls_are_held_against_torch_compile():
    row = table.WORKLOADS[0]
    for own, verdict in ((2.0, "met"), (4.0, "missed")):
        samples = Samples(first={row.program: {"gtape": own, TORCH_COMPILE.column: 3.0}})
        assert table.first_call_table(samples, [row], COLUMNS)[1][-1] == verdict


# ---------------------------------------------------------------- runs
def test_only_workloads_that_exist_are_run(capsys):
    rows, rounds = compiled.chosen(["W5", "W12", "--rounds", "2"])
    assert [row.program for row in rows] == ["W5 1M", "W5 16M", "W12 chain"] and rounds == 2
    assert len(compiled.chosen([])[0]) == len(table.WORKLOADS)
    with pytest.raises(SystemExit):
        compiled.chosen(["W2"])
    assert "W2 is no workload" in capsys.readouterr().err


def test_a_process_that_ends_has_no_more_turns(monkeypatch, tmp_path):
    script = (
        "import sys, json\n"
        "print(json.dumps({'calls': {'it': 1}, 'first': {'it': 0.5}, 'failed': {}}), flush=True)\n"
        "sys.stdin.readline()\n"
        "print(json.dumps({'seconds': 2.0}), flush=True)\n"
    )
    monkeypatch.setattr(harness, "command", lambda *_: [sys.executable, "-c", script])
    samples = harness.measure("none", [Peer("numpy", "numpy")], rounds=3, caches=tmp_path)
    assert samples.first == {"it": {"numpy": 0.5}}
    assert samples.costs == {"it": {}}
    assert len(samples.failed) == 1 and "numpy, it: the process ended" in samples.failed[0]
