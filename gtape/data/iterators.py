"""Iterators: one pass over a dataset, whose elements come to the device of whoever asks; elements
that may be missing; iterators in traced functions."""

from __future__ import annotations

from collections import deque
from typing import Any

from gtape.compile.frontend.iterator_arguments import FED, IteratorArgument, stand_in
from gtape.compile.frontend.signature import Arguments
from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.context import active, init_scope, tracer_now
from gtape.core.convert import convert
from gtape.core.device import CPU, Device, current_device, on
from gtape.core.errors import InvalidArgumentError, NotTraceableError, OutOfRangeError
from gtape.core.spec import Spec
from gtape.core.type_specs import TensorSpec, TypeSpec
from gtape.data import elements
from gtape.data.arguments import dataset_of, specs_of
from gtape.data.base import Dataset
from gtape.data.elements import flattener, packer
from gtape.data.prefetching import uploaded
from gtape.trace.host_steps import HostCallback


class SpecOfElements:
    """The spec of a value that holds elements of the specs `element_spec`."""

    def __init__(self, element_spec: object) -> None:
        self.element_spec = element_spec

    def is_compatible_with(self, other: object) -> bool:
        """Whether a value, or the spec of one, has this spec."""
        return getattr(other, "element_spec", None) == self.element_spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(tuple(nest.flatten(self.element_spec)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.element_spec!r})"


_NOTHING = object()


class Optional:
    """A value, or none: what `Iterator.get_next_as_optional` gives; made by
    `Optional.from_value(value)` and `Optional.empty(element_spec)`."""

    def __init__(self, value: Any,
                 element_spec: TypeSpec | tuple[TypeSpec, dict[str, TypeSpec]] | None) -> None:
        self._value = value
        self._element_spec = element_spec

    @staticmethod
    def from_value(value: TensorLike) -> Optional:
        """An Optional with a value: a nest of tensors, and of what becomes one."""
        element = elements.element_of(value)
        return Optional(element, elements.spec_of(element))

    @staticmethod
    def empty(element_spec: TypeSpec | None) -> Optional:
        """An Optional without a value. Raises TypeError: `element_spec` is neither None nor a nest
        of specs."""
        if element_spec is not None:
            specs_of(element_spec, "Optional.empty: element_spec")
        return Optional(_NOTHING, element_spec)

    @property
    def element_spec(self) -> Any:
        """The specs of the value."""
        return self._element_spec

    @property
    def _has(self) -> bool:
        return self._value is not _NOTHING

    def has_value(self, name: str | None = None) -> Any:
        """Whether there is a value: a scalar tensor."""
        return convert(self._has)

    def get_value(self, name: str | None = None) -> Any:
        """The value. Raises InvalidArgumentError: there is none."""
        if not self._has:
            raise InvalidArgumentError("The given optional does not have a value.")
        return self._value

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self._element_spec)

    def __eq__(self, other: object) -> bool:
        """Empty ones of one spec are equal, so that they share the traces of functions."""
        return self is other or (isinstance(other, Optional) and not self._has and not other._has
                                 and self._type_spec == other._type_spec)

    def __hash__(self) -> int:
        # A value is a tensor, whose == is elementwise: only the empty ones can be compared.
        return id(self) if self._has else hash(self._type_spec)

    def __repr__(self) -> str:
        return f"<Optional element_spec={self._element_spec}>"


class OptionalSpec(SpecOfElements):
    """The spec of an `Optional` whose value has the specs `element_spec`."""


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
        """The next element. Raises OutOfRangeError: there is none."""
        try:
            return self.__next__()
        except StopIteration:
            raise OutOfRangeError("End of sequence") from None

    next = get_next

    def get_next_as_optional(self) -> Optional:
        """The next element, or an empty Optional."""
        try:
            return Optional.from_value(self.get_next())
        except OutOfRangeError:
            return Optional.empty(self.element_spec)


#: A number for every structure of elements: steady calls compare it instead of the structure.
_forms: dict[Any, int] = {}


class OwnedIterator(Iterator):
    """One pass over a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        home = current_device()
        #: Where the elements go, if not to host memory.
        self._home: Device | None = None if home.is_host else home
        #: Elements that were computed already, for a function that takes this iterator.
        self._ahead: deque[Any] = deque()
        self._shape: int | None = None
        self._leaves: Any = None
        # A pass is made on the host and outside of tapes and traces, wherever it is begun.
        with init_scope(), on(CPU):
            self._elements = iter(dataset._iterate() if home.is_host else dataset._sent(home))

    def __next__(self) -> Any:
        if self._ahead:
            return self._ahead.popleft()
        # No tape and no trace around: nothing has to be hidden from them, and the pass runs without
        # entering scopes, which would cost more than an element of a cached dataset.
        if self._home is None and not active() and tracer_now() is None:
            return next(self._elements)
        return self._moved()

    def _moved(self) -> Any:
        """The next element, computed in host memory, whatever is recorded or traced around it."""
        if tracer_now() is not None:
            # In a trace the element would become a constant; a node fetches another at each call.
            return fetched(self)
        with init_scope(), on(CPU):
            element = next(self._elements)
        return element if self._home is None else uploaded(element, self._home)

    def _peek(self, count: int) -> list[Any]:
        """The next `count` elements, or as many as there are; they remain the next."""
        ahead = self._ahead
        while len(ahead) < count:
            try:
                ahead.append(next(self._elements) if self._home is None else self._moved())
            except StopIteration:
                break
        return [ahead[i] for i in range(min(count, len(ahead)))]

    def _drop(self, count: int) -> None:
        """Let the next elements go, which were computed already."""
        for _ in range(count):
            self._ahead.popleft()

    @property
    def _form(self) -> Any:
        """What elements of one structure have in common, to compare; known once there is one."""
        if self._shape is None and self._ahead:
            # Kept from the first element on: the elements of a dataset have one structure.
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

    @property
    def element_spec(self) -> Any:
        return self.source.element_spec


FED.add(OwnedIterator)
stand_in.append(FedIterator)


class NumpyIterator:
    """The elements of a dataset with NumPy arrays in the place of tensors."""

    def __init__(self, dataset: Dataset) -> None:
        # Not an OwnedIterator: NumPy arrays are in host memory, where a pass computes anyway.
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


def refuse(what: str) -> None:
    """A pass over a dataset in a trace would be made once, while tracing, not at every call. Raises
    NotTraceableError: a function is being traced."""
    if tracer_now() is not None:
        raise NotTraceableError(f"{what} is run at every call, as Python code. To have the work on "
                                f"each element compiled, put that in a tf.function of its own, or "
                                f"pass iter(dataset) as an argument and use get_next")


def fetched(iterator: OwnedIterator) -> Any:
    """The next element of an iterator, at every call of the function that is being traced. Raises
    NotTraceableError: the lengths of the elements are not known."""
    spec = iterator.element_spec
    leaves = nest.flatten(spec)
    if not all(isinstance(leaf, TensorSpec) and leaf.shape.is_fully_defined() for leaf in leaves):
        raise NotTraceableError(f"get_next of an iterator whose elements are {spec}: their lengths "
                                f"are known only when they come; pass the iterator as an argument "
                                f"of the traced function")
    types = [current_device().typed(leaf.dtype) for leaf in leaves]
    step = HostCallback("get_next", lambda: nest.flatten(iterator.get_next()),
                        [Spec(leaf.shape.dims, leaf.dtype) for leaf in leaves], types,
                        # A side effect, so that it is neither left out where nobody uses it, nor
                        # moved, nor done once for two equal calls.
                        has_side_effect=True, differentiable=False)
    return packer(spec)(step())
