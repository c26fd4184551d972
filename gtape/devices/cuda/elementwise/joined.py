"""A formula applied to the tensors of many members, all in one launch.

    updates = JoinedMap(gpu, update, [w.shape for w in weights], [True, True, False])
    new = updates([w0, g0, rate, w1, g1, rate, ...])

The kernel reads the members from a table, which has a row of long longs for each: how many elements
it has, and the addresses of its inputs and of its results. `chunks[c]` is the row of a chunk in the
upper 32 bits and its number within the member in the lower; a block takes whole chunks. Inputs are
read as in `map_text`, in mode "each" or "one". Nothing here waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from gtape.devices.cuda.elementwise.elementwise_map import ElementwiseMap
from gtape.devices.cuda.elementwise.map_text import (
    BLOCK,
    MapFormula,
    MapOperand,
    MapWriter,
    element_text,
    entry_of,
    program,
)
from gtape.devices.cuda.runtime.executor import Executor, numpy_dtype
from gtape.devices.cuda.runtime.kernel import Kernel, address
from gtape.opdef.cuda_text import C_TYPES


def joined_entry(formula: MapFormula, operands: Sequence[MapOperand]) -> str:
    """The kernel's name: joined_, and the formula's as in a map."""
    return f"joined_{entry_of(formula, operands, False)}"


def joined_text(formula: MapFormula, operands: Sequence[MapOperand]) -> str:
    """The kernel and its device function."""
    name = joined_entry(formula, operands)
    writer = MapWriter(f"{name}_at", formula, operands, 0)
    words = 1 + len(operands) + len(formula.results)
    return (
        f"// {'; '.join(map(repr, formula.outputs))}\n"
        f"{element_text(f'{name}_at', formula, operands)}\n"
        f"__global__ void __launch_bounds__({BLOCK}, 2) {name}(const void* __restrict__ table, "
        f"const long long* __restrict__ chunks, long long count, long long chunk) {{\n"
        "    using index_t = unsigned int;\n"
        "    const index_t step = blockDim.x;\n"
        "    for (long long c = blockIdx.x; c < count; c += gridDim.x) {\n"
        f"    const long long* row = static_cast<const long long*>(table) + (chunks[c] >> 32) * "
        f"{words};\n"
        "    const long long from = (chunks[c] & 0xffffffffll) * chunk;\n"
        "    const index_t n = (index_t)(row[0] - from < chunk ? row[0] - from : chunk);\n"
        f"{''.join(_pointers(formula, operands))}"
        "    index_t start = threadIdx.x;\n"
        f"{writer.hoisted()}"
        f"{writer.wide_loop()}"
        "    for (index_t i = start; i < n; i += step) {\n"
        f"        {name}_at({writer.element_arguments()});\n"
        "    }\n"
        "    }\n"
        "}\n")


def _pointers(formula: MapFormula, operands: Sequence[MapOperand]) -> list[str]:
    """The arrays of a chunk, from its first element on."""
    places = [(f"in{i}", f"const {C_TYPES[o.dtype]}", o.mode) for i, o in enumerate(operands)]
    places += [(f"out{i}", C_TYPES[r], "each") for i, r in enumerate(formula.results)]
    return [f"    {kind}* __restrict__ {name} = reinterpret_cast<{kind}*>("
            f"(unsigned long long)row[{word}]){' + from' if mode == 'each' else ''};\n"
            for word, (name, kind, mode) in enumerate(places, 1)]


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
        # The addresses themselves: a table is right as long as they are the same, whoever holds
        # them.
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
