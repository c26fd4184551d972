"""One peer in its own process: checks its programs, then times them when it is told to.

A process per peer keeps the peers' thread pools and allocators out of each other's way. The
parent writes one JSON object per line, and reads one back; anything that a library prints goes
to stderr.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from importlib import import_module
from time import perf_counter
from typing import Any, TextIO

from benchmarks.programs.program import Program


def seconds_per_call(program: Program, calls: int) -> float:
    """The mean over `calls` calls, garbage collection included: a user pays for it too."""
    run = program.run
    gc.collect()
    start = perf_counter()
    for _ in range(calls):
        run()
    return (perf_counter() - start) / calls


def calls_to_fill(program: Program, turn_seconds: float) -> int:
    """How many calls fill one turn, found after the calls that compile and warm up."""
    for _ in range(3):
        program.run()
    calls = 1
    while True:
        seconds = seconds_per_call(program, calls) * calls
        if seconds >= turn_seconds / 2:
            return max(1, round(calls * turn_seconds / seconds))
        calls *= 4


def reason(error: Exception) -> str:
    """One line of a table's notes."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text[:200]}"


def prepare(programs: dict[str, Program], turn_seconds: float) -> dict[str, Any]:
    """Check and calibrate every program.

    {"calls": {name: n}, "first": {name: seconds}, "failed": {name: why}}
    """
    calls, first, failed = {}, {}, {}
    for name, program in programs.items():
        try:
            if program.first is not None:
                first[name] = program.first()
            program.check()
            calls[name] = calls_to_fill(program, turn_seconds)
        except Exception as error:
            failed[name] = reason(error)
    return {"calls": calls, "first": first, "failed": failed}


def serve(benchmark: str, peer: str, turn_seconds: float, channel: TextIO) -> None:
    """Answer the parent until it closes the pipe; "module:name" is one program of a benchmark."""

    def reply(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    try:
        module, _, name = benchmark.partition(":")
        programs_of = import_module(f"benchmarks.{module}").programs
        programs = programs_of(peer, name) if name else programs_of(peer)
    except Exception as error:
        reply({"error": reason(error)})
        return
    reply(prepare(programs, turn_seconds))
    for line in sys.stdin:
        request = json.loads(line)
        reply({"seconds": seconds_per_call(programs[request["program"]], request["calls"])})


def channel_of_stdout() -> TextIO:
    """The real stdout as a private channel; what is printed from now on goes to stderr."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return channel


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], float(sys.argv[3]), channel_of_stdout())
