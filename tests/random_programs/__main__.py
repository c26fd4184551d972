"""Random programs for a time, each time others.

    python -m tests.random_programs                    75 seconds (GTAPE_FUZZ_SECONDS)
    python -m tests.random_programs --hours 1
    python -m tests.random_programs --seed 123         the same again (GTAPE_FUZZ_SEED)
    python -m tests.random_programs --sanitize         with AddressSanitizer and UBSan

The seed is printed first. What fails is printed as a script that runs alone, cut down to what is
needed to fail; the status is then 1.

A program is data (`program.py`): what it is given, and lines of ops, conditionals, loops and
assignments. `generate.py` makes one from a seed, `elaborate.py` writes it as Python text for
tensors of its shapes, `compare.py` runs the text eagerly, as a native program, as a NumPy program
and with a compiled forward pass, and compares; `differences.py` holds its gradients against finite
differences; `reduce.py` makes what failed small.
"""

from __future__ import annotations

import argparse
import os
import sys

from . import hunt, sanitized


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs",
                                     description="Random programs, run in every way.")
    parser.add_argument("--seed", type=int, default=None, help="of the first program")
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--hours", type=float, default=None)
    parser.add_argument("--sanitize", action="store_true",
                        help="compile with AddressSanitizer and UBSan, in processes of their own")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1,
                        help="processes, with --sanitize")
    parser.add_argument("--everything", action="store_true",
                        help="go on after a failure, and print all that differ")
    parser.add_argument("--leave-out", action="append", default=[], metavar="KIND",
                        help="a kind of failure that is known: range, line, value, ...")
    given = parser.parse_args(arguments)
    seconds = given.seconds or float(os.environ.get("GTAPE_FUZZ_SECONDS", 75))
    if given.hours:
        seconds = 3600 * given.hours
    seed = given.seed
    if seed is None:
        seed = int(os.environ.get("GTAPE_FUZZ_SEED") or int.from_bytes(os.urandom(4), "little"))
    print(f"GTAPE_FUZZ_SEED={seed}", flush=True)
    if given.sanitize:
        return sanitized.hunt(seed, seconds, given.jobs, given.leave_out)
    return hunt.hunt(seed, seconds, everything=given.everything,
                     leave_out=given.leave_out)


if __name__ == "__main__":
    sys.exit(main())
