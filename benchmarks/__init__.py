"""Benchmarks of gtape against its peers; README.md says what each one measures."""
