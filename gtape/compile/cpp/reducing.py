"""The steps of reductions in C++: where they begin, and how a value is added."""

from __future__ import annotations

from gtape.opdef.printers.cuda import C_TYPES, compute_dtype

_IDENTITY = {"sum": "0", "prod": "1", "all": "1", "any": "0"}
#: The operator of a reduction, for clauses of OpenMP and for assignments.
CLAUSE = {"sum": "+", "prod": "*", "max": "max", "min": "min", "all": "&", "any": "|"}


def plain(how: str, total: str, value: str) -> str:
    """The step of a reduction as compilers know it: a nan may be lost among extremes."""
    if how in ("max", "min"):
        sign = ">" if how == "max" else "<"
        return f"{total} = {value} {sign} {total} ? {value} : {total};"
    return f"{total} {CLAUSE[how]}= {value};"


def combined(how: str, total: str, value: str) -> str:
    """The step of a reduction; extremes of anything with nan are nan."""
    if how in ("max", "min"):
        sign = ">" if how == "max" else "<"
        return (f"{total} = {value} {sign} {total} || {value} != {value} ? {value} : {total};")
    return f"{total} {CLAUSE[how]}= {value};"


def identity(how: str, dtype: str, wide: str = "") -> str:
    if how in _IDENTITY:
        return _IDENTITY[how]
    kind = wide or C_TYPES[compute_dtype(dtype)]
    return f"lowest_of<{kind}>()" if how == "max" else f"highest_of<{kind}>()"
