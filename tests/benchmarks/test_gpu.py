"""The benchmarks for a GPU, as far as they can be tried without one: small sizes, made-up times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import publish, results, run, timing, worker
from benchmarks.gpu.calibration import BFLOAT16_PRODUCT, Measure, bandwidth
from benchmarks.gpu.data import normal, some
from benchmarks.gpu.peers import GTAPE, JAX, KERNELS, PEERS, TORCH, TORCH_GRAPHS
from benchmarks.gpu.peers.gtape_peer import GtapePeer, KernelPeer
from benchmarks.gpu.processes import Process
from benchmarks.gpu.workload import COPY, Mark, Phase
from benchmarks.gpu.workloads import WORKLOADS
from benchmarks.gpu.workloads.adamw import shapes
from benchmarks.programs.program import WrongResult

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu_check.sh"
SMALL = 128
TIMES = {"low": 1.0, "high": 3.0, "wall": 2.0, "host": 1.0, "samples": 50}
HELLO = "import sys, json; print(json.dumps({'versions': {'it': '1'}}), flush=True)\n"


# ---------------------------------------------------------------- workloads
@pytest.mark.parametrize("number", WORKLOADS)
def test_a_workload_agrees_with_its_reference(number):
    workload = WORKLOADS[number](SMALL)
    task = workload.task(GtapePeer())
    try:
        task.check()
    finally:
        GtapePeer().allow_tf32(False)
    for phase in workload.phases:
        for turn in range(4):
            task.runs[phase.name](turn)
    assert list(task.runs) == [phase.name for phase in workload.phases]


def test_a_formula_declared_as_one_op_agrees_too():
    WORKLOADS["G2"](SMALL).kernels(None, 2).check()


@pytest.mark.parametrize("number", ["G3", "G4", "G6"])
def test_kernels_agree_with_the_reference(number):
    from gtape.core.errors import KernelError
    from gtape.kernelcheck.emulator.build import runtime
    from gtape.kernelcheck.emulator.executor import emulated_bench

    try:
        runtime()
    except KernelError as error:
        pytest.skip(str(error))
    bench = emulated_bench()
    peer = KernelPeer(bench.gpu, lambda a: bench.array(a, a.dtype.name), np.array)
    WORKLOADS[number](SMALL).task(peer).check()


def test_a_wrong_result_is_told():
    class Wrong(GtapePeer):
        def get(self, value):
            return super().get(value) * 1.1

    with pytest.raises(WrongResult, match="loss"):
        WORKLOADS["G4"](SMALL).task(Wrong()).check()


@pytest.mark.parametrize("number", WORKLOADS)
def test_marks_name_columns_that_are_measured(number):
    workload = WORKLOADS[number](SMALL)
    assert workload.number == number
    assert set(workload.columns) <= set(PEERS)
    for phase in workload.phases:
        for mark in phase.marks:
            assert mark.against in workload.columns or (mark.against == COPY and phase.bytes)


def test_full_sizes_are_those_of_the_design():
    gelu, norm, entropy = (WORKLOADS[n](1) for n in ("G2", "G3", "G4"))
    assert [p.bytes for p in gelu.phases] == [2 * 2 * 8192**2, 3 * 2 * 8192**2]
    assert [p.bytes for p in norm.phases] == [2 * 2 * 16384 * 4096, 3 * 2 * 16384 * 4096]
    assert entropy.phases[0].bytes == 2 * 2 * 8192 * 50304
    assert len(shapes()) == 148
    assert sum(int(np.prod(s)) for s in shapes()) == 124_439_808


def test_inputs_repeat_what_was_drawn_and_rows_differ():
    big = normal((5, 1 << 20), 3)
    assert big.shape == (5, 1 << 20) and abs(float(big.std()) - 1) < 0.01
    assert not np.array_equal(big[0], big[4])
    assert normal((8,), 1, "bfloat16").dtype.name == "bfloat16"
    assert some(5, 100) == [0, 1, 2, 3, 4]
    picked = some(1000, 10)
    assert picked == sorted(picked) and {0, 999} <= set(picked)


# ---------------------------------------------------------------- clocks
class FakeEvents:
    """A device on which the step of turn n takes n milliseconds."""

    def __init__(self):
        self.now = 0.0

    def step(self, turn):
        self.now += turn

    def event(self):
        events = self

        class Event:
            def record(self):
                self.at = events.now

        return Event()


def test_events_are_read_per_step():
    fake = FakeEvents()
    clock = timing.EventClock(fake.event, lambda a, b: b.at - a.at, lambda: None)
    found = clock.measure(fake.step, warm_ups=2, timed=11)
    assert found.samples == 11
    assert (found.median, found.low, found.high) == pytest.approx((5e-3, 1e-3, 9e-3))


def test_the_wall_clock_waits_for_a_few_steps_together():
    waited = []
    clock = timing.WallClock(waited.append)
    found = clock.measure(lambda turn: turn, warm_ups=2, timed=20)
    assert found.samples == 4
    assert waited[-4:] == [4, 9, 14, 19]
    assert 0 < found.host <= found.wall


def test_long_steps_are_timed_less_often(monkeypatch):
    seconds = iter(float(n) for n in range(0, 100, 10))
    monkeypatch.setattr(timing, "perf_counter", lambda: next(seconds))
    count = timing.affordable(lambda turn: None, lambda: None, 11, 50)
    assert count == timing.LEAST_TIMED


# ---------------------------------------------------------------- tables
def made_up(**medians):
    """Results of G2's forward phase with these medians in microseconds."""
    found = results.Results(measures=[
        Measure(f"{COPY} by one way", 2.0, "TB/s"), Measure(f"{COPY} by another", 4.0, "TB/s"),
        Measure(f"{BFLOAT16_PRODUCT}, 8192 x 8192", 500.0, "TFLOP/s")])
    for column, median in medians.items():
        found.add("G2", column.replace("_", " "),
                  {"forward": TIMES | {"median": median * 1e-6}})
    return found


def test_marks_are_met_or_missed():
    # 4e6 bytes at 4 TB/s, the better of the two copies, are 1 us.
    phase = Phase("forward", bytes=4e6)
    found = made_up(gtape=2.0, gtape_kernels=1.1, torch=2.5)
    assert bandwidth(found.measures) == 4e12
    assert results.floor(found, phase) == pytest.approx(1e-6)

    def says(mark, column):
        return results.verdict(found, "G2", phase, mark, column)

    assert says(Mark(0.85), GTAPE).met is False
    assert says(Mark(0.85), KERNELS).met is True
    assert says(Mark(0.7, TORCH), GTAPE).met is False
    assert says(Mark(0.9, TORCH), GTAPE).met is True
    assert says(Mark(0.5, JAX), GTAPE).met is None
    assert str(says(Mark(0.85), GTAPE)) == "gtape >= 0.85 of copy: MISSED (0.50)"
    assert str(says(Mark(0.9, TORCH), GTAPE)) == "gtape <= 0.9 x torch: met (0.80)"
    assert str(says(Mark(0.5, JAX), GTAPE)) == "gtape <= 0.5 x jax jit: not measured"


def test_products_have_a_floor_and_chains_have_none():
    found = made_up()
    assert results.floor(found, Phase("both", flops=5e12)) == pytest.approx(0.01)
    assert results.floor(found, Phase("both")) is None


def test_the_page_and_the_data_are_written(tmp_path):
    found = made_up(gtape=300.0, gtape_kernels=70.0, torch=150.0)
    found.skipped[JAX] = "JAX is not installed"
    found.failed.append("torch, G4: out of memory")
    workloads = [WORKLOADS["G2"](1), WORKLOADS["G5"](1)]
    known = {"date": "today", "driver": "1", "versions": {"card": "a card"}, "commit": None}
    page = publish.write(found, workloads, known, tmp_path)
    assert page == (tmp_path / "gpu.md").read_text()
    assert "a card, driver 1" in page and "jax jit: JAX is not installed, skipped." in page
    assert "FAILED torch, G4: out of memory" in page
    row = next(line for line in page.splitlines() if "| forward " in line)
    assert "0.22 / 0.96" in row and "2.00 / 0.47" in row
    assert "* G2, forward: gtape >= 0.85 of copy: MISSED (0.22)" in page
    assert "* G2, forward: gtape kernels >= 0.85 of copy: met (0.96)" in page
    assert f"* G5, step: gtape <= 0.3 x {TORCH_GRAPHS}: not measured" in page
    data = json.loads((tmp_path / "gpu.json").read_text())
    assert [m["met"] for m in data["rows"][0]["marks"]] == [False, True]


# ---------------------------------------------------------------- processes
def process(code):
    return Process([sys.executable, "-c", HELLO + code], dict(os.environ), start=60)


def test_a_worker_times_every_phase():
    peer = GtapePeer()
    peer.clock = timing.WallClock(lambda value: None)
    found = worker.answer(peer, {"workload": "G1", "scale": SMALL})["timings"]
    assert list(found) == ["forward", "forward + backward"]
    assert all(0 < t["low"] <= t["median"] <= t["high"] for t in found.values())
    assert worker.answer(peer, {"workload": "G1", "scale": SMALL, "warm": True}) == {"timings": {}}


def test_a_worker_tells_where_it_failed():
    with pytest.raises(KeyError) as raised:
        worker.answer(GtapePeer(), {"workload": "G0"})
    assert worker.told(raised.value).startswith("KeyError: 'G0' (worker.py:")


def test_a_process_answers():
    peer = process("for line in sys.stdin: print(line, end='', flush=True)")
    assert peer.hello() == {"versions": {"it": "1"}}
    assert peer.ask({"a": 1}, 60) == {"a": 1}
    peer.close()


def test_a_process_that_hangs_is_ended_and_started_again():
    peer = process("import time; sys.stdin.readline(); time.sleep(100)")
    peer.hello()
    for _ in range(2):
        assert "no answer within 0 s" in peer.ask({}, 0.2)["error"]
    peer.close()


def test_a_process_that_dies_is_told():
    peer = process("sys.stdin.readline(); sys.exit(3)")
    assert peer.ask({}, 60) == {"error": "the process ended with status 3"}
    peer.close()


class FakeProcess:
    """A peer that is not there, one that fails, or one whose steps take 2 us."""

    def __init__(self, column):
        self.column = column

    def hello(self):
        if self.column == JAX:
            return {"skipped": "JAX is not installed"}
        return {"versions": {self.column: "1"}}

    def ask(self, request, seconds):
        if self.column == TORCH:
            return {"error": "it crashed"}
        if "calibrate" in request:
            return {"measures": [{"name": f"{COPY} by it", "value": 4.0, "unit": "TB/s"}]}
        phases = WORKLOADS[request["workload"]](SMALL).phases
        return {"timings": {p.name: TIMES | {"median": 2e-6} for p in phases}}

    def close(self):
        pass


def measurement(seconds):
    return run.Measurement([GTAPE, KERNELS, TORCH, JAX], [], Path(), seconds,
                           start=lambda column, caches: FakeProcess(column))


def test_one_peer_does_not_lose_the_others():
    found = measurement(100)
    found.hello()
    found.calibrate()
    found.measure(WORKLOADS["G3"](SMALL))
    assert found.results.skipped == {JAX: "JAX is not installed"}
    assert found.results.failed == ["torch, G3: it crashed"]
    assert found.results.measures == [Measure(f"{COPY} by it", 4.0, "TB/s")]
    assert found.results.median("G3", "forward", GTAPE) == 2e-6
    assert found.results.median("G3", "forward", KERNELS) == 2e-6


def test_what_there_is_no_time_for_is_left_out():
    found = measurement(1)
    found.hello()
    found.measure(WORKLOADS["G1"](SMALL))
    assert found.results.notes[0] == "gtape, G1: left out, no time was left."
    assert found.results.timings == {}


def test_warming_up_tells_what_failed():
    def start(column, caches):
        return FakeProcess(TORCH if column == TORCH_GRAPHS else column)

    missing = run.warm_up([GTAPE, TORCH_GRAPHS], [WORKLOADS["G5"](SMALL)], Path(), 100, start)
    assert missing == [f"{TORCH_GRAPHS}, G5: warming up: it crashed."]


# ---------------------------------------------------------------- without a GPU
@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    monkeypatch.setenv("PYTHON", sys.executable)


def test_the_command_refuses_without_a_gpu(no_gpu, tmp_path, capsys):
    assert command.main(["--quick", "--scale", "128", "--out", str(tmp_path)]) == command.NO_GPU
    said = capsys.readouterr().err
    assert said.startswith("python -m benchmarks.gpu needs an NVIDIA GPU: gtape finds no usable")
    assert not list(tmp_path.iterdir())


def bash(*arguments):
    return subprocess.run(["bash", *arguments], capture_output=True, text=True, timeout=120)


def test_the_script_is_bash():
    assert bash("-n", str(SCRIPT)).returncode == 0


def test_the_script_refuses_without_a_gpu(no_gpu):
    done = bash(str(SCRIPT), "--quick")
    assert done.returncode == 2
    assert "gpu_check.sh needs an NVIDIA GPU that gtape can use, and there is none." in done.stderr
    assert "Tests on the GPU" not in done.stdout


def test_the_script_refuses_what_it_does_not_know():
    done = bash(str(SCRIPT), "--fast")
    assert done.returncode == 2
    assert "gpu_check.sh knows --install and --quick; got --fast" in done.stderr
