"""ConcreteFunction: one trace as a function of tensors alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gtape.compile.frontend.signature import (
    Arguments,
    describe,
    fit_to_spec,
    is_tensor_argument,
    named_leaves,
)
from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.tensor import Tensor
from gtape.core.type_specs import CompositeSpec, TensorSpec
from gtape.core.variable import Variable
from gtape.trace.graph import Graph
from gtape.trace.tracer import StateUse

if TYPE_CHECKING:
    from gtape.compile.frontend.function import Function


class ConcreteFunction:
    """What `get_concrete_function` gives. Call it with the tensors, by position or by name.

    Arguments that are no tensors are part of the trace, and are not passed.
    """

    def __init__(self, function: Function, arguments: Arguments, specs: Sequence[TensorSpec],
                 names: Sequence[str]) -> None:
        self._function = function
        self._specs = [TensorSpec(s.shape, s.dtype, s.name or name)
                       for s, name in zip(specs, names)]
        args, kwargs = arguments.replaced(self._specs)
        self._arguments = Arguments(args, kwargs)
        self._names = list(names)

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return self._function.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result for these tensors.

        Raises:
            TypeError: too many or too few, or one of another dtype or shape.
        """
        given = self._ordered([v for arg in args for v in _values(arg)], kwargs)
        tensors = [fit_to_spec(value, spec, name, self.name)
                   for value, spec, name in zip(given, self._specs, self._names)]
        filled, named = self._arguments.replaced(tensors)
        return self._function(*filled, **named)

    def _ordered(self, values: list[object], named: dict[str, Any]) -> list[object]:
        wanted = len(self._specs)
        if len(values) > wanted:
            raise TypeError(f"{self.name} takes the tensors {self._signature()} and nothing else; "
                            f"got {len(values)} values")
        ordered = list(values)
        for name, spec in zip(self._names[len(values):], self._specs[len(values):]):
            key = name if name in named else spec.name
            if key not in named:
                raise TypeError(f"{self.name} takes the tensors {self._signature()}; '{name}' is "
                                f"missing")
            ordered.append(named.pop(key))
        if named:
            raise TypeError(f"{self.name} takes the tensors {self._signature()}; got {list(named)} "
                            f"as well")
        return ordered

    def _signature(self) -> str:
        parameters = [f"{name}: {describe(spec)}" for name, spec in zip(self._names, self._specs)]
        return f"({', '.join(parameters)})"

    # ------------------------------------------------------------------ questions

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(positional arguments, keyword arguments), with specs in the place of tensors."""
        return self._arguments.args, self._arguments.kwargs

    @property
    def _traced(self) -> Any:
        """The trace; where lengths are open, for stand-ins.

        Raises:
            ValueError: the function needs the open lengths.
        """
        return self._function.traced_for(self._arguments)

    @property
    def graph(self) -> Graph:
        """The nodes that a call applies."""
        return self._traced.graph

    @property
    def inputs(self) -> list[Tensor]:
        """The symbols of the arguments."""
        return list(self._traced.arguments)

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors of the result, in order."""
        traced = self._traced
        return list(traced.graph.outputs[: traced.results])

    @property
    def structured_outputs(self) -> Any:
        """The result with specs in the place of tensors."""
        return self._traced.packed([TensorSpec(t.shape, t.dtype) for t in self.outputs])

    @property
    def captured_inputs(self) -> list[Any]:
        """The Variables that the trace reads or writes, and the tensors from outside that it
        uses."""
        constants: dict[int, Tensor] = {}
        for node in self.graph.nodes:
            # Those with arrays: symbols have none.
            constants.update({id(v): v for v in node.inputs if hasattr(v, "_a")})
        return [*map(_itself, self._traced.states), *constants.values()]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The Variables that the trace reads or writes."""
        return tuple(_itself(u) for u in self._traced.states if isinstance(u.ref, Variable))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    def __repr__(self) -> str:
        return f"<tf.function {self.name}{self._signature()}>"


def _values(argument: TensorLike) -> list[object]:
    """What becomes one tensor each: the leaves, and nests of numbers as they are."""
    # A list of numbers is one tensor, and a list of tensors several.
    leaves = nest.flatten(argument)
    return [argument] if all(isinstance(v, (int, float, complex)) for v in leaves) else leaves


def tensor_names(names: Sequence[str], arguments: Arguments) -> Iterator[str]:
    """What users call each tensor among the arguments."""
    for name, value in named_leaves(names, arguments):
        if isinstance(value, CompositeTensor):
            yield from (f"{name}.{part}" for part in value._type_spec._part_names_())
        elif isinstance(value, CompositeSpec):
            yield from (f"{name}.{part}" for part in value._part_names_())
        elif isinstance(value, slice):
            yield from (f"{name}.{part}" for part in ("start", "stop", "step")
                        if is_tensor_argument(getattr(value, part)))
        elif is_tensor_argument(value):
            yield name


def _itself(use: StateUse) -> Any:
    """The state, which a trace may hold weakly."""
    return use.ref._resource_() if isinstance(use.ref, Variable) else use.ref
