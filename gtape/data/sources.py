"""Sources: datasets of values that are there already."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from typing import Any

from gtape.core import nest
from gtape.core.specs import TensorSpec
from gtape.core.tensor import EagerTensor
from gtape.data import elements
from gtape.data.dataset import Dataset


class OneElement(Dataset):
    """The dataset of one element."""

    def __init__(self, value: Any) -> None:
        self._element = elements.on_host(elements.element_of(value))
        super().__init__(elements.spec_of(self._element))

    def _iterate(self) -> Elements[Any]:
        yield self._element

    def _cardinality(self) -> int:
        return 1


class Slices(Dataset):
    """The rows of tensors, along their first axis."""

    def __init__(self, value: Any) -> None:
        whole = elements.on_host(elements.element_of(value))
        leaves = elements.flatten(whole)
        if not leaves:
            raise ValueError("from_tensor_slices: there must be at least one tensor")
        for leaf in leaves:
            if not isinstance(leaf, EagerTensor) or not leaf.ndim:
                raise ValueError(f"from_tensor_slices takes tensors with a first axis; got {leaf}")
        self._arrays = [leaf._a for leaf in leaves]
        self._length = len(self._arrays[0])
        for array in self._arrays:
            if len(array) != self._length:
                raise ValueError(
                    f"from_tensor_slices: Dimensions {self._length} and {len(array)} are not "
                    f"compatible: the first axes must be equally long; got "
                    f"{[a.shape for a in self._arrays]}")
        super().__init__(nest.map_structure(
            lambda leaf: TensorSpec(leaf.shape[1:], leaf.dtype), whole))

    def _iterate(self) -> Elements[Any]:
        pack = elements.packer(self._spec)
        for at in range(self._length):
            yield pack([elements.tensor(elements.row(a, at)) for a in self._arrays])

    def _cardinality(self) -> int:
        return self._length
