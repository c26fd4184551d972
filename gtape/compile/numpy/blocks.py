"""Loops over blocks of large arrays: what lies between the steps of a group stays in the cache.

A group runs over the axes of its domain. Every array is taken in the form of the domain, with
length 1 for the axes that it lacks, so that a block is a slice of the first axis; or, where all
arrays have the whole domain, of all axes joined to one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.nodes import Reduce, Shape, Value
from gtape.compile.numpy.names import Names
from gtape.compile.numpy.steps import Step, Steps, dtype_of, operand_text, reading, step_text
from gtape.compile.schedule.fuse import FusionGroup
from gtape.opdef.numpy_code import BLOCK, LARGE
from gtape.ops.elementwise import scalars

_MULTIPLY = scalars.multiply.op


class Domain:
    """The form that a loop takes arrays in."""

    def __init__(self, group: FusionGroup) -> None:
        self.group = group
        self.shape: Shape = group.domain or ()
        self.flat = False

    def shape_of(self, value: Value) -> Shape:
        """The shape that the loop takes a value in."""
        place = self.group.place.get(value.number)
        if place is None:  # one number everywhere
            return (1,) * len(self.shape)
        return tuple(n if i in place else 1 for i, n in enumerate(self.shape))

    def taken(self, value: Value, text: str) -> str:
        """The array `text` in that form."""
        if self.flat:
            return text if len(value.shape) == 1 else f"{text}.reshape(-1)"
        place, shape = self.group.place[value.number], self.shape_of(value)
        order = [p for p in place if p is not None]
        if value.shape == shape and order == sorted(order):
            return text
        kept = ", ".join("0" if p is None else ":" for p in place)
        new = ", ".join(":" if i in order else "None" for i in range(len(shape)))
        if order != sorted(order):
            kept = f"{kept}].transpose({tuple(order.index(p) for p in sorted(order))!r})[{new}"
            return f"{text}[{kept}]"
        return f"{text}[{kept}][{new}]"

    def in_order(self, value: Value) -> bool:
        """Whether the axes of a value come in the order of the domain's."""
        order = [p for p in self.group.place.get(value.number, ()) if p is not None]
        return order == sorted(order)


def looped(group: FusionGroup) -> tuple[Domain, Steps, int] | None:
    """How a group runs block by block: in what form, its steps, and the rows of a block, or
    elements where all axes are one. None where blocks would not help, or something is read that is
    known only after the last one."""
    domain = Domain(group)
    shape = domain.shape
    if math.prod(shape) < LARGE:
        return None
    steps = Steps(group.nodes, domain.shape_of, natural=False)
    if len(steps.list) < 2 or any(
            isinstance(a, Step) and a.kind == "sum" and _ends(domain, a)
            for s in steps.list for a in s.args):
        return None
    forms = {s.shape for s in steps.list if s.kind != "sum"} | {
        domain.shape_of(v) for v in steps.reads}
    sums = [s for s in steps.list if s.kind == "sum"]
    if all(f == shape or math.prod(f) == 1 for f in forms) and all(
            len(axes_of(domain, s)) == len(shape) for s in sums) and all(
            map(domain.in_order, [*steps.reads, *(n.outputs[0] for n in group.nodes)])):
        domain.flat = True
        return domain, steps, BLOCK
    row = math.prod(shape[1:])
    # Longer rows leave the cache between two steps, one by one too.
    rows = max(1, BLOCK // row) if row <= 4 * BLOCK and shape[0] > 1 else 0
    return (domain, steps, rows) if rows else None


def axes_of(domain: Domain, step: Step) -> tuple[int, ...]:
    """The axes of the domain that a sum goes over."""
    assert isinstance(step.node, Reduce)
    return tuple(sorted(domain.group.axes(step.node)))


def _ends(domain: Domain, step: Step) -> bool:
    """Whether a sum is known only after the last block."""
    return 0 in axes_of(domain, step)


class Loop:
    """The text of a loop over blocks.

    Args:
        values: those that others read: they get names.
        taken: by number, the name of the array to write one to.
    """

    def __init__(self, names: Names, domain: Domain, steps: Steps, rows: int,
                 values: Sequence[Value], taken: dict[int, str]) -> None:
        self._names, self._domain, self._steps, self._rows = names, domain, steps, rows
        self._taken = taken
        self._count = math.prod(domain.shape) if domain.flat else domain.shape[0]
        self._results: dict[int, list[Value]] = {}
        for value in values:
            self._results.setdefault(id(steps.of[value.number]), []).append(value)
        self._last = {id(a): i for i, s in enumerate(steps.list) for a in s.args}
        #: By the id of a step or the number of a value: its text in the loop.
        self._text: dict[int, str] = {}
        self._reads: dict[int, str] = {}
        self._free: dict[Any, list[str]] = {}
        self._forms: dict[str, Any] = {}
        self._scratch: list[str] = []
        self._head: list[str] = []
        self._inside: list[str] = []
        self._tail: list[str] = []
        self._i, self._j = names.fresh("i"), names.fresh("j")

    def lines(self) -> list[str]:
        for value in self._steps.reads:
            self._read(value)
        products = self._products()
        for at, step in enumerate(self._steps.list):
            if step.kind == "sum":
                self._sum(at, step, products)
            elif id(step) not in products:
                self._step(at, step)
        i, j, n = self._i, self._j, self._count
        short = [f"if {j} > {n}:", f"    {j} = {n}"]
        short += [f"    {b} = {b}[: {n} - {i}]" for b in self._forms]
        return [*self._head, f"for {i} in range(0, {n}, {self._rows}):",
                *(f"    {line}" for line in (f"{j} = {i} + {self._rows}", *short, *self._inside)),
                # The last views would keep their arrays.
                *self._tail, f"del {', '.join([*self._scratch, *self._forms, i, j])}"]

    def _products(self) -> dict[int, Step]:
        """Products of which nothing but the sum is read: the dot product."""
        products: dict[int, Step] = {}
        uses = self._steps.uses()
        for step in self._steps.list:
            inner = step.args[0]
            if (self._domain.flat and step.kind == "sum" and isinstance(inner, Step)
                    and inner.op is _MULTIPLY and uses[id(inner)] == 1
                    and id(inner) not in self._results and all(
                        isinstance(a, (Step, Value)) and self._along(self._form(a))
                        and dtype_of(a) == inner.dtype for a in inner.args)):
                products[id(inner)] = inner  # BLAS adds up as it multiplies: no product in memory
                for arg in inner.args:
                    self._last[id(arg)] = len(self._steps.list)  # `dot` reads it behind all of them
        return products

    # ------------------------------------------------------------------ values

    def _form(self, operand: Step | Value) -> Shape:
        return operand.shape if isinstance(operand, Step) else self._domain.shape_of(operand)

    def _along(self, shape: Shape) -> bool:
        """Whether an array of this form has another part for each block."""
        return math.prod(shape) > 1 if self._domain.flat else bool(shape) and (
            shape[0] == self._domain.shape[0])

    def _slice(self, whole: str) -> str:
        part = self._names.fresh("x")
        self._inside.append(f"{part} = {whole}[{self._i}:{self._j}]")
        self._scratch.append(part)
        return part

    def _in_form(self, value: Value, text: str) -> str:
        taken = self._domain.taken(value, text)
        if taken == text:
            return text
        name = self._names.fresh("x")
        self._head.append(f"{name} = {taken}")
        self._scratch.append(name)
        return name

    def _read(self, value: Value) -> None:
        """A part of what is read, or all of it where it is broadcast."""
        text = reading(self._names, value)
        if value.shape:
            text = self._in_form(value, text)
            if self._along(self._domain.shape_of(value)):
                text = self._slice(text)
        self._reads[value.number] = text

    def _arg(self, step: Step, arg: object) -> str:
        if isinstance(arg, Step):
            return self._text[id(arg)]
        if isinstance(arg, Value):
            return self._reads[arg.number]
        return operand_text(self._names, step, arg)

    def _target(self, step: Step) -> str:
        """Where a step of the loop goes: into the result, or into a buffer."""
        names, results = self._names, self._results.get(id(step), ())
        for value in results[:1]:
            name = self._taken.get(value.number)
            if name is None:
                name = names.fresh("v")
                self._head.append(f"{name} = empty({value.shape!r}, {names.dtype(step.dtype)})")
            for each in results:
                names.called(each, name)
            return self._slice(self._in_form(value, name))
        shape = (self._rows,) if self._domain.flat else (self._rows, *step.shape[1:])
        free = self._free.setdefault((step.dtype, shape), [])
        if free:
            return free.pop()
        buffer = names.fresh("b")
        self._head.append(f"{buffer} = empty({shape!r}, {names.dtype(step.dtype)})")
        self._forms[buffer] = step.dtype, shape
        return buffer

    def _release(self, at: int, step: Step) -> None:
        """Buffers that nothing after step number `at` reads."""
        for arg in {id(a): a for a in step.args if isinstance(a, Step)}.values():
            name = self._text.get(id(arg), "")
            if self._last[id(arg)] == at and name in self._forms:
                self._free[self._forms[name]].append(name)

    # ------------------------------------------------------------------ steps

    def _step(self, at: int, step: Step) -> None:
        args = [self._arg(step, a) for a in step.args]
        if not self._along(step.shape):
            self._once(step, args)
            return
        writes = step.writes
        # A ufunc may write over what it reads, element by element; other functions still need it.
        if step.is_ufunc:
            self._release(at, step)
            target = self._target(step)
        else:
            target = self._target(step)
            self._release(at, step)
        if step.is_ufunc or (writes is not None and self._alike(step)):
            assert step.op is not None
            given = ", ".join([*args, f"out={target}"])
            text = f"{self._names.bound(writes, step.op.name)}({given})"
        else:
            source = args[0] if step.kind in ("cast", "copy", "spread", "number") else step_text(
                self._names, step, args)
            text = f"copyto({target}, {source}, \"unsafe\")"
        self._inside.append(text)
        self._text[id(step)] = target

    def _alike(self, step: Step) -> bool:
        """Whether all that a step reads are arrays of its form and, but for conditions, dtype."""
        return step.dtype.kind == "f" and all(
            isinstance(a, (Step, Value)) and self._form(a) == step.shape
            and dtype_of(a) in (step.dtype, bool) for a in step.args)

    def _once(self, step: Step, args: Sequence[str]) -> None:
        """A step that is the same for all blocks."""
        name = self._names.fresh("v")
        self._head.append(f"{name} = {step_text(self._names, step, args)}")
        self._text[id(step)] = name
        for value in self._results.get(id(step), ()):
            natural = f"{name}.reshape({value.shape!r})" + ("" if value.shape else "[()]")
            self._head.append(f"{self._names.give(value)} = {natural}")

    def _sum(self, at: int, step: Step, products: dict[int, Step]) -> None:
        names, (inner,) = self._names, step.args
        axes = axes_of(self._domain, step)
        if id(inner) in products:
            assert isinstance(inner, Step)
            a, b = (self._arg(inner, x) for x in inner.args)
            text = f"{a}.dot({b})"
        else:
            text = f"total({self._arg(step, inner)}, " + (
                "(0,))" if self._domain.flat else f"{axes!r}, True)")
        name = self._text[id(step)] = names.fresh("v")
        values = self._results.get(id(step), ())
        if not _ends(self._domain, step):
            self._inside.append(f"{name} = {text}")
            self._scratch.append(name)
            if values:
                self._inside.append(f"{self._target(step)}[...] = {name}")
        else:
            self._head.append(f"{name} = zero")
            self._inside.append(f"{name} = {name} + {text}")
            for value in values:
                self._tail.append(
                    f"{names.give(value)} = {name}.astype({names.dtype(step.dtype)})"
                    f".reshape({value.shape!r})" + ("" if value.shape else "[()]"))
        self._release(at, step)
