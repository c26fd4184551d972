"""The checkout that gtape runs from, and the commands `test`, `bench` and `examples`, which run
what is beside the package there."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import gtape
from gtape.cli import output
from gtape.cli.output import CommandError


def root() -> Path | None:
    """The folder that holds pyproject.toml and the package, or None for an installed copy."""
    folder = Path(gtape.__file__).resolve().parent.parent
    return folder if (folder / "pyproject.toml").is_file() else None


def folder(relative: str, what: str) -> Path:
    """A folder of the checkout. Raises CommandError: gtape runs from no checkout that has it."""
    top = root()
    place = top and top / relative
    if not place or not place.is_dir():
        where = Path(gtape.__file__).resolve().parent
        raise CommandError(
            f"the {what} are in the folder {relative}/ of a checkout, and there is none beside "
            f'the package {where}. Clone the repository, run: pip install -e ".[demo,test]" '
            f"in it, and try again there")
    return place


class CheckoutProgram(NamedTuple):
    """A Python file that can be run by itself, and the first line of its docstring."""

    path: Path
    summary: str


def programs(folder: Path) -> dict[str, CheckoutProgram]:
    """The programs of a folder by name: the files with an `if __name__ == "__main__"`."""
    runnable = {}
    for path in sorted(folder.glob("*.py")):
        text = path.read_text("utf-8")
        if '__name__ == "__main__"' in text:
            doc = ast.get_docstring(ast.parse(text)) or ""
            runnable[path.stem] = CheckoutProgram(path, doc.partition("\n")[0])
    return runnable


def chosen(known: dict[str, CheckoutProgram], names: Sequence[str], what: str,
           ) -> list[CheckoutProgram]:
    """The named programs, or all. Raises CommandError: there is no program of that name."""
    for name in names:
        if name not in known:
            raise CommandError(f"there is no {what} named {name}; there are: {', '.join(known)}")
    return [known[name] for name in names or known]


def show(known: dict[str, CheckoutProgram]) -> None:
    width = max(map(len, known), default=0)
    for name, program in known.items():
        print(f"{name:<{width}}  {program.summary}")


def run_python(arguments: Sequence[str]) -> int:
    """Run Python in the checkout, with gtape importable from it; the exit status."""
    top = str(root())
    paths = [top, os.environ.get("PYTHONPATH", "")]
    environment = os.environ | output.environment() | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # Before what the child writes to the same place.
    sys.stdout.flush()
    return subprocess.run([sys.executable, *arguments], cwd=top, env=environment).returncode


def run_programs(selected: Sequence[CheckoutProgram], arguments: Sequence[str] = ()) -> int:
    """Run programs one after another; 0 when all succeeded, else the number that failed."""
    failed = []
    for program in selected:
        if len(selected) > 1:
            print(f"\n== {program.path.stem}: {program.summary}")
        if run_python(["-m", "gtape.cli.program", str(program.path), *arguments]):
            failed.append(program.path.stem)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


class CheckoutCommand(NamedTuple):
    """A command, with the names that the modules of the others have."""

    HELP: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    execute: Callable[[argparse.Namespace], int]
    PASSES_ON: str | None = None


def _running(what: str, where: str, described: str, passes_on: str | None = None,
             ) -> CheckoutCommand:
    """The command that runs the programs of a folder."""
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"{what}; see --list")
        parser.add_argument("--list", action="store_true", help="say what there is, run nothing")

    def execute(options: argparse.Namespace) -> int:
        noun = what.split()[-1]
        known = programs(folder(where, f"{noun}s"))
        if options.list:
            show(known)
            return 0
        return run_programs(chosen(known, options.names, noun), options.passed_on)

    return CheckoutCommand(f"run the {described} of the checkout (all, or the named ones)",
                           add_arguments, execute, passes_on)


def _set_usage(parser: argparse.ArgumentParser) -> None:
    parser.usage = "python -m gtape test [pytest arguments]"


def _test(options: argparse.Namespace) -> int:
    folder("tests", "tests")
    if importlib.util.find_spec("pytest") is None:
        raise CommandError('the tests are run by pytest, which is not installed; '
                           'run: pip install "gtape[test]"')
    return run_python(["-m", "pytest", *options.passed_on])


COMMANDS = {
    "test": CheckoutCommand("run the test-suite of the checkout with pytest", _set_usage, _test,
                            "pytest"),
    "examples": _running("an example", "docs/examples", "example programs"),
    "bench": _running("a benchmark", "benchmarks", "benchmarks", "each benchmark")}
