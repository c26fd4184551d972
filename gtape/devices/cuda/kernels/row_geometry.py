"""Where a row of a matrix is held while a kernel works on it, and the launch that follows.

A row is read once where it fits: in the registers of part of a warp ("lanes") or of a block
("block"), or in shared memory ("shared"). A longer one is read twice ("stream"). Each name is the
end of a kernel's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from gtape.devices.cuda.runtime.executor import Executor, Grid

if TYPE_CHECKING:
    import numpy as np

_LANES_BLOCK = 128
_REGISTER_BLOCK = 256
_TILE_BLOCK = 512
_GRID_LIMIT = 2**31 - 1
#: Kept free for a kernel's static shared memory.
_STATIC_BYTES = 512


class RowValues(NamedTuple):
    """How many values of a row a thread holds: of a short row, of a longer one, and of a tile of a
    row that is copied to shared memory or read twice."""

    short: int
    long: int
    shared: int
    stream: int


#: By bytes of an element: 16 or 32 bytes of a short row, 32 to 64 of others. 64 bytes in flight
#: for each of 1024 threads keep the memory of a multiprocessor busy; more values of two bytes,
#: which are computed in four, do not fit into registers.
ONE_ROW = {2: RowValues(8, 32, 24, 16), 4: RowValues(8, 16, 16, 16), 8: RowValues(4, 8, 4, 8)}
#: The same where two rows are held.
TWO_ROWS = {2: RowValues(8, 16, 8, 16), 4: RowValues(8, 16, 8, 8), 8: RowValues(4, 4, 4, 4)}


class RowGeometry(NamedTuple):
    """A launch for rows: the kernel's form and its number of values, and how it is launched."""

    form: str
    values: int
    grid: Grid
    block: Grid
    smem: int
    #: How many lanes share a row in the form "lanes", as the kernel's last argument.
    lanes: tuple[int, ...]


def shared_bytes(gpu: Executor) -> int:
    """The dynamic shared memory that a block on `gpu` may have."""
    return gpu.shared_bytes - _STATIC_BYTES


def geometry(gpu: Executor, rows: int, cols: int, dtype: np.dtype, values: dict[int, RowValues],
             cached: int = 1) -> RowGeometry:
    """The launch for `rows` rows of `cols` elements.

    Args:
        values: ONE_ROW or TWO_ROWS.
        cached: how many rows "shared" keeps; 0: reading a row once needs no copy of it.
    """
    return _geometry(rows, cols, dtype.itemsize, values[dtype.itemsize], cached,
                     shared_bytes(gpu), gpu.multiprocessors)


# As in `reduction_geometry`: shapes recur, and this takes longer than a launch.
@lru_cache(4096)
def _geometry(rows: int, cols: int, itemsize: int, values: RowValues, cached: int, shared: int,
              multiprocessors: int) -> RowGeometry:
    if cols <= 32 * values.long:
        return _in_lanes(rows, cols, values)
    grid = (min(rows, _GRID_LIMIT), 1, 1)
    if cached and cols <= _REGISTER_BLOCK * values.long:
        threads = _warps(cols, values.long)
        return RowGeometry("block", values.long, grid, (threads, 1, 1), 0, ())
    smem = cached * (-(-cols * itemsize // 16) * 16)
    fits = 0 < smem <= shared
    # One block on a multiprocessor, for want of shared memory or of rows, is a large one.
    alone = (fits and 2 * smem > shared) or rows <= multiprocessors
    most = (2 if alone else 1) * _TILE_BLOCK
    each = values.shared if fits else values.stream
    tiles = -(-cols // (most * each))
    threads = _warps(-(-cols // tiles), each)
    return RowGeometry("shared" if fits else "stream", each, grid, (threads, 1, 1),
                       smem if fits else 0, ())


def _warps(cols: int, values: int) -> int:
    """The threads, a multiple of 32, that hold `cols` columns."""
    return -(-cols // (32 * values)) * 32


def _in_lanes(rows: int, cols: int, values: RowValues) -> RowGeometry:
    each = values.short if cols <= 32 * values.short else values.long
    # Four threads read 64 bytes together, which is two whole sectors of memory.
    lanes = 4
    while lanes * each < cols:
        lanes *= 2
    grid = (min(-(-rows * lanes // _LANES_BLOCK), _GRID_LIMIT), 1, 1)
    return RowGeometry("lanes", each, grid, (_LANES_BLOCK, 1, 1), 0, (lanes,))


def forms(values: RowValues, once: bool = False) -> Iterator[tuple[str, int]]:
    """Every form with its number of values; `once`: those that `cached=0` can choose."""
    yield from dict.fromkeys([("lanes", values.short), ("lanes", values.long)])
    if not once:
        yield "block", values.long
        yield "shared", values.shared
    yield "stream", values.stream
