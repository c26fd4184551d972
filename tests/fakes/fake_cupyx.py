"""The part of CuPy's companion module that is used: whether failures of linalg are told.

Unless it is asked to, CuPy does not wait for cuSOLVER, and a factorization that failed leaves what
it has; the fake leaves nan.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

told: ContextVar[bool] = ContextVar("told", default=False)


@contextmanager
def errstate(*, linalg: str) -> Iterator[None]:
    before = told.set(linalg == "raise")
    try:
        yield
    finally:
        told.reset(before)
