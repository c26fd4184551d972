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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gtape.compile.cpp.results import Result
from gtape.core.tensor import EagerTensor
from gtape.opdef.numpy_code import define

if TYPE_CHECKING:
    from gtape.compile.cpp.program import NativeProgram


def shown(structure: Any, names: Sequence[str]) -> str | None:
    """A structure of places as Python text; None where it holds other containers."""
    if structure is None:
        return "None"
    # Exact types: a subclass, such as a named tuple, is more than its items, and `pack` makes it.
    kind = type(structure)
    if kind is int:
        return names[structure]
    parts: list[str] = []
    if kind is dict:
        for key, value in structure.items():
            text = shown(value, names)
            if text is None or type(key) not in (str, int):
                return None
            parts.append(f"{key!r}: {text}")
        return "{" + ", ".join(parts) + "}"
    if kind not in (tuple, list):
        return None
    for value in structure:
        text = shown(value, names)
        if text is None:
            return None
        parts.append(text)
    if kind is list:
        return "[" + ", ".join(parts) + "]"
    return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"


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
