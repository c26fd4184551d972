"""Sums of products over named axes, by matrix multiplication.

A term names the axes of one array, one letter each. Two arrays are contracted as one batched
matrix product: the letters of both and of the result are batch axes, the letters that only one
array and the result have are rows or columns, and the rest are summed.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import ModuleType
from typing import Any

from .sums import total


def contract(xp: ModuleType, arrays: list[Any], terms: tuple[str, ...], result: str) -> Any:
    """Σ over the letters not in `result` of the product of `arrays`, in the order of `result`.
    Letters of one term may repeat (a diagonal); letters of `result` may not."""
    dtype = arrays[0].dtype
    # BLAS has no two-byte floats, and each of several products would be rounded to them.
    narrow = dtype.name in ("float16", "bfloat16")
    work = [a.astype("float32") for a in arrays] if narrow else list(arrays)
    contracted = _reduce(xp, work, list(terms), result)
    return contracted.astype(dtype) if contracted.dtype != dtype else contracted


def _reduce(xp: ModuleType, arrays: list[Any], terms: list[str], result: str) -> Any:
    for i, term in enumerate(terms):
        others = "".join(terms[:i] + terms[i + 1:]) + result
        arrays[i], terms[i] = _simplified(xp, arrays[i], term, others)
    for i, j in order_of(tuple(terms), tuple(a.shape for a in arrays), result):
        b, tb = arrays.pop(j), terms.pop(j)
        a, ta = arrays.pop(i), terms.pop(i)
        kept = _kept(ta, tb, "".join(terms) + result)
        arrays.append(_pair(xp, a, ta, b, tb, kept))
        terms.append(kept)
    return _arranged(xp, arrays[0], terms[0], result)


def _simplified(xp: ModuleType, array: Any, term: str, others: str) -> tuple[object, str]:
    """Diagonals taken, and letters summed that nothing else has."""
    seen = ""
    axis = 0
    for letter in term:
        if letter in seen:
            at = seen.index(letter)
            array = xp.moveaxis(xp.diagonal(array, axis1=at, axis2=axis), -1, at)
        else:
            seen += letter
            axis += 1
    gone = tuple(i for i, letter in enumerate(seen) if letter not in others)
    if gone:
        array = total(array, gone)
        seen = "".join(letter for letter in seen if letter in others)
    return array, seen


def _kept(first: str, second: str, others: str) -> str:
    """The letters of a product of two terms that are needed later; batch letters come first."""
    both = [x for x in first if x in second and x in others]
    return "".join(both + [x for x in first if x not in second and x in others]
                   + [x for x in second if x not in first and x in others])


# Every call asks, and the answer takes longer than a small product. Bounded, since the sizes belong
# to the question and a program may never repeat them.
@lru_cache(1024)
def order_of(terms: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], result: str,
           ) -> tuple[tuple[int, int], ...]:
    """Pairs (i < j) to contract in turn: each time the pair that leaves the fewest numbers."""
    sizes = {x: n for term, shape in zip(terms, shapes) for x, n in zip(term, shape)}
    left, steps = list(terms), []
    while len(left) > 1:
        def growth(pair: tuple[int, int]) -> float:
            i, j = pair
            others = "".join(left[:i] + left[i + 1: j] + left[j + 1:]) + result
            size = math.prod(sizes[x] for x in _kept(left[i], left[j], others))
            return size - math.prod(sizes[x] for x in left[i]) - math.prod(
                sizes[x] for x in left[j])

        pairs = [(i, j) for j in range(len(left)) for i in range(j)]
        i, j = min(pairs, key=growth)
        steps.append((i, j))
        second, first = left.pop(j), left.pop(i)
        left.append(_kept(first, second, "".join(left) + result))
    return tuple(steps)


@lru_cache(1024)
def _plan(first: str, second: str, kept: str) -> tuple[Any, ...]:
    batch = [x for x in first if x in second and x in kept]
    inner = [x for x in first if x in second and x not in kept]
    rows = [x for x in first if x not in second]
    columns = [x for x in second if x not in first]
    order_a = tuple(first.index(x) for x in batch + rows + inner)
    order_b = tuple(second.index(x) for x in batch + inner + columns)
    return len(batch), len(rows), len(inner), order_a, order_b


def _pair(xp: ModuleType, a: Any, first: str, b: Any, second: str, kept: str) -> Any:
    """The contraction of two arrays, as a batched matrix product of shape `kept`."""
    batch, rows, inner, order_a, order_b = _plan(first, second, kept)
    a = xp.transpose(a, order_a)
    b = xp.transpose(b, order_b)
    shape = (*a.shape[:batch + rows], *b.shape[batch + inner:])
    if not inner:  # no sum, nothing for BLAS to do
        left = a.reshape(a.shape + (1,) * (b.ndim - batch))
        return left * b.reshape(b.shape[:batch] + (1,) * rows + b.shape[batch:])
    left = a.reshape(*a.shape[:batch], math.prod(a.shape[batch:batch + rows]),
                     math.prod(a.shape[batch + rows:]))
    right = b.reshape(*b.shape[:batch], math.prod(b.shape[batch:batch + inner]),
                      math.prod(b.shape[batch + inner:]))
    return xp.matmul(left, right).reshape(shape)


def _arranged(xp: ModuleType, array: object, term: str, result: str) -> Any:
    if term == result:
        return xp.asarray(array)
    return xp.transpose(array, tuple(term.index(x) for x in result))


def sizes_of(terms: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
    """The length of each letter. Raises ValueError: the letters of a term differ in number from the
    axes, or a letter in length."""
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes):
        if len(term) != len(shape):
            raise ValueError(f"the term '{term}' names {len(term)} axes, the tensor has shape "
                             f"{list(shape)}")
        for letter, length in zip(term, shape):
            if sizes.setdefault(letter, length) != length:
                raise ValueError(f"the letter '{letter}' must have one length; got "
                                 f"{sizes[letter]} and {length}")
    return sizes
