"""Large arrays, block by block: intermediates live in a few cache-sized buffers.

Whole-array evaluation of a formula of k steps moves every intermediate through memory. In blocks
of 16384 elements they stay in the second-level cache, and nothing but the results is allocated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from gtape.core.device import Array
from gtape.core.op import Function
from gtape.opdef.scalar_graph import Expr, topological

# 64 KiB of float32. A formula of a dozen steps needs five or six buffers, which then fill a third
# of a second-level cache of 1 MiB. Measured for 14 steps on 2**20 numbers: 22 ms in blocks of 1024,
# 8 of 4096, 1.9 of this size, 1.4 of 65536, and 10 for whole arrays. In small blocks the half
# microsecond of every call of NumPy is more than its work; four times larger ones gain little, and
# would not fit as float64.
BLOCK = 16384
# Up to here all intermediates of a formula fit the cache whole, and blocks gain nothing: 87 us for
# whole arrays against 103 in blocks. Four times as large they are four times as fast.
LARGE = 4 * BLOCK

#: A function with `out`, the slots of its arguments, the slot of its result.
_Step: TypeAlias = tuple[Function, list[int], int]
#: A slot before all are counted: its kind, and its number among those.
_Slot: TypeAlias = tuple[str, int]


class Blocked:
    """The steps of an expression on blocks.

    A slot is an input (by position), a constant, a buffer or a result. A step is
    (function with `out`, argument slots, result slot).
    """

    __slots__ = ("_bool_buffers", "_buffers", "_constants", "_steps")

    def __init__(self, steps: list[_Step], constants: list[float], buffers: int,
                 bool_buffers: int) -> None:
        self._steps = steps
        self._constants = constants
        self._buffers = buffers
        self._bool_buffers = bool_buffers

    def run(self, arrays: Sequence[Array]) -> np.ndarray:
        """The value for equally shaped C-contiguous arrays and Python numbers."""
        first = next(a for a in arrays if isinstance(a, np.ndarray))
        flats = [a.reshape(-1) if isinstance(a, np.ndarray) else a for a in arrays]
        size, dtype = first.size, first.dtype
        result = np.empty(size, dtype)
        # For each call, so that threads share nothing; what they cost is small beside `LARGE`
        # elements.
        buffers = [np.empty(BLOCK, dtype) for _ in range(self._buffers)]
        buffers += [np.empty(BLOCK, bool) for _ in range(self._bool_buffers)]
        for start in range(0, size, BLOCK):
            stop = min(start + BLOCK, size)
            slots: list[Array | float] = [
                f[start:stop] if isinstance(f, np.ndarray) else f for f in flats]
            slots += self._constants
            slots += [b[: stop - start] for b in buffers]
            slots.append(result[start:stop])
            for function, args, out in self._steps:
                function(*[slots[i] for i in args], out=slots[out])
        return result.reshape(first.shape)


def fits(arrays: Sequence[Array]) -> bool:
    """Whether `Blocked.run` may be used: large, one shape, one dtype, contiguous."""
    shape = dtype = None
    for a in arrays:
        if isinstance(a, (int, float)):
            continue
        if not isinstance(a, np.ndarray) or not a.flags.c_contiguous:
            return False
        if shape is None:
            shape, dtype = a.shape, a.dtype
        elif a.shape != shape or (a.dtype != dtype and a.dtype != bool):
            return False
    return shape is not None


def schedule(output: Expr, inputs: Sequence[str]) -> Blocked | None:
    """The block steps of `output`; None when a scalar op cannot write into a given array."""
    order = [n for n in topological([output]) if n.op is not None]
    if not order or any(n.op.ufunc is None for n in order):
        return None
    return _Scheduler(output, inputs, order).blocked()


class _Scheduler:
    def __init__(self, output: Expr, inputs: Sequence[str], order: list[Expr]) -> None:
        self._output = output
        self._inputs = list(inputs)
        self._order = order
        # The step that reads a node last: later ones overwrite earlier entries.
        self._last = {id(a): i for i, n in enumerate(order) for a in n.args}
        self._constants: list[float] = []
        self._where: dict[int, _Slot] = {}
        self._free: dict[str, list[int]] = {"data": [], "bool": []}
        self._counts = {"data": 0, "bool": 0}

    def blocked(self) -> Blocked:
        steps = [self._step(i, node) for i, node in enumerate(self._order)]
        base = len(self._inputs) + len(self._constants)
        offsets = {"input": 0, "constant": len(self._inputs), "data": base,
                   "bool": base + self._counts["data"],
                   "result": base + self._counts["data"] + self._counts["bool"]}
        placed = [(f, [offsets[k] + i for k, i in args], offsets[out[0]] + out[1])
                  for f, args, out in steps]
        return Blocked(placed, self._constants, self._counts["data"], self._counts["bool"])

    def _slot(self, node: Expr) -> _Slot:
        if node.is_input:
            return "input", self._inputs.index(node.value)
        if node.is_constant:
            self._constants.append(node.value)
            return "constant", len(self._constants) - 1
        return self._where[id(node)]

    def _step(self, i: int, node: Expr) -> tuple[Function, list[_Slot], _Slot]:
        args = [self._slot(a) for a in node.args]
        done = [self._where[id(a)] for a in {id(a): a for a in node.args}.values()
                if self._last[id(a)] == i and id(a) in self._where]
        # A ufunc reads an element before it writes it, so its result may overwrite an operand that
        # ends here. Functions of several steps read operands after they have written: theirs are
        # freed later.
        if isinstance(node.op.ufunc, np.ufunc):
            self._release(done)
            target = self._target(node)
        else:
            target = self._target(node)
            self._release(done)
        self._where[id(node)] = target
        return node.op.ufunc, args, target

    def _release(self, slots: list[_Slot]) -> None:
        for kind, index in slots:
            self._free[kind].append(index)

    def _target(self, node: Expr) -> _Slot:
        if node is self._output:
            return "result", 0
        kind = "bool" if node.op.makes_bool else "data"
        if self._free[kind]:
            return kind, self._free[kind].pop()
        self._counts[kind] += 1
        return kind, self._counts[kind] - 1
