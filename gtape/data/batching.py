"""Batching: several elements as one, and one as several."""

from __future__ import annotations

from collections.abc import Iterator as Elements
from itertools import islice
from typing import Any

from gtape.core import nest
from gtape.core.errors import InvalidArgumentError
from gtape.core.type_specs import CompositeSpec, TensorSpec
from gtape.data import stacking
from gtape.data.dataset import Dataset
from gtape.data.failures import failed
from gtape.data.rows import Rows, cut


class Batch(Dataset):
    """`size` elements as one, along a new first axis."""

    def __init__(self, dataset: Any, size: int, drop_remainder: bool) -> None:
        if size < 1:
            raise InvalidArgumentError(f"batch: batch_size must be greater than zero; got {size}")
        self._size, self._drop = size, drop_remainder
        super().__init__(lambda: stacking.batched_spec(
            dataset.element_spec, size if drop_remainder else None), dataset)

    def _iterate(self) -> Elements[Any]:
        rows = self._inputs[0]._rows()
        if rows is not None:
            yield from self._of_rows(rows)
            return
        upstream, ragged = self._inputs[0]._iterate(), self._ragged()
        number = 0
        while items := list(islice(upstream, self._size)):
            if len(items) < self._size and self._drop:
                return
            try:
                made = stacking.batched(items, ragged)
            except Exception as error:
                raise failed(error, "batch", number) from error
            yield made
            number += 1

    def _ragged(self) -> dict[int, Any]:
        """The leaves that are rows of a RaggedTensor."""
        spec = self._inputs[0]._known_spec
        if not any(isinstance(leaf, CompositeSpec) for leaf in nest.flatten(spec)):
            return {}
        from gtape.data.composites import ragged_leaves

        return ragged_leaves(spec)

    def _of_rows(self, rows: Rows) -> Elements[Any]:
        for number, chunk in enumerate(cut(rows.chunks(), self._size, self._drop)):
            try:
                made = rows.batch(chunk, number * self._size)
            except Exception as error:
                raise failed(error, "batch", number) from error
            yield made

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        if count < 0:
            return count
        return count // self._size if self._drop else -(-count // self._size)


class RaggedBatch(Batch):
    """Batches whose leaves are ragged where the elements differ in their first lengths."""

    def __init__(self, dataset: Any, size: int, drop_remainder: bool, splits_dtype: Any) -> None:
        super().__init__(dataset, size, drop_remainder)
        self._splits_dtype = splits_dtype
        length = size if drop_remainder else None
        self._spec = lambda: stacking.batched_spec(self._row_spec(), length)

    def _row_spec(self) -> Any:
        from gtape.data.composites import ragged_spec

        return nest.map_structure(lambda leaf: ragged_spec(leaf, self._splits_dtype),
                                  self._inputs[0].element_spec)

    def _ragged(self) -> dict[int, Any]:
        from gtape.data.composites import ragged_leaves

        return ragged_leaves(self._row_spec())


class Unbatch(Dataset):
    """The rows of the elements, one after the other."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda: stacking.row_spec(dataset.element_spec, "unbatch"), dataset)
        self._known_spec  # noqa: B018  (refuses what does not fit)

    def _iterate(self) -> Elements[Any]:
        for number, element in enumerate(self._inputs[0]._iterate()):
            found = stacking.rows(element)
            while True:
                try:
                    made = next(found)
                except StopIteration:
                    break
                except Exception as error:
                    raise failed(error, "unbatch", number) from error
                yield made

    def _cardinality(self) -> int:
        count = self._inputs[0]._cardinality()
        if count <= 0:
            return count
        dims = [leaf.shape.dims for leaf in nest.flatten(self._inputs[0].element_spec)
                if isinstance(leaf, TensorSpec)]
        length = next((d[0] for d in dims if d and d[0] is not None), None)
        return -2 if length is None else count * length


class Rebatch(Dataset):
    """Elements that are batches, in batches of other sizes: of one size, or of each of several in
    turn."""

    def __init__(self, dataset: Any, sizes: list[int], drop_remainder: bool) -> None:
        if not sizes or min(sizes) < 1:
            raise InvalidArgumentError(f"rebatch: batch_size must be greater than zero; got "
                                       f"{sizes}")
        self._sizes, self._drop = sizes, drop_remainder
        length = sizes[0] if len(set(sizes)) == 1 and drop_remainder else None
        super().__init__(lambda: stacking.batched_spec(
            stacking.row_spec(dataset.element_spec, "rebatch"), length), dataset)
        self._known_spec  # noqa: B018  (refuses what does not fit)

    def _iterate(self) -> Elements[Any]:
        rows = Unbatch(self._inputs[0])._iterate()
        at = 0
        while items := list(islice(rows, self._sizes[at % len(self._sizes)])):
            if len(items) < self._sizes[at % len(self._sizes)] and self._drop:
                return
            yield stacking.batched(items)
            at += 1

    def _cardinality(self) -> int:
        count = Unbatch(self._inputs[0])._cardinality()
        if count < 0 or len(self._sizes) > 1:
            return count if count == -1 else -2
        size = self._sizes[0]
        return count // size if self._drop else -(-count // size)
