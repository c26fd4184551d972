"""Random programs agree in every way of running them; what is planted is found and cut down."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from gtape.compile.ir.nodes import LibraryCall
from gtape.ops.reductions.cumulative import cumsum_
from tests.random_programs import running
from tests.random_programs.compare import Finding, bad_index, findings
from tests.random_programs.differences import difference
from tests.random_programs.elaborate import Elaborated, Misfit, elaborate
from tests.random_programs.generate import generate
from tests.random_programs.hunt import guarded, smallest
from tests.random_programs.ops import OPS, Op
from tests.random_programs.program import Given, If, Let, Program
from tests.random_programs.script import script
from tests.random_programs.values import DTYPES

_SHAPES = ((4,), (3, 1), (4, 4), (2, 3, 4), (2, 6, 4, 3))


def _program(*lines: Any, order: int = 0, dtype: str = "float32", shape: tuple[int, ...] = (7, 5),
             ) -> Elaborated:
    """A program of these lines on one argument."""
    names = tuple(line.name for line in lines)
    return elaborate(Program((Given("v1", "argument", shape, dtype, "smooth", 0),), lines, names,
                             order))


# -------------------------------------------------------------------------- the generator


def test_a_seed_stands_for_a_program() -> None:
    for seed in range(40):
        made = generate(seed)
        assert elaborate(made.program) == made == generate(seed)


def test_every_op_can_be_written() -> None:
    for op in OPS.values():
        assert any(_written(op, shape, dtype, seed) for seed in range(20) for dtype in DTYPES
                   if op.takes([dtype]) for shape in _SHAPES), op.name


def _written(op: Op, shape: tuple[int, ...], dtype: str, seed: int) -> bool:
    given = Given("v1", "argument", shape, dtype, "smooth", seed)
    line = Let("v2", op.name, ("v1",), seed)
    try:
        return bool(elaborate(Program((given,), (line,), ("v2",), 0)))
    except Misfit:
        return False


# -------------------------------------------------------------------------- they agree


@pytest.mark.native
@pytest.mark.parametrize("group", range(6))
def test_all_ways_agree(group: int) -> None:
    members = [generate(5 * group + i) for i in range(5)]
    assert not findings(members)
    assert not any(map(difference, members))


@pytest.mark.native
def test_rounding_of_cotangents_that_cancel_inside_a_line_is_no_defect() -> None:
    """The gradient of one normalised row is 49.2 - 49.2 in float16, where 0.015 is rounding."""
    made = _program(Let("v2", "normalized", ("v1",), 0), Let("v3", "arithmetic", ("v2",), 2),
                    order=1, dtype="float16", shape=(1,))
    assert not findings([made], ("native", "numpy"))


# -------------------------------------------------------------------------- what is planted


def _kernel(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """tf.cumsum made by a kernel of this text, over x, y and n."""
    def rule(b: Any, x: Any, attrs: Any, specs: Any) -> Any:
        def emit(program: Any, node: Any) -> str:
            (v,), (out,) = node.inputs, node.outputs
            return (f"{{ float* x = {program.pointer(v)}; float* y = {program.pointer(out)}; "
                    f"const long n = {out.size}; {text} }}")

        node = LibraryCall("planted", [b.compact(x[0])], text, (), emit)
        return b.library(node, [(x[0].shape, x[0].dtype)])[0]

    importlib.import_module("gtape.compile.lowering")  # else its rule would come over this one
    monkeypatch.setattr(cumsum_, "lower", rule)


def _long() -> Elaborated:
    """A program with much that has nothing to do with the one scan in it."""
    return _program(
        Let("v2", "float tf.tanh({x})", ("v1",), 0), Let("v3", "shares", ("v2",), 0),
        If("v4", "cond", "v3", ((Let("v5", "smooth tf.sin({x})", ("v3",), 0),),
                                (Let("v6", "float -{x}", ("v3",), 0),)), 0),
        Let("v7", "running", ("v4",), 0), Let("v8", "extreme", ("v7",), 0),
        Let("v9", "arithmetic", ("v7", "v2"), 0), order=2)


@pytest.mark.native
@pytest.mark.parametrize("text, kind", [
    ("for (long i = 0; i < n; i++) y[i] = x[i];", "line"),
    ("*(volatile int*)8 = 1;", "crash"),
    ("for (long i = 0; i < n; i++) y[i] = x[i]; y[n] = 1;", "exception"),
])
def test_a_wrong_kernel_is_found_and_the_program_cut_down(monkeypatch: pytest.MonkeyPatch,
                                                          text: str, kind: str) -> None:
    monkeypatch.setenv("GTAPE_GUARD_ZONES", "1")
    _kernel(monkeypatch, text)

    def native(members: Any) -> list[tuple[int, Finding]]:
        return findings(members, ("native",))

    made = _long()
    (_, finding), = guarded([made], native)
    assert finding.kind == kind, finding
    small, finding = smallest(made, finding, native)
    assert finding.kind == kind
    line, = small.program.lines
    assert line.op == "running" and "tf.cumsum" in small.text  # type: ignore[union-attr]
    assert np.prod(small.given[0].shape) <= 10 and small.program.order == 0


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(d: Any, x: Any) -> str:
        return (f"tf.custom_gradient(lambda v: (tf.sin(v), lambda g: g * tf.cos(v) * {factor}))"
                f"({x})")

    monkeypatch.setitem(OPS, "planted", Op("planted", ("float",), write, False, False, 1.0))
    for factor in ("1.0", "1.001"):
        found = difference(_program(Let("v2", "planted", ("v1",), 0), order=1))
        assert (found is not None) == (factor != "1.0"), found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_second_version_of_a_value_is_found(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """What a line returns is moved by one unit in the last place."""
    made = _program(Let("v2", "float tf.round({x})", ("v1",), 0), Let("v3", "float -{x}", (
        "v2",), 0), dtype=dtype)
    assert not findings([made], ("numpy",))
    labelled = running.Setting.labelled

    def moved(self: Any, results: Any) -> Any:
        kept = labelled(self, results)
        kept["v3"] = np.nextafter(kept["v3"], kept["v3"].dtype.type(9))
        return kept

    monkeypatch.setattr(running.Setting, "labelled", moved)
    (_, finding), = findings([made], ("numpy",))
    assert finding.kind == "line" and "v3 = -v2" in finding.detail


@pytest.mark.native
def test_every_step_is_rounded_where_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "planted", Op("planted", ("float",), lambda d, x: f"{x} * {x} * {x}",
                                           False, False, 1.0))
    made = _program(Let("v2", "planted", ("v1",), 0), dtype="float16", shape=(99,))
    wanted, = running.Group([made], "eager").calls(1)[0]
    for mode in ("native", "rounded"):
        got, = running.Group([made], mode).calls(1)[0]
        same = np.array_equal(got.results["v2"], wanted.results["v2"])  # type: ignore[arg-type]
        assert same == (mode == "rounded"), mode


def test_a_check_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = next(m for m in (_program(Let("v2", "gathered", ("v1",), seed)) for seed in range(99))
                if bad_index(m) is not None)
    assert not findings([made], ("numpy",))
    monkeypatch.setattr(running.Group, "bad_call", _without_check(running.Group.bad_call))
    (_, finding), = findings([made], ("numpy",))
    assert finding.kind == "range"


def _without_check(bad_call: Any) -> Any:
    def call(self: Any, member: int, bad: Any) -> Any:
        made = bad_call(self, member, bad)
        return made if self.mode == "eager" else made._replace(error="")

    return call


# -------------------------------------------------------------------------- scripts


@pytest.mark.native
def test_a_script_runs_alone(tmp_path: Any) -> None:
    file = tmp_path / "program.py"
    file.write_text(script(_long(), "A program."), "utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=200,
                          check=False)
    assert not done.returncode, done.stderr
    assert [line for line in done.stdout.splitlines() if line.isalpha()] == [
        "eager", "native", "numpy"]
