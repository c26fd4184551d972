"""Commands of the system, run to their end, or stopped with all that they started."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gtape.core.errors import PassingError

#: Names of libraries that are loaded into a program for a sanitizer to watch it.
_SANITIZER = re.compile(r"lib(clang_rt\.)?(a|hwa|l|m|t|ub)san\b")


class Finished(NamedTuple):
    """The exit status of a command, and what it printed."""

    status: int
    printed: str
    errors: str


def run(command: Sequence[str], seconds: float, temporary: Path | None = None) -> Finished:
    """The command's result, with messages in English. Its temporary files lie in `temporary`.
    Raises PassingError: it cannot be started, takes longer than `seconds`, or is stopped again.

    It has a session of its own, so Ctrl-C at the terminal reaches only the program that waits for
    it. One that a signal stops is started once more.
    """
    # Twice: the kernel's killer of processes picks one where memory is short, and a moment later
    # there is room again.
    for _ in range(2):
        done = _attempt(command, seconds, temporary)
        if done.status >= 0:
            return done
    raise PassingError(f"{command[0]} was stopped by signal {-done.status}")


def _attempt(command: Sequence[str], seconds: float, temporary: Path | None) -> Finished:
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8", errors="replace", env=_environment(temporary),
            start_new_session=True)
    except OSError as error:
        raise PassingError(f"{command[0]} cannot be started: {error}") from error
    with process:
        try:
            printed, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            _stop(process)
            raise PassingError(f"{command[0]} did not end within {seconds:g} seconds, "
                               "and was stopped") from error
        except BaseException:
            _stop(process)
            raise
    return Finished(process.returncode, printed, errors)


def _environment(temporary: Path | None) -> dict[str, str]:
    """This process's, but for the sanitizers that watch it: a compiler takes three times as long
    with them."""
    loaded = re.split("[ :]+", os.environ.get("LD_PRELOAD", ""))
    there = {} if temporary is None else {"TMPDIR": str(temporary)}
    return {**os.environ, "LC_ALL": "C", **there, "LD_PRELOAD": " ".join(
        name for name in loaded if not _SANITIZER.match(os.path.basename(name)))}


def _stop(process: subprocess.Popen[str]) -> None:
    """End the command and what it started; its number is its group's until it is waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
