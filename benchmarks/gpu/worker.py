"""One peer in its own process, which does what the parent asks for, one line of JSON at a time.

Requests: {"workload": number, "scale": n} and {"calibrate": true}; with "warm" a workload is run
once, unchecked, so that what it compiles is in the caches. Every answer is one line too. What
libraries print goes to stderr.
"""

from __future__ import annotations

import gc
import json
import sys
import traceback
from pathlib import Path
from typing import Any, TextIO

from benchmarks.gpu.calibration import measures
from benchmarks.gpu.peers import PEERS, Unavailable
from benchmarks.gpu.workloads import WORKLOADS
from benchmarks.programs.worker import channel_of_stdout, reason


def answer(peer: Any, request: dict[str, Any]) -> dict[str, Any]:
    """What the parent is told."""
    if request.get("calibrate"):
        return {"measures": [measure._asdict() for measure in measures(peer)]}
    workload = WORKLOADS[request["workload"]](request.get("scale", 1))
    if request.get("warm"):
        for run in workload.task(peer, sets=1).runs.values():
            run(0)
        return {"timings": {}}
    task = workload.task(peer)
    task.check()
    return {
        "timings": {name: peer.clock.measure(run).record() for name, run in task.runs.items()}
    }


def told(error: Exception) -> str:
    """What happened, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{reason(error)} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def serve(column: str, requests: TextIO, channel: TextIO) -> None:
    """Answer until the parent closes the pipe."""

    def reply(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    try:
        peer = PEERS[column]()
        reply({"versions": peer.versions()})
    except Unavailable as error:
        reply({"skipped": str(error)})
        return
    except Exception as error:
        reply({"error": told(error)})
        return
    for line in requests:
        try:
            reply(answer(peer, json.loads(line)))
        except Exception as error:
            reply({"error": told(error)})
        gc.collect()
        peer.free()


if __name__ == "__main__":
    serve(sys.argv[1], sys.stdin, channel_of_stdout())
