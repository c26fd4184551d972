"""Programs of one seed after the other, compared; the first that fails is cut down and printed.

A program may end the process. Each group runs in a forked child that tells what it found, so that
such a program is cut down like any other.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence

from .compare import Finding, findings
from .differences import difference
from .elaborate import Elaborated, elaborate
from .generate import generate
from .reduce import reduced
from .running import MODES, environment
from .script import script

#: Programs that are compiled together.
GROUP = 5
#: Seconds for a group, after which it counts as hanging.
_LONGEST = 240
Check = Callable[[Sequence[Elaborated]], list[tuple[int, Finding]]]


def check(members: Sequence[Elaborated]) -> list[tuple[int, Finding]]:
    """What is wrong with programs: where the ways to run them disagree, and wrong gradients."""
    turn = len(members[0].text)
    modes = ("native", "numpy", "rounded", ("recorded", "unfused", "applied")[turn % 3])
    with environment(GTAPE_GUARD_ZONES="01"[turn % 2]):
        found = dict(findings(members, modes))
    for i, made in enumerate(members):
        if i not in found and (bad := difference(made)):
            found[i] = bad
    return sorted(found.items())


def _in_mode(mode: str, members: Sequence[Elaborated]) -> list[tuple[int, Finding]]:
    return findings(members, (mode,))


def guarded(members: Sequence[Elaborated], how: Check = check) -> list[tuple[int, Finding]]:
    """The same in a forked child; how it ended, where it did not end well, as one finding."""
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 2)
            _tell(told.fileno(), members, how)
        _, status = os.waitpid(child, 0)
        for file in (told, said):
            file.seek(0)
        text, errors = told.read().decode(), said.read().decode(errors="replace")
    if status or not text:
        ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {status}"
        return [(0, Finding("crash", "process", f"ended by {ended}\n{errors[:4000]}"))]
    return [(i, Finding(*finding)) for i, finding in json.loads(text)]


def _tell(write: int, members: Sequence[Elaborated], how: Check) -> None:
    faulthandler.disable()  # how it ends is told by the parent
    signal.alarm(_LONGEST)
    try:
        found = how(members)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        found = [(0, Finding("exception", f"{type(error).__name__} in {where.name}",
                             f"{error}"[:2000]))]
    os.write(write, json.dumps(found).encode())
    os._exit(0)


def smallest(made: Elaborated, finding: Finding, how: Check = check) -> tuple[Elaborated, Finding]:
    """The smallest program found that fails in the same way, and how it does."""
    latest = [finding]

    def fails(candidate: Elaborated) -> bool:
        for _, other in guarded([candidate], functools.partial(_in_mode, finding.mode) if (
                how is check and finding.mode in MODES) else how):
            if (other.kind, other.mode) == (finding.kind, finding.mode):
                latest[0] = other
                return True
        return False

    small = elaborate(reduced(made.program, fails))
    return small, latest[0]


def report(seed: int, members: Sequence[Elaborated], found: list[tuple[int, Finding]],
           how: Check = check) -> None:
    """Print what was found, each as the smallest program that fails in the same way."""
    for i, finding in found:
        alone = [(k, f) for k in ([i] if finding.kind not in ("crash", "exception") else
                                  range(len(members)))
                 for _, f in guarded([members[k]], how) if f.kind == finding.kind]
        if not alone:
            print(f"seed {seed + i}: {finding}\n    only with the programs of the seeds {seed} to "
                  f"{seed + len(members) - 1} in one function", flush=True)
            continue
        k, finding = alone[0]
        print(f"seed {seed + k}: {finding}", flush=True)
        small, finding = smallest(members[k], finding, how)
        print(script(small, f"Seed {seed + k}: {finding}"), flush=True)


def hunt(seed: int, seconds: float, *, everything: bool = False,
         leave_out: Sequence[str] = ()) -> int:
    """Compare programs for a time; the status of the command."""
    end, count, status = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        first = seed + count
        members = [generate(first + i) for i in range(GROUP)]
        found = [(i, f) for i, f in guarded(members) if f.kind not in leave_out]
        count += GROUP
        if found:
            status = 1
            report(first, members, found)
            if not everything:
                break
    print(f"{count} random programs, seeds {seed} to {seed + count - 1}: "
          f"{'they agree' if not status else 'see above'}", flush=True)
    sys.stdout.flush()
    return status
