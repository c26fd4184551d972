"""`python -m gtape kernels`: what it refuses, what it reports, what it keeps."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gtape.cli import commands
from gtape.core.errors import InternalError, UnavailableError
from gtape.devices import cache
from gtape.devices.cuda.runtime import nvrtc
from gtape.devices.cuda.runtime.executor import Executor
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.devices.kernel_source import expand
from gtape.kernelcheck import execution, pool, ptxas_report, sources
from gtape.kernelcheck.checks.bench import Bench, Check
from gtape.kernelcheck.sources import Family

TEXT = """\
#include "gtape.cuh"

template <typename T, int V>
__global__ void copy(const T* x, T* y, long long n) {
    long long i = grid_index();
    if (i < n) reinterpret_cast<Vec<T, V>*>(y)[i] = reinterpret_cast<const Vec<T, V>*>(x)[i];
}

template <typename T, int V>
__global__ void narrow(const T* x, T* y, long long n) {
    if (grid_index() < n) y[grid_index()] = x[grid_index()];
}

__global__ void __launch_bounds__(1024) spilling(const float* x, float* y, long long n) {
    float kept[120];
#pragma unroll
    for (int k = 0; k < 120; k++) kept[k] = x[k * n + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 120; k++) y[k * n + threadIdx.x] = kept[k] * kept[119 - k];
}
"""


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts instances of a text in the place of what gtape ships; skips without NVRTC."""
    try:
        nvrtc.find()
    except UnavailableError as error:
        pytest.skip(str(error))

    def ship(*entries: str, text: str = TEXT) -> None:
        found = [Kernel(expand(text, "text.cu"), entry) for entry in entries]
        monkeypatch.setattr(sources, "PRODUCERS", [
            lambda: iter([Family("family", lambda: found, list)])])

    return ship


def _run(*arguments: str) -> int:
    return commands.main(["kernels", "--jobs=1", *arguments])


def test_sound_kernels_pass(shipped: Callable[..., None],
                            capsys: pytest.CaptureFixture[str]) -> None:
    shipped("copy<float, 4>", "copy<half, 8>")
    assert _run("--compile=sm_75,sm_90") == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in printed[1:]] == [["text.cu", "2", "2"], ["all", "2", "2"]]


def test_a_spill_fails(shipped: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    shipped("copy<float, 4>", "spilling")
    assert _run("--compile=sm_75") == 1
    printed = capsys.readouterr().out
    assert "text.cu: spilling\n  sm_75: spills " in printed
    assert "1 of 2 failed. Spills go to memory" in printed


def test_a_kernel_without_wide_accesses_fails(shipped: Callable[..., None],
                                              capsys: pytest.CaptureFixture[str]) -> None:
    shipped("narrow<float, 1>", "narrow<float, 4>")
    assert _run("--compile=sm_75,sm_90") == 1
    printed = capsys.readouterr().out
    assert "text.cu: narrow<float, 4>\n  sm_75: moves nothing 16 bytes at once" in printed
    assert "2 of 4 failed" in printed


def test_a_syntax_error_fails_and_shows_its_line(shipped: Callable[..., None],
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    shipped("copy<float, 4>", text=TEXT.replace("i = grid_index();", "i = grid_index()"))
    assert _run("--compile=sm_75") == 1
    printed = capsys.readouterr().out
    assert "text.cu:6" in printed and ">    6 |     if (i < n)" in printed
    assert 'expected a ";"' in printed


def test_nothing_to_compile_is_no_success(shipped: Callable[..., None]) -> None:
    shipped()
    assert _run("--compile=sm_75") == 1


def test_unchanged_kernels_are_not_compiled_again(
        shipped: Callable[..., None], monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    compiled = []
    prove = ptxas_report.prove
    monkeypatch.setattr(ptxas_report, "prove", lambda text, entries, *rest: (
        compiled.extend(entries) or prove(text, entries, *rest)))
    shipped("copy<float, 4>", "narrow<float, 4>")
    assert _run("--compile=sm_75") == 1 and len(compiled) == 2
    assert "earlier run" not in capsys.readouterr().out
    assert _run("--compile=sm_75") == 1 and len(compiled) == 2
    assert "2 of 2 were compiled by an earlier run" in capsys.readouterr().out
    assert _run("--compile=sm_75", "--fresh") == 1 and len(compiled) == 4
    shipped("copy<float, 4>", text=TEXT + "\n")
    assert _run("--compile=sm_75") == 0 and len(compiled) == 5
    capsys.readouterr()
    assert _run("--list") == 0
    assert "copy<float, 4>" in (listed := capsys.readouterr().out)
    assert "registers: sm_75 " in listed


def test_results_are_written_as_json(shipped: Callable[..., None], tmp_path: Path) -> None:
    shipped("copy<float, 4>", "narrow<float, 4>")
    file = tmp_path / "found.json"
    assert _run("--compile=sm_75", f"--json={file}", "copy") == 0
    (row,) = json.loads(file.read_text())["kernels"]
    assert (row["entry"], row["arch"], row["spills"], row["wide_loads"]) == (
        "copy<float, 4>", "sm_75", 0, 1)
    assert row["problems"] == []


def test_several_processes_find_the_same(shipped: Callable[..., None],
                                         capsys: pytest.CaptureFixture[str]) -> None:
    shipped("copy<float, 4>", "narrow<float, 4>")
    assert commands.main(["kernels", "--jobs=2", "--compile=sm_75,sm_90"]) == 1
    assert "2 of 4 failed" in capsys.readouterr().out


@pytest.mark.parametrize("given, said", [
    (["--compile=sm_1"], "sm_75,sm_90; got sm_1"), (["--compile=softmax"], "got softmax"),
    (["--compile=,"], "got none"), (["--compile=sm_75", "nosuch"], "nothing is named nosuch"),
    (["--list", "nosuch"], "the families are family"), (["--jobs=0"], "at least 1")])
def test_what_cannot_be_done_is_said(given: list[str], said: str, shipped: Callable[..., None],
                                     capsys: pytest.CaptureFixture[str]) -> None:
    shipped("copy<float, 4>")
    assert _run(*given) == 2
    assert said in capsys.readouterr().err


def test_without_options_it_says_what_can_be_done_here(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert _run() == 0
    printed = capsys.readouterr().out
    for option in ("--compile", "--run", "--run --on gpu"):
        assert any(line.startswith(option) and ("can: " in line or "cannot: " in line)
                   for line in printed.splitlines())


def _wrong(bench: Bench) -> None:
    bench.same("sums", np.float32([1, 2]), [1.0, 3.0])


def _raising(bench: Bench) -> None:
    raise ZeroDivisionError("planted")


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts checks in the place of gtape's, on a bench that launches nothing."""
    function = SimpleNamespace(load=lambda kernel: lambda *args: None, stream=lambda: None)
    bench = Bench(Executor(np, np.empty, function, 4), np.array, np.array)

    def put(kernels: Sequence[Kernel] = (), together: int = 99, needs_gpu: bool = False,
            **runs: Callable[[Bench], None]) -> None:
        family = Family("family", lambda: kernels,
                        lambda: [Check(n, run) for n, run in runs.items()], together, needs_gpu)
        monkeypatch.setattr(sources, "PRODUCERS", [lambda: iter([family])])
        monkeypatch.setattr(execution, "emulator_bench", lambda job: bench)

    return put


def test_checks_that_pass(checks: Callable[..., None],
                          capsys: pytest.CaptureFixture[str]) -> None:
    checks(one=lambda bench: None, two=lambda bench: None)
    assert _run("--run") == 0
    printed = capsys.readouterr().out
    assert [line.split()[1] for line in printed.splitlines()[:3]] == [
        "ascending", "descending", "random"]
    assert printed.endswith("6 checks passed\n")


def test_failures_are_shown_in_full_and_the_rest_goes_on(
        checks: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    checks(good=lambda bench: None, wrong=_wrong, raising=_raising, last=lambda bench: None)
    assert _run("--run", "--schedule=random") == 1
    printed = capsys.readouterr().out
    assert "4 checks" in printed and "2 FAILED" in printed
    assert "family, random: wrong\nWrong: sums (float32): 1 of 2 values are wrong" in printed
    assert "in _raising" in printed and "ZeroDivisionError: planted" in printed


def test_names_choose_checks(checks: Callable[..., None],
                             capsys: pytest.CaptureFixture[str]) -> None:
    checks(good=lambda bench: None, wrong=_wrong)
    assert _run("--run", "good") == 0
    assert _run("--run", "nosuch") == 2
    assert "nothing is named nosuch" in capsys.readouterr().err


def test_nothing_to_check_is_no_success(checks: Callable[..., None]) -> None:
    checks()
    assert _run("--run") == 1


def test_every_part_of_a_family_is_run_once(checks: Callable[..., None],
                                            capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[int] = []
    checks(together=3, **{f"n{i}": lambda bench, i=i: ran.append(i) for i in range(7)})
    assert _run("--run", "--schedule=random") == 0
    assert ran == list(range(7))
    printed = capsys.readouterr().out
    assert "family 1/3" in printed and "family 3/3" in printed
    ran.clear()
    assert _run("--run", "--schedule=random", "n5") == 0
    assert ran == [5]


def test_checks_that_need_a_gpu_are_left_out_in_the_emulator(
        checks: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    checks(needs_gpu=True, wrong=_wrong)
    assert _run("--run") == 1
    printed = capsys.readouterr().out
    assert "family: its checks need a GPU; run them by --on gpu\n0 checks" in printed


def test_kernels_that_no_check_runs_are_named(
        checks: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    text = expand(TEXT, "text.cu")
    first, second = Kernel(text, "copy<float, 4>"), Kernel(text, "copy<half, 8>")
    array = np.zeros(4, np.float32)
    checks([first, second],
           one=lambda bench: bench.gpu.launch(first, (1, 1, 1), (32, 1, 1), (array, array, 1)))
    assert _run("--run", "--schedule=random") == 0
    assert "family: no check runs copy<half, 8>" in capsys.readouterr().out


def test_a_gpu_that_is_not_there_is_said(
        checks: Callable[..., None], monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    from gtape.devices import probe

    monkeypatch.setattr(probe, "probe", lambda: probe.Probe(
        (), (probe.Finding("GPU", False, "planted reason"),)))
    checks(one=lambda bench: None)
    assert _run("--run", "--on=gpu") == 2
    assert "--on gpu needs a usable GPU. GPU: planted reason" in capsys.readouterr().err
    assert _run("--run", "--on=gpu", "--sanitize") == 2
    assert "leave out --on gpu" in capsys.readouterr().err


def test_on_a_gpu_each_family_is_run_once_in_this_process(
        checks: Callable[..., None], monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    from gtape.devices import probe

    found: list[Bench] = []
    ahead: list[object] = []
    kernel = Kernel(expand(TEXT, "text.cu"), "copy<float, 4>")
    checks([kernel], needs_gpu=True, one=found.append, two=found.append)
    monkeypatch.setattr(execution, "compile_ahead", lambda kernels, cupy, workers: ahead.append(
        (list(kernels), cupy, workers)))
    gpu = SimpleNamespace(function=None, launch=None, xp="cupy")
    device = SimpleNamespace(index=0, executor=gpu, upload=np.array, download=np.asarray)
    monkeypatch.setattr(probe, "probe", lambda: probe.Probe((device,), ()))
    assert commands.main(["kernels", "--run", "--on=gpu", "--jobs=3"]) == 0
    assert [bench.gpu for bench in found] == [gpu, gpu]
    assert ahead == [([kernel], "cupy", 3)]
    assert capsys.readouterr().out.split()[:4] == ["family", "gpu", "2", "checks"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_kernel_is_built_in_the_emulator_with_all_of_its_text(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from gtape.kernelcheck.emulator.executor import Emulator

    text = expand(TEXT, "text.cu")
    whole = [Kernel(text, "copy<float, 4>"), Kernel(text, "copy<half, 8>")]
    broken = Kernel(expand(TEXT.replace("grid_index", "nothing"), "bad.cu"), "copy<float, 4>")
    prepared = []
    prepare = Emulator.prepare
    monkeypatch.setattr(Emulator, "prepare", lambda self, kernels: (
        prepared.append(len(kernels := list(kernels))) or prepare(self, kernels)))

    def copies(bench: Bench) -> None:
        x = bench.array([1.0, 2.0, 3.0, 4.0], "float32")
        y = bench.gpu.empty((4,), x.dtype)
        bench.gpu.launch(whole[0], (1, 1, 1), (32, 1, 1), (x, y, 1))
        bench.same("copy", y, [1.0, 2.0, 3.0, 4.0])

    checks = [Check("copies", copies), *(
        Check(f"bad {n}", lambda bench: bench.gpu.function(broken)) for n in range(3))]
    family = Family("family", lambda: [*whole, broken], lambda: checks)
    monkeypatch.setattr(sources, "PRODUCERS", [lambda: iter([family])])
    execution._by_text.cache_clear()
    assert _run("--run", "--schedule=random") == 1
    execution._by_text.cache_clear()
    assert prepared == [2, 1, 1]  # the text, its kernel when loaded, the broken one once
    printed = capsys.readouterr().out
    assert "4 checks, 3 failed" in printed
    assert printed.count("family, random: bad") == 3 and "bad.cu:5" in printed


def _crashing(job: int) -> int:
    if job == 2:
        os._exit(9)
    if job == 3:
        raise InternalError("planted")
    return job * 10


def test_a_crash_costs_one_result_and_no_other() -> None:
    found = dict(pool.outcomes(_crashing, [0, 1, 2, 4], 2))
    assert {job: found[job] for job in (0, 1, 4)} == {0: 0, 1: 10, 4: 40}
    assert isinstance(found[2], pool.Ended)
    with pytest.raises(InternalError, match="planted"):
        list(pool.outcomes(_crashing, [1, 3], 2))


def test_modules_are_families_by_what_they_offer() -> None:
    found = {family.name: family for family in sources.shipped()}
    assert "bench" not in found
    assert found["random_numbers"].kernels() and list(found["random_numbers"].checks())
