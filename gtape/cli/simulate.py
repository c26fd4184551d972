"""`python -m gtape simulate PROGRAM.py`: a CuPy program on a machine without a GPU."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gtape.cli.output import CommandError
from gtape.core.errors import KernelError

HELP = "run a CuPy program, gtape's or not, on a simulated GPU: the real CuPy, kernels on the CPU"
#: Options that are environment variables for the programs: GTAPE_SIMULATED_<NAME>.
_SETTINGS = {
    "devices": "how many GPUs there are (default: 1)",
    "memory_mb": "memory of each, in MB (default: 4096)",
    "capability": "compute capability that they report, 90 for 9.0 (default: 90)",
    "schedule": "order of threads and blocks: ascending (default), descending or random",
    "seed": "of the random schedule (default: 0)",
    "check": "what is watched: words of memory,unwritten,host (default: all), or none",
    "async": "1: run operations as late as a GPU may, so that a missing synchronisation shows",
    "seconds": "CPU time after which a kernel is given up (default: 120)"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, text in _SETTINGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", dest=f"setting_{name}", metavar="X",
                            help=text)
    parser.add_argument("-m", dest="module", action="store_true",
                        help="PROGRAM is the name of a module")
    parser.add_argument("program", metavar="PROGRAM", help="the program's file, or a module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...",
                        help="its arguments")


def execute(options: argparse.Namespace) -> int:
    """Replaces this process by the program's: CUDA's libraries must be there from its start, also
    in the processes that it starts."""
    if not options.module and not Path(options.program).is_file():
        raise CommandError(f"{options.program} is not a file; give the program to run, or -m and "
                           f"the name of a module")
    from gtape.devices.simulated import build  # late: --help needs none of it

    try:
        build.folder()  # here, where what is missing is told without a traceback
    except KernelError as error:
        raise CommandError(str(error)) from None
    # Python imports sitecustomize from there in every process, whatever it runs.
    start = str(Path(build.__file__).with_name("start"))
    environment = {**os.environ, "GTAPE_DEVICE": "simulated", "PYTHONPATH": os.pathsep.join(
        filter(None, [start, os.environ.get("PYTHONPATH")]))}
    for name in _SETTINGS:
        value = getattr(options, f"setting_{name}")
        if value is not None:
            environment[f"GTAPE_SIMULATED_{name.upper()}"] = value
    sys.stdout.flush()  # what is buffered would go with this process
    program = ["-m", options.program] if options.module else [options.program]
    os.execve(sys.executable, [sys.executable, *program, *options.arguments], environment)
