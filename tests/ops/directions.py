"""Gradient checks of whole functions, as `gtape.testing` does for declared ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gtape import testing
from gtape.core.op import case


class Whole:
    """A function that stands for an op."""

    nondifferentiable = False
    has_gradient = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", "function")

    def __call__(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def check(function: Callable[..., Any], *inputs: Any, dtype: str = "float64", order: int = 2,
          ) -> None:
    """Both derivatives of `function` along random directions against differences."""
    testing.check_gradient(Whole(function), case(*inputs), dtype, order)
