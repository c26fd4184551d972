"""How much the tests of faults try: GTAPE_FAULTS times what is quick, drawn by GTAPE_FAULT_SEED."""

from __future__ import annotations

import os

#: 1 in CI; 100 for an hour.
TIMES = int(os.environ.get("GTAPE_FAULTS", "1"))
SEED = int(os.environ.get("GTAPE_FAULT_SEED", "1"))
#: Damages of each file.
SAMPLES = 60 * TIMES
#: Of the lines at which a save may be stopped, every third, or all: (the first, how far apart).
LINES = (0, 1) if TIMES > 1 else (SEED % 3, 3)
