"""Operand: what stands behind a value of a batch, and the forms in which rules take it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from gtape.core.device import ArrayType
from gtape.core.op import Op
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.elementwise import Elementwise
from gtape.opdef.scalar_graph import topological
from gtape.ops.elementwise.scalars import multiply
from gtape.ops.shape.layout import broadcast_to_, reshape_, transpose_


def broadcast_rows(tensor: Tensor, size: int) -> Tensor:
    """`size` times the tensor, along a new first axis."""
    return broadcast_to_(tensor, shape=(size, *tensor.spec.shape))


class Operand:
    """An input of an op in a batch: with the elements along the first axis, or the same for all.

    `shape` and `spec` are those for one element. With a `diagonal` d, a tensor of the shape of one
    element, element i is d at the flat position i, not counting the first `lead` axes, and zero
    elsewhere; the tensor is made when it is asked for. `ones`: d holds nothing else.
    """

    __slots__ = ("_axis", "_given", "_tensor", "batched", "diagonal", "lead", "ones", "shape",
                 "size")

    def __init__(self, tensor: Tensor | None, size: int, batched: bool,
                 diagonal: Tensor | None = None, lead: int = 0, ones: bool = False,
                 axis: int = 0) -> None:
        self._given = self._tensor = tensor
        self._axis = axis
        self.size = size
        self.batched = batched
        self.diagonal = diagonal
        self.lead = lead
        self.ones = ones
        shape = self._known.spec.shape
        if batched and diagonal is None:
            shape = (*shape[:axis], *shape[axis + 1:])
        self.shape = shape

    @staticmethod
    def of(whole: Tensor, axis: int = 0) -> Operand:
        """The operand of a tensor with the elements along one of its axes."""
        return Operand(whole, whole.spec.shape[axis], True, axis=axis)

    @staticmethod
    def onehot(diagonal: Tensor, lead: int = 0, ones: bool = False) -> Operand:
        """The operand of a diagonal."""
        size = math.prod(diagonal.spec.shape[lead:])
        return Operand(None, size, True, diagonal, lead, ones)

    @property
    def array_type(self) -> ArrayType:
        return self._known._t

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, self._known.dtype)

    @property
    def _known(self) -> Tensor:
        tensor = self._tensor if self.diagonal is None else self.diagonal
        assert tensor is not None
        return tensor

    @property
    def tensor(self) -> Tensor:
        """As it is, with the first axis if `batched`."""
        if self._tensor is None:
            self._tensor = self._given = self._spread()
        elif self._axis and self._given is self._tensor:
            # Moved once, and the form in which it came is kept for `along`.
            self._tensor = moved(self._tensor, self._axis, 0)
        return self._tensor

    def along(self, axis: int) -> Tensor:
        """The full tensor with the elements along `axis`."""
        # The form in which it came: a rule that wants the elements elsewhere than in front moves
        # nothing.
        if self._axis == axis and self._given is not None and self.batched:
            return self._given
        return moved(self.full(), 0, axis)

    def _spread(self) -> Tensor:
        assert self.diagonal is not None
        array_type, shape = self.array_type, self.shape
        with array_type.device.scope():
            eye = array_type.xp.eye(self.size, dtype=array_type.dtype.np_dtype)
            eye = eye.reshape((self.size, *(1,) * self.lead, *shape[self.lead:]))
        hot = EagerTensor(eye, array_type)
        if not self.ones:
            # Not a choice: what is infinite makes nan of the zeros beside it, as in any product.
            return multiply(hot, self.diagonal)
        return broadcast_to_(hot, shape=(self.size, *shape)) if self.lead else hot

    def full(self) -> Tensor:
        """With the elements along the first axis, whether they differ or not."""
        return self.tensor if self.batched else broadcast_rows(self.tensor, self.size)

    def aligned(self, rank: int) -> Tensor:
        """To be broadcast with operands whose elements have `rank` axes."""
        missing = rank - len(self.shape)
        if not self.batched or missing <= 0:
            return self.tensor
        return self.reshaped((1,) * missing + tuple(self.shape))

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        """The tensor with another shape for one element."""
        lengths = (self.size, *shape) if self.batched else shape
        tensor = self.tensor
        return tensor if tensor.spec.shape == lengths else reshape_(tensor, shape=lengths)


def moved(tensor: Tensor, source: int, target: int) -> Tensor:
    """The tensor with one axis at another position."""
    order = [i for i in range(tensor.ndim) if i != source]
    order.insert(target, source)
    return tensor if source == target else transpose_(tensor, perm=tuple(order))


Attrs = dict[str, Any]
#: (op, operands, attributes) -> the results, each with all elements along the first axis; None
#: where the rule does not serve these operands, and the elements go one by one.
Rule = Callable[[Any, Sequence[Operand], Attrs], Any]


def batches(*ops: Any) -> Callable[[Rule], Rule]:
    """Decorator: the batching rule of these ops, or of all ops of a class."""
    def declare(rule: Rule) -> Rule:
        for op in ops:
            op.batch = rule if isinstance(op, Op) else staticmethod(rule)
        return rule

    return declare


# ---------------------------------------------------------------- one-hot operands
#: Scalar ops by how they give zero: where any of these arguments is, or where all of them are.
_ANY = {"multiply": (0, 1), "multiply_no_nan": (0, 1), "divide": (0,), "divide_no_nan": (0,),
        "zero": (0,)}
_ALL = {"negative": (0,), "conj": (0,), "real": (0,), "imag": (0,), "complex": (0, 1),
        "add": (0, 1), "subtract": (0, 1), "where": (1, 2)}


# An entry is a bool; a backward walk asks the same of few formulas, for every Jacobian again.
@lru_cache(4096)
def keeps_zero(op: Elementwise, positions: tuple[int, ...]) -> bool:
    """Whether `op` gives zero wherever its inputs at `positions` are zero."""
    zero: set[int] = set()
    names = {op.params[i] for i in positions}
    body = op.body()
    for node in topological([body]):
        if node.op is None:
            if node.value in names if node.is_input else node.is_number(0):
                zero.add(id(node))
            continue
        name = node.op.name
        if any(id(node.args[i]) in zero for i in _ANY.get(name, ())) or (
                name in _ALL and all(id(node.args[i]) in zero for i in _ALL[name])):
            zero.add(id(node))
    return id(body) in zero


def elementwise_diagonal(op: Elementwise, operands: Sequence[Operand]) -> Operand | None:
    """The result as a diagonal, where all that differs from element to element is one."""
    hot = [i for i, x in enumerate(operands) if x.batched]
    first = operands[hot[0]]
    for i in hot:
        x = operands[i]
        if x.diagonal is None or x.lead != first.lead or x.shape != first.shape:
            return None
    if any(x.shape and x.shape != first.shape for x in operands) and broadcast_shapes(
            op.name, *(x.spec for x in operands)) != first.shape:
        return None
    if not keeps_zero(op, tuple(hot)):
        return None
    values = [x.tensor if x.diagonal is None else x.diagonal for x in operands]
    return Operand.onehot(op.apply(values), first.lead)
