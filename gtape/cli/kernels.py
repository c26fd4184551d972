"""`python -m gtape kernels`: prove the kernels, on any machine."""

from __future__ import annotations

import argparse
import os

from gtape.cli.output import CommandError
from gtape.core.dtypes import bfloat16
from gtape.kernelcheck import ARCHITECTURES, SCHEDULES

HELP = "compile the GPU's kernels for every architecture, and run their checks without a GPU"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="only kernels and checks whose family, file or name contains this")
    parser.add_argument("--compile", nargs="?", const="all", metavar="ARCHS", help=(
        "compile every kernel by NVRTC; fails on spills, and on a kernel meant to move 16 bytes "
        f"at once that does not. ARCHS: sm_75,sm_90; default: those that NVRTC knows among "
        f"{', '.join(f'sm_{n}' for n in ARCHITECTURES)}"))
    parser.add_argument("--fresh", action="store_true",
                        help="with --compile: also what was compiled before and has not changed")
    parser.add_argument("--json", metavar="FILE", help="with --compile: write the results there")
    parser.add_argument("--run", action="store_true",
                        help="run the checks in the emulator, with a C++ compiler")
    parser.add_argument("--schedule", choices=SCHEDULES, action="append", help=(
        "with --run: an order of threads to run in; may be given again; default: all three"))
    parser.add_argument("--sanitize", action="store_true",
                        help="with --run: with AddressSanitizer and UndefinedBehaviorSanitizer")
    parser.add_argument("--on", choices=("emulator", "gpu"), default="emulator",
                        help="with --run: where; gpu is GPU:0")
    parser.add_argument("--list", action="store_true", help="name every kernel; run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="processes at work at once; default: %(default)s, the processors")


def execute(options: argparse.Namespace) -> int:
    if bfloat16.np_dtype is None:
        raise CommandError("the kernels of bfloat16 need the package ml-dtypes; run: "
                           "pip install ml-dtypes")
    # It takes seconds to load, and other commands list this one's options.
    from gtape.kernelcheck import architectures, execution, sources

    # argparse knows numbers, and no limits of them.
    if options.jobs < 1:
        raise CommandError(f"--jobs takes a number of processes, at least 1; got {options.jobs}")
    status = 0
    if options.list:
        sources.list_names(options.names)
    if options.compile:
        status |= architectures.execute(options)
    if options.run:
        status |= execution.execute(options)
    if not (options.list or options.compile or options.run):
        sources.overview()
    return status
