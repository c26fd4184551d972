"""Puts the simulated GPU into every process that `python -m gtape simulate` starts."""

from gtape.devices.simulated.activation import activate

# Here, before the program's first line, which may import CuPy.
activate()
