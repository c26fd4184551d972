"""How row-major products become column-major ones: matrices, leading dimensions, batches.

cuBLASLt is column-major. The memory of a row-major matrix X [r, c] whose rows lie `ld` elements
apart is that of the column-major matrix Xᵀ [c, r] with columns `ld` apart. So the row-major product
C [m, n] = A [m, k] B [k, n] is computed as Cᵀ = Bᵀ Aᵀ: the library's first factor is our B, its
second our A, and its result has n rows and m columns. Nothing is copied: B in row-major memory is
already Bᵀ, and B in column-major memory (a transposed view) is Bᵀ after the library's transpose.

What follows for epilogues: "one bias for each row of D" is one for each of our columns, that is for
each feature; "the gradient of the bias from A, one for each row of D" (BGRADA) is Σ over k of our
B, one for each of our columns; BGRADB is Σ over k of our A, one for each of our rows.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

#: Beyond this many launches, copies of the operands, which make one launch possible, are cheaper.
MOST_LAUNCHES = 32


class Strided(NamedTuple):
    """A stack of matrices in memory: lengths, and strides in elements, of all axes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def transposed(self) -> Strided:
        """With the last two axes exchanged."""
        return Strided((*self.shape[:-2], self.shape[-1], self.shape[-2]),
                       (*self.strides[:-2], self.strides[-1], self.strides[-2]))


class Matrix(NamedTuple):
    """A matrix in memory: row-major, or column-major if `transposed`, its lines `ld` apart."""

    transposed: bool
    ld: int


class ProductGeometry(NamedTuple):
    """A product as the library takes it. `batch` is how many products one launch computes and the
    distances between their operands a, b, c; `offsets` has those of the launches."""

    m: int
    n: int
    k: int
    a: Matrix
    b: Matrix
    ldc: int
    batch: tuple[int, int, int, int]
    offsets: tuple[tuple[int, int, int], ...]


class Axis(NamedTuple):
    """An axis of the batch: its length and the strides of a, b and c along it."""

    size: int
    a: int
    b: int
    c: int


def matrix(rows: int, columns: int, row_stride: int, column_stride: int) -> Matrix | None:
    """How to read a matrix without a copy; None where neither order does."""
    by_rows = _leading(columns, column_stride, rows, row_stride)
    by_columns = _leading(rows, row_stride, columns, column_stride)
    # A single column fits both. Read as one line its length does not break the alignment.
    if by_columns and (not by_rows or columns < rows):
        return Matrix(True, by_columns)
    return Matrix(False, by_rows) if by_rows else None


def _leading(inner: int, inner_stride: int, outer: int, outer_stride: int) -> int:
    """The leading dimension of lines of `inner` elements; 0 where they are no such lines."""
    # A line of one element is contiguous whatever its stride says.
    if inner_stride != 1 and inner > 1:
        return 0
    if outer <= 1:
        return max(1, inner)
    return outer_stride if outer_stride >= max(1, inner) else 0


def contiguous(shape: tuple[int, ...]) -> Strided:
    """The strides of a C-contiguous array."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return Strided(shape, tuple(reversed(strides)))


def geometry(a: Strided, b: Strided, c: Strided) -> ProductGeometry | None:
    """c = a b without copies; None where the strides do not allow it. No axis has length 0."""
    (m, k), n = a.shape[-2:], b.shape[-1]
    axes = _batch(a, b, c)
    row_a, row_c = a.strides[-2], c.strides[-2]
    while axes and axes[-1].b == 0 and (m == 1 or axes[-1].a == m * row_a) and (
            m == 1 or axes[-1].c == m * row_c):
        # The rows of all of a meet one b: they are the rows of one larger matrix.
        axis = axes.pop()
        if m == 1:
            row_a, row_c = axis.a, axis.c
        m *= axis.size
    left, right = matrix(m, k, row_a, a.strides[-1]), matrix(k, n, *b.strides[-2:])
    ldc = _leading(n, c.strides[-1], m, row_c)
    if left is None or right is None or not ldc:
        return None
    # The longest axis is the library's batch, of one launch; others take a launch for each step.
    batch = max(axes, default=Axis(1, 0, 0, 0))
    if axes:
        axes.remove(batch)
    return ProductGeometry(m, n, k, left, right, ldc, batch, _offsets(axes))


def _batch(a: Strided, b: Strided, c: Strided) -> list[Axis]:
    """The batch axes; those that one stride describes for all operands are one."""
    axes: list[Axis] = []
    rank = len(c.shape) - 2
    for i, size in enumerate(c.shape[:-2]):
        if size == 1:
            continue
        axis = Axis(size, _stride(a, i - rank), _stride(b, i - rank), c.strides[i])
        last = axes[-1] if axes else None
        if last and all(s == t * size for s, t in zip(last[1:], axis[1:])):
            axes[-1] = Axis(last.size * size, *axis[1:])
        else:
            axes.append(axis)
    return axes


def _stride(x: Strided, axis: int) -> int:
    """The stride of a batch axis, counted from the matrices; 0 where it broadcasts."""
    at = len(x.shape) - 2 + axis
    return x.strides[at] if at >= 0 and x.shape[at] > 1 else 0


def _offsets(axes: list[Axis]) -> tuple[tuple[int, int, int], ...]:
    offsets = []
    for index in product(*[range(axis.size) for axis in axes]):
        offsets.append((sum(i * x.a for i, x in zip(index, axes)),
                        sum(i * x.b for i, x in zip(index, axes)),
                        sum(i * x.c for i, x in zip(index, axes))))
    return tuple(offsets)
