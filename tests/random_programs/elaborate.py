"""From a program to its text: Python source for tensors of the shapes and dtypes that it has.

Every line is computed eagerly as it is written, because the next one has to know the shape of its
result.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import gtape as tf

from . import ops_arrays, ops_elementwise, ops_layers, ops_loops, ops_reductions, values
from .ops import CLASSES, OPS, Draw, Operand
from .program import Assign, Given, If, Let, Line, Loop, Program, blocks

MODULES = (ops_arrays, ops_elementwise, ops_layers, ops_loops, ops_reductions)
#: Elements of a result from which on a line is left out.
_LARGEST = 80_000
#: What an op may answer to operands that it is not made for.
REFUSALS = (TypeError, ValueError, tf.errors.InvalidArgumentError, tf.errors.UnimplementedError)
_NAME = re.compile(r"\b(?:v\d+[a-h]?|generator)\b")
_PATTERN = (0.5, -0.25, 1.0, -1.5, 0.75)


class Misfit(Exception):
    """A line that cannot be written, or computed, for the operands that it has."""


class Written(NamedTuple):
    """A line of one op at the top level: what it computes from what, and whether it rounds."""

    name: str
    inputs: tuple[str, ...]
    #: What is computed one after the other: names and expressions.
    steps: tuple[tuple[str, str], ...]
    exact: bool
    #: Whether zeros have their signs.
    signed: bool

    def compute(self, env: dict[str, Any], noise: Callable[[Any], Any] | None = None) -> Any:
        """The result for operands by name, computed eagerly; `noise` is put on what it reads."""
        env = dict(env)
        if noise is not None:
            env |= {n: noise(env[n]) for n in self.inputs if isinstance(env[n], tf.Tensor)}
        with np.errstate(all="ignore"):
            for name, expression in self.steps:
                made = eval(expression, env)
                env[name] = made if noise is None else noise(made)
        return made


class Elaborated(NamedTuple):
    """The text of a program, all that it is given, and its single ops."""

    program: Program
    given: tuple[Given, ...]
    text: str
    written: tuple[Written, ...]

    @property
    def short(self) -> bool:
        """Whether no line rounds small multiples of 1/256."""
        return all(isinstance(line, Let) and OPS[line.op].short for line in self.program.lines)

    @property
    def halves(self) -> bool:
        """Whether there are values of 16-bit types."""
        return any(f"tf.{d}" in self.text for d in values.HALVES) or any(
            g.dtype in values.HALVES for g in self.given)

    @property
    def nested(self) -> bool:
        """Whether there are conditionals or loops."""
        return any(blocks(line) for line in self.program.lines)


def measured(value: Any, dtype: Any = tf.float32) -> Any:
    """A sum of all elements with weights of both signs: what gradients are taken of."""
    if value.dtype.is_complex:
        return measured(tf.math.real(value), dtype) - measured(tf.math.imag(value) * 0.5, dtype)
    weights = np.resize(np.float32(_PATTERN), tuple(value.shape))
    return tf.reduce_sum(tf.cast(value, dtype) * tf.constant(weights, dtype))


def dense(gradients: list[Any]) -> list[Any]:
    """Gradients, those of rows as whole tensors."""
    return [g if g is None else tf.convert_to_tensor(g) for g in gradients]


def slope_of(gradients: list[Any], dtype: Any = tf.float32) -> Any:
    """A number made of gradients, to differentiate again."""
    return tf.add_n([tf.constant(0.0, dtype), *(
        measured(g, dtype) for g in gradients if g is not None)])


def tensor_of(given: Given, call: int = 0) -> Any:
    made = values.array(given.shape, given.dtype, given.kind, given.seed + call, given.limit)
    return tf.Variable(made) if given.role == "variable" else tf.constant(made)


class Elaborator:
    """Writes lines one after the other; `env` has the values of what there is so far."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.given: dict[str, Given] = {}
        self.written: list[Written] = []
        self.text: list[str] = []
        self._indent = 1
        self.env: dict[str, Any] = {"tf": tf, "np": np}
        self.env["generator"] = tf.random.Generator.from_seed(1)

    def add(self, given: Given) -> Operand:
        self.given[given.name] = given
        self.env[given.name] = tensor_of(given)
        return self.operand(given.name)

    def operand(self, name: str) -> Operand:
        value = self.env.get(name)
        if value is None:
            raise Misfit(f"{name} is gone")
        return Operand(name, tuple(value.shape), value.dtype.name)

    def line(self, line: Line) -> None:
        """Write a line, whole or not at all.

        Raises:
            Misfit: it does not fit what there is.
        """
        before = dict(self.env), dict(self.given), len(self.text), len(self.written)
        indent = self._indent
        try:
            if isinstance(line, Let):
                self._let(line)
            elif isinstance(line, If):
                self._if(line)
            elif isinstance(line, Loop):
                self._loop(line)
            else:
                self._assign(line)
        except Misfit:
            self.env, self.given = before[:2]
            del self.text[before[2]:], self.written[before[3]:]
            self._indent = indent
            raise

    # ------------------------------------------------------------------ lines

    def _write(self, text: str) -> None:
        self.text.append("    " * self._indent + text)

    def _draw(self, line: Let | If | Loop | Assign, name: str) -> Draw:
        return Draw(line.seed, name, self.kind, self.add)

    def _let(self, line: Let) -> None:
        op = OPS[line.op]
        operands = [self.operand(name) for name in line.inputs]
        if not op.takes([x.dtype for x in operands]):
            raise Misfit(line.op)
        expression = op.write(self._draw(line, line.name), *operands)
        if expression is None:
            raise Misfit(line.op)
        *first, last = expression.split(" -> ")
        inside = f"{line.name}_in"
        steps = (*((inside, text) for text in first), (line.name, last.replace("{in}", inside)))
        inputs = tuple(n for n in self.env if n in _NAME.findall(expression))
        written = Written(line.name, inputs, steps, op.exact, op.signed)
        self._define(written, expression)
        for name, text in steps:
            self._write(f"{name} = {text}")
        if self._indent == 1:
            self.written.append(written)

    def _define(self, written: Written, expression: str) -> None:
        try:
            made = written.compute(self.env)
        except REFUSALS as error:
            raise Misfit(f"{expression}: {type(error).__name__}: {error}") from error
        if not isinstance(made, tf.Tensor) or made.dtype.name not in values.DTYPES or (
                int(np.prod(made.shape)) > _LARGEST or len(made.shape) > 6):
            raise Misfit(f"{expression}: {type(made).__name__}")
        self.env[written.name] = made

    @contextlib.contextmanager
    def _inner(self) -> Iterator[None]:
        """Lines of a block, whose names nobody outside sees."""
        outside = set(self.env)
        self._indent += 1
        try:
            yield
        finally:
            self._indent -= 1
        for name in set(self.env) - outside - set(self.given):
            del self.env[name]

    def _block(self, lines: tuple[Line, ...], carried: str, close: str) -> None:
        """A block's lines; what it comes to is written as `close` says."""
        with self._inner():
            for line in lines:
                self.line(line)
            last = next((n.name for n in reversed(lines) if not isinstance(n, Assign)), carried)
            value = folded(self.operand(carried), self.operand(last))
            self._write(f"{carried}_last = {value}")
            self._write(close.format(f"{carried}_last"))

    def _if(self, line: If) -> None:
        d, name = self._draw(line, line.name), line.name
        condition = _condition(d, self.operand(line.carried))
        if line.style == "cond":
            for part, block in zip(("then", "other"), line.blocks):
                self._write(f"def {name}_{part}():")
                self._block(block, line.carried, "return {}")
            self._write(f"{name} = tf.cond({condition}, {name}_then, {name}_other)")
        else:
            self._write(f"{name} = tf.identity({line.carried})")
            for word, block in zip((f"if {condition}:", "else:"), line.blocks):
                self._write(word)
                self._block(block, line.carried, name + " = {}")
        self.env[name] = tf.identity(self.env[line.carried])

    def _loop(self, line: Loop) -> None:
        d, name = self._draw(line, line.name), line.name
        count = f"tf.constant({d.below(4)})"
        if d.chance(0.5):
            count = str(d.fresh((), "int32", limit=4))
        start = f"tf.identity({line.carried})"
        self.operand(line.carried)
        self.env[name] = tf.identity(self.env[line.carried])
        if line.style == "while_loop":
            self._write(f"def {name}_body(i, {name}):")
            self._block(line.block, name, "return i + 1, {}")
            self._write(f"_, {name} = tf.while_loop(lambda i, {name}: i < {count}, {name}_body, "
                        f"[tf.constant(0), {start}])")
            return
        self._write(f"{name} = {start}")
        if line.style == "while":
            self._write(f"{name}_i = tf.constant(0)")
            self._write(f"while {name}_i < {count}:")
            with self._inner():
                self._write(f"{name}_i = {name}_i + 1")
        else:
            over = f"range({d.below(3)})" if line.style == "range" else f"tf.range({count})"
            self._write(f"for {name}_i in {over}:")
        self._block(line.block, name, name + " = {}")

    def _assign(self, line: Assign) -> None:
        given = self.given.get(line.variable)
        if given is None or given.role != "variable" or given.limit:
            raise Misfit(f"{line.variable} is no Variable that may be assigned")
        value = folded(self.operand(line.variable), self.operand(line.value))
        self._write(f"{line.variable}_new = {value}")
        self._write(f"{line.variable}.{line.how}({line.variable}_new)")
        with np.errstate(all="ignore"):
            getattr(self.env[line.variable], line.how)(eval(value, self.env))


def folded(carried: Operand, last: Operand) -> str:
    """`last` as a value like `carried`."""
    if (carried.shape, carried.dtype) == (last.shape, last.dtype):
        return str(last)
    if carried.dtype == "bool":
        return f"tf.math.logical_xor({carried}, tf.math.count_nonzero({last}) > 3)"
    if carried.dtype in values.INTEGERS:
        return f"{carried} + tf.cast(tf.math.count_nonzero({last}), tf.{carried.dtype})"
    real = f"tf.math.real({last})" if last.dtype in values.COMPLEX else str(last)
    total = f"tf.reduce_sum(tf.cast({real}, tf.{carried.dtype}))"
    return f"{carried} * 0.5 + {total} * {1 / max(last.size, 1):.4g}"


def _condition(d: Draw, x: Operand) -> str:
    if d.chance(0.4):
        return str(d.fresh((), "bool"))
    if x.dtype == "bool":
        return f"tf.reduce_any({x})"
    if x.dtype in values.INTEGERS:
        return f"tf.reduce_sum({x}) % 2 == 0"
    real = f"tf.math.real({x})" if x.dtype in values.COMPLEX else str(x)
    return f"tf.reduce_sum({real}) > 0.0"


# ------------------------------------------------------------------ the whole text


def elaborate(program: Program) -> Elaborated:
    """The text of a program.

    Raises:
        Misfit: a line does not fit what there is.
    """
    elaborator = Elaborator(program.kind)
    for given in program.given:
        elaborator.add(given)
    for line in program.lines:
        elaborator.line(line)
    return finished(program, elaborator)


def finished(program: Program, made: Elaborator) -> Elaborated:
    """The text of a program whose lines are written."""
    given = tuple(made.given.values())
    for name in program.returned:
        made.operand(name)
    arguments = ", ".join(g.name for g in given if g.role == "argument")
    literals = [f"    {g.name} = tf.constant({g.name}_array)" for g in given if g.role == "literal"]
    measures = [f"measured({n})" for n in program.returned
                if made.operand(n).dtype in CLASSES["smooth"]]
    returned = ", ".join(f"'{n}': {n}" for n in program.returned)
    lines = [f"def forward({arguments}):", *literals, *made.text,
             f"    loss = tf.add_n([{', '.join(measures)}])" if measures else
             "    loss = tf.constant(0.0)",
             f"    return {{{returned}}}, loss", "", "", f"def program({arguments}):",
             *_derivatives(program, given, arguments)]
    return Elaborated(program, given, "\n".join(lines) + "\n", tuple(made.written))


def sources(given: tuple[Given, ...]) -> list[str]:
    """The names that gradients are taken by."""
    return [g.name for g in given
            if g.role in ("argument", "variable") and g.dtype in CLASSES["smooth"]]


def _derivatives(program: Program, given: tuple[Given, ...], arguments: str) -> list[str]:
    by = ", ".join(sources(given))
    watched = ", ".join(g.name for g in given if g.name in sources(given) and g.role == "argument")
    first = "values" if program.values else "{}"
    if program.order == 0 or not by:
        return [f"    values, loss = forward({arguments})", "    return values, [], []"]
    if program.order == 1:
        return ["    with tf.GradientTape() as tape:", f"        tape.watch([{watched}])",
                f"        values, loss = forward({arguments})",
                f"    return {first}, dense(tape.gradient(loss, [{by}])), []"]
    return ["    with tf.GradientTape() as outer:", f"        outer.watch([{watched}])",
            "        with tf.GradientTape() as tape:", f"            tape.watch([{watched}])",
            f"            values, loss = forward({arguments})",
            f"        first = dense(tape.gradient(loss, [{by}]))",
            "        slope = slope_of(first)",
            f"    return {first}, first, dense(outer.gradient(slope, [{by}]))"]
