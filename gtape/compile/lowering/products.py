"""Matrix products, and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gtape.compile.ir.builder import Attrs, Builder, elementwise, lowers
from gtape.compile.ir.nodes import StridedLayout, Value, dense
from gtape.core.spec import Spec
from gtape.numerics.contraction import order_of
from gtape.ops.elementwise import scalars
from gtape.ops.linalg import contraction, products

_REAL = ("float32", "float64")


def _swapped(b: Builder, x: Value) -> Value:
    n = len(x.shape)
    return b.transposed(x, (*range(n - 2), n - 1, n - 2))


def product(b: Builder, x: Value, y: Value) -> Value:
    """x @ y; where y is one matrix, the batch axes of x are more rows."""
    # One large product is faster than a batch of small ones, and its weights are packed once.
    if len(y.shape) == 2 and len(x.shape) > 2:
        rows = math.prod(x.shape[:-1])
        flat = b.product(b.reshaped(x, (rows, x.shape[-1])), y)
        return b.reshaped(flat, (*x.shape[:-1], y.shape[-1]))
    return b.product(x, y)


@lowers(products.matmul_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    left, right = x
    if left.dtype not in _REAL or not left.size or not right.size:
        return None
    if attrs["transpose_a"]:
        left = _swapped(b, left)
    if attrs["transpose_b"]:
        right = _swapped(b, right)
    return product(b, left, right)


@lowers(contraction.einsum_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if x[0].dtype not in _REAL or any(not v.size for v in x):
        return None
    names, _, result = attrs["equation"].partition("->")
    left = [_diagonal(b, term, v) for term, v in zip(names.split(","), x)]
    shapes = tuple(v.shape for _, v in left)
    # Always i < j: without the second term, the first is where it was.
    for i, j in order_of(tuple(term for term, _ in left), shapes, result):
        (second, y), (first, v) = left.pop(j), left.pop(i)
        others = "".join(term for term, _ in left) + result
        left.append(_pair(b, first, v, second, y, others))
    (term, value), = left
    gone = [i for i, letter_ in enumerate(term) if letter_ not in result]
    if gone:
        value = b.reduced("sum", value, gone, False)
        term = "".join(letter_ for letter_ in term if letter_ in result)
    return b.transposed(value, tuple(term.index(letter_) for letter_ in result))


def _pair(b: Builder, first: str, x: Value, second: str, y: Value, others: str,
          ) -> tuple[str, Value]:
    """Two terms contracted: (the letters left, the value)."""
    first, x = _summed(b, first, x, second + others)  # before the product, which is smaller then
    second, y = _summed(b, second, y, first + others)
    batch = [s for s in first if s in second and s in others]
    inner = [s for s in first if s in second and s not in others]
    rows = [s for s in first if s not in second]
    columns = [s for s in second if s not in first]
    left = _arranged(b, first, x, batch, rows, inner)
    right = _arranged(b, second, y, batch, inner, columns)
    sizes = dict(zip(first, x.shape)) | dict(zip(second, y.shape))
    if inner:
        product = b.product(left, right)
    else:
        product = elementwise(b, scalars.multiply, left, right)
    term = "".join([*batch, *rows, *columns])
    return term, b.reshaped(product, tuple(sizes[s] for s in term))


def _diagonal(b: Builder, term: str, x: Value) -> tuple[str, Value]:
    """The elements where all axes of a repeated letter have one index."""
    distinct = "".join(dict.fromkeys(term))
    if distinct == term:
        return term, x
    places = dense(x.shape)
    # A step along a diagonal is one along each of its axes.
    strides = tuple(sum(p for s, p in zip(term, places) if s == letter_) for letter_ in distinct)
    shape = tuple(x.shape[term.index(letter_)] for letter_ in distinct)
    return distinct, b.view(x, shape, StridedLayout(strides), None)


def _summed(b: Builder, term: str, x: Value, others: str) -> tuple[str, Value]:
    """Without the letters that no other term and not the result has."""
    gone = [i for i, s in enumerate(term) if s not in others]
    if not gone:
        return term, x
    return "".join(s for s in term if s in others), b.reduced("sum", x, gone, False)


def _arranged(b: Builder, term: str, x: Value, *groups: list[str]) -> Value:
    """The axes in the order of the groups; the axes of all groups but the first joined."""
    batch = groups[0]
    order = [s for group in groups for s in group]
    sizes = dict(zip(term, x.shape))
    moved = b.transposed(x, tuple(term.index(s) for s in order))
    return b.reshaped(moved, (*(sizes[s] for s in batch),
                              *(math.prod(sizes[s] for s in group) for group in groups[1:])))
