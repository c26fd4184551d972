"""The backward walk: from the seeds through a tape's records, last to first.

Its loops run once for every op, so they read records by place; `core.recording` names the places.
Below are the backwards of ops that have none of their own: `tf.RegisterGradient`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from gtape.core.context import user_frame, walking
from gtape.core.device import add_arrays, ignore, restore
from gtape.core.errors import ResourceExhaustedError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import Op, declared
from gtape.core.recording import INPUT_KEYS, PAYLOAD, Backward, RecordTuple
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


_registered: dict[str, Callable[..., Any]] = {}


def has_builtin_gradient(op_type: str) -> bool:
    return any(op.tf_name == op_type and op.has_gradient for op in declared())


class RegisterGradient:
    """Decorator: give the op type a gradient function `f(op, *grads) -> grads of the inputs`.

    `op` has `.type`, `.inputs`, `.outputs` and `.get_attr(name)`; there is one upstream gradient
    for each output, and one result (or None) for each input.

    Raises:
        TypeError: `op_type` is not a string.
        KeyError: the op type has a gradient already.
    """

    __slots__ = ("_op_type",)

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError(f"RegisterGradient needs the op's type as a string; got "
                            f"{shown(op_type)}")
        self._op_type = op_type

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._op_type in _registered or has_builtin_gradient(self._op_type):
            raise KeyError(f"the gradient of {self._op_type} is registered already; wrap the call "
                           f"in tf.custom_gradient to use another")
        _registered[self._op_type] = function
        return function


def no_gradient(op_type: str) -> None:
    """Declare that no gradient flows through an op type that has no gradient: it becomes None.

    Raises:
        TypeError: `op_type` is not a string.
        KeyError: the op type has a gradient already.
    """
    RegisterGradient(op_type)(lambda op, *grads: [None] * len(op.inputs))


class AppliedOp:
    """What a registered gradient function learns of the application it differentiates."""

    __slots__ = ("_attrs", "inputs", "outputs", "type")

    def __init__(self, op_type: str, inputs: list[Any], outputs: list[object],
                 attrs: dict[str, object]) -> None:
        self.type = op_type
        self.inputs = inputs
        self.outputs = outputs
        self._attrs = attrs

    def get_attr(self, name: str) -> Any:
        """The attribute `name`. Raises ValueError when the op has no such attribute."""
        if name not in self._attrs:
            raise ValueError(f"the op {self.type} has no attribute '{name}'; "
                             f"it has {sorted(self._attrs)}")
        return self._attrs[name]


def lookup(op: Op) -> Callable[..., Any] | None:
    """The registered gradient function of an op."""
    return _registered.get(op.tf_name)


def missing_gradient(op: Op) -> Callable[..., Any]:
    """The backward of an op without a gradient: a LookupError, when it is asked for."""
    def backward(grads: object, g: object, record: object) -> None:
        gradient = lookup(op)
        if gradient is not None:
            raise LookupError(f"the gradient of {op.tf_name} was registered after the op ran; "
                              f"register it first")
        raise LookupError(f"gradient registry has no entry for: {op.tf_name}")

    backward.tensors = backward  # type: ignore[attr-defined]
    return backward


def failing(error: LookupError) -> Callable[..., Any]:
    """A backward whose derivation met an op without a gradient: said when it is asked for."""
    def backward(grads: object, g: object, record: object) -> None:
        raise LookupError(*error.args)

    backward.tensors = backward  # type: ignore[attr-defined]
    return backward


def override(op: Op) -> Callable[..., Any] | None:
    """A backward that calls the registered gradient function of an elementwise op, if any."""
    function = lookup(op)
    # A gradient of gtape's own is not replaced, even by one that was registered before the op was
    # declared.
    if function is None or op.has_gradient:
        return None
    arity = len(op.params)

    def tensors(grads: object, g: object, record: Any) -> None:
        # Behind the shapes, which records of several operands have first: see `VjpProgram.entry`.
        start = PAYLOAD if arity == 1 else PAYLOAD + arity
        inputs = list(record[start: start + arity])
        applied = AppliedOp(op.tf_name, inputs, [record[start + arity]], {})
        parts = function(applied, g)
        scatter(grads, record[INPUT_KEYS], inputs,
                parts if isinstance(parts, (list, tuple)) else [parts])

    return on_arrays(tensors)


def scatter(grads: Any, keys: object, inputs: list[Any], parts: Any) -> None:
    """Hand the parts of a registered gradient to the inputs they belong to."""
    wanted = keys if type(keys) is tuple else (keys,)
    if len(parts) != len(inputs):
        raise ValueError(f"a registered gradient function must return one gradient for each of "
                         f"the {len(inputs)} inputs; got {len(parts)}")
    for tensor, part in zip(inputs, parts):
        key = getattr(tensor, "_k", 0)
        if part is not None and key in wanted:
            add_to(grads, key, part)
