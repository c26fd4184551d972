"""A random program from a seed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from . import values
from .elaborate import Elaborated, Elaborator, Misfit, finished
from .ops import CLASSES, OPS, Operand, fits
from .program import Assign, Given, If, Let, Line, Loop, Program

#: How often an op was refused, and what it answered: for a look at what is never reached.
refused: Counter[str] = Counter()
_THEMES = (("float32",),) * 6 + (("float64",),) * 2 + (("float16",),) * 2 + (("bfloat16",),) * 2 + (
    ("int32", "float32"), ("uint8", "int64"), ("bool", "float32"), ("complex64", "float32"),
    ("complex128",), ("float16", "float32"), ("bfloat16", "float32", "float64"))


def generate(seed: int, lines: int = 12) -> Elaborated:
    """The program of a seed."""
    return _Generator(seed).make(lines)


class _Generator:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._theme = self._rng.choice(_THEMES)
        self._kind = self._rng.choices(values.KINDS, (5, 4, 1))[0]
        self._names = 0
        self._made = Elaborator(self._kind)
        self._most = 20_000 if self._rng.random() < 0.1 else 700

    def make(self, count: int) -> Elaborated:
        rng = self._rng
        given = tuple(self._given() for _ in range(rng.randint(1, 3)))
        lines = self._lines(rng.randint(1, count), 0)
        names = [n.name for n in lines if not isinstance(n, Assign)]
        everything = rng.random() < 0.5
        returned = tuple(n for n in names if everything or rng.random() < 0.4) or tuple(names[-1:])
        order = rng.choices((0, 1, 2), (3, 4, 3))[0]
        program = Program(given, lines, returned, order, self._kind,
                          order == 0 or rng.random() < 0.8)
        return finished(program, self._made)

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _seed(self) -> int:
        return self._rng.randrange(1 << 30)

    def _given(self) -> Given:
        rng = self._rng
        dtype = rng.choice(self._theme)
        role = "variable" if rng.random() < 0.3 else "argument"
        given = Given(self._name(), role, values.shape(rng, self._most), dtype, self._kind,
                      self._seed())
        self._made.add(given)
        return given

    # ------------------------------------------------------------------ lines

    def _lines(self, count: int, depth: int) -> tuple[Line, ...]:
        lines: list[Line] = []
        for _ in range(20 * count):
            if len(lines) >= count:
                break
            line = self._line(depth)
            if line is not None:
                lines.append(line)
        return tuple(lines)

    def _line(self, depth: int) -> Line | None:
        kind = self._rng.random()
        if kind < 0.07 and depth < 2:
            return self._nested(depth)
        if kind < 0.10:
            return self._assign()
        return self._let()

    def _pool(self) -> list[Operand]:
        env = self._made.env
        return [self._made.operand(n) for n in env if n[0] == "v" and n[1:].isdigit()]

    def _some(self) -> Operand:
        """An operand, one of the last more often."""
        pool = self._pool()
        return pool[max(self._rng.randrange(len(pool)), self._rng.randrange(len(pool)))]

    def _let(self) -> Line | None:
        rng = self._rng
        x = self._some()
        options = [op for op in OPS.values() if op.takes([x.dtype])]
        favoured = 8.0 if self._kind == "exact" else 1.0
        op = rng.choices(options, [op.weight * (favoured if op.short else 1.0)
                                   for op in options])[0]
        inputs = [x.name]
        for kind in op.classes[1:]:
            others = [y for y in self._pool() if y.dtype in CLASSES[kind] and (
                fits(x.shape, y.shape) or x.rank > 1 < y.rank)]
            if not others or rng.random() < 0.4:
                break
            inputs.append(rng.choice(others).name)
        return self._tried(Let(self._name(), op.name, tuple(inputs), self._seed()))

    def _assign(self) -> Line | None:
        variables = [g.name for g in self._made.given.values()
                     if g.role == "variable" and not g.limit]
        if not variables:
            return None
        variable = self._rng.choice(variables)
        dtype = self._made.given[variable].dtype
        how = self._rng.choice(("assign", "assign_add", "assign_sub") if dtype != "bool" else (
            "assign",))
        return self._tried(Assign(variable, how, self._some().name, self._seed()))

    def _tried(self, line: Line) -> Line | None:
        try:
            self._made.line(line)
        except Misfit as misfit:
            refused[str(misfit)] += 1
            return None
        return line

    def _nested(self, depth: int) -> Line | None:
        """A conditional or a loop: its lines are found one by one, then written again whole."""
        rng = self._rng
        carried, name = self._some().name, self._name()
        made, mark = self._made, (dict(self._made.env), dict(self._made.given))
        inside = name if (loop := rng.random() < 0.5) else carried
        made.env[inside] = made.env[carried]
        sizes = len(made.text), len(made.written)
        parts = []
        for _ in range(1 if loop else 2):
            start = dict(made.env), dict(made.given)
            parts.append(self._lines(rng.randint(1, 3), depth + 1))
            made.env, made.given = start
        del made.text[sizes[0]:], made.written[sizes[1]:]
        made.env, made.given = mark
        seed = self._seed()
        if loop:
            style = rng.choice(("while_loop", "while", "for", "range"))
            return self._tried(Loop(name, style, carried, parts[0], seed))
        return self._tried(If(name, rng.choice(("cond", "if")), carried, (parts[0], parts[1]),
                              seed))


def with_kind(program: Program, kind: str) -> Program:
    """The program with other numbers."""
    return replace(program, kind=kind, given=tuple(replace(g, kind=kind) for g in program.given))
