"""The alphabet of random programs: how ops are declared, and where they are found.

An op is a function that writes an expression for operands of known shapes and dtypes, or gives
None where it does not fit them. "a -> b" stands for two lines, of which b reads a as {in}: between
them rounding counts. What it leaves open (axes, further operands) comes from `Draw`,
whose seed belongs to the line: cut to other shapes, the line is written anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from . import values
from .program import Given

CLASSES = {
    "float": values.FLOATS, "wide": ("float32", "float64"), "integer": values.INTEGERS,
    "index": values.SIGNED, "real": (*values.FLOATS, *values.INTEGERS), "complex": values.COMPLEX,
    "smooth": (*values.FLOATS, *values.COMPLEX), "number": values.NUMBERS, "bool": ("bool",),
    "any": values.DTYPES}
_LETTERS = "abcdefgh"
#: In the names of ops that choose between equal numbers.
_EXTREMES = ("extreme", "largest", "order", "clip")
T = TypeVar("T")


class Operand(NamedTuple):
    """A tensor of a program; as text its name."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return self.name

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        count = 1
        for n in self.shape:
            count *= n
        return count


class Draw:
    """What a line leaves open. `add` is told of operands that it asks for."""

    def __init__(self, seed: int, name: str, kind: str, add: Callable[[Given], None]) -> None:
        self.rng = random.Random(seed)
        self._name, self._kind, self._add = name, kind, add
        self._fresh = 0

    @property
    def infinite(self) -> bool:
        """Whether there are infinite numbers: a border of zeros may be multiplied with them."""
        return self._kind == "special"

    def choice(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def below(self, count: int) -> int:
        return self.rng.randrange(max(count, 1))

    def axis(self, x: Operand) -> int:
        """One axis, from the front or from the back."""
        return self.rng.randrange(x.rank) - (x.rank if self.chance(0.5) else 0)

    def axes(self, x: Operand) -> list[int]:
        return [i for i in range(x.rank) if self.chance(0.5)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self.rng.sample(items, len(items))

    def seed(self) -> int:
        return self.rng.randrange(1 << 30)

    def fresh(self, shape: Sequence[int], dtype: str, limit: int = 0, kind: str = "") -> Operand:
        """An operand of the line's own. Programs are called with other numbers in arguments and
        Variables than they were traced with."""
        name = f"{self._name}{_LETTERS[self._fresh]}"
        self._fresh += 1
        role = self.rng.choices(("argument", "variable", "capture", "literal"),
                                (5, 3 if dtype not in ("bool", "uint8") else 0, 1, 1))[0]
        kind = kind or self._kind
        self._add(Given(name, role, tuple(shape), dtype, kind, self.seed(), limit))
        return Operand(name, tuple(shape), dtype)

    def partner(self, x: Operand) -> Operand:
        """A fresh operand that broadcasts with `x`."""
        return self.fresh(values.partner(self.rng, x.shape), x.dtype)

    def number(self) -> str:
        return self.choice(["2.0", "0.5", "-1.5", "3.0", "0.1", "-0.0", "0.0", "1.0"])


Writer = Callable[..., "str | None"]


class Op(NamedTuple):
    """An op of the alphabet.

    classes: the dtypes of its operands; those after the first may be left out.
    exact: at most one rounding within it, so that its result must be the same bit for bit.
    short: small multiples of a power of 2 come out as such, without rounding, gradients too.
    weight: how often it is drawn.
    """

    name: str
    classes: tuple[str, ...]
    write: Writer
    exact: bool
    short: bool
    weight: float

    @property
    def signed(self) -> bool:
        """Whether zeros must have the same sign; the larger of 0 and -0 may be either."""
        return self.exact and not any(word in self.name for word in _EXTREMES)

    def takes(self, dtypes: Sequence[str]) -> bool:
        return len(dtypes) <= len(self.classes) and all(
            d in CLASSES[c] for d, c in zip(dtypes, self.classes))


OPS: dict[str, Op] = {}


def op(*classes: str, exact: bool = False, short: bool = False, weight: float = 1.0,
       ) -> Callable[[Writer], Writer]:
    """Declare an op by the function that writes it."""
    def declare(write: Writer) -> Writer:
        add(write.__name__, classes, write, exact, short or exact, weight)
        return write

    return declare


def add(name: str, classes: tuple[str, ...], write: Writer, exact: bool, short: bool,
        weight: float) -> None:
    assert name not in OPS, name
    OPS[name] = Op(name, classes, write, exact, short, weight)


def templates(kind: str, *texts: str, exact: bool = False, weight: float = 1.0) -> None:
    """Declare ops of one operand by expressions in `x`."""
    for text in texts:
        def write(d: Draw, x: Operand, text: str = text) -> str:
            return text.replace("{x}", str(x)).replace("{dtype}", f"tf.{x.dtype}").replace(
                "{number}", d.number())

        add(f"{kind} {text}", (kind,), write, exact, exact, weight)


def fits(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1]))
