"""The base class of initializers."""

from __future__ import annotations

import copy
from typing import Any

from gtape.core.tensor import Tensor


class Initializer:
    """Base class: override `__call__(shape, dtype=None)`, which gives a tensor."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(shape, dtype)")

    def clone(self) -> Initializer:
        """Another one like it."""
        return copy.copy(self)
