"""Loops, branches and Python functions among ops."""
