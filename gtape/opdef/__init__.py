"""The kinds of op: elementwise (scalar ops and functions, derivatives), primitive, composite."""
