"""From a program that fails to the smallest that fails in the same way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from . import values
from .elaborate import Elaborated, Misfit, elaborate
from .program import Assign, Given, If, Let, Line, Loop, Program, blocks, rename, walk

Fails = Callable[[Elaborated], bool]


def reduced(program: Program, fails: Fails, tries: int = 400) -> Program:
    """The smallest program found that fails too."""
    left = [tries]

    def is_failure(candidate: Program) -> bool:
        left[0] -= 1
        try:
            return fails(elaborate(candidate))
        except Misfit:
            return False

    improved = True
    while improved and left[0] > 0:
        improved = False
        for way in (_fewer_lines, _less_returned, _simpler_lines, _less_given, _shorter, _plainer):
            again = True
            while again and left[0] > 0:
                again = False
                for candidate in way(program):
                    if left[0] <= 0:
                        break
                    if is_failure(candidate):
                        program, again, improved = candidate, True, True
                        break
    return program


# ------------------------------------------------------------------ candidates


def _fewer_lines(program: Program) -> Iterator[Program]:
    """Half of the lines, or one line less; what read one reads what it was made of."""
    count = len(program.lines)
    if count > 3:
        half = program.lines[:count // 2]
        names = {n.name for n in half if not isinstance(n, Assign)}
        yield replace(program, lines=half, returned=_returned(program, names))
    for at in reversed(range(count)):
        line = program.lines[at]
        shorter = program.without_line(at)
        if isinstance(line, Assign):
            yield shorter
            continue
        later = tuple(shorter.lines[at:])
        read_again = line.inputs if isinstance(line, Let) else (line.carried,)
        for other in read_again:
            lines = shorter.lines[:at] + tuple(rename(n, line.name, other) for n in later)
            names = {n.name for n in lines if not isinstance(n, Assign)}
            yield replace(shorter, lines=lines, returned=_returned(shorter, names))


def _returned(program: Program, names: set[str]) -> tuple[str, ...]:
    kept = tuple(r for r in program.returned if r in names)
    return kept or tuple(sorted(names, key=lambda n: int(n[1:])))[-1:]


def _less_returned(program: Program) -> Iterator[Program]:
    if program.order:
        yield replace(program, order=program.order - 1, values=True)
    if not program.values:
        yield replace(program, values=True)
    if len(program.returned) > 1:
        for name in program.returned:
            yield replace(program, returned=tuple(r for r in program.returned if r != name))


def _simpler_lines(program: Program) -> Iterator[Program]:
    """Blocks without one of their lines, or in place of what holds them."""
    for at, line in enumerate(program.lines):
        for simpler in _simpler(line):
            yield replace(program, lines=(*program.lines[:at], *simpler, *program.lines[at + 1:]))


def _simpler(line: Line) -> Iterator[tuple[Line, ...]]:
    for number, block in enumerate(blocks(line)):
        for at in range(len(block)):
            less = block[:at] + block[at + 1:]
            gone = getattr(block[at], "name", "")
            if any(gone in _reads(other) for other in less):
                continue
            if isinstance(line, Loop):
                yield (replace(line, block=less),)
            elif isinstance(line, If):
                pair = (less, line.blocks[1]) if number == 0 else (line.blocks[0], less)
                yield (replace(line, blocks=pair),)
        named = [n for n in block if not isinstance(n, Assign)]
        if isinstance(line, If) and named:
            yield tuple(rename(n, named[-1].name, line.name) if n is not named[-1] else
                        replace(n, name=line.name) for n in block)


def _reads(line: Line) -> set[str]:
    found: set[str] = set()
    for inner in walk((line,)):
        if isinstance(inner, Let):
            found.update(inner.inputs)
        elif isinstance(inner, Assign):
            found |= {inner.variable, inner.value}
        else:
            found.add(inner.carried)
    return found


def _less_given(program: Program) -> Iterator[Program]:
    used = set().union(*map(_reads, program.lines)) if program.lines else set()
    for given in program.given:
        if given.name not in used:
            yield replace(program, given=tuple(g for g in program.given if g is not given))


def _changed(program: Program, change: Callable[[Given], Given]) -> Program:
    return replace(program, given=tuple(map(change, program.given)))


def _shorter(program: Program) -> Iterator[Program]:
    """Every length of the given tensors made smaller, wherever it occurs; then axes left out."""
    lengths = sorted({n for g in program.given for n in g.shape if n > 1}, reverse=True)
    for old in lengths:
        for new in sorted({1, 2, 3, old // 2, old - 1}):
            if 0 < new < old:
                yield _changed(program, lambda g, old=old, new=new: replace(g, shape=tuple(
                    new if n == old else n for n in g.shape)))
    for given in program.given:
        for axis in range(len(given.shape)):
            less = given.shape[:axis] + given.shape[axis + 1:]
            yield _changed(program, lambda g, given=given, less=less: replace(
                g, shape=less) if g is given else g)


def _plainer(program: Program) -> Iterator[Program]:
    """Common dtypes, numbers and roles."""
    for kind in ("smooth", "exact"):
        if program.kind != kind and not (program.kind == "exact" and kind == "smooth"):
            yield replace(_changed(program, lambda g, kind=kind: replace(g, kind=kind)), kind=kind)
    for given in program.given:
        if given.dtype in values.FLOATS and given.dtype != "float32":
            yield _changed(program, lambda g, given=given: replace(
                g, dtype="float32") if g.dtype == given.dtype else g)
        if given.role != "argument":
            yield _changed(program, lambda g, given=given: replace(
                g, role="argument") if g is given else g)
    rng = random.Random(1)
    for at, line in enumerate(program.lines):
        if isinstance(line, Let):
            for _ in range(3):  # another draw of what is open may be simpler to read
                other = replace(line, seed=rng.randrange(100))
                if line.seed >= 100:
                    yield replace(program, lines=(*program.lines[:at], other,
                                                  *program.lines[at + 1:]))
