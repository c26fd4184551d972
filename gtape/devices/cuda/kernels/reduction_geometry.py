"""The launch geometry of reductions: one rule for shipped and for printed kernels.

A reduction over any axes is a sequence of reductions of [outer, reduced, inner] over its middle
axis (`steps`), and each of those one or two launches (`plan`) of `reduce_rows` or `reduce_columns`
of `kernels/reduce.cuh`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from gtape.devices.cuda.runtime.executor import Executor, Grid, power_of_two

#: Threads of a block: REDUCE_THREADS of kernels/reduce.cuh.
THREADS = 256
#: Blocks of a grid for each multiprocessor; what is left is looped over.
_WAVES = 64


class Form(NamedTuple):
    """A reduction over the middle axis."""

    outer: int
    reduced: int
    inner: int


class Stage(NamedTuple):
    """One launch: its template, "rows" or "columns", the template's V, and its arguments.
    `reduce_rows` takes (outer, reduced, lanes, part_length), `reduce_columns` takes (outer,
    reduced, inner, lanes, part_length). The result is [outer, parts, inner]."""

    template: str
    form: Form
    width: int
    lanes: int
    parts: int
    part_length: int
    grid: Grid
    block: Grid

    @property
    def sizes(self) -> tuple[int, ...]:
        """The template's arguments after Load and Output."""
        form = self.form[:2] if self.template == "rows" else self.form
        return (*form, self.lanes, self.part_length)

    @property
    def results(self) -> int:
        """How many values the launch writes."""
        return self.form.outer * self.parts * self.form.inner


class ReductionGeometry(NamedTuple):
    """The launches of a reduction. With a second one, the first writes accumulators of shape
    [outer, parts, inner], which the second reads and reduces over `parts`."""

    first: Stage
    second: Stage | None


# Shapes of steady programs recur, and working this out takes longer than a launch; beyond the limit
# the oldest go.
@lru_cache(4096)
def steps(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Form, ...]:
    """The reductions that together reduce `axes` of a C-contiguous array of `shape`. Neighbouring
    axes that are all reduced, or all kept, count as one. Where kept axes part the reduced ones, the
    longest goes first, so that the others read little; no axis is transposed."""
    runs: list[tuple[int, bool]] = []
    for i, n in enumerate(shape):
        if n == 1:
            continue
        if runs and runs[-1][1] == (i in axes):
            runs[-1] = (runs[-1][0] * n, runs[-1][1])
        else:
            runs.append((n, i in axes))
    forms = []
    while any(reduced for _, reduced in runs):
        at = max((i for i, run in enumerate(runs) if run[1]), key=lambda i: runs[i][0])
        outer = math.prod(n for n, _ in runs[:at])
        inner = math.prod(n for n, _ in runs[at + 1:])
        forms.append(Form(outer, runs[at][0], inner))
        del runs[at]
    return tuple(forms) or (Form(1, 1, math.prod(n for n, _ in runs)),)


def plan(outer: int, reduced: int, inner: int, itemsize: int, gpu: Executor,
         running: int = 4) -> ReductionGeometry:
    """The launches that reduce a non-empty [outer, reduced, inner] over its middle axis.

    Args:
        itemsize: bytes of an element as it is loaded; of several inputs, the widest.
        running: bytes of an accumulator.
    """
    return planned(Form(outer, reduced, inner), itemsize, running, gpu.multiprocessors)


@lru_cache(4096)
def planned(form: Form, itemsize: int, running: int, multiprocessors: int) -> ReductionGeometry:
    """`plan` for a device of that many multiprocessors."""
    first = stage(form, itemsize, multiprocessors, True)
    if first.parts == 1:
        return ReductionGeometry(first, None)
    rest = Form(form.outer, first.parts, form.inner)
    return ReductionGeometry(first, stage(rest, running, multiprocessors, False))


def stage(form: Form, itemsize: int, multiprocessors: int, cut: bool) -> Stage:
    """One launch; `cut`: the reduced axis may be cut into parts."""
    make = _rows if form.inner == 1 else columns
    return make(form, max(1, 16 // itemsize), multiprocessors, cut)


def _rows(form: Form, width: int, multiprocessors: int, cut: bool) -> Stage:
    """Few lanes for short rows, so that each has loads in flight; a block for long ones; several
    blocks for a long row where the rows are too few to fill the device."""
    vectors = -(-form.reduced // width)
    lanes = max(min(4, power_of_two(vectors)), power_of_two(-(-vectors // 4)))
    if lanes > 32:
        lanes = min(THREADS, max(32, power_of_two(-(-vectors // 8))))
    parts = 1
    # Parts need a second launch. They pay only where rows alone leave multiprocessors idle, and
    # where a part still has four vectors for each of its threads.
    if cut and form.outer < 2 * multiprocessors and vectors > 8 * THREADS:
        parts = max(1, min(4 * multiprocessors // form.outer, vectors // (4 * THREADS)))
    # Whole vectors in every part but the last, so that each begins where a wide load may.
    part_length = -(-form.reduced // (parts * 8 * width)) * 8 * width if parts > 1 else form.reduced
    parts = -(-form.reduced // part_length)
    block = max(32, min(THREADS, power_of_two(form.outer) * lanes))
    blocks = -(-form.outer * lanes // block)
    return Stage("rows", form, width, lanes, parts, part_length,
                 (min(blocks, multiprocessors * _WAVES), parts, 1), (block, 1, 1))


def columns(form: Form, width: int, multiprocessors: int, cut: bool) -> Stage:
    """The launch of `reduce_columns`, which serves every form: a thread for `width` columns where
    they are many; else several threads share a column, and then several blocks."""
    across = form.inner // width if form.inner % width == 0 else form.inner
    count = form.outer * across
    lanes = min(32, power_of_two(count))
    # 1024 threads on each multiprocessor have loads enough in flight; half of the column at most,
    # so that each thread has two elements and the tree is not all there is.
    depth = min(power_of_two(-(-multiprocessors * 1024 // count)),
                max(1, power_of_two(form.reduced) // 2), THREADS // lanes)
    depth = max(depth, 32 // lanes)
    lanes = min(THREADS // depth, power_of_two(count))
    tiles = -(-count // lanes)
    room = 4 * multiprocessors // tiles
    parts = max(1, min(room, form.reduced // (depth * 16))) if cut and room > 1 else 1
    part_length = -(-form.reduced // parts)
    parts = -(-form.reduced // part_length)
    return Stage("columns", form, width, lanes, parts, part_length,
                 (min(tiles, multiprocessors * _WAVES), parts, 1), (lanes * depth, 1, 1))
