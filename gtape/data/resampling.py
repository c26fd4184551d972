"""Resampling: elements left out at random, so that classes come in other proportions."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from typing import Any

import numpy as np

from gtape.core.dtypes import int32
from gtape.core.type_specs import TensorSpec
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
        self._target = np.asarray(target._a if hasattr(target, "_a") else target, np.float64)
        self._initial = None if initial is None else np.asarray(
            initial._a if hasattr(initial, "_a") else initial, np.float64)
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
                at = int(found._a)
                counts[at] += 1
            except Exception as error:
                raise failed(error, "rejection_resample", number) from error
            initial = counts / counts.sum() if self._initial is None else self._initial
            ratios = self._target / np.maximum(initial, tiny)
            if generator.random() * ratios.max() < ratios[at]:
                yield found, element
