"""`python -m gtape`: see `python -m gtape --help`."""

from __future__ import annotations

import sys

from gtape.cli import main

if __name__ == "__main__":
    sys.exit(main())
