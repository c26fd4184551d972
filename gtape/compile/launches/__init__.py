"""Graphs for devices that launch kernels, and graphs run node by node."""
