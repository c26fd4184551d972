"""The Python function that calls a program: arrays made, the program run, results wrapped.

It is written for each program, because that is what costs most in a small one:

    def entry(t0, t1):
        o0 = empty((32, 10), f4)
        with writer.lock:
            state = call(t0._a, t1._a, o0)
            if state is not None: again(state, [t0, t1], [o0])
            writer.runs += 1
        r0 = new(Tensor); r0._a = o0; r0._t = T0; r0._k = 0
        return r0

Memory of large results is used again. New from the operating system it has to be cleared page by
page, which costs more than most programs take to fill it; so the last arrays of a large result are
kept, and given again once nobody else holds them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from gtape.core.device import CPU
from gtape.core.tensor import EagerTensor
from gtape.opdef.numpy_code import define

if TYPE_CHECKING:
    from gtape.compile.cpp.program import NativeProgram

#: Bytes from which on a result's arrays are kept for later calls.
#: Filling 64 MiB takes 17 ms where the memory is new and 9 where it was used before; smaller arrays
#: mostly lie in memory that the process has kept anyway.
_LARGE = 1 << 20
#: Arrays kept for one result: in `y = f(x)` the last y is still held while the next is made.
_KEPT = 2


def _references(kept: list[object]) -> int:
    held = kept.pop(0)
    return getrefcount(held)


#: What `getrefcount` gives for what one local name holds, which depends on Python's version.
_ALONE = _references([object()])


class Result:
    """One result of a program; `make()` gives the array for a call."""

    __slots__ = ("_kept", "array_type", "dtype", "empty", "large", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype,
                 empty: Callable[..., np.ndarray] = np.empty) -> None:
        self.empty = empty
        self.shape = shape
        self.dtype = dtype
        self.array_type = CPU.type_of(dtype)
        self.large = prod(shape) * dtype.itemsize >= _LARGE
        self._kept: list[np.ndarray] = []

    def make(self) -> np.ndarray:
        """An array that nothing refers to: no tensor, no view, no export, no other thread."""
        kept = self._kept
        for _ in range(len(kept)):
            try:
                held = kept.pop(0)  # in one step: no other thread can take it too
            except IndexError:
                break
            alone = getrefcount(held) == _ALONE
            kept.append(held)
            if alone:
                return held
        array = self.empty(self.shape, self.dtype)
        if self.large:
            kept.append(array)
            del kept[:-_KEPT]
        return array


def shown(structure: Any, names: Sequence[str]) -> str | None:
    """A structure of places as Python text; None where it holds other containers."""
    # Exact types: a subclass, such as a named tuple, is more than its items, and `pack` makes it.
    kind = type(structure)
    if structure is None or kind is int:
        return "None" if structure is None else names[structure]
    if kind not in (dict, tuple, list):
        return None
    parts = [shown(v, names) for v in (structure.values() if kind is dict else structure)]
    if None in parts or (kind is dict and not {str, int}.issuperset(map(type, structure))):
        return None
    if kind is dict:
        return f"{{{', '.join(f'{k!r}: {text}' for k, text in zip(structure, parts))}}}"
    inner = ", ".join(map(str, parts))
    return f"[{inner}]" if kind is list else f"({inner}{',' if len(parts) == 1 else ''})"


def entry_of(program: NativeProgram, call: Callable[..., object], structure: object, arguments: int,
             results: Sequence[Result], order: Sequence[int],
             states: int, writes: bool, again: Callable[..., object]) -> Callable[..., Any]:
    """The function of `arguments` tensors that gives the packed result.

    Args:
        results: the arrays that `call` fills; `order` says which of them each place of the
            structure has.
        states: how many states the program reads or writes, and `writes`, whether it writes any.
        again: what to do when `call` gives something else than None.
    """
    names = [f"r{i}" for i in order]
    packed = shown(structure, names)
    space: dict[str, Any] = {
        "call": call, "again": again, "writer": program.writer,
        "new": object.__new__, "Tensor": EagerTensor, "pack": program.traced.packed}
    given = [f"t{i}" for i in range(arguments)]
    outs = [f"o{i}" for i in range(len(results))]
    lines = []
    for i, result in enumerate(results):
        space |= {f"d{i}": result.dtype, f"T{i}": result.array_type, f"make{i}": result.make,
                  "empty": result.empty}
        # Small arrays are made in the text: `Result.make` would be a call of Python.
        lines.append(f"o{i} = make{i}()" if result.large else
                     f"o{i} = empty({result.shape!r}, d{i})")
    arrays = ", ".join([*(f"{t}._a" for t in given), *outs])
    inner = [f"state = call({arrays})",
             f"if state is not None: again(state, [{', '.join(given)}], [{', '.join(outs)}])"]
    if writes:
        inner.append("writer.runs += 1")
    # Other threads may copy the states that it writes, or write those that it reads.
    if states:
        lines.append("with writer.lock:")
        inner = [f"    {line}" for line in inner]
    lines += inner
    for i in range(len(results)):
        lines.append(f"r{i} = new(Tensor); r{i}._a = o{i}; r{i}._t = T{i}; r{i}._k = 0")
    lines.append(f"return {packed}" if packed is not None else f"return pack([{', '.join(names)}])")
    body = "".join(f"    {line}\n" for line in lines)
    return define(f"def entry({', '.join(given)}):\n{body}", "entry", space)
