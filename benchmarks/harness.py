"""Runs one benchmark: a process per peer, the peers timed in turns, so noise hits all alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# Every peer runs on the CPU with its own default threads, and says nothing while it starts.
ENVIRONMENT = {
    "GTAPE_DEVICE": "cpu",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
# Where peers keep what they compiled, for the next process to find.
CACHES = ("GTAPE_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
ANSWER_SECONDS = 600  # a worker that has not answered by then hangs, and is ended


@dataclass(frozen=True)
class Peer:
    """A column of the tables, and the package that must be importable for it.

    `interpreter`: a Python that has another version of the package; the programs it runs are those
    of the column `programs`, or of this one.
    """

    column: str
    package: str
    interpreter: str = ""
    programs: str = ""


NUMPY = Peer("numpy", "numpy")
GTAPE = Peer("gtape", "gtape")
TORCH = Peer("torch", "torch")
TENSORFLOW = Peer("tensorflow", "tensorflow")
JAX = Peer("jax", "jax")
JAX_JIT = Peer("jax jit", "jax")
AUTOGRAD = Peer("autograd", "autograd")
PEERS = (NUMPY, GTAPE, TORCH, TENSORFLOW, JAX, JAX_JIT, AUTOGRAD)


@dataclass
class Samples:
    """What was measured: cost per program and column, and what could not be measured.

    `first`: seconds of a program's first call, where the programs tell them apart.
    `others`: the share of the machine that other processes had meanwhile, where it is known.
    """

    costs: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    first: dict[str, dict[str, float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    others: float | None = None

    def add(self, program: str, column: str, cost: float) -> None:
        self.costs.setdefault(program, {}).setdefault(column, []).append(cost)

    def merge(self, other: Samples) -> None:
        """Take in what was measured of other programs."""
        self.costs |= other.costs
        self.first |= other.first
        self.skipped |= other.skipped
        self.failed += other.failed


def installed(peers: Sequence[Peer], samples: Samples) -> list[Peer]:
    """The peers that can be imported here; the others are noted as skipped."""
    found = []
    for peer in peers:
        spec = find_spec(peer.package)
        if not peer.interpreter and (spec is None or spec.origin is None):
            samples.skipped[peer.column] = "not installed"
        else:
            found.append(peer)
    return found


def caches_in(folder: Path) -> dict[str, str]:
    """The environment of a peer that keeps what it compiles in `folder`."""
    return {name: str(folder) for name in CACHES}


def command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.{module}", *arguments]


def worker_command(peer: Peer, *arguments: str) -> list[str]:
    """How a worker is started. An interpreter of a peer's own is not told where this checkout is
    until it has its package, or it would find the one that lies here."""
    if not peer.interpreter:
        return command("programs.worker", *arguments)
    start = (f"import runpy, sys, {peer.package}; sys.path.append({str(ROOT)!r}); "
             "runpy.run_module('benchmarks.programs.worker', run_name='__main__', alter_sys=True)")
    return [peer.interpreter, "-P", "-c", start, *arguments]


def environment() -> dict[str, str]:
    return os.environ | ENVIRONMENT


class MachineUse:
    """How busy other processes kept the machine: what tells a quiet run from a noisy one."""

    def __init__(self) -> None:
        self.start = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        """Seconds: of all processors used, of them by this process and its ended children, idle."""
        try:
            fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
        except OSError:
            return None
        ticks = [int(part) / os.sysconf("SC_CLK_TCK") for part in fields]
        idle = ticks[3] + ticks[4]
        return sum(ticks) - idle, sum(os.times()[:4]), idle

    def others(self) -> float | None:
        """Their share of all processors since the start; the workers must have ended."""
        now = self._now()
        if self.start is None or now is None:
            return None
        used, own, idle = (b - a for a, b in zip(self.start, now, strict=True))
        # The system counts in hundredths of a second: a run may have had none of them.
        return max(0.0, used - own) / ((used + idle) or 1.0)


class Worker:
    """The parent's end of one peer's process; it compiles into `caches`, where that is given."""

    def __init__(
        self, benchmark: str, peer: Peer, turn_seconds: float, caches: Path | None = None
    ) -> None:
        self.column = peer.column
        folders = {} if caches is None else caches_in(caches / peer.column)
        self.process = subprocess.Popen(
            worker_command(peer, benchmark, peer.programs or peer.column, str(turn_seconds)),
            cwd=ROOT,
            env=environment() | folders,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        answer = self._answer()
        self.error: str | None = answer.get("error")
        self.calls: dict[str, int] = answer.get("calls", {})
        self.first: dict[str, float] = answer.get("first", {})
        self.failed: dict[str, str] = answer.get("failed", {})

    def seconds(self, program: str) -> float:
        """Seconds per call of `program` in one turn."""
        assert self.process.stdin is not None
        request = {"program": program, "calls": self.calls[program]}
        with suppress(BrokenPipeError):  # the answer says that it has ended
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(f"{self.column}, {program}: {answer['error']}")
        return float(answer["seconds"])

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        limit = Timer(ANSWER_SECONDS, self.process.kill)
        limit.start()
        line = self.process.stdout.readline()
        limit.cancel()
        if not line:
            return {"error": f"the process ended with status {self.process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Closing its stdin ends the worker."""
        self.process.communicate()


def start(
    benchmark: str, peers: Sequence[Peer], turn: float, samples: Samples, caches: Path | None
) -> list[Worker]:
    """A worker per peer that could be started, each checked and calibrated alone."""
    workers = []
    for peer in installed(peers, samples):
        worker = Worker(benchmark, peer, turn, caches)
        for name, seconds in worker.first.items():
            samples.first.setdefault(name, {})[peer.column] = seconds
        samples.failed += [f"{peer.column}, {name}: {why}" for name, why in worker.failed.items()]
        if worker.error:
            samples.failed.append(f"{peer.column}: {worker.error}")
            worker.close()
        else:
            workers.append(worker)
    return workers


def take_turn(worker: Worker, program: str, samples: Samples) -> None:
    """One sample; a worker that ends meanwhile is noted as failed, and has no more turns."""
    try:
        samples.add(program, worker.column, worker.seconds(program))
    except RuntimeError as error:
        samples.failed.append(str(error))
        samples.costs.get(program, {}).pop(worker.column, None)
        worker.calls.clear()


def measure(
    benchmark: str,
    peers: Sequence[Peer],
    *,
    rounds: int = 9,
    turn_seconds: float = 0.05,
    caches: Path | None = None,
) -> Samples:
    """Seconds per call of every program of `benchmarks.<benchmark>.programs(peer)`.

    In each round every program is timed once by every peer that has it, for `turn_seconds`; the
    peer that begins moves on by one from round to round. With ":name" behind it, of that program
    only: `programs(peer, name)`. `caches`: an empty folder to compile into.
    """
    samples, use = Samples(), MachineUse()
    workers = start(benchmark, peers, turn_seconds, samples, caches)
    names = dict.fromkeys(name for worker in workers for name in worker.calls)
    try:
        for turn in range(rounds):
            first = turn % max(1, len(workers))
            for name in names:
                for worker in workers[first:] + workers[:first]:
                    if name in worker.calls:
                        take_turn(worker, name, samples)
    finally:
        for worker in workers:
            worker.close()
    samples.others = use.others()
    return samples


def measure_fresh(
    requests: dict[str, Sequence[Peer]],
    command_of: Callable[[str, Peer], list[str]],
    *,
    rounds: int,
    extra_environment: Mapping[str, str] | None = None,
) -> Samples:
    """One sample per round, request and peer, each from a fresh process.

    `requests`: the peers of every request; `command_of(request, peer)` prints one JSON object as
    its last line: {"cost": number} or {"error": why}. What fails is not asked again.
    """
    samples, use = Samples(), MachineUse()
    everyone = dict.fromkeys(peer for peers in requests.values() for peer in peers)
    usable = installed(list(everyone), samples)
    waiting = [(request, p) for request, peers in requests.items() for p in peers if p in usable]
    variables = environment() | dict(extra_environment or {})
    for _ in range(rounds):
        for request, peer in tuple(waiting):
            answer = ask(command_of(request, peer), variables)
            if "error" in answer:
                waiting.remove((request, peer))
                samples.failed.append(f"{peer.column}, {request}: {answer['error']}")
            else:
                samples.add(request, peer.column, answer["cost"])
    samples.others = use.others()
    return samples


def ask(arguments: Sequence[str], variables: Mapping[str, str]) -> dict[str, Any]:
    """The JSON object in the last line that a fresh process prints, or {"error": why}."""
    try:
        done = subprocess.run(
            arguments,
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer after {ANSWER_SECONDS} s"}
    if done.returncode or not done.stdout.strip():
        lines = done.stderr.strip().splitlines() or ["no output"]
        return {"error": f"status {done.returncode}: {lines[-1][:200]}"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
