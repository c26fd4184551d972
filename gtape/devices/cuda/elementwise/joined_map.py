"""JoinedMap: a formula applied to the tensors of many members, all in one launch.

    updates = JoinedMap(gpu, update, [w.shape for w in weights], [True, True, False])
    new = updates([w0, g0, rate, w1, g1, rate, ...])

Nothing here waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from gtape.devices.cuda.elementwise.elementwise_map import ElementwiseMap
from gtape.devices.cuda.elementwise.joined_text import joined_entry, joined_text
from gtape.devices.cuda.elementwise.map_text import BLOCK, MapFormula, MapOperand, program
from gtape.devices.cuda.runtime.addresses import address
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel

#: Blocks for each multiprocessor, and the chunks that each of them should have.
_BLOCKS, _CHUNKS_EACH = 4, 32
#: The least is eight elements for each thread of a block, so that its loads are wide.
_LEAST_CHUNK, _MOST_CHUNK = 2048, 1 << 16
#: Steps of training take and free memory alike, so few tables recur, and the others are let go.
_TABLES = 64


class JoinedMap:
    """A map for several members.

    Args:
        gpu: where it runs.
        one: the map for one member.
        shapes: of each member's results.
        each: which inputs have the shape of the results; others have one element.
    """

    def __init__(self, gpu: Executor, one: ElementwiseMap, shapes: Sequence[tuple[int, ...]],
                 each: Sequence[bool]) -> None:
        self._gpu = gpu
        self._shapes = tuple(shapes)
        self._results = [numpy_dtype(r) for r in one.formula.results]
        self._operands = tuple([MapOperand(d, "each" if whole else "one")
                                for d, whole in zip(one.dtypes, each)])
        self._kernel = joined_kernel(one.formula, self._operands)
        sizes = [math.prod(shape) for shape in shapes]
        self._chunk = chunk_length(sum(sizes), gpu.multiprocessors)
        counts = np.array([-(-size // self._chunk) for size in sizes], np.int64)
        ends = np.cumsum([0, *counts])
        self.pieces = int(ends[-1])
        rows = np.repeat(np.arange(len(sizes)), counts)
        # A member and the number of a chunk in it, in one integer: a block reads 8 bytes to know
        # its work.
        self._chunks = gpu.xp.asarray(rows << 32 | np.arange(self.pieces) - ends[rows])
        self._rows = np.zeros((len(sizes), 1 + len(each) + len(self._results)), np.int64)
        self._rows[:, 0] = sizes
        self._tables: dict[bytes, Any] = {}

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The results of all members, one member after another, for the inputs of all members."""
        gpu, count = self._gpu, len(self._operands)
        arrays = [gpu.contiguous(a) for a in arrays]
        outs = [gpu.empty(shape, d) for shape in self._shapes for d in self._results]
        rows = self._rows.copy()
        rows[:, 1: 1 + count] = np.array(list(map(address, arrays))).reshape(-1, count)
        rows[:, 1 + count:] = np.array(list(map(address, outs))).reshape(len(rows), -1)
        grid = min(self.pieces, gpu.multiprocessors * _BLOCKS), 1, 1
        gpu.launch(self._kernel, grid, (BLOCK, 1, 1),
                   (self._table(rows), self._chunks, self.pieces, self._chunk))
        return outs

    def _table(self, rows: np.ndarray) -> Any:
        """The rows on the device: memory that is freed and taken again has its old addresses."""
        key = rows.tobytes()
        table = self._tables.get(key)
        if table is None:
            if len(self._tables) >= _TABLES:
                self._tables.clear()
            table = self._tables[key] = self._gpu.xp.asarray(rows)
        return table


@cache
def joined_kernel(formula: MapFormula, operands: tuple[MapOperand, ...]) -> Kernel:
    """The kernel of a formula for many members."""
    return Kernel(program(joined_text(formula, operands)), joined_entry(formula, operands))


def chunk_length(total: int, multiprocessors: int) -> int:
    """A power of 2 that gives every block many chunks where there is much to do, so that blocks end
    at about the same time."""
    length = _LEAST_CHUNK
    while length < _MOST_CHUNK and length * multiprocessors * _BLOCKS * _CHUNKS_EACH < total:
        length *= 2
    return length
