"""Scalar functions mapped over broadcast arrays."""
