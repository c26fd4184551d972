"""Resampling: elements left out at random, so that classes come in other proportions."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from typing import Any

import numpy as np

from gtape.core.dtypes import int32
from gtape.core.errors import InvalidArgumentError
from gtape.core.type_specs import TensorSpec
from gtape.data.arguments import integer, weights
from gtape.data.calls import Call
from gtape.data.dataset import Dataset
from gtape.data.failures import failed
from gtape.data.seeds import Seed


class Resampled(Dataset):
    """Elements with their classes, each kept with the probability target/initial of its class
    relative to the largest of these.

    Without `initial` the proportions of what came so far stand for it.
    """

    def __init__(self, dataset: Any, class_func: Any, target: Any, initial: Any, seed: Any) -> None:
        self._target = weights(target, None, "rejection_resample: target_dist")
        self._initial = None if initial is None else weights(
            initial, len(self._target), "rejection_resample: initial_dist")
        self._class = Call(class_func, dataset._known_spec, "rejection_resample")
        self._seed = Seed(seed)
        super().__init__(
            lambda: (self._class.spec or TensorSpec([], int32), dataset.element_spec), dataset)

    def _iterate(self) -> Elements[Any]:
        generator = self._seed.generator()
        counts = np.ones(len(self._target))
        tiny = np.finfo(np.float64).tiny
        for number, element in enumerate(self._inputs[0]._iterate()):
            try:
                found = self._class(element)
                at = self._number(found)
                counts[at] += 1
            except Exception as error:
                raise failed(error, "rejection_resample", number) from error
            initial = counts / counts.sum() if self._initial is None else self._initial
            ratios = self._target / np.maximum(initial, tiny)
            if generator.random() * ratios.max() < ratios[at]:
                yield found, element

    def _number(self, found: Any) -> int:
        """The number of a class.

        Raises:
            TypeError: `found` is no integer.
            InvalidArgumentError: `target_dist` has no such class.
        """
        at = integer(found, "what class_func returns")
        if not 0 <= at < len(self._target):
            raise InvalidArgumentError(f"class_func must return the number of a class, in "
                                       f"[0, {len(self._target)}); got {at}")
        return at
