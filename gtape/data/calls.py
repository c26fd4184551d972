"""Calls: a user's function of elements, traced where it can be, run in Python otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.device import CPU
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import NoneTensorSpec, TensorSpec, TypeSpec
from gtape.data import elements
from gtape.data.failures import user_line
from gtape.data.stacking import batched_spec, dense_spec

if TYPE_CHECKING:
    from gtape.data.traces import Plan

#: For so many shapes a function is traced; with others it runs in Python.
_MOST_SHAPES = 64
#: Two lengths that stand for one that is not known; results whose lengths differ are as open.
_LENGTHS = (3, 5)


class Call:
    """`function` as pipelines call it: with the items of an element, for another element.

    Where the function can be traced, the trace is applied: its Python code runs no more. A trace
    that is applied often is compiled. `spec` is that of the elements it is called with, None where
    the first one tells; `what` the transformation, for messages.
    """

    def __init__(self, function: Callable[..., object], spec: object, what: str) -> None:
        if not callable(function):
            raise TypeError(f"{what} takes a function; got {shown(function)}")
        self.function = function
        self.what = what
        #: By shapes; None says that Python runs, so that tracing is not tried again and again.
        self._plans: dict[Any, Any] = {}
        #: The spec of the results; None where only a result can tell.
        self.spec: Any = None
        #: Whether the shapes of what it is called with are known.
        self.static = False
        #: Whether it reads or changes a variable, or draws random numbers.
        self.stateful = False
        #: Whether it was traced, and neither reads nor changes anything but its arguments.
        self.pure = False
        self._draws: Any = None
        self._known = spec is not None
        if spec is not None:
            self._begin(spec)
            self._first_trace()

    def _begin(self, spec: object) -> None:
        """Take note of what it is called with."""
        spec = dense_spec(spec)
        self._leaves = elements.flattener(spec)
        self._given = nest.flatten(spec)
        self._tensors = all(isinstance(leaf, TensorSpec) for leaf in self._given)
        self.static = all(isinstance(leaf, NoneTensorSpec) or (
            isinstance(leaf, TensorSpec) and leaf.shape.is_fully_defined())
            for leaf in self._given)
        self.pack: Callable[[Sequence[Any]], Any] = elements.packer(spec)
        self._arrange = elements.packer(spec)
        self._known = True

    def _learn(self, element: object) -> None:
        """Take note of what it is called with, from the first element."""
        self._begin(elements.spec_of(element))
        try:
            self._first_trace()
        except Exception:  # the Python code says what is wrong
            self.spec = None

    # ------------------------------------------------------------------ tracing

    def _first_trace(self) -> None:
        """Find out what the results are, and whether there is a trace."""
        if not all(isinstance(leaf, NoneTensorSpec) or (
                isinstance(leaf, TensorSpec) and leaf.shape.dims is not None)
                for leaf in self._given):
            return
        # Lengths that are not known are tried at two values: what differs in the results is open
        # too.
        static = self.static
        try:
            if static:
                plan = self._traced([_dims(leaf, 0) for leaf in self._given])
                self.spec = plan.results
                if self._tensors:
                    key = tuple([part for leaf in self._given
                                 for part in (CPU.typed(leaf.dtype), leaf.shape.dims)])
                    self._plans[key] = plan
            else:
                plan, other = (self._traced([_dims(leaf, n) for leaf in self._given])
                               for n in _LENGTHS)
                self.spec = _common(plan.results, other.results)
            self.stateful, self.pure = plan.stateful, plan.pure
        except elements.Untraceable:
            return
        except Exception as error:
            # An error for made-up lengths may be due to these: it is only believed where the user's
            # own line raised it.
            if static or user_line(error, last=True):
                raise
            return
        self.pack = elements.packer(self.spec)

    def _traced(self, shapes: Sequence[tuple[int, ...] | None]) -> Any:
        """What applies the trace for these shapes. Raises elements.Untraceable: there is none."""
        from gtape.data import traces  # brings AutoGraph, the compiler and vmap

        return traces.Plan(traces.traced(self.function, self._given, self._arrange, shapes))

    # ------------------------------------------------------------------ calls

    def __call__(self, element: TensorLike | CompositeTensor) -> Any:
        """The result for an element."""
        if not self._known:
            self._learn(element)
        if not self._tensors:
            return self.python(element)
        leaves = self._leaves(element)
        plan = self._plan(leaves)
        return self.python(element) if plan is None else plan(leaves)

    def job(self, element: Tensor) -> Callable[[], Any]:
        """The call for an element, to be made by another thread. What is run is settled now: which
        thread is faster changes nothing in the results."""
        if not self._known:
            self._learn(element)
        plan = self._plan(self._leaves(element)) if self._tensors else None
        return partial(self.python, element) if plan is None else partial(
            plan.chosen(), self._leaves(element))

    def flat(self, leaves: Sequence[Tensor]) -> list[Any]:
        """The leaves of the result for the leaves of an element."""
        plan = self._plan(leaves) if self._tensors else None
        return nest.flatten(self.python(self._arrange(leaves)) if plan is None else plan(leaves))

    def python(self, element: TensorLike | CompositeTensor) -> Any:
        """The result by the Python code."""
        return elements.on_host(elements.element_of(
            elements.result_of(self.function(*elements.arguments(element)))))

    def _plan(self, leaves: Sequence[Any]) -> Any:
        """What applies the trace for these leaves; None: the Python code runs."""
        # One flat tuple of types and shapes: this is looked up for every element, and types are
        # compared by identity.
        try:
            key = tuple([part for leaf in leaves for part in (leaf._t, leaf._a.shape)])
        except AttributeError:  # the elements are not what their dataset says
            return None
        plan = self._plans.get(key, False)
        return self._planned(key, leaves) if plan is False else plan

    def _planned(self, key: object, leaves: Sequence[EagerTensor]) -> Plan | None:
        plan = None
        if self.spec is not None and len(self._plans) < _MOST_SHAPES and len(leaves) == len(
                self._given) and all(leaf.dtype is spec.dtype
                                     for leaf, spec in zip(leaves, self._given)):
            with suppress(Exception):  # the Python code says what is wrong
                plan = self._traced([leaf._a.shape for leaf in leaves])
        # Beyond that even the refusals are not kept: elements that all have other shapes would fill
        # the memory.
        if len(self._plans) < 4 * _MOST_SHAPES:
            self._plans[key] = plan
        return plan

    # ------------------------------------------------------------------ whole batches

    @property
    def rowwise(self) -> bool:
        """Whether it may be called for elements in another order than they are asked for."""
        return self.static and (self.pure or (self.stateful and self.vectorised))

    @property
    def vectorised(self) -> bool:
        """Whether there is a function of many elements at once."""
        return self.static and self._batches is not None

    def batched(self, leaves: Sequence[EagerTensor]) -> list[Any] | None:
        """The leaves of the results for the rows of `leaves`, along a first axis; None where they
        have to be computed one by one to be the same."""
        batches, count = self._batches, len(leaves[0]._a)
        if batches is None or not count:
            return None
        try:
            drawn = () if self._draws is None else self._draws.numbers(count)
            results = iter(batches.flat([*leaves, *drawn]))
        except Exception:  # the rows one by one say which of them is wrong
            return None
        return [None if isinstance(spec, NoneTensorSpec) else next(results)
                for spec in nest.flatten(self.spec)]

    @cached_property
    def _batches(self) -> Call | None:
        """The function of all rows at once."""
        if not self._tensors or not (self.pure or self.stateful) or not self._plans:
            return None
        of_rows = next(iter(self._plans.values())).of_rows()
        if of_rows is None:
            return None
        # Any plan will do: the function of rows is traced anew, with an open first length.
        rows, more, self._draws = of_rows
        try:
            specs = tuple([batched_spec(spec, None) for spec in (*self._given, *more)])
            call = Call(rows, specs, self.what)
        except Exception:
            return None
        return call if call.spec is not None else None


def _dims(leaf: TypeSpec, length: int) -> tuple[int, ...] | None:
    if not isinstance(leaf, TensorSpec):
        return None
    dims = leaf.shape.dims
    assert dims is not None
    return tuple([length if n is None else n for n in dims])


def _common(few: object, many: object) -> Any:
    """The specs of results, from those for few and for many."""
    def merged(a: Any, b: TypeSpec) -> Any:
        if a == b:
            return a
        common = a.most_specific_common_supertype([b])
        if common is None:
            raise InvalidArgumentError("the dtype of a result depends on a length")
        return common

    return nest.map_structure(merged, few, many)
