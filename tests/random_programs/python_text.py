"""Random functions with nested control flow. Their numbers are exact in float32."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

_NAMES = ("a", "b", "c", "u")


class Writer:
    """Writes one function: `x` is a number, `xs` three numbers, `p` a Python number."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lines: list[str] = []
        self._loops = 0
        self._result = self._random.choice(["a, b", "a + b", "b, c, u", "(a, [b])"])

    def program(self) -> str:
        self._lines = ["def program(x, xs, p):", "    a = x", "    b = 1.0"]
        if self._random.random() < 0.9:
            self._lines.append("    c = p")
        if self._random.random() < 0.8:
            self._lines.append("    u = 0.0")
        if self._random.random() < 0.3:
            self._write(1, "def step(v):")
            self._write(2, "nonlocal b")
            self._write(2, f"if v > {self._constant()}: b = b + 1.0")
            self._write(2, "return v")
        self._block(1, 0, False, self._random.randint(3, 6))
        self._write(1, f"return {self._result}")
        return "\n".join(self._lines) + "\n"

    def _write(self, indent: int, line: str) -> None:
        self._lines.append("    " * indent + line)

    def _constant(self) -> str:
        return str(self._random.choice([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 5.0]))

    def _value(self) -> str:
        choose = self._random.choice
        return choose([self._constant(), choose(_NAMES), "x", "p", f"{choose(_NAMES)} + 1.0",
                       f"{choose(_NAMES)} - x", f"x + {choose(_NAMES)}", "x * 0.5",
                       f"({choose(_NAMES)} if {self._condition()} else {self._constant()})",
                       f"(lambda v: v + {choose(_NAMES)})(x)"])

    def _condition(self, depth: int = 0) -> str:
        choose = self._random.choice
        simple = f"{choose([*_NAMES[:3], 'x', 'x', 'p'])} {choose(['<', '>'])} {self._constant()}"
        kind = self._random.random()
        if depth > 1 or kind < 0.6:
            return simple
        if kind < 0.7:
            return f"not {self._condition(depth + 1)}"
        if kind < 0.78:
            return f"{self._constant()} < {choose(['x', 'a', 'p'])} < {self._constant()}"
        word = choose(["and", "or"])
        return f"({self._condition(depth + 1)} {word} {self._condition(depth + 1)})"

    def _block(self, indent: int, depth: int, loop: bool, count: int | None = None) -> None:
        for _ in range(count or self._random.randint(1, 3)):
            self._statement(indent, depth, loop)

    def _statement(self, indent: int, depth: int, loop: bool) -> None:
        choose, kind = self._random.choice, self._random.random()
        if depth > 3 or kind < 0.35:
            how = choose(["=", "=", "+=", "-="])
            self._write(indent, f"{choose(_NAMES)} {how} {self._value()}")
        elif kind < 0.62:
            self._if(indent, depth, loop)
        elif kind < 0.82:
            self._loop(indent, depth)
        elif kind < 0.90:
            self._write(indent, choose(["with nullcontext():", "try:"]))
            tried = self._lines[-1].endswith("try:")
            self._block(indent + 1, depth + 1, loop)
            if tried:
                self._write(indent, "finally:")
                self._write(indent + 1, f"{choose(_NAMES)} = {self._constant()}")
        elif loop and kind < 0.96:
            self._write(indent, choose(["break", "continue"]))
        elif depth:
            self._write(indent, f"return {self._result}")
        else:
            self._write(indent, f"a = {self._value()}")

    def _if(self, indent: int, depth: int, loop: bool) -> None:
        self._write(indent, f"if {self._condition()}:")
        self._block(indent + 1, depth + 1, loop)
        if loop and self._random.random() < 0.3:
            self._write(indent + 1, self._random.choice(["break", "continue"]))
        if self._random.random() < 0.3:
            self._write(indent, f"elif {self._condition()}:")
            self._block(indent + 1, depth + 1, loop)
        if self._random.random() < 0.5:
            self._write(indent, "else:")
            self._block(indent + 1, depth + 1, loop)

    def _loop(self, indent: int, depth: int) -> None:
        self._loops += 1
        k = f"k{self._loops}"
        kind = self._random.random()
        if kind < 0.45:
            self._write(indent, f"{k} = 0.0")
            test = self._random.choice([f"{k} < 3.0 and {self._condition()}", f"{k} < 2.0"])
            self._write(indent, f"while {test}:")
            self._write(indent + 1, f"{k} += 1.0")
        elif kind < 0.55:
            self._write(indent, f"{k} = 0.0")
            self._write(indent, "while True:")
            self._write(indent + 1, f"{k} += 1.0")
            self._write(indent + 1, f"if {k} > 2.0 or {self._condition()}: break")
        else:
            over = self._random.choice(["xs", "range(3)", "[1.0, x, p]", "enumerate(xs)"])
            self._write(indent, f"for {k} in {over}:")
        self._block(indent + 1, depth + 1, True)
        if self._random.random() < 0.2:
            self._write(indent, "else:")
            self._block(indent + 1, depth + 1, False)


def made(seed: int) -> tuple[Callable[..., Any], str]:
    """A random function and its text, which `inspect` finds."""
    from contextlib import nullcontext

    text = Writer(seed).program()
    file = f"<program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space: dict[str, Any] = {"nullcontext": nullcontext}
    exec(compile(text, file, "exec"), space)
    return space["program"], text
