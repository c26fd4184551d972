"""`python -m gtape test`: run the test-suite of the checkout."""

from __future__ import annotations

import argparse
import importlib.util

from gtape.cli import checkout
from gtape.cli.errors import CommandError

HELP = "run the test-suite of the checkout with pytest"
PASSES_ON = "pytest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "python -m gtape test [pytest arguments]"


def execute(options: argparse.Namespace) -> int:
    checkout.folder("tests", "tests")
    if importlib.util.find_spec("pytest") is None:
        raise CommandError('the tests are run by pytest, which is not installed; '
                           'run: pip install "gtape[test]"')
    return checkout.run_python(["-m", "pytest", *options.passed_on])
