"""`python -m gtape cache`: the folder of compiled programs and kernels; emptying it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from gtape.cli.output import CommandError
from gtape.devices import cache
from gtape.devices.cache import BYTES, DAY, DAYS, CacheEntry, kept, remove

HELP = "show or empty the folder where compiled programs and kernels are kept"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true",
                        help="remove all that is kept; programs that run are not disturbed")


def execute(options: argparse.Namespace) -> int:
    folder, refusal = cache.state()
    if folder is None or refusal:
        raise CommandError(f"nothing is kept: {refusal}{cache.ADVICE}")
    found = kept(folder)
    if options.clear:
        remove(found)
        print(f"removed {_summed(found)} from {folder}")
        return 0
    print(f"{folder} holds {_summed(found)}")
    for kind in sorted({file.kind for file in found}):
        of_kind = [file for file in found if file.kind == kind]
        # Clocks may have been set back: not below 0 days.
        days = (time.time() - min(file.used for file in of_kind)) / DAY
        print(f"{kind:<14}{_summed(of_kind)}, the oldest used {max(0.0, days):.0f} days ago")
    print(f"Once a day it is cut down to {BYTES >> 30} GiB and what was used within {DAYS} days.")
    return 0


def _summed(files: Sequence[CacheEntry]) -> str:
    return f"{len(files)} files, {sum(file.size for file in files) / 2**20:.1f} MiB"
