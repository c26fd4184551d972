"""Choices: `if` statements, conditional expressions, `and`, `or` and chains of comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import gtape as tf
from gtape.autograph.conditions import not_, run_branch, traced_tensor, truth
from gtape.autograph.state import (
    UNSET,
    Snapshot,
    State,
    as_tensor,
    check,
    crosses,
    in_place_of,
    leaves,
    same,
)
from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.errors import NotTraceableError
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.control.tensor_array import TensorArray

lt, le, gt, ge, eq, ne = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq,
                          operator.ne)
is_, is_not = operator.is_, operator.is_not

_SIDES = ("where the condition holds", "where it does not hold")


def in_(a: Any, b: Any) -> bool:  # operator.contains takes them the other way round
    return a in b


def not_in(a: Any, b: Any) -> bool:
    return a not in b


def if_(test: TensorLike, then: Callable[[], object], other: Callable[[], object] | None,
        state: State | None, line: int) -> Any:
    """`then()` or `other()`; for a traced condition tf.cond of both. Gives what they return."""
    return decide(test, then, other or _nothing, state, f"{then.__code__.co_filename}:{line}")


def decide(test: TensorLike, then: Callable[[], object], other: Callable[[], object],
           state: State | None, where: str, result: str = "the result") -> Any:
    """`then() if test else other()`, where the two change `state`."""
    traced = traced_tensor(test)
    if traced is None:
        return then() if test else other()
    return _Choice(truth(traced), then, other, state, where, result).run()


def choose(test: TensorLike, then: Callable[[], object], other: Callable[[], object], line: int,
           ) -> Any:
    """`then() if test else other()`"""
    where = f"{then.__code__.co_filename}:{line}"
    return decide(test, then, other, None, where, "the value of if … else")


def _nothing() -> None:
    return None


def and_(safe: bool, value: TensorLike, *others: Callable[[], Any]) -> Any:
    """`value and others[0]() and …`; `safe` where evaluating the others needlessly does no harm."""
    return _chosen("and", safe, value, others)


def or_(safe: bool, value: TensorLike | None, *others: Callable[[], Any]) -> Any:
    """`value or others[0]() or …`; `safe` as for `and_`."""
    return _chosen("or", safe, value, others)


def _chosen(word: str, safe: bool, value: Any, others: tuple[Callable[[], Any], ...]) -> Any:
    # What decides by itself: a false operand of `and`, a true one of `or`.
    ends = word == "or"
    for i, other in enumerate(others):
        traced = traced_tensor(value)
        if traced is not None:
            return _of_traced(word, safe, traced, others[i:])
        if bool(value) is ends:
            return value
        value = other()
    return value


def _of_traced(word: str, safe: bool, left: Any, others: tuple[Callable[[], Any], ...]) -> Any:
    """The traced operand `left`, and those behind it."""
    def rest() -> Any:
        return _chosen(word, safe, others[0](), others[1:])

    # `and` and `or` give an operand, which is no bool here.
    if not safe or left.dtype is not tf.bool:
        return _logic(word, left, rest, others[0])
    # One op on two flags costs less than a choice, of which both branches are traced.
    right = rest()
    if type(right) is bool:
        return truth(left) if right is (word == "and") else right
    if _is_bool_scalar(right):
        both = tf.logical_and if word == "and" else tf.logical_or
        return both(truth(left), right)
    return _logic(word, left, lambda: right, others[0])


def _is_bool_scalar(value: Tensor) -> bool:
    return isinstance(value, Tensor) and value.dtype is tf.bool and not value.ndim


def _logic(word: str, left: Tensor, rest: Callable[[], object], shown: Callable[[], object]) -> Any:
    """A choice by `left`, the operand before the one that `shown` computes."""
    code = shown.__code__
    where = f"{code.co_filename}:{code.co_firstlineno}"
    then, other = (rest, lambda: left) if word == "and" else (lambda: left, rest)
    return decide(left, then, other, None, where, f"the value of {word}")


def chain(safe: bool, left: TensorLike, *pairs: tuple[Callable[[Any, Any], Any], Callable[[], Any]],
          ) -> Any:
    """left op₀ value₀() and value₀() op₁ value₁() …, each computed once, and only if needed."""
    (compare, value), *rest = pairs
    right = value()
    found = compare(left, right)
    return and_(safe, found, lambda: chain(safe, right, *rest)) if rest else found


class _BranchAgain(Exception):
    """The second branch told what the first one must give."""


class _Choice:
    """A choice by a traced condition: both branches are traced, what they change is joined.

    The first branch gives its numbers as tensors before anyone knows what the second one gives.
    Two things it cannot know then: the specs of an `open` variable that only the second one sets,
    and whether a Python bool, mostly a flag, must become a tensor: two different bools are the
    condition itself. When it guessed wrong, both are traced anew with that knowledge.

    Where one branch cannot be traced, the other is all that there is: see `ops.control.premises`.
    """

    def __init__(self, pred: Tensor, then: Callable[[], object], other: Callable[[], object],
                 state: State | None, where: str, result: str) -> None:
        self._pred = pred
        self._branches = (then, other)
        self._where = where
        self._state = Snapshot(state)
        self._names = [result, *(f"'{s.name}'" for s in self._state.read)]
        self._kinds = ["live", *(s.kind for s in self._state.read)]
        self._first: list[Any] = []
        self._second: list[Any] = []
        self._counts: list[int] = []
        #: The branch that cannot be traced.
        self._lost: int | None = None
        self._with_bools: set[int] = set()
        self._missing: dict[int, list[Spec]] = {}

    def run(self) -> Any:
        while True:
            self._first, self._second, self._lost = [], [], None
            try:
                made = tf.cond(self._pred, self._run_first, self._run_second)
            except _BranchAgain:  # each round knows more of the second branch than the last
                continue
            if self._lost is not None:
                result, *values = self._first or self._second
                self._state.store(values)
                return result
            # tf.cond gives the tensors only: Python's objects come from the branches themselves.
            joined = self._joined(nest.flatten(made))
            self._state.store(joined[1:])
            return joined[0]

    def _run(self, at: int) -> list[Any]:
        self._state.restore()
        for slot in self._state.slots:  # they are written to in place
            if isinstance(slot.get(), TensorArray):
                slot.set(slot.get().blank())
        try:
            result = run_branch(self._branches[at], self._where)
        except NotTraceableError:
            self._lost = at
            raise
        return [result, *self._state.values()]

    def _run_first(self) -> tuple[Tensor, ...]:
        self._first = self._run(0)
        given = [self._given(i, v) for i, v in enumerate(self._first)]
        self._counts = [len(g) for g in given]
        return tuple(t for g in given for t in g)

    def _run_second(self) -> tuple[Tensor, ...]:
        self._second = self._run(1)
        pairs = zip(self._first, self._second)
        return tuple(t for i, (a, b) in enumerate(pairs) for t in self._matching(i, a, b))

    def _given(self, at: int, value: object) -> list[Any]:
        """The tensors of a value; zeros for one that is not set but will be."""
        if value is UNSET:
            return zeros(self._missing.get(at, []))
        return [as_tensor(leaf) for leaf in leaves(value) if self._crosses(at, leaf)]

    def _crosses(self, at: int, leaf: object) -> bool:
        return crosses(leaf) and (type(leaf) is not bool or at in self._with_bools)

    def _matching(self, at: int, a: object, b: object) -> list[Any]:
        """The tensors of the second branch's value, as many as the first branch gave."""
        if same(a, b):
            return self._given(at, b)
        if a is UNSET or b is UNSET:
            return self._half_set(at, a, b)
        check(self._names[at], a, b, self._where, _SIDES)
        mixed = any((type(x) is bool) is not (type(y) is bool)
                    for x, y in zip(leaves(a), leaves(b)))
        if mixed and at not in self._with_bools:
            self._with_bools.add(at)
            raise _BranchAgain
        return self._given(at, b)

    def _half_set(self, at: int, a: object, b: object) -> list[object]:
        if self._kinds[at] in ("live", "then" if a is UNSET else "else"):
            raise ValueError(
                f"{self._where}: {self._names[at]} must be set in both branches, because the "
                f"condition is a traced tensor and {self._names[at]} is read later; it is set "
                f"only {_SIDES[a is UNSET]}. Set it before the if")
        if b is UNSET:
            return zeros([t.spec for t in self._given(at, a)])  # never read: tf.cond wants alike
        if self._kinds[at] == "weak":
            return []
        given = self._given(at, b)
        specs = [t.spec for t in given]
        if specs != self._missing.get(at, []):
            self._missing[at] = specs
            raise _BranchAgain
        return given

    def _joined(self, tensors: list[object]) -> list[object]:
        made = []
        for at, (a, b) in enumerate(zip(self._first, self._second)):
            given, tensors = tensors[:self._counts[at]], tensors[self._counts[at]:]
            made.append(a if same(a, b) else self._join(at, a, b, given))
        return made

    def _join(self, at: int, a: Any, b: Any, given: list[object]) -> Any:
        if a is UNSET or b is UNSET:
            if self._kinds[at] == "weak":
                return UNSET
            a = b = b if a is UNSET else a
        rest = iter(given)
        found = [in_place_of(x, next(rest)) if self._crosses(at, x) else self._bool(x, y)
                 for x, y in zip(leaves(a), leaves(b))]
        return nest.pack_sequence_as(a, found) if nest.is_nested(a) else found[0]

    def _bool(self, x: object, y: object) -> Any:
        """One of two leaves that are alike, or are two Python bools."""
        if type(x) is not bool or x is y:
            return x
        return self._pred if x else not_(self._pred)


def zeros(specs: list[Spec]) -> list[Any]:
    """Zeros in place of values that will not be read."""
    return [tf.zeros(spec.shape, spec.dtype) for spec in specs]
