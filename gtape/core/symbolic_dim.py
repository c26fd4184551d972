"""SymbolicDim: the length of an axis that a trace leaves open.

While a function is traced for open lengths, the shapes inside hold SymbolicDims: numbers with a
polynomial over the open lengths, which arithmetic carries along. A stand-in answers comparisons,
and what it answered is noted as a guard: for other lengths the trace is right where the guards come
out the same, and there the polynomials give the shapes. A SymbolicDim is no `int`, so that nothing
can use the stand-in in silence: whatever asks for a plain number gets `ConcreteDimNeeded`, and the
function is traced for the lengths of the call.

With an argument of the shape [n, 3] whose length n is left open, and 7 to stand in for it:

    x.shape[0] * 3 + 1      SymbolicDim with 22 and the polynomial ((((), 1), ((0,), 3)), 1 + 3 n
    x.shape[0] > 1          True, and the guard (operator.gt, n - 1, True)
    range(x.shape[0])       ConcreteDimNeeded
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

#: Products of atoms with their factors: ((atoms…), factor)…; an atom is the number of an open
#: length, or an operator with two polynomials.
Polynomial = tuple[tuple[tuple[Any, ...], int], ...]

_DIVISIONS = {"//": operator.floordiv, "%": operator.mod}


class ConcreteDimNeeded(BaseException):
    """A trace for open lengths met code that needs the lengths. No `except Exception` stops it."""


class ShapeEnv:
    """The open lengths of one trace, and the guards under which it is right."""

    def __init__(self) -> None:
        self.guards: set[tuple[Any, Polynomial, bool]] = set()
        #: Whether some code needed the lengths, even if it went on.
        self.needed = False
        self.closed = False

    def length(self, index: int, value: int) -> SymbolicDim:
        """The open length `index`, for which `value` stands in."""
        return SymbolicDim(value, (((index,), 1),), self)

    def hold(self, lengths: Sequence[int]) -> bool:
        """Whether every guard comes out as it did."""
        try:
            return all(compare(evaluate(p, lengths), 0) is outcome
                       for compare, p, outcome in self.guards)
        except ZeroDivisionError:
            return False


def evaluate(polynomial: Polynomial, lengths: Sequence[int]) -> int:
    """The value for these open lengths.

    Raises:
        ZeroDivisionError: it divides by something that is 0 for them.
    """
    total = 0
    for atoms, factor in polynomial:
        for atom in atoms:
            if type(atom) is int:
                factor *= lengths[atom]
            else:
                how, a, b = atom
                factor *= _DIVISIONS[how](evaluate(a, lengths), evaluate(b, lengths))
        total += factor
    return total


def _normal(terms: Iterable[tuple[tuple[object, ...], int]]) -> Polynomial:
    total: dict[tuple[Any, ...], int] = {}
    for atoms, factor in terms:
        total[atoms] = total.get(atoms, 0) + factor
    # Equal polynomials are equal tuples: terms in one order, without those of factor 0. By their
    # texts, because atoms are numbers and tuples, which do not compare.
    return tuple(sorted(((a, f) for a, f in total.items() if f), key=repr))


def _polynomial(value: int | SymbolicDim) -> Polynomial:
    if type(value) is SymbolicDim:
        return value._polynomial
    return ((((), int(value)),) if value else ())


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    return _normal((tuple(sorted((*x, *y), key=repr)), f * g) for x, f in a for y, g in b)


def _plus(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    return _normal([*a, *((atoms, sign * factor) for atoms, factor in b)])


def _quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """a / b where b is one product that divides every term of a."""
    # A sum divides a sum by long division only, and shapes rarely ask for that: such quotients
    # stay atoms, which say the same.
    if len(b) != 1:
        return None
    (divisor, by), terms = b[0], []
    for atoms, factor in a:
        rest = list(atoms)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if factor % by:
            return None
        terms.append((tuple(rest), factor // by))
    return _normal(terms)


class SymbolicDim:
    """An open length of an axis, or what was computed from some."""

    __slots__ = ("_env", "_polynomial", "_value")

    def __init__(self, value: int, polynomial: Polynomial, env: ShapeEnv) -> None:
        self._value = value
        self._polynomial = polynomial
        self._env = env

    def at(self, lengths: Sequence[int]) -> int:
        """The value for these open lengths."""
        return evaluate(self._polynomial, lengths)

    def _with(self, value: int, polynomial: Polynomial) -> Any:
        # No open length is left in it, as in n - n: a plain number, which code may use as it likes.
        if all(not atoms for atoms, _ in polynomial):
            return value
        return SymbolicDim(value, polynomial, self._env)

    # ------------------------------------------------------------------ arithmetic

    def _pairs(self, other: int | SymbolicDim | None) -> bool:
        """Whether `other` is a whole number; with fractions the number is needed."""
        if isinstance(other, (float, complex)):
            need_number(self)
        return isinstance(other, (int, SymbolicDim))

    def __add__(self, other: int | SymbolicDim) -> int | SymbolicDim:
        if not self._pairs(other):
            return NotImplemented
        return self._with(_value(self) + _value(other), _plus(_polynomial(self),
                                                              _polynomial(other)))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self._with(-_value(self), _plus((), self._polynomial, -1))

    def __sub__(self, other: int) -> int | SymbolicDim:
        return self + -other if self._pairs(other) else NotImplemented

    def __rsub__(self, other: int) -> Any:
        return -self + other if self._pairs(other) else NotImplemented

    def __mul__(self, other: int) -> Any:
        if not self._pairs(other):
            return NotImplemented
        return self._with(_value(self) * _value(other), _times(_polynomial(self),
                                                               _polynomial(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> SymbolicDim:
        return _divided(self, other, "//") if self._pairs(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return _divided(other, self, "//") if self._pairs(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return _divided(self, other, "%") if self._pairs(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return _divided(other, self, "%") if self._pairs(other) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> Any:
        return other // self, other % self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    # ------------------------------------------------------------------ comparisons

    def _compared(self, other: Any, compare: Callable[[Any, Any], bool]) -> Any:
        if not self._pairs(other):
            return NotImplemented
        outcome = compare(_value(self), _value(other))
        # A guard speaks of the lengths of one trace.
        if type(other) is SymbolicDim and other._env is not self._env:
            return outcome
        difference = _plus(self._polynomial, _polynomial(other), -1)
        if not self._env.closed and any(atoms for atoms, _ in difference):
            self._env.guards.add((compare, difference, outcome))
        return outcome

    def __eq__(self, other: object) -> bool:
        # Of lengths of another trace, found in the keys of caches, nothing is known, nor of any
        # after its trace.
        if self is other:
            return True
        env = self._env
        if env.closed or (type(other) is SymbolicDim and other._env is not env):
            return False
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other: int) -> bool:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> bool:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, operator.ge)

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        # Not that of the stand-in, so that no container takes one for the other.
        return hash(self._polynomial)

    # ------------------------------------------------------------------ what needs the number

    def _number(self, *others: Any, **options: object) -> NoReturn:
        need_number(self)

    __int__ = __index__ = __float__ = __complex__ = __round__ = _number
    __trunc__ = __floor__ = __ceil__ = _number
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __array__ = __array_ufunc__ = _number

    def __repr__(self) -> str:
        return "None"


def _value(n: Any) -> int:
    """The bare number, of a SymbolicDim the one that stands in."""
    return n._value if type(n) is SymbolicDim else n


def _divided(a: Any, b: Any, how: str) -> Any:
    pa, pb = _polynomial(a), _polynomial(b)
    if b == 0:
        raise ZeroDivisionError("division by a length of 0")
    # `b == 0` has noted its guard: for lengths that make it 0 the trace is not right.
    value = _DIVISIONS[how](_value(a), _value(b))
    length = a if type(a) is SymbolicDim else b
    exact = _quotient(pa, pb)
    if exact is not None:
        return length._with(value, exact) if how == "//" else 0
    return length._with(value, ((((how, pa, pb),), 1),))


def is_open(shape: tuple[int | SymbolicDim, ...]) -> bool:
    """Whether a length in `shape` is open."""
    return any(type(n) is SymbolicDim for n in shape)


def comparable(shape: Iterable[int]) -> tuple[object, ...]:
    """A shape as a key, whose comparison notes no guards."""
    return tuple([n._polynomial if type(n) is SymbolicDim else n for n in shape])


def need_number(length: SymbolicDim) -> NoReturn:
    """The number of a SymbolicDim is needed.

    Raises:
        ConcreteDimNeeded: always.
    """
    length._env.needed = True
    raise ConcreteDimNeeded


def require_known(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """`lengths`, of which none may be open, because code is about to depend on every one.

    Raises:
        ConcreteDimNeeded: one is open.
    """
    for n in lengths:
        if type(n) is SymbolicDim:
            need_number(n)
    return lengths


def slice_length(length: Any, start: int | None, stop: int | None, step: int | None) -> Any:
    """How many items of an axis a slice takes."""
    if type(length) is not SymbolicDim:
        return len(range(*slice(start, stop, step).indices(length)))
    # `range` would need the number; this is what it computes, in arithmetic that a SymbolicDim
    # takes.
    step = 1 if step is None else step
    lowest, highest = (0, length) if step > 0 else (-1, length - 1)

    def bound(given: int | None, default: object) -> Any:
        if given is None:
            return default
        return max(given + length, lowest) if given < 0 else min(given, highest)

    first, last = (lowest, highest) if step > 0 else (highest, lowest)
    span = bound(stop, last) - bound(start, first)
    return max(-(-span // step), 0)
