"""The backward walk: from the seeds through a tape's records, last to first.

Its loops run once for every op, so they read records by place; `core.recording` names the places.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from gtape.core.context import walking
from gtape.core.device import add_arrays
from gtape.core.errors import ResourceExhaustedError
from gtape.core.fp_errors import ignore, restore
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.recording import Backward, RecordTuple
from gtape.core.source_location import user_frame
from gtape.core.tensor import EagerTensor, wrap

#: What is pulled back: an array or a tensor, IndexedSlices, or a list with one for each result.
Cotangent: TypeAlias = Any
Grads: TypeAlias = dict[int, Cotangent]


def keys_depending_on(records: list[Any], sources: set[int]) -> set[int]:
    """The keys that depend on a source: the only ones worth a backward step."""
    keys = set(sources)
    for record in records:
        ins = record[5]
        if (ins in keys) if type(ins) is int else not keys.isdisjoint(ins):
            outs = record[1]
            if type(outs) is int:
                keys.add(outs)
            else:
                keys.update(outs)
    return keys


def _leads_nowhere(record: Any, useful: set[int] | None) -> bool:
    if useful is None:
        return False
    ins = record[5]
    return ins not in useful if type(ins) is int else useful.isdisjoint(ins)


def walk(records: list[Any], grads: Grads, keep: set[int], useful: set[int] | None,
         consume: bool, tensors: bool) -> None:
    """Pull `grads` back through `records`, last to first, adding to `grads`.

    Args:
        keep: keys whose gradient is an answer and so is not dropped once it was used.
        useful: skip records that lead to none of these keys; None skips nothing.
        consume: take the records off the list, so what they hold is freed on the way.
        tensors: `grads` holds tensors, and every step is itself recorded by other tapes.
    """
    # Once for the whole walk: the steps call NumPy bare.
    state = ignore()
    site = walking.set(user_frame(sys._getframe(1))) if tensors else None
    try:
        if consume and useful is None and not tensors:
            backward_freeing(records, grads, keep)
            return
        # Last to first: whoever reads a value was recorded after it, so its gradient is complete
        # here.
        index = len(records)
        while index:
            index -= 1
            record = records.pop() if consume else records[index]
            out = record[1]
            if type(out) is int:
                # Taken out, the gradient of an intermediate lives no longer than the step that
                # reads it: the walk holds a few of them and not one for each record.
                g = grads.get(out) if out in keep else grads.pop(out, None)
                if g is None or _leads_nowhere(record, useful):
                    continue
                if type(g) is IndexedSlices and not record[4].sparse:
                    g = g.dense(tensors)
            else:
                g = [grads.get(k) if k in keep else grads.pop(k, None) for k in out]
                if all(part is None for part in g) or _leads_nowhere(record, useful):
                    continue
                g = [p.dense(tensors) if type(p) is IndexedSlices else p for p in g]
            if tensors:
                record[0].tensors(grads, g, record)
            else:
                part = record[0](grads, g, record)
                if part is not None:
                    add_to(grads, record[5], part)
    except ResourceExhaustedError:
        raise
    except MemoryError as error:
        from gtape.autodiff.tape_memory import exhausted

        raise exhausted(error, "the backward pass ran out of memory", records) from error
    finally:
        restore(state)
        if site is not None:
            walking.reset(site)


def backward_freeing(records: list[Any], grads: Grads, keep: set[int]) -> None:
    """The common case of `walk`: bare arrays, every record wanted.

    The gradient that a record gives to its one input is mostly what the record before it waits
    for: it is handed on without a detour through `grads`.
    """
    take = grads.pop
    pop = records.pop
    # Keys begin at 1, so 0 says that nothing is being handed on.
    next_key, next_part = 0, None
    while records:
        record = pop()
        out = record[1]
        if out == next_key:
            g: Any = next_part
            next_key = 0
            if out in grads:
                # The order of `walk`, what came first plus what comes now: both ways round alike.
                g = add_arrays(take(out), g)
        else:
            if next_key:
                add_to(grads, next_key, next_part)
                next_key = 0
            if type(out) is not int:
                g = [grads.get(k) if k in keep else take(k, None) for k in out]
                if all(part is None for part in g):
                    continue
                g = [p.dense(False) if type(p) is IndexedSlices else p for p in g]
                record[0](grads, g, record)
                continue
            g = take(out, None)
            if g is None:
                continue
        if keep and out in keep:
            grads[out] = g
        if type(g) is IndexedSlices and not record[4].sparse:
            g = g.dense(False)
        next_part = record[0](grads, g, record)
        if next_part is not None:
            next_key = record[5]
    if next_key:
        add_to(grads, next_key, next_part)


def add_to(grads: Grads, key: int, part: object) -> None:
    """Add a contribution to the gradient of `key`."""
    old = grads.get(key)
    grads[key] = part if old is None else add_arrays(old, part)


def on_arrays(tensors: Callable[[Grads, Cotangent, RecordTuple], None]) -> Backward:
    """The array form of a backward that is written for tensors: wrap, run, unwrap."""
    def backward(grads: Grads, g: Cotangent, record: RecordTuple) -> None:
        parts: Grads = {}
        tensors(parts, _wrapped(g), record)
        for key, part in parts.items():
            add_to(grads, key, part._a if type(part) is EagerTensor else part)

    backward.tensors = tensors  # type: ignore[attr-defined]
    return backward


def _wrapped(g: Cotangent) -> Cotangent:
    """A cotangent's array, or the list of them, as tensors."""
    if type(g) is IndexedSlices:
        return g
    if type(g) is list:
        return [None if a is None else wrap(a) for a in g]
    return wrap(g)
