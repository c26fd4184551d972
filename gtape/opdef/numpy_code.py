"""Scalar expressions in NumPy: as Python text over whole arrays, and block by block.

`tanh`'s backward prints as

    def backward(g, y):
        return g * (1 - y * y)

for NumPy and CuPy alike. Whole-array evaluation of a formula of k steps moves every intermediate
through memory. In blocks of 16384 elements they stay in the second-level cache, and nothing but the
results is allocated.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gtape.core.device import Array, ArrayModule
from gtape.core.op import Function
from gtape.numerics.sums import total
from gtape.opdef.scalar_graph import Expr, Number, topological

if TYPE_CHECKING:
    from gtape.opdef.elementwise import ScalarOp


def number_text(value: Number) -> str:
    """A constant as Python text."""
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, complex):
        return f"complex({number_text(value.real)}, {number_text(value.imag)})"
    if math.isinf(value):
        return "inf" if value > 0 else "(-inf)"
    return "nan" if math.isnan(value) else repr(float(value))


class Printer:
    """Prints expressions; `names` collects the functions the text calls."""

    def __init__(self, xp: ArrayModule) -> None:
        self.names: dict[str, Any] = {"inf": math.inf, "nan": math.nan}
        self._xp = xp

    def call(self, op: ScalarOp, args: Sequence[str]) -> str:
        """`op` applied to argument texts."""
        if op.infix is not None:
            return "(" + op.infix.format(*args) + ")"
        self.names[op.name] = op.on(self._xp)
        return f"{op.name}({', '.join(args)})"

    def lines(self, outputs: Sequence[Expr]) -> tuple[list[str], list[str]]:
        """Assignments for the nodes used more than once, and the text of each output."""
        order = topological(outputs)
        uses: dict[int, int] = {}
        for node in order:
            for arg in node.args:
                uses[id(arg)] = uses.get(id(arg), 0) + 1
        texts: dict[int, str] = {}
        assigned: list[str] = []
        for node in order:
            if node.op is None:
                texts[id(node)] = (node.value if node.is_input else number_text(node.value))
                continue
            text = self.call(node.op, [texts[id(a)] for a in node.args])
            # What is read once is written in its place: Python stores no name, and NumPy can reuse
            # the temporary.
            if uses.get(id(node), 0) > 1:
                name = f"t{len(assigned)}"
                assigned.append(f"{name} = {text}")
                text = name
            texts[id(node)] = text
        return assigned, [texts[id(o)] for o in outputs]


# To compile even five lines takes 0.05 ms, the time of fifty small ops.
@functools.lru_cache(maxsize=512)
def _code(source: str, name: str) -> CodeType:
    """Python's code of a source: the same text is printed again for every pass over a dataset."""
    return compile(source, f"<gtape {name}>", "exec")


def define(source: str, name: str, names: dict[str, Any]) -> Function:
    """The function `name` that `source`, printed by this package, defines."""
    space = dict(names)
    exec(_code(source, name), space)
    function = space[name]
    function.__source__ = source
    return function


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


def axes_to_sum(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """The axes along which `target` was stretched to `shape`, and how many were put in front."""
    lead = len(shape) - len(target)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(target) if n == 1 and shape[lead + i] != 1)
    return axes, lead


def stretches(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether `target` has axes that `shape` lacks or has at length 1.

    Cotangents do when a part does not depend on every input: it is smaller than the op's result.
    """
    return len(shape) < len(target) or any(
        n == 1 and m != 1 for n, m in zip(shape[::-1], target[::-1]))


def sum_to(array: Array, target: tuple[int, ...]) -> Array:
    """`array` summed over the axes along which `target` was broadcast."""
    shape = array.shape
    if stretches(shape, target):
        return np.broadcast_to(array, target)
    axes, lead = axes_to_sum(shape, target)
    if not axes:
        return array.reshape(target)
    summed = total(array, axes, True)
    return summed.reshape(target) if lead else summed
