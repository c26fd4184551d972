"""Proofs of the kernels: compiled for every architecture, read, and run against NumPy."""
