"""`python -m gtape demo`: train on real data and write a report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gtape.cli import checkout
from gtape.cli.errors import CommandError

if TYPE_CHECKING:
    from gtape.demo.digits import Outcome

HELP = "train a small network on handwritten digits, with a report and a checkpoint"


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number; got {text!r}") from None


def _positive(text: str) -> int:
    value = _whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {value}")
    return value


def _seed(text: str) -> int:
    value = _whole(text)
    if not 0 <= value < 2**31 - 1:
        raise argparse.ArgumentTypeError(f"must be in [0, 2147483647); got {value}")
    return value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", nargs="?", choices=["digits"], default="digits",
                        help="what to train on (default: digits)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=_positive, default=20, metavar="N",
                        help="passes over the training set (default: 20)")
    length.add_argument("--steps", type=_positive, metavar="N", help="steps, instead of epochs")
    parser.add_argument("--out", type=Path, default=Path("gtape-demo"), metavar="DIR",
                        help="where to write (default: gtape-demo)")
    parser.add_argument("--device", metavar="NAME", help="such as CPU:0 or GPU:0 (default: "
                        "the GPU when one is usable)")
    parser.add_argument("--seed", type=_seed, default=0, metavar="N",
                        help="of the first weights and the order of the batches (default: 0)")


def _lines(outcome: Outcome) -> list[str]:
    follow_up = "examples broken" if checkout.root() else "info"
    return [
        f"accuracy  {outcome.accuracy:.1%} of {outcome.held_out} held-out digits "
        f"({outcome.mistakes} misread)",
        f"device    {outcome.device}",
        f"step      {outcome.step_seconds * 1e3:.2f} ms ({outcome.steps} steps of "
        f"{outcome.batch_size} images)",
        f"next      python -m gtape {follow_up}"]


def execute(options: argparse.Namespace) -> int:
    from gtape.demo.digits import Options, run
    from gtape.demo.errors import DemoError

    try:
        outcome = run(Options(options.out, epochs=options.epochs, steps=options.steps,
                              seed=options.seed, device=options.device))
    except DemoError as error:
        raise CommandError(str(error)) from error
    print(f"wrote {outcome.report} and {outcome.checkpoint}\n")
    print("\n".join(_lines(outcome)))
    return 0
