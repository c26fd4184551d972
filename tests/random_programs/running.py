"""Running the text of programs: eagerly, as functions with and without native code, jittered."""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import gtape as tf
from gtape.autograph import convert
from gtape.compile.cpp.program import compile_closed
from gtape.compile.frontend.closed_graph import trace_closed
from gtape.compile.launches import InterpretedProgram
from gtape.core.errors import NotTraceableError
from gtape.trace.tracer import Tracer, check

from . import values
from .elaborate import Elaborated, dense, measured, slope_of, sources
from .program import Given

#: The ways to run a program beside the eager one: native programs, with the forward pass alone
#: compiled, with every step in a 16-bit type rounded, and without a compiler; every node a step of
#: its own; and node by node.
MODES = ("native", "recorded", "rounded", "numpy", "unfused", "applied")
#: Those in which a chain of 16-bit arithmetic may keep float32.
WIDER = ("native", "recorded", "unfused")
_NARROW = re.compile(r"tf\.(float32|float16|bfloat16)\b")
_LINE = re.compile(r"^( +)(v\d+\w*) = (.+)$", re.MULTILINE)
_READ = re.compile(r"\bv\d+[a-h]?\b")
_TEXTS = itertools.count()
ERRORS = (tf.errors.InvalidArgumentError, ValueError)


class Outcome(NamedTuple):
    """What one call gives: the kind of its error, or all results and Variables by name."""

    error: str
    results: dict[str, np.ndarray | None]


def _jittered(line: re.Match[str]) -> str:
    indent, name, expression = line.groups()
    reads = _READ.findall(expression)

    def read(operand: re.Match[str]) -> str:
        return f"jitter_read({operand[0]})" if reads.count(operand[0]) > 1 else operand[0]

    return f"{indent}{name} = jitter({_READ.sub(read, expression)})"


class Setting:
    """A program's text in a namespace of its own, with the tensors that it is given.

    wide: every float as float64, and complex numbers as complex128.
    jitter: what every line's float result is passed through, and a tensor each time that a line
        reads it, where it does so more than once: there the cotangents meet that may cancel.
    """

    def __init__(self, made: Elaborated, *, wide: bool = False, compiled_forward: bool = False,
                 jitter: Callable[[Any], Any] | None = None) -> None:
        self.made = made
        self._wide, self._jitter = wide, jitter
        self.space: dict[str, Any] = {"tf": tf, "np": np, "measured": measured, "dense": dense,
                                      "slope_of": slope_of, "jitter": jitter,
                                      "jitter_read": self._jitter_read}
        self.space["generator"] = tf.random.Generator.from_seed(1)
        self.variables = {g.name: tf.Variable(self.array(g)) for g in made.given
                          if g.role == "variable"}
        self.space |= self.variables
        for given in made.given:
            if given.role == "capture":
                self.space[given.name] = tf.constant(self.array(given))
            elif given.role == "literal":
                self.space[f"{given.name}_array"] = self.array(given)
        text = made.text
        if wide:
            text = widened(text)
            self.space["measured"] = functools.partial(measured, dtype=tf.float64)
            self.space["slope_of"] = functools.partial(slope_of, dtype=tf.float64)
        if jitter is not None:
            text = _LINE.sub(_jittered, text)
        execute(text, self.space)
        if compiled_forward:
            self.space["forward"] = tf.function(self.space["forward"])
        self.program = self.space["program"]

    def _jitter_read(self, value: Any) -> Any:
        assert self._jitter is not None
        return self._jitter(value) if isinstance(value, tf.Tensor | tf.Variable) else value

    def array(self, given: Given, call: int = 0) -> np.ndarray:
        made = values.array(given.shape, given.dtype, given.kind, given.seed + call, given.limit)
        if self._wide and given.dtype in (*values.FLOATS, *values.COMPLEX):
            made = made.astype("complex128" if given.dtype in values.COMPLEX else "float64")
        if self._jitter is not None and given.role in ("argument", "variable"):
            made = np.asarray(self._jitter(tf.constant(made)))
        return made

    def arguments(self, call: int = 0, bad: Given | None = None) -> list[Any]:
        """The arguments of a call; `bad` gets an index beyond its limit."""
        made = []
        for given in self.made.given:
            if given.role == "argument":
                array = self.array(given, call)
                if bad is given and array.size:
                    array = array.copy()
                    array.flat[-1] = given.limit if given.seed % 2 else -given.limit - 1
                made.append(tf.constant(array))
        return made

    def reset(self) -> None:
        """The Variables and the state of random draws as at the start."""
        self.space["generator"].reset_from_seed(1)
        for given in self.made.given:
            if given.name in self.variables:
                self.variables[given.name].assign(self.array(given))

    def labelled(self, results: Any) -> dict[str, np.ndarray | None]:
        """The results of a call, and the Variables after it, by name."""
        kept, first, second = results
        names = sources(self.made.given)
        labels = {**kept, **{f"d/d {n}": g for n, g in zip(names, first)},
                  **{f"d2/d {n}": g for n, g in zip(names, second)}, **self.variables}
        return {k: None if v is None else np.array(v) for k, v in labels.items()}


def widened(text: str) -> str:
    """The text with float64 in place of narrower floats."""
    return _NARROW.sub("tf.float64", text).replace("tf.complex64", "tf.complex128")


def execute(text: str, space: dict[str, Any]) -> None:
    """Run a text whose functions `inspect` can find."""
    file = f"<program {next(_TEXTS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), space)


class Group:
    """Several programs in one function: a compilation costs about the same for all of them."""

    def __init__(self, members: Sequence[Elaborated], mode: str, *, wide: bool = False,
                 jitter: Callable[[Any], Any] | None = None) -> None:
        self.mode = mode
        self.settings = [Setting(m, wide=wide, jitter=jitter, compiled_forward=mode == "recorded")
                         for m in members]
        programs = [s.program for s in self.settings]
        counts = [len(s.arguments()) for s in self.settings]
        starts = list(itertools.accumulate(counts, initial=0))

        def every(*arguments: Any) -> list[Any]:
            return [p(*arguments[a:b]) for p, a, b in zip(programs, starts, starts[1:])]

        self._call: Callable[..., Any] = every
        if mode in ("unfused", "applied"):
            self._call = _Traced(every, mode)
        elif mode not in ("eager", "recorded"):
            self._call = tf.function(every)

    def calls(self, count: int = 2) -> list[list[Outcome]]:
        """Calls one after the other: for each the outcomes of all members."""
        for setting in self.settings:
            setting.reset()
        return [self._outcomes([s.arguments(i) for s in self.settings]) for i in range(count)]

    def bad_call(self, member: int, bad: Given) -> Outcome:
        """A call in which one member is given an index that is out of range."""
        for setting in self.settings:
            setting.reset()
        arguments = [s.arguments(0, bad if i == member else None)
                     for i, s in enumerate(self.settings)]
        return self._outcomes(arguments)[member]

    def _outcomes(self, arguments: list[list[Any]]) -> list[Outcome]:
        native = "0" if self.mode == "numpy" else "1"
        with environment(GTAPE_NATIVE=native), _steps(rounded=self.mode == "rounded"), \
                np.errstate(all="ignore"):
            try:
                results = self._call(*itertools.chain(*arguments))
            except ERRORS as error:
                return [Outcome(type(error).__name__, {})] * len(self.settings)
        return [Outcome("", s.labelled(r)) for s, r in zip(self.settings, results)]


class _Traced:
    """A function whose graph is made a program in a way that users do not get."""

    def __init__(self, function: Callable[..., Any], mode: str) -> None:
        self._function, self._mode = convert(function), mode
        self._traced: Any = None
        self._program: Any = None

    def __call__(self, *tensors: Any) -> Any:
        if self._program is None:
            tracer = Tracer()
            symbols = [tracer.symbol(t.spec, t._t) for t in tensors]
            try:
                self._traced = trace_closed(lambda: self._function(*symbols), tracer, symbols,
                                            "program")
            except NotTraceableError:  # users get the function itself then
                return self._function(*tensors)
            check(self._traced.graph)
            self._program = (InterpretedProgram(self._traced,
                                                "test") if self._mode == "applied" else
                             compile_closed(self._traced, fuse=False))
        return self._traced.packed(self._program.run(tensors))


@contextlib.contextmanager
def _steps(*, rounded: bool) -> Iterator[None]:
    """Functions that are traced meanwhile round every step in a 16-bit type, or need not. gtape
    reads the environment once, when it is imported."""
    before = tf.config.experimental.excess_precision_enabled()
    tf.config.experimental.enable_excess_precision(not rounded)
    try:
        yield
    finally:
        tf.config.experimental.enable_excess_precision(before)


@contextlib.contextmanager
def environment(**wanted: str) -> Iterator[None]:
    """The process' environment for a time, with native code unless `wanted` says otherwise."""
    wanted = {"GTAPE_NATIVE": "1", **wanted}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
