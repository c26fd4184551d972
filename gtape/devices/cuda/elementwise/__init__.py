"""Formulas on a GPU: element by element, for many tensors at once, or summed."""
