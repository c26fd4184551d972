"""Making: the functions of `tf.data.Dataset` that make datasets."""

from __future__ import annotations

from typing import Any


class Making:
    """What makes a dataset; the base of `Dataset`, which has these as static methods."""

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Any:
        """The dataset of one element, `tensors`.

        Raises:
            ValueError, TypeError: a leaf is nothing that a tensor can be made of.
        """
        from gtape.data.sources import OneElement

        return OneElement(tensors)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Any:
        """The rows tensors[0], tensors[1], ... of a tensor, or of a nest of them.

        Raises:
            ValueError: the first axes are not equally long, or there is none.
        """
        from gtape.data.sources import Slices

        return Slices(tensors)
