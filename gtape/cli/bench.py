"""`python -m gtape bench`: run the benchmarks of the checkout."""

from __future__ import annotations

import argparse

from gtape.cli import checkout

HELP = "run the benchmarks of the checkout (all, or the named ones)"
PASSES_ON = "each benchmark"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark; see --list")
    parser.add_argument("--list", action="store_true", help="say what there is, run nothing")


def execute(options: argparse.Namespace) -> int:
    found = checkout.programs(checkout.folder("benchmarks", "benchmarks"))
    if options.list:
        checkout.show(found)
        return 0
    selected = checkout.chosen(found, options.names, "benchmark")
    return checkout.run_programs(selected, options.passed_on)
