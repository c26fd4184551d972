"""Failures: what an exception in a pipeline says: the element, the transformation, the line."""

from __future__ import annotations

import os
import traceback

import gtape
from gtape.core import errors

_OWN = os.path.dirname(os.path.abspath(gtape.__file__)) + os.sep


def failed(error: Exception, what: str, number: int | None = None) -> Exception:
    """The error to raise in the place of `error`, which came of element `number` of a `what`.

    Errors of gtape keep their class. A ValueError or TypeError becomes InvalidArgumentError, which
    is both; a MemoryError ResourceExhaustedError; a NotImplementedError UnimplementedError; others
    UnknownError. What was said already further up stays as it is.
    """
    if getattr(error, "_placed", False):
        return error
    line = _line(error)
    text = (f"{what}, element {number}" if number is not None else what) + (
        f", {line}" if line else "") + f": {_said(error)}"
    made = _class(error)(text)
    made._placed = True  # type: ignore[attr-defined]
    return made


def _said(error: Exception) -> str:
    if isinstance(error, errors.OpError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _class(error: Exception) -> type[Exception]:
    if isinstance(error, (errors.OutOfRangeError, StopIteration)):
        return errors.InvalidArgumentError
    if isinstance(error, errors.OpError):
        return type(error)
    if isinstance(error, (ValueError, TypeError)):
        return errors.InvalidArgumentError
    if isinstance(error, MemoryError):
        return errors.ResourceExhaustedError
    if isinstance(error, NotImplementedError):
        return errors.UnimplementedError
    return errors.UnknownError


def _line(error: Exception) -> str:
    """The last line of the user's own code that the error passed."""
    frames = [f for f in traceback.extract_tb(error.__traceback__)
              if not os.path.abspath(f.filename).startswith(_OWN) and f.filename[:1] != "<"]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
