"""`python -m gtape demo`: train on real data and write a report."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gtape.cli import checkout
from gtape.cli.output import INTERRUPTED, CommandError

if TYPE_CHECKING:
    from gtape.demo import digits, gpt

HELP = ("train a small network on handwritten digits, or a GPT on Python's documentation, with a "
        "report and checkpoints")
# Said twice, here and in `DigitsOptions`: the help must not load the demonstration.
_EPOCHS = 20


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
    parser.add_argument("dataset", nargs="?", choices=["digits", "gpt"], default="digits",
                        help="what to train on: handwritten digits (the default), or Python's own "
                        "documentation")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=_positive, metavar="N",
                        help=f"digits: passes over the training set (default: {_EPOCHS})")
    length.add_argument("--steps", type=_positive, metavar="N", help="steps of training")
    parser.add_argument("--out", type=Path, default=Path("gtape-demo"), metavar="DIR",
                        help="where to write (default: gtape-demo)")
    parser.add_argument("--device", metavar="NAME", help="such as CPU:0 or GPU:0 (default: "
                        "the GPU when one is usable)")
    parser.add_argument("--seed", type=_seed, metavar="N",
                        help="of the first weights and the order of the batches (default: 0)")
    parser.add_argument("--eager", action="store_true",
                        help="run the training step op by op, without tf.function")
    parser.add_argument("--resume", action="store_true",
                        help="gpt: continue the run in --out from its last checkpoint")
    parser.add_argument("--small", action="store_true", help=argparse.SUPPRESS)


def _digits_lines(outcome: digits.DigitsOutcome) -> list[str]:
    follow_up = "examples broken" if checkout.root() else "info"
    return [
        f"wrote {outcome.report} and {outcome.checkpoint}", "",
        f"accuracy  {outcome.accuracy:.1%} of {outcome.held_out} held-out digits "
        f"({outcome.mistakes} misread)",
        f"device    {outcome.device}",
        f"step      {outcome.step_seconds * 1e3:.2f} ms ({outcome.steps} steps of "
        f"{outcome.batch_size} images)",
        f"next      python -m gtape {follow_up}"]


def _gpt_lines(outcome: gpt.GptOutcome) -> list[str]:
    speed = outcome.tokens_per_second
    return [
        outcome.sample, "", f"wrote {outcome.report} and {outcome.checkpoint}", "",
        f"loss      {outcome.loss:.4f}, held-out {outcome.held_out:.4f} nats per character",
        f"device    {outcome.device}",
        *([] if speed is None else [f"speed     {speed:,.0f} tokens/s ({outcome.steps} steps)"])]


def _train_digits(options: argparse.Namespace) -> int:
    # Here and below: Keras loads with them, which takes longer than most commands.
    from gtape.demo.digits import DigitsOptions, run

    for name in ("resume", "small"):
        if getattr(options, name):
            raise CommandError(f"--{name} is for the gpt demo: python -m gtape demo gpt --{name}")
    outcome = run(DigitsOptions(
        options.out, epochs=options.epochs or _EPOCHS, steps=options.steps, seed=options.seed or 0,
        device=options.device, eager=options.eager))
    print("\n".join(_digits_lines(outcome)))
    return 0


def _train_gpt(options: argparse.Namespace) -> int:
    from gtape.demo.gpt import SMALL, GptOptions, TrainingPlan, run

    if options.epochs:
        raise CommandError("--epochs is for the digits demo; the gpt demo takes --steps")
    outcome = run(GptOptions(options.out, steps=options.steps, seed=options.seed,
                             resume=options.resume, eager=options.eager, device=options.device,
                             base=SMALL if options.small else TrainingPlan()))
    if outcome.report is None:
        print(f"stopped after step {outcome.steps}; wrote {outcome.checkpoint}\n"
              f"go on with python -m gtape demo gpt --resume --out {options.out}")
        return INTERRUPTED
    print("\n".join(_gpt_lines(outcome)))
    return 0


def execute(options: argparse.Namespace) -> int:
    from gtape.demo.training import DemoError

    try:
        return (_train_gpt if options.dataset == "gpt" else _train_digits)(options)
    except DemoError as error:
        raise CommandError(str(error)) from error
