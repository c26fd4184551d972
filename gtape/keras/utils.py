"""Small helpers: seeds, one-hot labels, normalisation, forgetting names."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from gtape.core.tensor import Tensor
from gtape.core.text import shown
from gtape.keras import naming


def set_random_seed(seed: int) -> None:
    """Make Python's, NumPy's and gtape's random numbers a function of `seed`.

    Raises:
        ValueError: `seed` is no integer in [0, 2³²).
    """
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(f"a seed must be an integer in [0, 2**32); got {shown(seed)}")
    from gtape.random import set_seed

    random.seed(seed)
    np.random.seed(seed)
    set_seed(seed)


def clear_session(free_memory: bool = True) -> None:
    """Number the names of new layers from the start again."""
    naming.forget()


def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """Class numbers as one-hot rows, in a new last axis (an axis of length 1 there is dropped).

    Raises:
        ValueError: a class outside [0, num_classes).
    """
    numbers = np.asarray(x).astype(np.int64)
    if numbers.ndim > 1 and numbers.shape[-1] == 1:
        numbers = numbers[..., 0]
    count = num_classes or (int(numbers.max()) + 1 if numbers.size else 0)
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < count):
        raise ValueError(f"to_categorical: classes must lie in [0, {count}); got "
                         f"{numbers.min()} to {numbers.max()}")
    made = np.zeros((*numbers.shape, count), np.float32)
    np.put_along_axis(made, numbers[..., None], 1.0, -1)
    if isinstance(x, Tensor):
        from gtape.core.convert import convert

        return convert(made)
    return made


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """x / ‖x‖ along `axis`; zeros stay zeros."""
    values = np.asarray(x)
    norms = np.atleast_1d(np.linalg.norm(values, order, axis, keepdims=True))
    norms[norms == 0] = 1
    return values / norms
