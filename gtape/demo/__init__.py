"""Demonstrations that train on real data and leave a report. Run: `python -m gtape demo`."""
