"""Choices of a traced function: every branch is traced, and at each call one of them is applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.convert import convert
from gtape.core.dtypes import bool_, int32
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.tensor import Tensor
from gtape.ops.control.both_branches import both_ways, computed_both
from gtape.ops.control.premises import suppose
from gtape.ops.elementwise.scalars import where
from gtape.ops.indexing.sorting import argmax
from gtape.ops.reductions.reductions import reduce_sum
from gtape.ops.shape.casting import cast
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.packing import stack_
from gtape.trace.subgraph import ClosedOver, Subgraph, SubgraphOp, pack


def choose(name: str, chosen: Tensor, functions: Sequence[Callable[[], object]],
           at: Callable[[Any], int], labels: Sequence[str]) -> Any:
    """The result of `functions[at(number)]()`, where `chosen` has the number at every call.

    Raises:
        TypeError: dtypes of results differ from branch to branch, or their containers do.
        ValueError: structures or shapes differ, or one gives None where another gives a value.
    """
    inputs = _traced(name, functions, labels)
    return _left(inputs, _one(name, chosen, inputs, at))


def _traced(name: str, functions: Sequence[Callable[[], object]], labels: Sequence[str],
            ) -> ClosedOver:
    bodies = [Subgraph(fn, (), f"{name}: {label}") for fn, label in zip(functions, labels)]
    for body, label in zip(bodies[1:], labels[1:]):
        _check_alike(name, (bodies[0], labels[0]), (body, label))
    return ClosedOver(bodies)


def _one(name: str, chosen: Tensor, inputs: ClosedOver,
         at: Callable[[Any], int]) -> Sequence[Tensor]:
    """What the body that is chosen gives and leaves, by a step in Python."""
    types = [*((t.spec, t._t) for t in inputs.bodies[0].results), *inputs.state_types()]

    def run(values: tuple[Tensor, ...], again: bool) -> list[Tensor]:
        captured, state = inputs.split(values[1:])
        body = inputs.bodies[at(np.asarray(values[0]._peek()).reshape(-1)[0])]
        result = inputs.apply(body, (), captured, state, again)
        return [*result, *(state[i] for i in inputs.written)]

    return SubgraphOp(name, run, types, inputs)(chosen, *inputs.values())


def _left(inputs: ClosedOver, made: Sequence[Tensor]) -> Any:
    """The result of a choice; what it leaves in states is stored."""
    first = inputs.bodies[0]
    count = len(first.results)
    inputs.store(made[count:])
    return pack(first.structure, made[:count])


def _check_alike(name: str, one: tuple[Subgraph, str], other: tuple[Subgraph, str]) -> None:
    (a, first), (b, second) = one, other
    try:
        nest.assert_same_structure(a.structure, b.structure)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {first} and {second} must return the same structure: {error}"
                          ) from None
    for x, y in zip(nest.flatten(a.structure), nest.flatten(b.structure)):
        if (x is None) != (y is None):
            none, value = (first, second) if x is None else (second, first)
            raise ValueError(f"{name}: {none} returns None where {value} returns a tensor; both "
                             f"must return a value there, or both None")
    for p, q in zip(a.results, b.results):
        if p.dtype is not q.dtype:
            raise TypeError(f"{name}: the results must have one dtype; {first} returns {p.spec}, "
                            f"{second} {q.spec}. Write tf.cast(result, tf.{p.dtype.name})")
        if p.spec != q.spec:
            raise ValueError(f"{name}: the results must have one shape in a traced function; "
                             f"{first} returns {p.spec}, {second} {q.spec}")
        if p._t is not q._t:
            raise InvalidArgumentError(f"{name}: the results must live on one device; {first} "
                                       f"returns {p._t}, {second} {q._t}")


def chosen_cond(pred: Tensor, true_fn: Callable[[], object], false_fn: Callable[[], object]) -> Any:
    """`true_fn()` at the calls for which `pred` holds, else `false_fn()`.

    Raises:
        NotTraceableError: a function cannot be traced, and no call could run as Python instead.
    """
    bodies = []
    for fn, label, other in ((true_fn, "true_fn", false_fn), (false_fn, "false_fn", true_fn)):
        try:
            bodies.append(Subgraph(fn, (), f"cond: {label}"))
        except NotTraceableError as reason:
            suppose(pred, label == "false_fn", reason)
            return other()
    _check_alike("cond", (bodies[0], "true_fn"), (bodies[1], "false_fn"))
    inputs = ClosedOver(bodies)
    result = computed_both(pred, inputs) if both_ways(pred, inputs) else (
        _one("cond", pred, inputs, lambda held: 0 if held else 1))
    return _left(inputs, result)


def chosen_case(preds: Sequence[object], functions: Sequence[Callable[[], object]],
                default: Callable[..., object] | None, exclusive: bool) -> Any:
    """The result of the first function whose condition holds at a call, else of `default`.

    Raises:
        InvalidArgumentError: at a call, where none holds and there is no default, or several do and
            `exclusive` is true.
    """
    held = [reshape_(cast(convert(p), bool_), shape=()) for p in preds]
    every = [*functions, *([] if default is None else [default])]

    def at(number: int) -> int:
        if number == -1:
            raise InvalidArgumentError("case: the conditions must exclude each other; several "
                                       "hold. Leave out exclusive=True to take the first")
        if number == len(every):
            raise InvalidArgumentError("case: no condition holds; give a default function")
        return int(number)

    labels = [f"function {i}" for i in range(len(functions))] + ["default"]
    chosen = _first(cast(stack_(*held, axis=0), int32), exclusive=bool(exclusive))
    return choose("case", chosen, every, at, labels)


def _first(held: Tensor, exclusive: bool) -> Tensor:
    """The position of the first 1, their number if there is none, -1 if there must not be two."""
    total = reduce_sum(held)
    result = where(total > 0, argmax(held, 0, int32), held.spec.shape[0])
    return where(total > 1, -1, result) if exclusive else result


def chosen_switch(index: Tensor, functions: Sequence[Callable[[], Any]],
                  default: Callable[..., object] | None) -> Any:
    """The result of `functions[index]()`; out of range that of `default`, or of the last."""
    every = [*functions, *([] if default is None else [default])]

    def at(number: int) -> int:
        return int(number) if 0 <= number < len(functions) else len(every) - 1

    labels = [f"branch {i}" for i in range(len(functions))] + ["default"]
    return choose("switch_case", index, every, at, labels)
