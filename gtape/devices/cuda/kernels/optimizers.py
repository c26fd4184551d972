"""Updates of all variables of a model in one launch, with limits on gradients in one more.

    layout = Layout(gpu, sizes, decays)
    table = layout.table(weights, gradients, fresh, slots)     # addresses
    squares = square_sums(gpu, table, "float32")               # where a norm limits gradients
    update(gpu, table, "Adam<false>", "float32", constants, limits=Limits(norm="all", ...))

Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gtape.core.errors import InvalidArgumentError
from gtape.devices.cuda.executor import Executor
from gtape.devices.cuda.kernel import Kernel, shipped_kernel

FLOATS = ("float32", "float64", "float16", "bfloat16")
#: The rules of kernels/optimizers.cuh and how many slots each has.
RULES = {
    "SGD": 0, "MomentumSGD<false>": 1, "MomentumSGD<true>": 1, "Lion": 1, "Adam<false>": 2,
    "Adam<true>": 3, "Adamax": 2, "Nadam": 2, "Adagrad": 1, "RMSprop<false, false>": 1,
    "RMSprop<true, false>": 2, "RMSprop<false, true>": 2, "RMSprop<true, true>": 3, "Adadelta": 2}
#: Rules for float32 weights whose gradients, and copies, have two bytes.
MIXED = ("SGD", "MomentumSGD<false>", "MomentumSGD<true>", "Lion", "Adam<false>")
#: How many numbers a rule may take.
CONSTANTS = 7
_NORMS = {"": 0, "each": 1, "all": 2}
_BLOCK = 256
_ROW_WORDS = 12
_MOST_SLOTS = 3
#: Blocks for each multiprocessor, and the chunks that each of them should have.
_BLOCKS, _CHUNKS_EACH = 4, 32
_LEAST_CHUNK, _MOST_CHUNK = 2048, 1 << 16
_TABLES = 64


def instances() -> Iterator[Kernel]:
    for dtype in FLOATS:
        yield shipped_kernel("optimizers.cu", "square_sums", dtype)
        for rule in RULES:
            yield shipped_kernel("optimizers.cu", "update", dtype, dtype, rule)
    for dtype in ("float16", "bfloat16"):
        for rule in MIXED:
            yield shipped_kernel("optimizers.cu", "update", "float32", dtype, rule)


class Table(NamedTuple):
    """The tensors of an update, as kernels read them."""

    rows: Any
    chunks: Any
    pieces: int
    length: int


class Layout:
    """How tensors of some sizes are cut into chunks, and the tables of their addresses.

    Args:
        gpu: where they are updated.
        sizes: how many elements each tensor has.
        decays: which of them are shrunk at each update.
    """

    def __init__(self, gpu: Executor, sizes: Sequence[int], decays: Sequence[bool]) -> None:
        self._gpu = gpu
        self._chunk = _chunk_length(sum(sizes), gpu.multiprocessors)
        counts = np.array([-(-size // self._chunk) for size in sizes], np.int64)
        ends = np.cumsum([0, *counts])
        self.pieces = int(ends[-1])
        rows = np.repeat(np.arange(len(sizes)), counts)
        self._chunks = gpu.xp.asarray(rows << 32 | np.arange(self.pieces) - ends[rows])
        self._rows = np.zeros((len(sizes), _ROW_WORDS), np.int64)
        self._rows[:, 7] = sizes
        self._rows[:, 8] = decays
        self._rows[:, 9] = ends[:-1]
        self._rows[:, 10] = counts
        self._tables: dict[bytes, Table] = {}

    def table(self, weights: Any, gradients: Any, fresh: Any, slots: Sequence[Any] = (),
              copies: Any = 0) -> Table:
        """The table of tensors at these addresses: sequences of one number for each tensor.

        Args:
            weights, gradients: what is read.
            fresh: where the new weights go; may be `weights`.
            slots: up to three sequences, of the rule's states, written in place.
            copies: where the new weights go again in the gradients' dtype, or 0.
        """
        rows = self._rows.copy()
        for column, addresses in enumerate((weights, gradients, fresh, copies, *slots)):
            rows[:, column] = addresses
        key = rows.tobytes()
        found = self._tables.get(key)
        if found is None:
            if len(self._tables) >= _TABLES:
                self._tables.clear()
            found = self._tables[key] = Table(self._gpu.xp.asarray(rows), self._chunks, self.pieces,
                                              self._chunk)
        return found


class Limits(NamedTuple):
    """What gradients are held to: the norm of `each` tensor or of `all`, or `bound` by value.

    `squares` is what `square_sums` gave: for "each" of the same table, for "all" of any tables.
    """

    norm: str = ""
    limit: float = 0.0
    squares: Any = None
    bound: float = float("inf")


def _chunk_length(total: int, multiprocessors: int) -> int:
    """A power of 2 that gives every block many chunks where there is much to do, so that blocks end
    at about the same time."""
    length = _LEAST_CHUNK
    while length < _MOST_CHUNK and length * multiprocessors * _BLOCKS * _CHUNKS_EACH < total:
        length *= 2
    return length


def square_sums(gpu: Executor, table: Table, dtype: str, unscale: float = 1.0,
                out: Any = None) -> Any:
    """float64 [table.pieces]: the sums of (unscale g)² over chunks of gradients of `dtype`.

    They are added in double between threads, always in the same order. `out` receives them.
    """
    if out is None:
        out = gpu.empty((table.pieces,), np.dtype(np.float64))
    # Twice the blocks of an update: each thread has only one read under way.
    gpu.launch(shipped_kernel("optimizers.cu", "square_sums", dtype), _grid(gpu, table, 2),
               (_BLOCK, 1, 1),
               (table.rows, table.chunks, table.pieces, table.length, float(unscale), out))
    return out


def update(gpu: Executor, table: Table, rule: str, dtype: str, constants: Sequence[float], *,
           gradient_dtype: str = "", limits: Limits | None = None, unscale: float = 1.0,
           shrink: float = 0.0) -> None:
    """new = w (1 - shrink) - step(g), for every tensor of the table.

    Kingma & Ba 2015, arXiv:1412.6980; Loshchilov & Hutter 2019, arXiv:1711.05101 (shrink); the
    sources of the other rules stand in gtape/keras/optimizers. Two-byte types are computed in
    float32.

    Args:
        rule: a name in RULES.
        dtype: that of weights and slots.
        constants: what `constants` of the optimizer's class gives, as numbers.
        gradient_dtype: that of gradients and copies, if it is another: float16 or bfloat16 for
            float32 weights and a rule in MIXED.
        limits: on gradients, after they are multiplied by `unscale`.
        shrink: learning rate times weight decay, for the tensors that decay.

    Raises:
        InvalidArgumentError: no such rule for these dtypes.
    """
    given = gradient_dtype or dtype
    served = (rule in RULES and dtype in FLOATS and given == dtype) or (
        rule in MIXED and dtype == "float32" and given in ("float16", "bfloat16"))
    if not served or len(constants) > CONSTANTS:
        raise InvalidArgumentError(
            f"update: the rule must be one of {', '.join(RULES)}, the dtype one of "
            f"{', '.join(FLOATS)}, and at most {CONSTANTS} constants; got {rule!r}, {dtype} with "
            f"gradients of {given}, and {len(constants)} constants")
    limits = limits or Limits()
    squares = limits.squares
    if squares is None:
        squares = gpu.empty((1,), np.dtype(np.float64))
    numbers = [float(c) for c in constants] + [0.0] * (CONSTANTS - len(constants))
    gpu.launch(shipped_kernel("optimizers.cu", "update", dtype, given, rule), _grid(gpu, table),
               (_BLOCK, 1, 1),
               (table.rows, table.chunks, table.pieces, table.length, squares, squares.size,
                _NORMS[limits.norm], float(limits.limit), float(limits.bound), float(unscale),
                float(shrink), *numbers))


def _grid(gpu: Executor, table: Table, times: int = 1) -> tuple[int, int, int]:
    return min(table.pieces, gpu.multiprocessors * _BLOCKS * times), 1, 1
