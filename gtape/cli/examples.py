"""`python -m gtape examples`: run the example programs of the checkout."""

from __future__ import annotations

import argparse

from gtape.cli import checkout

HELP = "run the example programs of the checkout (all, or the named ones)"
FOLDER = "docs/examples"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="an example; see --list")
    parser.add_argument("--list", action="store_true", help="say what there is, run nothing")


def execute(options: argparse.Namespace) -> int:
    found = checkout.programs(checkout.folder(FOLDER, "examples"))
    if options.list:
        checkout.show(found)
        return 0
    return checkout.run_programs(checkout.chosen(found, options.names, "example"))
