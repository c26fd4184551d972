"""The command line: `python -m gtape COMMAND`. One module per command."""
