"""`python -m gtape explain SCRIPT`: run a program, and explain every gradient that is None."""

from __future__ import annotations

import argparse
import runpy
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import gtape as tf
from gtape.cli.output import CommandError
from gtape.core.errors import GradientNoneWarning

HELP = "run a program, explaining every gradient that is None"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("script", metavar="SCRIPT", type=Path, help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


@contextmanager
def _explaining(explanations: list[str]) -> Iterator[None]:
    """Inside, every None that `tape.gradient` answers is explained on standard error."""

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int,
             file: object = None, line: str | None = None) -> None:
        # All other warnings of the program are shown as without this command.
        if not issubclass(category, GradientNoneWarning):
            ordinary(message, category, filename, lineno)
            return
        explanations.append(str(message))
        print(f"\n{filename}:{lineno}: a gradient is None\n{message}\n", file=sys.stderr)

    with warnings.catch_warnings():
        ordinary = warnings.showwarning
        # Python shows a warning of a line once; here each call has an explanation of its own.
        warnings.simplefilter("always", GradientNoneWarning)
        warnings.showwarning = show
        with tf.explain_none("warn"):
            yield


@contextmanager
def as_program(program: object, arguments: Sequence[str], folder: Path | None = None,
               ) -> Iterator[None]:
    """Inside, `sys.argv` and `sys.path` are those of a program called with these arguments, which
    finds modules in `folder`, by default the one that it is in."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(program), *arguments]
    # As Python does for a script, so that it finds the modules beside it.
    sys.path.insert(0, str(folder or Path(str(program)).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _count(explanations: Sequence[str]) -> str:
    if not explanations:
        return "no gradient was None"
    calls = len(explanations)
    return f"{calls} call{'s' if calls > 1 else ''} of gradient answered None; see above"


def execute(options: argparse.Namespace) -> int:
    if not options.script.is_file():
        raise CommandError(f"{options.script} is not a file; give the program to run")
    explanations: list[str] = []
    try:
        with as_program(options.script, options.arguments), _explaining(explanations):
            runpy.run_path(str(options.script), run_name="__main__")
    finally:
        print(f"gtape explain: {_count(explanations)}", file=sys.stderr)
    return 0
