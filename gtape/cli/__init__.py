"""The command line: `python -m gtape COMMAND`. One module per command."""

from gtape.cli.commands import main

__all__ = ["main"]
