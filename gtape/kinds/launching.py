"""Elementwise ops on devices that launch kernels: one formula, one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.core.device import ArrayType
from gtape.core.errors import InvalidArgumentError
from gtape.core.recording import record_general
from gtape.core.state import active
from gtape.core.tensor import EagerTensor, noted
from gtape.kinds.expr import Scope

#: Python integers up to here are exact as the doubles that kernels take them as.
_EXACT = 1 << 53


def map_of(op: Any, types: Sequence[ArrayType], out: ArrayType) -> Any:
    """The map of an elementwise op on inputs of these types; None where there is none."""
    key = (*types, out)
    try:
        return op.maps[key]
    except KeyError:
        pass
    maps, made = out.device.maps, None
    if maps is not None:
        scope = Scope()
        body = op.expression(scope, [scope.input(p) for p in op.params])
        made = maps.make(op.name, [body], op.params, [t.dtype.np_dtype for t in types],
                         [out.dtype.np_dtype])
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
    values = []
    for x in args:
        if type(x) is EagerTensor:
            if x._t is not like:
                return NotImplemented
            values.append(x._a)
        elif like.dtype.is_floating and (
                type(x) is float or (type(x) is int and -_EXACT < x < _EXACT)):
            values.append(x)
        else:
            return NotImplemented
    found = op.short.get(like)
    if found is None:
        found = op.short[like] = _short(op, like)
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
    if active():
        record_general(op, tuple(args), (made,), ())
    return made


def _short(op: Any, like: ArrayType) -> tuple[Any, Any]:
    types = (like,) * len(op.params)
    try:
        out = op.out_type(types)
    except InvalidArgumentError:
        return None, None
    return map_of(op, types, out), out
