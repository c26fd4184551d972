"""`python -m gtape.cli.program SCRIPT ...`: a program whose output may lead nowhere."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from gtape.cli import output
from gtape.cli.explain import as_program


def main(script: str, *arguments: str) -> int:
    with as_program(Path(script), arguments):
        runpy.run_path(script, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(output.status(lambda: main(*sys.argv[1:])))
