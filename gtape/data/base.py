"""What every source and every transformation of a pipeline is."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from gtape.core.device import Device
from gtape.data.rows import Chunk, Elements, Rows

#: What `cardinality` says of a dataset without end, and of one whose length is not known.
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


class Core:
    """What datasets ask each other. A subclass says how a pass is made (`_iterate`, or `_elements`
    where the elements may be rows of arrays, which `_rows` says), what its elements are (`_spec`,
    or a function that finds it), how many there are (`_cardinality`), and which datasets it is made
    from (`_inputs`)."""

    #: Whether only an element can tell what the elements are.
    _told_by_elements = False

    def __init__(self, spec: Any, *inputs: Dataset) -> None:
        self._spec = spec
        self._inputs = inputs

    @property
    def _known_spec(self) -> Any:
        """The specs, where no element has to be computed to find them; None otherwise."""
        if self._told_by_elements or any(i._known_spec is None for i in self._inputs):
            return None
        return self.element_spec

    def _iterate(self) -> Elements[Any]:
        """The elements of a new pass."""
        rows = self._rows()
        return self._elements() if rows is None else rows.elements()

    def _elements(self) -> Elements[object]:
        """The elements of a new pass, where they are no rows."""
        raise NotImplementedError

    def _sent(self, device: Device) -> Elements[object]:
        """The elements of a new pass for `device`, which may be on their way there: they are
        `prefetching.Sent` then."""
        return self._iterate()

    def _cardinality(self) -> int:
        """The number of elements, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return UNKNOWN_CARDINALITY

    def _counted(self) -> int:
        """`_cardinality`; not known either where int64 cannot tell it."""
        # Python's integers have no end, so that repeat(1 << 40).repeat(1 << 40) is counted exactly;
        # int64, in which `cardinality` answers, and len() are not.
        count = self._cardinality()
        return count if count < 1 << 63 else UNKNOWN_CARDINALITY

    def _rows(self) -> Rows | None:
        """The elements as rows of arrays, where they are."""
        return None

    @property
    def element_spec(self) -> Any:
        """The specs of the elements' leaves, in the elements' structure."""
        # Found at the first question and kept: it may take tracing a function, or computing an
        # element, which a pipeline that is only gone over need not pay.
        if isinstance(self._spec, FunctionType):
            self._spec = self._spec()
        return self._spec

    def __len__(self) -> int:
        """The number of elements. Raises TypeError: there is no end, or the number is known only
        after a pass."""
        count = self._counted()
        if count == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite: it has no len(); see `take`")
        if count == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown: len() needs a dataset whose elements "
                            "are counted; see `tf.data.experimental.assert_cardinality`")
        return count

    # Without this, `if dataset:` would ask len(), which raises for most pipelines.
    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self.element_spec}>"


if TYPE_CHECKING:
    from gtape.data.dataset import Methods as Dataset
else:
    # The transformations import this class and `dataset` imports them: were the methods written
    # here, the modules would import each other in a circle.
    class Dataset(Core):  # `gtape.data.dataset`, which stands above all datasets, sets its methods
        """A sequence of elements: nests of tensors, computed when they are asked for.

        `for element in dataset` passes over it, as often as is wanted; `iter(dataset)` gives an
        iterator. Transformations such as `map`, `shuffle` and `batch` give new datasets. A dataset
        is made by `from_tensor_slices`, `from_generator`, `range` and others.
        """


class Selected(Dataset):
    """Some elements of another dataset, in whatever order."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(lambda: dataset.element_spec, dataset)


class Reordered(Selected):
    """Elements of another dataset; where they are rows, their indices alone are gone through. A
    subclass says which come next of elements (`_elements`) and of indices (`_stream`)."""

    def _rows(self) -> Rows | None:
        rows = self._inputs[0]._rows()
        return None if rows is None else rows.reordered(self._stream)

    def _stream(self, chunks: Elements[Chunk]) -> Elements[Chunk]:
        raise NotImplementedError


class Same(Selected):
    """All elements of another dataset, as many and in the same order; had in another way."""

    def _cardinality(self) -> int:
        return self._inputs[0]._cardinality()


class ReadyElements(Dataset):
    """Elements that are there already."""

    def __init__(self, items: list[object], spec: object) -> None:
        super().__init__(spec)
        self._items = items

    def _iterate(self) -> Elements[Any]:
        return iter(self._items)

    def _cardinality(self) -> int:
        return len(self._items)
