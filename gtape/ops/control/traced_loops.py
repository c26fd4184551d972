"""Loops of a traced function whose bodies are traced once and applied at every turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.core import nest
from gtape.core.context import paused, tracer_now
from gtape.core.convert import convert
from gtape.core.dtypes import int32
from gtape.core.errors import InvalidArgumentError, NotTraceableError
from gtape.core.tensor import Readable, Tensor
from gtape.ops.control.tensor_array import TensorArray
from gtape.ops.shape.packing import stack_, unstack_
from gtape.trace.subgraph import ClosedOver, Subgraph, SubgraphOp, Type, flat_tensors, pack
from gtape.trace.tracer import Tracer


class LoopVars:
    """Loop variables as a flat list of tensors. A TensorArray is one tensor with all elements."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure
        leaves = nest.flatten(structure)
        self._arrays = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, TensorArray)}
        self.tensors = [leaf.together() if isinstance(leaf, TensorArray) else convert(leaf)
                        for leaf in leaves]
        self.types: list[Type] = [(t.spec, t._t) for t in self.tensors]

    def packed(self, tensors: Sequence[Tensor]) -> Any:
        """Other values of the loop variables, in their structure."""
        leaves = [self._arrays[i].like(t) if i in self._arrays else t
                  for i, t in enumerate(tensors)]
        return nest.pack_sequence_as(self.structure, leaves)

    def flat(self, result: Any, name: str) -> list[Tensor]:
        """What a body made of them, which must be alike. Raises ValueError: another structure,
        dtype or shape."""
        nest.assert_same_structure(list(self.structure), list(result))
        leaves = nest.flatten(result)
        parts = []
        for i, (leaf, (spec, _)) in enumerate(zip(leaves, self.types)):
            if leaf is None:
                raise ValueError(f"{name}: body returns None for loop variable {i}, {spec}; it "
                                 f"must return a tensor")
            if isinstance(leaf, TensorArray):
                tensor = leaf.together()
            else:
                # A body may return Python numbers: they take the variable's dtype.
                weak = None if isinstance(leaf, (Tensor, Readable)) else spec.dtype
                tensor = convert(leaf, weak)
            if tensor.spec != spec:
                raise ValueError(f"{name}: loop variable {i} must keep its dtype and shape in a "
                                 f"traced function: it starts as {spec}, and body makes it "
                                 f"{tensor.spec}")
            parts.append(tensor)
        return parts


def _shapes_of_arrays(body: Callable[..., Any], values: Any) -> None:
    """Let `body` run on trial where a TensorArray does not know the shape of its elements."""
    arrays = [v for v in nest.flatten(values) if isinstance(v, TensorArray)]
    # A trial traces the body once more: only where it can teach something.
    if all(a.element_shape.is_fully_defined() for a in arrays):
        return
    # On trial, since writing would change the user's arrays.
    trial = Tracer(tracer_now())

    def probe() -> Any:
        blank = nest.map_structure(
            lambda v: v.blank() if isinstance(v, TensorArray) else trial.symbol(
                convert(v).spec, convert(v)._t), values)
        return body(*blank)

    with paused():
        result = trial.run(probe)
    trial.finished = True
    nest.assert_same_structure(list(values), list(result) if isinstance(result, tuple) else result)
    for old, new in zip(nest.flatten(values), nest.flatten(result)):
        if isinstance(old, TensorArray) and isinstance(new, TensorArray):
            old.learn(new.element_shape)


def traced_while(cond: Callable[..., Any], body: Callable[..., Any], values: Any, limit: Any,
                 invariants: Any) -> Any:
    """The loop variables when `cond` holds no more: one step, whose number of turns is found at
    each call. Raises ValueError: `body` changes structure, dtype or shape of a loop variable;
    NotTraceableError: it does so by a shape invariant."""
    def flat_body(*tensors: Tensor) -> list[Tensor]:
        result = body(*first.packed(tensors))
        return first.flat(result if isinstance(result, (list, tuple)) else (result,), "while_loop")

    def test(*tensors: Tensor) -> Any:
        return cond(*first.packed(tensors))

    _shapes_of_arrays(lambda *vs: _sequence(body(*vs)), values)
    first = LoopVars(values)
    try:
        bodies = [Subgraph(test, first.types, "while_loop: cond"),
                  Subgraph(flat_body, first.types, "while_loop: body")]
    except ValueError as error:
        if invariants is not None:
            raise NotTraceableError(f"{error}; shape_invariants serve only loops that are not "
                                    f"traced") from None
        raise
    (held,) = bodies[0].results
    if held.spec.shape not in ((), (1,)):
        raise InvalidArgumentError(f"while_loop: cond must return a scalar; got {held.spec}")
    inputs, count = ClosedOver(bodies), len(first.tensors)

    def run(given: Sequence[Any], again: bool) -> list[Tensor]:
        most = int(given[0]._peek())
        now: Sequence[Tensor] = given[1: 1 + count]
        captured, state = inputs.split(given[1 + count:])
        turn = 0
        # -1 is never met: no limit.
        while turn != most:
            (go,) = inputs.apply(bodies[0], now, captured, state, again)
            # The one place where a loop waits for a GPU: whether to go on.
            if not np.asarray(go._peek()).any():
                break
            now = inputs.apply(bodies[1], now, captured, state, again)
            turn += 1
        return [*now, *(state[i] for i in inputs.written)]

    op = SubgraphOp("while_loop", run, [*first.types, *inputs.state_types()], inputs)
    # An input, and no constant of the body: a limit may itself be traced.
    most = convert(-1 if limit is None else limit, None if isinstance(limit, Tensor) else int32)
    result = op(most, *first.tensors, *inputs.values())
    inputs.store(result[count:])
    return first.packed(result[:count])


def _sequence(value: object) -> Any:
    return value if isinstance(value, (list, tuple)) else (value,)


def traced_scan(name: str, fn: Callable[[Any, Any], tuple[Any, Any]], start: Any, elems: Tensor,
                count: int, backwards: bool = False) -> tuple[Any, Any]:
    """(aₙ, all yᵢ stacked) of aᵢ₊₁, yᵢ = fn(aᵢ, elems[i]), in one step.

    Args:
        fn: gives the next a, of the structure, dtypes and shapes of `start`, and a y, which may be
            None.
        elems: a structure of tensors whose first axes have the length `count`, or 1.

    Raises:
        ValueError: `fn` changes structure, dtype or shape of a.
    """
    carried, given = LoopVars([start]), [convert(leaf) for leaf in nest.flatten(elems)]
    rows = [(t.spec.reshaped(t.spec.shape[1:]), t._t) for t in given]
    width, structure = len(carried.tensors), None

    def flat_body(*tensors: Tensor) -> list[Tensor]:
        nonlocal structure
        (a,) = carried.packed(tensors[:width])
        following, y = fn(a, nest.pack_sequence_as(elems, tensors[width:]))
        structure, results = flat_tensors(y, name)
        return [*carried.flat([following], name), *results]

    body = Subgraph(flat_body, [*carried.types, *rows], name)
    inputs = ClosedOver([body])
    made_types: list[Type] = [(t.spec.reshaped((count, *t.spec.shape)), t._t)
                              for t in body.results[width:]]

    def run(values: Sequence[Tensor], again: bool) -> list[Tensor]:
        now, rest = list(values[:width]), values[width:]
        # Cut once: one index op for each turn would record as many scatters of whole tensors.
        parts = [unstack_(x, axis=0) for x in rest[:len(given)]]
        captured, state = inputs.split(rest[len(given):])
        items = []
        for i in range(count)[::-1 if backwards else 1]:
            results = inputs.apply(
                body, [*now, *(p[i] if len(p) > 1 else p[0] for p in parts)], captured, state,
                again)
            now = list(results[:width])
            items.append(results[width:])
        # Stacked once, behind the loop: writing each turn's result would copy all of them.
        columns = [stack_(*column, axis=0) for column in zip(*items[::-1 if backwards else 1])]
        return [*now, *columns, *(state[i] for i in inputs.written)]

    op = SubgraphOp(name, run, [*carried.types, *made_types, *inputs.state_types()], inputs)
    found = op(*carried.tensors, *given, *inputs.values())
    split = width + len(made_types)
    inputs.store(found[split:])
    return carried.packed(found[:width])[0], pack(structure, found[width:split])
