"""The checkout that gtape runs from: tests, benchmarks and examples are beside the package."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gtape
from gtape.cli import output
from gtape.cli.errors import CommandError


def root() -> Path | None:
    """The folder that holds pyproject.toml and the package, or None for an installed copy."""
    folder = Path(gtape.__file__).resolve().parent.parent
    return folder if (folder / "pyproject.toml").is_file() else None


def folder(relative: str, what: str) -> Path:
    """A folder of the checkout.

    Raises:
        CommandError: gtape does not run from a checkout that has it.
    """
    top = root()
    found = top and top / relative
    if not found or not found.is_dir():
        where = Path(gtape.__file__).resolve().parent
        raise CommandError(
            f"the {what} are in the folder {relative}/ of a checkout, and there is none beside "
            f'the package {where}. Clone the repository, run: pip install -e ".[demo,test]" '
            f"in it, and try again there")
    return found


@dataclass(frozen=True)
class CheckoutProgram:
    """A Python file that can be run by itself, and the first line of its docstring."""

    path: Path
    summary: str


def programs(folder: Path) -> dict[str, CheckoutProgram]:
    """The programs of a folder by name: the files with an `if __name__ == "__main__"`."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        text = path.read_text("utf-8")
        if '__name__ == "__main__"' in text:
            doc = ast.get_docstring(ast.parse(text)) or ""
            found[path.stem] = CheckoutProgram(path, doc.partition("\n")[0])
    return found


def chosen(found: dict[str, CheckoutProgram], names: Sequence[str], what: str,
           ) -> list[CheckoutProgram]:
    """The named programs, or all.

    Raises:
        CommandError: there is no program of that name.
    """
    for name in names:
        if name not in found:
            raise CommandError(f"there is no {what} named {name}; there are: {', '.join(found)}")
    return [found[name] for name in names or found]


def show(found: dict[str, CheckoutProgram]) -> None:
    """One line for each program."""
    width = max(map(len, found), default=0)
    for name, program in found.items():
        print(f"{name:<{width}}  {program.summary}")


def run_python(arguments: Sequence[str]) -> int:
    """Run Python in the checkout, with gtape importable from it; the exit status."""
    top = str(root())
    paths = [top, os.environ.get("PYTHONPATH", "")]
    environment = os.environ | output.environment() | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths))}
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
