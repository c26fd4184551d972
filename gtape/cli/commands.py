"""The parser of `python -m gtape`, and the call of the chosen command.

A command has `HELP` (one line), `add_arguments(parser)` and `execute(options) -> status`, be it a
module or a `CheckoutCommand`. `PASSES_ON` names what receives the arguments that the command does
not know itself.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from gtape._version import version
from gtape.cli import cache, checkout, demo, explain, info, kernels, output, run, simulate

Command = ModuleType | checkout.CheckoutCommand
# In the order of the help: what a new user tries first.
_COMMANDS: dict[str, Command] = {
    "demo": demo, "info": info, **checkout.COMMANDS, "explain": explain, "kernels": kernels,
    "cache": cache, "run": run, "simulate": simulate}


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    top = argparse.ArgumentParser(
        prog="python -m gtape", description="GradientTape programs on NumPy and CuPy.",
        epilog="python -m gtape COMMAND --help explains a command")
    top.add_argument("--version", action="version", version=f"gtape {version}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        receiver = _receiver(command)
        # An abbreviation would take arguments away from the receiver of the others.
        of_command = commands.add_parser(
            name, help=command.HELP, description=command.HELP, allow_abbrev=False,
            epilog=receiver and f"Every other argument goes to {receiver}.")
        command.add_arguments(of_command)
        of_command.set_defaults(command=command, command_name=name)
    return top


def _receiver(command: Command) -> str | None:
    return getattr(command, "PASSES_ON", None)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of one command; exits with usage on wrong ones."""
    top = parser()
    # Known ones first: what is left over belongs to pytest or a benchmark, or is a mistake.
    options, unknown = top.parse_known_args(arguments)
    if unknown and _receiver(options.command) is None:
        top.error(f"{options.command_name} does not know {' '.join(unknown)}; "
                  f"see python -m gtape {options.command_name} --help")
    options.passed_on = unknown
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status: 0 for success, 2 when it could not run or its output could
    not be written, 130 when it was interrupted or its reader (`| head`) has gone."""
    return output.status(lambda: _run(sys.argv[1:] if arguments is None else arguments))


def _run(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    try:
        return int(options.command.execute(options))
    except output.CommandError as error:
        output.complain(f"gtape {options.command_name}: {error}")
        return output.FAILED
    except KeyboardInterrupt:
        output.complain(f"gtape {options.command_name}: interrupted")
        return output.INTERRUPTED
