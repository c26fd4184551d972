"""Text of clusters: as expressions, or block by block into buffers that stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gtape.compile.numpy.names import Names
from gtape.compile.numpy.values import ArrayValue, Cast, NumpyStep, Sum, UfuncStep

#: Elements of a block.
BLOCK = 1 << 14
#: How deep expressions are nested.
_NESTED = 12


class Piece:
    """Steps of one shape to write as text.

    `results`: ids of the values that others read. `taken`: by id, what gives an array to write to.
    `names` knows what the steps read; afterwards, of `results` and sums, what they made.
    """

    def __init__(self, names: Names, steps: Sequence[NumpyStep], shape: tuple[int, ...],
                 results: set[int], taken: dict[int, str]) -> None:
        self.names, self.steps, self.shape = names, list(steps), shape
        self.results, self.taken = results, taken
        self.last: dict[int, int] = {}
        self.uses: dict[int, int] = {}
        for i, step in enumerate(self.steps):
            for value in step.inputs:
                self.last[id(value)] = i
                self.uses[id(value)] = self.uses.get(id(value), 0) + 1

    @property
    def reads(self) -> list[ArrayValue]:
        made = {id(s.outputs[0]) for s in self.steps}
        found = {id(v): v for s in self.steps for v in s.inputs
                 if id(v) not in made and v.number is None}
        return list(found.values())


def written(piece: Piece) -> list[str]:
    """A piece as expressions, or in blocks where it is large."""
    if in_blocks(piece.steps, piece.reads):
        return Blocks(piece).lines()
    return _expressions(piece)


def _expressions(piece: Piece) -> list[str]:
    """One statement for each value that is used more than once; the others within these."""
    names = piece.names
    inner: dict[int, tuple[str, bool, int]] = {}
    lines = []
    for step in piece.steps:
        made = step.outputs[0]
        found = [inner.get(id(v)) or (names.text(v, bool(piece.shape)), False, 0)
                 for v in step.inputs]
        if isinstance(step, Sum):
            lines.append(f"{names.give(made)} = total({found[0][0]}, {step.axes!r})")
            continue
        assert isinstance(step, UfuncStep)
        depth = max(d for _, _, d in found) + 1
        target = piece.taken.get(id(made)) if step.function.ufunc else None
        if target is not None:
            args = ", ".join([*(text for text, _, _ in found), f"out={target}"])
            text, operator = f"{names.function(step.function)}({args})", False
        else:
            text = mapped_text(names, step, [f"({text})" if operator and _brackets(step) else text
                                             for text, operator, _ in found])
            operator = step.function.infix is not None
        if (piece.uses.get(id(made), 0) == 1 and id(made) not in piece.results
                and depth < _NESTED and target is None):
            inner[id(made)] = (text, operator, depth)
        else:
            lines.append(f"{names.give(made)} = {text}")
    return lines


def _brackets(step: UfuncStep) -> bool:
    """Whether operators among its arguments stand in brackets."""
    return step.function.infix is not None or isinstance(step, Cast)


def mapped_text(names: Names, step: UfuncStep, args: Sequence[str]) -> str:
    """A step as an expression."""
    made = step.outputs[0]
    if isinstance(step, Cast):
        if not made.shape and made.dtype.kind == "f":
            return f"{names.bound(made.dtype.type, made.dtype.name)}({args[0]})"
        return f"{args[0]}.astype({names.dtype(made.dtype)})"
    if step.function.infix is not None:
        return step.function.infix.format(*args)
    text = f"{names.function(step.function)}({', '.join(args)})"
    return text if made.shape or step.function.ufunc else f"{text}[()]"


# ---------------------------------------------------------------------- blocks

def in_blocks(steps: Sequence[NumpyStep], reads: Sequence[ArrayValue]) -> bool:
    """Whether steps of one shape, which read these values, run block by block."""
    made = steps[0].outputs[0]
    return made.large and len(steps) > 1 and _rows(made.shape, reads) > 0


def _rows(shape: tuple[int, ...], reads: Sequence[ArrayValue]) -> int:
    """How many rows of the first axis make a block, or elements where all arrays have one shape;
    0: blocks would not help."""
    if _is_flat(shape, reads):
        return BLOCK
    row = math.prod(shape[1:])
    return max(1, BLOCK // row) if row <= 4 * BLOCK and shape[0] > 1 else 0


def _is_flat(shape: tuple[int, ...], reads: Sequence[ArrayValue]) -> bool:
    return all(v.shape == shape or v.size == 1 for v in reads)


class Blocks:
    """A loop over blocks. Flat where all arrays have one shape, else of rows of the first axis."""

    def __init__(self, piece: Piece) -> None:
        self._piece, self._names = piece, piece.names
        self._flat = _is_flat(piece.shape, piece.reads)
        self._count = math.prod(piece.shape) if self._flat else piece.shape[0]
        self._rows = _rows(piece.shape, piece.reads)
        self._where: dict[int, str] = {}
        self._free: dict[np.dtype, list[str]] = {}
        self._buffers: list[str] = []
        self._scratch: list[str] = []
        self._head: list[str] = []
        self._inside: list[str] = []
        self._tail: list[str] = []

    def lines(self) -> list[str]:
        names = self._names
        self._i, self._j = names.fresh("i"), names.fresh("j")
        for value in self._piece.reads:
            self._read(value)
        fused = self._products()
        for at, step in enumerate(self._piece.steps):
            if id(step) in fused:
                continue
            if isinstance(step, Sum):
                self._sum(step, fused)
                self._release(at, step)
            else:
                self._step(at, step)  # type: ignore[arg-type]
        i, j, n = self._i, self._j, self._count
        short = [f"if {j} > {n}:", f"    {j} = {n}"]
        short += [f"    {b} = {b}[: {n} - {i}]" for b in self._buffers]
        return [*self._head, f"for {i} in range(0, {n}, {self._rows}):",
                *(f"    {line}" for line in (f"{j} = {i} + {self._rows}", *short, *self._inside)),
                *self._tail, f"del {', '.join([*self._scratch, *self._buffers, i, j])}"]

    def _products(self) -> dict[int, Any]:
        """Products of which nothing but the sum is read, with their factors: the dot product."""
        piece, found = self._piece, {}
        if not self._flat:
            return {}
        for step in piece.steps:
            if not isinstance(step, Sum):
                continue
            made = step.inputs[0]
            inner = made.step
            if isinstance(inner, UfuncStep) and inner.function.name == "multiply" and (
                    piece.uses[id(made)] == 1 and id(made) not in piece.results and all(
                    v.shape == piece.shape and v.dtype == made.dtype for v in inner.inputs)):
                found[id(inner)] = inner
                for value in inner.inputs:
                    piece.last[id(value)] = len(piece.steps)
        return found

    # ------------------------------------------------------------------ values

    def _slice(self, whole: str) -> str:
        part = self._names.fresh("x")
        self._inside.append(f"{part} = {whole}[{self._i}:{self._j}]")
        self._scratch.append(part)
        return part

    def _flattened(self, whole: str) -> str:
        """An array of the piece's shape in the form that the loop goes over."""
        if not self._flat or len(self._piece.shape) == 1:
            return whole
        flat = self._names.fresh("x")
        self._head.append(f"{flat} = {whole}.reshape(-1)")
        self._scratch.append(flat)
        return flat

    def _read(self, value: ArrayValue) -> None:
        """A part of what is read, or all of it where it is broadcast."""
        text, shape = self._names.text(value, True), self._piece.shape
        if not value.shape:
            self._where[id(value)] = text
            return
        if self._flat:
            whole = self._names.fresh("x")
            self._head.append(f"{whole} = {text}.reshape(-1)")
            self._scratch.append(whole)
            self._where[id(value)] = self._slice(whole) if value.shape == shape else whole
            return
        broadcast = len(value.shape) < len(shape) or value.shape[0] == 1
        self._where[id(value)] = text if broadcast else self._slice(text)

    def _text(self, value: ArrayValue) -> str:
        found = self._where.get(id(value))
        return self._names.text(value, True) if found is None else found

    def _target(self, value: ArrayValue) -> str:
        """Where a value of the block goes: into the result, or into a buffer."""
        names, piece = self._names, self._piece
        if id(value) in piece.results:
            name = names.give(value)
            made = piece.taken.get(id(value)) or (
                f"empty({piece.shape!r}, {names.dtype(value.dtype)})")
            self._head.append(f"{name} = {made}")
            return self._slice(self._flattened(name))
        free = self._free.setdefault(value.dtype, [])
        if free:
            return free.pop()
        buffer = names.fresh("b")
        shape = (self._rows,) if self._flat else (self._rows, *piece.shape[1:])
        self._head.append(f"{buffer} = empty({shape!r}, {names.dtype(value.dtype)})")
        self._buffers.append(buffer)
        return buffer

    def _release(self, at: int, step: NumpyStep) -> None:
        """Buffers that nothing after step number `at` reads."""
        for value in {id(v): v for v in step.inputs}.values():
            name = self._where.get(id(value))
            if self._piece.last[id(value)] == at and name in self._buffers:
                self._free[value.dtype].append(name)  # type: ignore[arg-type]

    # ------------------------------------------------------------------ steps

    def _step(self, at: int, step: UfuncStep) -> None:
        made, names = step.outputs[0], self._names
        args = [self._text(v) for v in step.inputs]
        if step.function.ufunc:
            self._release(at, step)
            target = self._target(made)
            text = f"{names.function(step.function)}({', '.join([*args, f'out={target}'])})"
        else:
            target = self._target(made)
            self._release(at, step)
            source = args[0] if isinstance(step, Cast) else mapped_text(names, step, args)
            text = f"copyto({target}, {source}, \"unsafe\")"
        self._inside.append(text)
        self._where[id(made)] = target

    def _sum(self, step: Sum, products: dict[int, Any]) -> None:
        value, made, names = step.inputs[0], step.outputs[0], self._names
        name = names.give(made)
        if id(value.step) in products:
            a, b = (self._text(v) for v in value.step.inputs)  # type: ignore[union-attr]
            text = f"{a}.dot({b})"
        else:
            text = f"total({self._text(value)}, {(0,) if self._flat else step.axes!r})"
        self._head.append(f"{name} = zero")
        self._inside.append(f"{name} = {name} + {text}")
        self._tail.append(f"{name} = {names.bound(made.dtype.type, made.dtype.name)}({name})")
