"""Checks of values, types and shapes: they raise, or give None."""
