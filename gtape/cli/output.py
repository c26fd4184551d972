"""Standard output and error of commands, wherever they lead: pipes, full disks, old terminals;
and the error that ends a command."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

FAILED = 2
# As shells say of a program that Ctrl-C ended: 128 and the number of SIGINT.
INTERRUPTED = 130
#: What writing to a disk that is full, gone or limited raises.
_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class CommandError(Exception):
    """A command cannot run, and ends with status 2; the message says what to do about it."""


def status(run: Callable[[], int]) -> int:
    """The exit status of what `run` does, also where what it prints cannot be written."""
    _prepare()
    try:
        try:
            return run()
        finally:
            # Here, where its errors are caught; Python would flush at its end, and exit with 120.
            sys.stdout.flush()
    except BrokenPipeError:
        _abandon()
        return INTERRUPTED
    except OSError as error:
        # Errors with a file are the program's own, and no matter of its output.
        if error.filename is not None or error.errno not in _LOST:
            raise
        _abandon()
        complain(f"gtape: the output could not be written: {error.strerror}")
        return FAILED


def _prepare() -> None:
    """Let every text be written: characters that the terminal has not are escaped, and a stream
    that is closed (`>&-`) swallows what it gets."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif not _is_utf8(stream) and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def environment() -> dict[str, str]:
    """What makes Python programs that a command starts write as it does itself."""
    coding = getattr(sys.stdout, "encoding", None)
    # Children would choose an encoding of their own in a pipe.
    return {} if not coding or _is_utf8(sys.stdout) else {
        "PYTHONIOENCODING": f"{coding}:backslashreplace"}


def _is_utf8(stream: object) -> bool:
    return str(getattr(stream, "encoding", "")).lower().replace("-", "") == "utf8"


def _abandon() -> None:
    """Write no more to standard output: the interpreter would fail again flushing the rest."""
    # The descriptor, and not sys.stdout, whose buffer still holds what could not be written.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """A line on standard error, if it can be written."""
    try:
        print(text, file=sys.stderr)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
