"""control_dependencies: an order of execution, which eager code has already."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """A block that begins after `control_inputs` were computed, as every line of Python does.

    A function among them is called first.
    """
    if callable(control_inputs):
        control_inputs()
    yield
