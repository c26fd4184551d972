"""Matrices: products, factors, systems, spectra, norms."""
