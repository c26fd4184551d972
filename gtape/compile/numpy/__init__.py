"""Graphs as one Python function that calls NumPy, where nothing native is."""
