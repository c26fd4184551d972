"""Iterators: one pass over a dataset, whose elements come to the device of whoever asks."""

from __future__ import annotations

from collections import deque
from typing import Any

from gtape.compile.frontend.iterator_arguments import FED, IteratorArgument, stand_in
from gtape.compile.frontend.signature import Arguments
from gtape.core import nest
from gtape.core.context import active, init_scope, tracer_now
from gtape.core.device import CPU, Device
from gtape.core.errors import NotTraceableError, OutOfRangeError
from gtape.core.placement import current_device, on
from gtape.data.arguments import dataset_of
from gtape.data.arranging import flattener
from gtape.data.optional import Optional
from gtape.data.sending import uploaded


class Iterator:
    """The base of what `iter(dataset)` gives."""

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        raise NotImplementedError

    @property
    def element_spec(self) -> Any:
        """The specs of the elements' leaves, in the elements' structure."""
        raise NotImplementedError

    def get_next(self) -> Any:
        """The next element.

        Raises:
            OutOfRangeError: there is none.
        """
        try:
            return self.__next__()
        except StopIteration:
            raise OutOfRangeError("End of sequence") from None

    next = get_next

    def get_next_as_optional(self) -> Optional:
        """The next element, or an empty Optional."""
        try:
            return Optional.from_value(self.__next__())
        except StopIteration:
            return Optional.empty(self.element_spec)


#: A number for every structure of elements.
_forms: dict[Any, int] = {}


class OwnedIterator(Iterator):
    """One pass over a dataset."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        home = current_device()
        #: Where the elements go, if not to host memory.
        self._home: Device | None = None if home.is_host else home
        #: Elements that were computed already, for a function that takes this iterator.
        self._ahead: deque[Any] = deque()
        self._shape: int | None = None
        self._leaves: Any = None
        with init_scope(), on(CPU):
            self._elements = iter(dataset._iterate() if home.is_host else dataset._sent(home))

    def __next__(self) -> Any:
        if self._ahead:
            return self._ahead.popleft()
        if self._home is None and not active() and tracer_now() is None:
            return next(self._elements)
        return self._moved()

    def _moved(self) -> Any:
        """The next element, computed in host memory, whatever is recorded or traced around it."""
        if tracer_now() is not None:
            from gtape.data.fetching import fetched

            return fetched(self)
        with init_scope(), on(CPU):
            element = next(self._elements)
        return element if self._home is None else uploaded(element, self._home)

    def _peek(self, count: int) -> list[Any]:
        """The next `count` elements, or as many as there are; they remain the next."""
        ahead = self._ahead
        while len(ahead) < count:
            try:
                made = next(self._elements) if self._home is None else self._moved()
            except StopIteration:
                break
            ahead.append(made)
        return [ahead[i] for i in range(min(count, len(ahead)))]

    def _drop(self, count: int) -> None:
        """Let the next elements go, which were computed already."""
        for _ in range(count):
            self._ahead.popleft()

    @property
    def _form(self) -> Any:
        """What elements of one structure have in common, to compare; known once there is one."""
        if self._shape is None and self._ahead:
            pattern = Arguments((self._ahead[0],), {}).pattern
            self._shape = _forms.setdefault(pattern, len(_forms))
            self._leaves = flattener(self._ahead[0])
        return self._shape

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self.element_spec}>"


class FedIterator(IteratorArgument, Iterator):
    """An iterator among the arguments of a traced function, in its trace."""

    def __iter__(self) -> Any:
        raise NotTraceableError("a loop over an iterator takes elements until its end, which a "
                                "trace does not know; take them by get_next or next, or run the "
                                "loop around the traced function")

    def __next__(self) -> Any:
        return self.take()

    def get_next_as_optional(self) -> Optional:
        try:
            return Optional.from_value(self.take())
        except OutOfRangeError:
            return Optional.empty(self.element_spec)

    @property
    def element_spec(self) -> Any:
        return self.source.element_spec


FED.add(OwnedIterator)
stand_in.append(FedIterator)


class NumpyIterator:
    """The elements of a dataset with NumPy arrays in the place of tensors."""

    def __init__(self, dataset: Any) -> None:
        self._elements = iter(dataset_of(dataset, "NumpyIterator: dataset")._iterate())

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        with on(CPU):
            element = next(self._elements)
        return nest.map_structure(_numpy, element)


def _numpy(leaf: Any) -> Any:
    if hasattr(leaf, "_iterate"):
        return NumpyIterator(leaf)
    return leaf.numpy() if hasattr(leaf, "numpy") else leaf
