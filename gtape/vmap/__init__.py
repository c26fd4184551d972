"""Batches: a function of one element applied to many at once, by a rule for every op."""
