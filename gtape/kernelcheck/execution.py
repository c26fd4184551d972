"""`python -m gtape kernels --run`: every check of every kernel, in the emulator or on a GPU."""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from gtape.cli.output import CommandError
from gtape.core.errors import KernelError, OpError
from gtape.devices import probe
from gtape.devices.cuda.runtime.executor import Function
from gtape.devices.cuda.runtime.kernel import Kernel
from gtape.kernelcheck import SCHEDULES
from gtape.kernelcheck.checks.bench import Bench, Check, Wrong
from gtape.kernelcheck.emulator.build import sanitized_environment
from gtape.kernelcheck.emulator.executor import EmulatedExecutor, emulated_bench
from gtape.kernelcheck.pool import Ended, compile_ahead, outcomes
from gtape.kernelcheck.sources import all_checks, families, family_checks

GPU = "gpu"


class CheckJob(NamedTuple):
    """Part `part` of the checks of one family, of those named so, in a schedule of the emulator or
    on the "gpu"."""

    family: str
    names: tuple[str, ...]
    place: str
    sanitize: bool
    part: int
    parts: int

    @property
    def label(self) -> str:
        return f"{self.family} {self.part + 1}/{self.parts}" if self.parts > 1 else self.family

    def checks(self) -> list[Check]:
        family = family_checks(self.family, self.names)
        first, last = (len(family) * n // self.parts for n in (self.part, self.part + 1))
        return family[first:last]


class CheckOutcome(NamedTuple):
    """What came of a job: failures by check, in full, and the entries that ran."""

    checks: int
    failures: dict[str, str]
    seconds: float
    ran: set[str]


def execute(options: argparse.Namespace) -> int:
    """Run and report; 0 when there are checks and all of them pass."""
    if options.sanitize and (status := _run_sanitized(options)) is not None:
        return status
    places = [GPU] if options.on == GPU else options.schedule or SCHEDULES
    done = []
    if places != [GPU]:
        for family in all_checks(options.names).keys() & (
                name for name, family in families().items() if family.needs_gpu):
            print(f"{family}: its checks need a GPU; run them by --on gpu")
    for job, outcome in run_all(options.names, places, options.jobs, options.sanitize):
        print(line(job, outcome), flush=True)
        done.append((job, outcome))
    print(*summary(done), sep="\n")
    # No check at all is no success: a name may be wrong.
    return int(not done or any(outcome.failures for _, outcome in done))


def _run_sanitized(options: argparse.Namespace) -> int | None:
    """The status of this command run again in the sanitizers' environment; None inside it."""
    if options.on == GPU:
        raise CommandError("--sanitize checks memory in the emulator; leave out --on gpu")
    environment = os.environ | sanitized_environment()
    if environment == dict(os.environ):
        return None
    schedules = [f"--schedule={name}" for name in options.schedule or ()]
    return subprocess.run([sys.executable, "-m", "gtape", "kernels", "--run", "--sanitize",
                           f"--jobs={options.jobs}", *schedules, *options.names],
                          env=environment).returncode


def run_all(names: Sequence[str], places: Sequence[str], workers: int,
            sanitize: bool = False) -> Iterator[tuple[CheckJob, CheckOutcome]]:
    """Run the checks, place by place and family by family; the outcomes as they come."""
    known, wanted = families(), all_checks(names)
    if GPU in places:
        xp = gpu_bench().gpu.xp
        if not names:  # a few chosen checks need few of them
            compile_ahead((k for name in wanted for k in known[name].kernels()), xp, workers)
        workers = 1
    jobs = [CheckJob(family, tuple(names), place, sanitize, part, parts)
            for place in places for family in wanted
            if place == GPU or not known[family].needs_gpu
            for parts in (-(-len(wanted[family]) // known[family].together),)
            for part in range(parts)]
    for job, outcome in outcomes(_run, jobs, workers):
        if isinstance(outcome, Ended):
            outcome = CheckOutcome(0, {job.label: outcome.reason}, 0.0, set())
        yield job, outcome


def _run(job: CheckJob) -> CheckOutcome:
    start = time.perf_counter()
    checks = job.checks()
    failures: dict[str, str] = {}
    ran: set[str] = set()
    with _noted(failures, "making the bench"):
        bench = gpu_bench() if job.place == GPU else emulator_bench(job)
        ran = _watched(bench)
        for check in checks:
            with _noted(failures, check.name):
                check.run(bench)
    return CheckOutcome(len(checks), failures, time.perf_counter() - start, ran)


@contextlib.contextmanager
def _noted(failures: dict[str, str], name: str) -> Iterator[None]:
    """Writes an error inside down under `name`, with its traceback unless it explains itself."""
    try:
        yield
    except (Wrong, OpError) as error:
        failures[name] = f"{type(error).__name__}: {error}"
    except Exception:
        failures[name] = traceback.format_exc()


def _watched(bench: Bench) -> set[str]:
    """A set that fills with the entries that the bench asks for."""
    ran: set[str] = set()
    function = bench.gpu.function

    def watching(kernel: Kernel) -> Function:
        ran.add(kernel.entry)
        return function(kernel)

    vars(bench.gpu)["function"] = watching
    return ran


def emulator_bench(job: CheckJob) -> Bench:
    """A bench in the emulator that builds, with a kernel, all that the family has of its text."""
    bench = emulated_bench(job.place, sanitize=job.sanitize)
    assert isinstance(bench.gpu, EmulatedExecutor)
    function, prepare = bench.gpu.function, bench.gpu.emulator.prepare
    groups = _by_text(job.family)
    broken: dict[str, KernelError] = {}  # g++ would fail anew for each kernel of the text

    def building(kernel: Kernel) -> Function:
        if kernel.text in broken:
            raise broken[kernel.text]
        try:
            prepare(groups.get(kernel.text, ()))
        except KernelError as error:
            broken[kernel.text] = error
            raise
        return function(kernel)

    # In the instance: host functions ask `gpu.function`, whatever they launch.
    vars(bench.gpu)["function"] = building
    return bench


@cache
def _by_text(family: str) -> dict[str, list[Kernel]]:
    by_text: dict[str, list[Kernel]] = {}
    for kernel in families()[family].kernels():
        by_text.setdefault(kernel.text, []).append(kernel)
    return by_text


def gpu_bench() -> Bench:
    """A bench on GPU:0, CuPy's current device. Raises CommandError: there is no usable GPU."""
    for device in probe.probe().devices:
        if device.index == 0 and device.executor is not None:
            return Bench(device.executor, device.upload, device.download)
    raise CommandError(f"--on gpu needs a usable GPU. {probe.why_not()}")


def line(job: CheckJob, outcome: CheckOutcome) -> str:
    """One line on a job."""
    failed = len(outcome.failures)
    state = f"{failed} FAILED" if failed else "passed"
    return (f"{job.label:<24}{job.place:<12}{outcome.checks:>5} checks{outcome.seconds:>8.2f} s"
            f"  {state}")


def summary(done: Sequence[tuple[CheckJob, CheckOutcome]]) -> Iterator[str]:
    """The totals, the kernels that no check ran, and every failure in full."""
    failures = [(job, name, text) for job, outcome in done
                for name, text in outcome.failures.items()]
    for family in sorted({job.family for job, _ in done}):
        ran = set().union(*(outcome.ran for job, outcome in done if job.family == family))
        never = [k.entry for k in families()[family].kernels() if k.entry not in ran]
        if never and not any(job.names for job, _ in done):
            yield f"{family}: no check runs {', '.join(never)}"
    for job, name, text in failures:
        yield f"\n{job.label}, {job.place}: {name}\n{text.rstrip()}"
    checks = sum(outcome.checks for _, outcome in done)
    yield f"\n{checks} checks, {len(failures)} failed" if failures else f"{checks} checks passed"
