"""Calls: a user's function of elements, traced where it can be, run in Python otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gtape.core import nest
from gtape.core.context import init_scope, tracer_now
from gtape.core.device import CPU
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.placement import on
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import CompositeSpec, NoneTensorSpec, TensorSpec
from gtape.data import elements
from gtape.data.failures import user_line
from gtape.data.plans import Plan, results
from gtape.ops.control.premises import has_premises
from gtape.trace.tracer import Tracer
from gtape.vmap.vectorized_map import NEEDS_ELEMENTS

#: For so many shapes a function is traced; with others it runs in Python.
_MOST_SHAPES = 64
#: Two lengths that stand for one that is not known; results whose lengths differ are as open.
_LENGTHS = (3, 5)


class _Tried(Exception):
    """Tracing found that the function must run in Python."""


def _shown(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


class Call:
    """`function` as pipelines call it: with the items of an element, for another element.

    Where the function can be traced, the trace is applied: its Python code runs no more. A trace
    that is applied often is compiled.

    Args:
        spec: of the elements that it is called with; None: the first one tells.
        what: the transformation, for messages.

    Raises:
        whatever `function` raises where it is traced.
    """

    def __init__(self, function: Callable[..., Any], spec: Any, what: str) -> None:
        if not callable(function):
            raise TypeError(f"{what} takes a function; got {shown(function)}")
        self.function = function
        self.what = what
        self._plans: dict[Any, Any] = {}
        self._batches: Any = True
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

    def _begin(self, spec: Any) -> None:
        """Take note of what it is called with."""
        if any(isinstance(leaf, CompositeSpec) for leaf in nest.flatten(spec)):
            from gtape.data.composites import dense_spec

            spec = nest.map_structure(dense_spec, spec)
        self._leaves = elements.flattener(spec)
        self._given = nest.flatten(spec)
        self._tensors = all(isinstance(leaf, TensorSpec) for leaf in self._given)
        self.static = all(_static(leaf) for leaf in self._given)
        self.pack: Callable[[Sequence[Any]], Any] = elements.packer(spec)
        self._arrange = elements.packer(spec)
        self._known = True

    def _learn(self, element: Any) -> None:
        """Take note of what it is called with, from the first element."""
        self._begin(elements.spec_of(element))
        try:
            self._first_trace()
        except Exception:  # the Python code says what is wrong
            self.spec = None

    # ------------------------------------------------------------------ tracing

    def _first_trace(self) -> None:
        """Find out what the results are, and whether there is a trace."""
        if not all(_knowable(leaf) for leaf in self._given):
            return
        static = self.static
        try:
            if static:
                made = self._traced([_dims(leaf, 0) for leaf in self._given])
                self.spec = results(made)
                self._note(made)
                if self._tensors:
                    self._plans[self._key_of_specs()] = Plan(made)
            else:
                few, many = (self._traced([_dims(leaf, n) for leaf in self._given])
                             for n in _LENGTHS)
                self.spec = _common(results(few), results(many))
                self._note(few)
        except _Tried:
            return
        except Exception as error:
            if static or user_line(error, last=True):
                raise
            return
        self.pack = elements.packer(self.spec)

    def _note(self, made: Any) -> None:
        self.stateful = bool(made.states)
        self.pure = not made.states and not any(
            getattr(node.op, "has_side_effect", False) for node in made.graph.nodes)

    def _traced(self, shapes: Sequence[Any]) -> Any:
        """The trace for these shapes.

        Raises:
            _Tried: there is none.
        """
        from gtape.autograph import convert
        from gtape.compile.frontend.closed_graph import traced

        with init_scope(), on(CPU):
            tracer = Tracer(None, own_states=True)
            leaves: list[Any] = []
            symbols = []
            for dims, leaf in zip(shapes, self._given):
                if not isinstance(leaf, TensorSpec):
                    leaves.append(None)
                    continue
                symbols.append(tracer.symbol(Spec(dims, leaf.dtype), CPU.typed(leaf.dtype)))
                leaves.append(symbols[-1])
            given = elements.arguments(self._arrange(leaves))
            body = convert(self.function)
            try:
                return self._checked(traced(
                    lambda: _result(body(*given)), tracer, symbols, _shown(self.function)), tracer)
            except (*NEEDS_ELEMENTS, _Unplaced) as error:
                raise _Tried from error

    def _checked(self, made: Any, tracer: Any) -> Any:
        if tracer.created or made.captured or has_premises(made.graph):
            raise _Tried
        return made

    def _key_of_specs(self) -> Any:
        return tuple([part for leaf in self._given
                      for part in (CPU.typed(leaf.dtype), leaf.shape.dims)])

    # ------------------------------------------------------------------ calls

    def __call__(self, element: Any) -> Any:
        """The result for an element."""
        if not self._known:
            self._learn(element)
        if not self._tensors:
            return self.python(element)
        leaves = self._leaves(element)
        plan = self._plan(leaves)
        return self.python(element) if plan is None else plan(leaves)

    def job(self, element: Any) -> Callable[[], Any]:
        """The call for an element, to be made by another thread. What is run is settled now: which
        thread is faster changes nothing in the results."""
        if not self._known:
            self._learn(element)
        plan = self._plan(self._leaves(element)) if self._tensors else None
        return partial(self.python, element) if plan is None else partial(
            plan.chosen(), self._leaves(element))

    def flat(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the result for the leaves of an element."""
        plan = self._plan(leaves) if self._tensors else None
        made = self.python(self._arrange(leaves)) if plan is None else plan(leaves)
        return nest.flatten(made)

    def python(self, element: Any) -> Any:
        """The result by the Python code."""
        return elements.on_host(elements.element_of(
            _result(self.function(*elements.arguments(element)))))

    def _plan(self, leaves: Sequence[Any]) -> Any:
        """What applies the trace for these leaves; None: the Python code runs."""
        try:
            key = tuple([part for leaf in leaves for part in (leaf._t, leaf._a.shape)])
        except AttributeError:  # the elements are not what their dataset says
            return None
        found = self._plans.get(key, False)
        if found is False:
            found = self._planned(key, leaves)
        return found

    def _planned(self, key: Any, leaves: Sequence[EagerTensor]) -> Any:
        made = None
        if self.spec is not None and len(self._plans) < _MOST_SHAPES and len(leaves) == len(
                self._given) and all(leaf.dtype is spec.dtype
                                     for leaf, spec in zip(leaves, self._given)):
            try:
                made = Plan(self._traced([leaf._a.shape for leaf in leaves]))
            except Exception:  # the Python code says what is wrong
                made = None
        if len(self._plans) < 4 * _MOST_SHAPES:
            self._plans[key] = made
        return made

    # ------------------------------------------------------------------ whole batches

    @property
    def rowwise(self) -> bool:
        """Whether it may be called for elements in another order than they are asked for."""
        return self.static and (self.pure or (self.stateful and self.vectorised))

    @property
    def vectorised(self) -> bool:
        """Whether there is a function of many elements at once."""
        return self.static and self._batches_found() is not False

    def _batches_found(self) -> Any:
        if self._batches is True:
            self._batches = self._batching()
        return self._batches

    def batched(self, leaves: Sequence[EagerTensor]) -> list[Any] | None:
        """The leaves of the results for the rows of `leaves`, along a first axis; None where they
        have to be computed one by one to be the same."""
        batches, count = self._batches_found(), len(leaves[0]._a)
        if batches is False or not count:
            return None
        try:
            drawn = () if self._draws is None else self._draws.numbers(count)
            found = iter(batches.flat([*leaves, *drawn]))
        except Exception:  # the rows one by one say which of them is wrong
            return None
        return [None if isinstance(spec, NoneTensorSpec) else next(found)
                for spec in nest.flatten(self.spec)]

    def _batching(self) -> Call | bool:
        """The function of all rows at once."""
        from gtape.data.batchable import batchable
        from gtape.data.draws import Draws, Undrawable
        from gtape.data.stacking import batched_spec
        from gtape.ops.control.loops import vectorized_map

        if not self._tensors or not (self.pure or self.stateful) or not self._plans:
            return False
        made = next(iter(self._plans.values())).traced
        graph, given = made.graph, list(self._given)
        if self.stateful:
            try:
                self._draws = Draws(made)
            except Undrawable:
                return False
            graph = self._draws.plain()
            given += [TensorSpec(*spec) for spec in self._draws.specs]
        if not batchable(graph):
            return False

        def rows(*leaves: Tensor) -> tuple[Any, ...]:
            results = vectorized_map(lambda xs: graph(*xs), list(leaves),
                                     fallback_to_while_loop=False)
            return tuple(results)

        try:
            call = Call(rows, tuple([batched_spec(s, None) for s in given]), self.what)
        except Exception:
            return False
        return call if call.spec is not None else False


class _Unplaced(Exception):
    """A result of a user's function that is no tensor."""


def _result(value: Any) -> Any:
    """What a function returned, as an element; a list of results is a tuple of them."""
    if type(value) is list:
        value = tuple(value)
    if tracer_now() is None:
        return value
    made = elements.element_of(value)
    for leaf in nest.flatten(made):
        if leaf is not None and not isinstance(leaf, Tensor):
            raise _Unplaced
    return made


def _knowable(leaf: Any) -> bool:
    return isinstance(leaf, NoneTensorSpec) or (
        isinstance(leaf, TensorSpec) and leaf.shape.dims is not None)


def _dims(leaf: Any, length: int) -> Any:
    if not isinstance(leaf, TensorSpec):
        return None
    dims = leaf.shape.dims
    assert dims is not None
    return tuple([length if n is None else n for n in dims])


def _static(leaf: Any) -> bool:
    return isinstance(leaf, NoneTensorSpec) or (
        isinstance(leaf, TensorSpec) and leaf.shape.is_fully_defined())


def _common(few: Any, many: Any) -> Any:
    """The specs of results, from those for few and for many."""
    def merged(a: Any, b: Any) -> Any:
        if a == b:
            return a
        found = a.most_specific_common_supertype([b])
        if found is None:
            raise InvalidArgumentError("the dtype of a result depends on a length")
        return found

    return nest.map_structure(merged, few, many)
