"""`python -m gtape run PROGRAM.py`: a TensorFlow program, unedited, on gtape."""

from __future__ import annotations

import argparse
import os
import runpy
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from gtape.cli.explain import as_program
from gtape.cli.output import CommandError
from gtape.core.errors import EngineError

HELP = "run a program that imports tensorflow or keras, unedited, on gtape"
#: Frames of the way from here into the program.
_OWN = (os.path.dirname(os.path.abspath(__file__)), os.path.abspath(runpy.__file__), "<frozen")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", dest="module", action="store_true",
                        help="PROGRAM is the name of a module")
    parser.add_argument("program", metavar="PROGRAM", help="the program's file, or a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


def execute(options: argparse.Namespace) -> int:
    if not options.module and not Path(options.program).is_file():
        raise CommandError(f"{options.program} is not a file; give the program to run, or "
                           f"-m and the name of a module")
    # Late, for what it loads of Keras' engine other commands do not need.
    from gtape.cli import stand_in

    try:
        stand_in.install()
    except EngineError as error:
        raise CommandError(str(error)) from None
    return _status(lambda: _module(options) if options.module else _file(options))


def _file(options: argparse.Namespace) -> None:
    with as_program(Path(options.program), options.arguments):
        runpy.run_path(options.program, run_name="__main__")


def _module(options: argparse.Namespace) -> None:
    # As `python -m` does, modules are found where it is called.
    with as_program(options.program, options.arguments, Path.cwd()):
        # alter_sys: __main__ is the module then, as pickles and multiprocessing expect.
        runpy.run_module(options.program, run_name="__main__", alter_sys=True)


def _status(program: Callable[[], object]) -> int:
    """0, or 1 after the traceback of an error, as Python prints it for the program alone."""
    try:
        program()
    except Exception as error:
        # A user sees the traceback of the program, as if Python ran it.
        _forget_own_frames(error)
        traceback.print_exception(error)
        return 1
    return 0


def _forget_own_frames(error: BaseException) -> None:
    at: TracebackType | None = error.__traceback__
    while at is not None and at.tb_frame.f_code.co_filename.startswith(_OWN):
        at = at.tb_next
    error.__traceback__ = at or error.__traceback__
