"""The parent's end of the peers' processes: none of them can hang or crash the others."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT

#: Seconds in which a library must have been imported and have found its GPU.
START = 60.0

ENVIRONMENT = {
    "GTAPE_DEVICE": "gpu",
    # JAX takes three quarters of the card's memory otherwise, and the peers are there together.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}


def environment(caches: Path) -> dict[str, str]:
    """The variables of a peer's process; what it compiles is kept in `caches`."""
    folders = {
        "GTAPE_CACHE_DIR": "gtape",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "TRITON_CACHE_DIR": "triton",
        "JAX_COMPILATION_CACHE_DIR": "jax",
    }
    kept = {name: os.environ.get(name, str(caches / part)) for name, part in folders.items()}
    return os.environ | ENVIRONMENT | kept


class Process:
    """One peer's process, started anew after it has hung or died.

    Args:
        command: what to run.
        variables: its environment.
        start: seconds that it has to say hello.
    """

    def __init__(
        self, command: list[str], variables: Mapping[str, str], start: float = START
    ) -> None:
        self._command, self._variables, self._start = command, variables, start
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()

    def hello(self) -> dict[str, Any]:
        """Start it, if it does not run; what it says first: "versions", "skipped" or "error"."""
        if self._process is not None:
            return {}
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=dict(self._variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines = queue.Queue()
        threading.Thread(
            target=_read, args=(self._process.stdout, self._lines), daemon=True
        ).start()
        return self._answer(self._start)

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Its answer, or {"error": why} when none has come within `seconds`."""
        first = self.hello()
        if "error" in first or "skipped" in first:
            return first
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            return self._ended()
        return self._answer(seconds)

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.close()
            return {"error": f"no answer within {seconds:.0f} s; the process was ended"}
        if not line:
            return self._ended()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ended(self) -> dict[str, Any]:
        assert self._process is not None
        status = self._process.wait()
        self._process = None
        return {"error": f"the process ended with status {status}"}

    def close(self) -> None:
        """End it, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _read(stream: Any, lines: queue.Queue[str]) -> None:
    """Every line into the queue, and "" at the end."""
    for line in stream:
        lines.put(line)
    lines.put("")


def peer_process(column: str, caches: Path) -> Process:
    """The process of a column's peer."""
    command = [sys.executable, "-m", "benchmarks.gpu.worker", column]
    return Process(command, environment(caches))
