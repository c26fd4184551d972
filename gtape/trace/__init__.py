"""Traces: the graphs that functions become while they run on symbolic tensors."""
