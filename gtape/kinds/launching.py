"""Elementwise ops on devices that launch kernels: one formula, one launch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from gtape.core.device import ArrayType
from gtape.core.errors import InvalidArgumentError
from gtape.core.recording import CUT, UNKNOWN, mark
from gtape.core.sites import user_frame
from gtape.core.state import active, new_key, walking
from gtape.core.tensor import EagerTensor, noted
from gtape.kinds.derive import inputs_read
from gtape.kinds.expr import Expr

_current = walking.get
#: Python integers up to here are exact as the doubles that kernels take them as.
_EXACT = 1 << 53


class Step(NamedTuple):
    """What one launch computes: outputs in terms of inputs, with the types of both."""

    name: str
    outputs: tuple[Expr, ...]
    params: tuple[str, ...]
    types: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]

    def on(self, maps: Any) -> Any:
        """Its map on a device; None where a letter in it has no CUDA text for these types."""
        return maps.make(self.name, self.outputs, self.params,
                         [t.dtype.np_dtype for t in self.types],
                         [t.dtype.np_dtype for t in self.results])


def forward_step(op: Any, types: Sequence[ArrayType], out: ArrayType) -> Step:
    """The op itself."""
    return Step(op.name, (op.body(),), tuple(op.params), tuple(types), (out,))


def backward_step(op: Any, types: Sequence[ArrayType], pairs: Sequence[tuple[int, Expr]],
                  cotangent: str, result: str) -> Step:
    """The cotangents of some inputs: `pairs` of position and expression, in terms of the op's
    inputs and of what is called `cotangent` and `result`."""
    out = op.out_type(types)
    named = {cotangent: out, result: out, **dict(zip(op.params, types))}
    reads = tuple(inputs_read([p for _, p in pairs]))
    wrt = " ".join(op.params[i] for i, _ in pairs)
    return Step(f"d {wrt} {op.name}", tuple(p for _, p in pairs), reads,
                tuple(named[n] for n in reads), tuple(types[i] for i, _ in pairs))


def map_of(op: Any, types: Sequence[ArrayType], out: ArrayType) -> Any:
    """The map of an elementwise op on inputs of these types; None where there is none."""
    key = (*types, out)
    try:
        return op.maps[key]
    except KeyError:
        pass
    maps = out.device.maps
    made = None if maps is None else forward_step(op, types, out).on(maps)
    return op.maps.setdefault(key, made)


def mapped(op: Any, out: ArrayType, arrays: Sequence[Any]) -> Any:
    """The op by a kernel; None where there is none for these arrays."""
    device = out.device
    if device.maps is None:
        return None
    found = map_of(op, [device.type_of(a.dtype) for a in arrays], out)
    return None if found is None else found(*arrays)[0]


def launched(op: Any, like: ArrayType, args: Sequence[Any]) -> Any:
    """The op on tensors of type `like` and Python numbers: the short way.

    NotImplemented where an argument is something else, or no kernel serves it.
    """
    values, numbers, bit = [], 0, 1
    for x in args:
        if type(x) is EagerTensor:
            if x._t is not like:
                return NotImplemented
            values.append(x._a)
        elif like.dtype.is_floating and (
                type(x) is float or (type(x) is int and -_EXACT < x < _EXACT)):
            values.append(x)
            numbers |= bit
        else:
            return NotImplemented
        bit <<= 1
    found = op.short.get((like, numbers))
    if found is None:
        found = op.short[like, numbers] = _short(op, like, numbers)
    compute, out = found
    if compute is None:
        return NotImplemented
    device = like.device
    try:
        if device.alone:
            made = EagerTensor(compute(*values)[0], out)
        else:
            with device.scope():
                made = noted(EagerTensor(compute(*values)[0], out))
    except ValueError:
        op.infer([x.spec for x in args if type(x) is EagerTensor])
        raise
    except MemoryError:
        # What is freed by then may do: the general way reports what fails.
        return NotImplemented
    stack = active()
    if stack:
        _record(op, like, tuple(args), made, numbers, stack)
    return made


def _record(op: Any, like: ArrayType, args: tuple[Any, ...], made: EagerTensor, numbers: int,
            stack: Sequence[Any]) -> None:
    """`record_general` where the types are known to be one; plans are found by that."""
    frame = _current() or user_frame(sys._getframe(3))
    for tape in stack:
        if not tape.is_tape:
            tape.observe(op, args, (made,), ())
            continue
        known, mask, bit, same = tape._known, 0, 1, True
        shape = made._a.shape
        for x in args:
            if type(x) is EagerTensor and x._k in known:
                mask |= bit
                same = same and x._a.shape == shape
            bit <<= 1
        if not mask:
            mark(tape, UNKNOWN, op.name, args, (made,), frame)
            continue
        key = (like, mask, numbers, same)
        try:
            plan = op.short_plans[key]
        except KeyError:
            plan = op.short_plans[key] = _plan(op, key, made._t)
        if plan is None:
            mark(tape, CUT, op.name, args, (made,), frame)
            continue
        if not made._k:
            made._k = new_key()
        known.add(made._k)
        reads = plan.reads
        if len(args) == 1:
            tape._records.append((
                plan.backward, made._k, frame.f_code, frame.f_lasti, op, args[0]._k,
                args[0] if reads[0] else None, made if reads[1] else None))
            continue
        if same and len(args) == 2:
            x, y = args
            tape._records.append((
                plan.backward, made._k, frame.f_code, frame.f_lasti, op,
                (x._k, y._k) if mask == 3 else x._k if mask == 1 else y._k, None, None,
                x if reads[0] else None, y if reads[1] else None, made if reads[2] else None))
            continue
        backward, in_keys, payload = plan.entry(args, made)
        tape._records.append((backward, made._k, frame.f_code, frame.f_lasti, op, in_keys,
                              *payload))


def _plan(op: Any, key: tuple[Any, ...], out: ArrayType) -> Any:
    like, mask, numbers, same = key
    if not out.differentiable:
        return None
    types = (like,) * len(op.params) if len(op.params) > 1 else like
    return op.plan(types, mask, numbers, same)


def _short(op: Any, like: ArrayType, numbers: int) -> tuple[Any, Any]:
    types = (like,) * len(op.params)
    try:
        out = op.out_type(types)
    except InvalidArgumentError:
        return None, None
    found = map_of(op, types, out)
    return None if found is None else found.short(numbers), out
