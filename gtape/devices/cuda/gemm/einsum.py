"""A sum of products of two arrays over named axes as one batched matrix product."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from gtape.devices.cuda.gemm.gemm import matmul
from gtape.devices.cuda.runtime.executor import Executor


class _Letters(NamedTuple):
    """The letters of an equation: those of both arrays and the result, of a and the result, of b
    and the result, and of both arrays alone."""

    batch: str
    rows: str
    columns: str
    inner: str


def einsum(gpu: Executor, *values: Any, equation: str) -> Any:
    """The contraction "ab,bc->ac" of two arrays, any number of letters of each kind; the result may
    be a view. None where it is no product of two matrices, or cuBLASLt does not serve it."""
    if len(values) != 2:
        return None
    a, b = values
    terms, _, result = equation.partition("->")
    first, _, second = terms.partition(",")
    letters = _letters(first, second, result)
    if letters is None:
        return None
    batch, rows, columns, inner = letters
    sizes = dict(zip(first, a.shape)) | dict(zip(second, b.shape))
    product = matmul(gpu, _stack(a, first, batch, rows, inner, sizes),
                     _stack(b, second, batch, inner, columns, sizes))
    if product is None:
        return None
    order = batch + rows + columns
    product = product.reshape(tuple(sizes[x] for x in order))
    return product if order == result else product.transpose([order.index(x) for x in result])


@lru_cache(1024)
def _letters(first: str, second: str, result: str) -> _Letters | None:
    """None: a letter repeats, or stands in one term alone, or nothing is summed."""
    if len(set(first)) < len(first) or len(set(second)) < len(second):
        return None
    both = [x for x in first if x in second]
    letters = _Letters("".join(x for x in both if x in result),
                       "".join(x for x in first if x not in second),
                       "".join(x for x in second if x not in first),
                       "".join(x for x in both if x not in result))
    lone = any(x not in result for x in letters.rows + letters.columns)
    return None if lone or not letters.inner else letters


def _stack(x: Any, term: str, batch: str, rows: str, columns: str, sizes: dict[str, int]) -> Any:
    """x as matrices [batch…, rows, columns]; a view where several letters of a kind allow it."""
    order = batch + rows + columns
    seen = x if order == term else x.transpose([term.index(c) for c in order])
    if len(rows) == 1 and len(columns) == 1:
        return seen
    return seen.reshape((*[sizes[c] for c in batch], prod(sizes[c] for c in rows),
                         prod(sizes[c] for c in columns)))
