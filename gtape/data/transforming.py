"""Transforming: the methods of `tf.data.Dataset` that make a dataset of a dataset."""

from __future__ import annotations

from typing import Any


class Transforming:
    """What transforms a dataset; a base of `Dataset`."""

    def cardinality(self) -> Any:
        """The number of elements, an int64 tensor; -1 without end, -2 where it is not known."""
        from gtape.core.convert import convert
        from gtape.core.dtypes import int64

        return convert(self._cardinality(), int64)

    def apply(self, transformation_func: Any) -> Any:
        """transformation_func(self), a dataset."""
        from gtape.data.dataset import Dataset

        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(f"apply: the function must return a Dataset; got "
                            f"{type(made).__name__}")
        return made
