"""broadcast_to and sum_to on bare arrays: the adjoint pair that elementwise gradients need."""

from __future__ import annotations

import numpy as np

from gtape.core.device import Array
from gtape.numerics.sums import total


def axes_to_sum(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The axes along which `target` was stretched to `shape`, and how many were put in front."""
    lead = len(shape) - len(target)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(target) if n == 1 and shape[lead + i] != 1)
    return axes, lead


def stretches(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether `target` has axes that `shape` lacks or has at length 1.

    Cotangents do when a part does not depend on every input: it is smaller than the op's result.
    """
    return len(shape) < len(target) or any(
        n == 1 and m != 1 for n, m in zip(shape[::-1], target[::-1]))


def sum_to(array: Array, target: tuple[int, ...]) -> Array:
    """`array` summed over the axes along which `target` was broadcast."""
    shape = array.shape
    if stretches(shape, target):
        return np.broadcast_to(array, target)
    axes, lead = axes_to_sum(shape, target)
    if not axes:
        return array.reshape(target)
    summed = total(array, axes, True)
    return summed.reshape(target) if lead else summed
