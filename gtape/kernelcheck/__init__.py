"""Proofs of the kernels: compiled for every architecture, read, and run against NumPy."""

#: The compute capabilities that kernels are proven for, as far as NVRTC knows them.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
#: The orders in which the emulator runs the threads of a block.
SCHEDULES = ("ascending", "descending", "random")
