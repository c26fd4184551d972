"""Runs the text of CUDA kernels on the CPU, to prove their arithmetic, barriers and bounds."""
