"""jacobian and batch_jacobian: one backward walk for all elements of the target at once.

The walk pulls back one cotangent that stands for all: the one-hot cotangents of the elements form a
batch (`vmap.batch_trace`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gtape.autodiff import gradient_request
from gtape.autodiff.backward import keys_depending_on, walk
from gtape.autodiff.gradient_request import value_of
from gtape.core import nest
from gtape.core.context import active
from gtape.core.errors import NotTraceableError, OperatorNotAllowedInGraphError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.recording import OP
from gtape.core.symbolic_dim import require_known
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.elementwise import Elementwise
from gtape.ops.shape.layout import reshape_
from gtape.ops.shape.packing import concat_, stack_
from gtape.vmap.batch_trace import BatchTracer
from gtape.vmap.operand import Operand

if TYPE_CHECKING:
    from gtape.autodiff.tape import GradientTape
from gtape.core.annotations import TensorLike


def _single(value: TensorLike, role: str) -> Any:
    if nest.is_nested(value):
        raise TypeError(f"`{role}` must be one Tensor or Variable; got a {type(value).__name__}. "
                        f"Ask for each, or stack them")
    if value is None:
        raise gradient_request.AttributeError(
            f"`{role}` must be a Tensor or Variable but is None; did a function forget to return "
            f"its result?")
    return gradient_request.leaf_state(value, role, 0, 1)


def _check_flags(tape: GradientTape, use_pfor: bool) -> None:
    tape._check_usable()
    if not use_pfor and not tape._persistent:  # as in TensorFlow, where each row is then a gradient
        raise RuntimeError("with experimental_use_pfor=False the tape must be persistent: "
                           "tf.GradientTape(persistent=True)")


class _Rows:
    """The rows of jacobians of one target with respect to several sources."""

    def __init__(self, tape: GradientTape, target: Tensor, sources: list[object]) -> None:
        self.tape = tape
        self.target = target
        self.value = value_of(target)
        if tape._recording:
            if tape._persistent:
                tape._warn_inside()  # it goes on recording, and the walk with it
            else:
                tape._stop()  # or it would record the walk over its own records
        self.tensors = bool(active()) or not isinstance(self.value, EagerTensor)
        self.groups = [tape._keys_of(s) for s in sources]
        self.wanted = {k for group in self.groups for k in group}
        self.useful = keys_depending_on(tape._records, self.wanted)
        self.key = tape._target_key(target)
        self.records = list(tape._records)  # a tape that goes on recording appends to its own
        self.sources = sources

    def connected(self) -> bool:
        return self.key in self.useful and self.target.dtype.is_differentiable

    @property
    def largest(self) -> int:
        """The bytes of the largest of a cotangent and the gradients."""
        return max([_bytes(self.value), *(_bytes(value_of(s)) for s in self.sources)])

    def done(self) -> None:
        if not self.tape._persistent:
            self.tape._spend()

    def all(self, lead: int) -> list[Any]:
        """For each source the rows along a new axis behind `lead` others; None where nothing
        connects. Row i is the gradient for the cotangent that is one at the flat position i of the
        target, not counting its first `lead` axes, and zero elsewhere."""
        with self.value._t.device.scope():
            return self._all(lead)

    def _all(self, lead: int) -> list[object]:
        count = math.prod(require_known(self.value.spec.shape)[lead:])
        if count > 1 and (self.tensors or not self._few(count)):
            jacobians = self._at_once(lead, count)
            if jacobians is not None:
                return jacobians
        # One by one: few rows, or a gradient that cannot be traced.
        seeds = _one_hots(self.value, lead, 0, count)
        rows = [self._pull(EagerTensor(seed, seeds._t), self.tensors) for seed in seeds._a]
        return [_stacked(column, lead, self.tensors) for column in zip(*rows)]

    def _few(self, count: int) -> bool:
        """Whether so few and small rows are found sooner one by one. In a walk of bare arrays most
        steps cost four times those of elementwise ops. A batch costs ten of these for each record,
        and forty besides."""
        records = self.records
        if count > _FEW or self.largest > _SMALL:
            return False
        steps = sum(1 if isinstance(record[OP], Elementwise) else 4 for record in records)
        return count * (steps + 1) <= 10 * len(records) + 40

    def _at_once(self, lead: int, count: int) -> list[object] | None:
        """All rows; None where a gradient needs the numbers of each."""
        step = max(_CHUNK // self.largest, 1)
        if step >= count:
            ones = self.value._filled_(1)
            return self._batched(Operand.onehot(ones, lead, ones=True), lead)
        parts = []
        for i in range(0, count, step):
            seeds = _one_hots(self.value, lead, i, min(i + step, count))
            part = self._batched(Operand.of(seeds), lead)
            if part is None:
                return None
            parts.append(part)
        return [_joined(column, lead) for column in zip(*parts)]

    def _batched(self, cotangents: Operand, lead: int) -> list[object] | None:
        """The gradients for the cotangents of an Operand."""
        batch = BatchTracer(cotangents.size, lead)
        try:
            answers = batch.run(self._pull, batch.enter(cotangents), True)
        except _UNTRACEABLE:
            return None
        rows = iter(batch.results([a for a in answers if a is not None], axis=lead))
        return [None if a is None else next(rows) for a in answers]

    def _pull(self, seed: Tensor, tensors: bool) -> list[object]:
        """The gradients for one cotangent, dense."""
        grads = {self.key: seed if tensors else seed._array_()}
        walk(self.records, grads, self.wanted, self.useful, False, tensors)
        answers = [self.tape._answer(grads, group, tensors) for group in self.groups]
        return [a.to_dense() if isinstance(a, IndexedSlices) else a for a in answers]


#: What code says that needs the numbers of a tensor which stands for many: a gradient of the
#: user's. Then the rows are found one by one.
_UNTRACEABLE = (NotTraceableError, OperatorNotAllowedInGraphError, NotImplementedError,
                AttributeError)  # the last two: NumPy's functions and `.numpy()` of a symbol
#: How many bytes the cotangents of one walk may have, where they are largest. Products of matrices
#: are at their best long before; the steps of the walk hold a few of that size at a time.
_CHUNK = 1 << 26
#: More rows, or rows of more bytes, always go at once.
_FEW, _SMALL = 24, 1 << 14


def _bytes(tensor: Tensor) -> int:
    """The size of a tensor; for open lengths, the numbers that stand in will do."""
    # `int.__add__`, since n + 0 would be a SymbolicDim again. Never 0: `_at_once` divides by it.
    return math.prod(int.__add__(n, 0) for n in tensor.spec.shape) * tensor.dtype.size or 1


def _one_hots(like: Tensor, lead: int, start: int, stop: int) -> EagerTensor:
    """Zeros like the target, along a new first axis: each with ones at one of the flat positions
    from `start` to `stop`, not counting the first `lead` axes."""
    shape, array_type = require_known(like.spec.shape), like._t
    xp, count = array_type.xp, stop - start
    with array_type.device.scope():
        # The offset puts the ones of a chunk at its own positions.
        hot = xp.eye(count, math.prod(shape[lead:]), start, like.dtype.np_dtype)
        hot = hot.reshape((count, *(1,) * lead, *shape[lead:]))
        if lead:
            hot = xp.ascontiguousarray(xp.broadcast_to(hot, (count, *shape)))  # tensors are dense
        return EagerTensor(hot, array_type)


def _stacked(rows: tuple[Tensor | None, ...], axis: int, tensors: bool) -> Any:
    """Rows joined along a new axis; missing rows are zeros. None where all are missing."""
    like = next((r for r in rows if r is not None), None)
    if like is None:
        return None
    filled: list[Any] = [like._filled_(0) if r is None else r for r in rows]
    if not tensors:
        with like._t.device.scope():
            return EagerTensor(like._t.xp.stack([r._a for r in filled], axis), like._t)
    return stack_(*filled, axis=axis)


def _joined(parts: Sequence[object], axis: int) -> Any:
    """Pieces of rows joined; what connects, connects in every piece."""
    return None if parts[0] is None else concat_(*parts, axis=axis)


def _shaped(rows: Tensor, shape: tuple[int, ...]) -> Tensor:
    if type(rows) is EagerTensor and not active():  # nobody records: no op, no checks
        return EagerTensor(rows._a.reshape(shape), rows._t)
    return reshape_(rows, shape=shape)


def _empty(shape: tuple[int, ...], like: Tensor) -> EagerTensor:
    return EagerTensor(like._t.xp.zeros(shape, like.dtype.np_dtype), like._t)


def jacobian(tape: Any, target: Tensor, sources: object, unconnected_gradients: object,
             use_pfor: bool) -> Any:
    """See `GradientTape.jacobian`."""
    zero = gradient_request.unconnected(unconnected_gradients)
    leaf = _single(target, "target")
    ask = gradient_request.GradientRequest.of(target, sources, None, unconnected_gradients)
    _check_flags(tape, use_pfor)
    work = _Rows(tape, leaf, ask.sources)
    shape = require_known(work.value.spec.shape)
    size = math.prod(shape)
    rows = work.all(0) if size and work.connected() else []
    work.done()
    answers: list[Any] = []
    for position, source in enumerate(ask.sources):
        like = value_of(source)
        full = (*shape, *like.spec.shape)
        if rows and rows[position] is not None:
            answers.append(_shaped(rows[position], full))
        elif zero or (not size and work.connected()):
            answers.append(_empty(full, like))
        else:
            answers.append(None)
    return ask.packed(answers)


def batch_jacobian(tape: GradientTape, target: Tensor, source: TensorLike,
                   unconnected_gradients: object, use_pfor: bool) -> Any:
    """See `GradientTape.batch_jacobian`."""
    gradient_request.unconnected(unconnected_gradients)
    leaf, origin = _single(target, "target"), _single(source, "source")
    y, x = value_of(leaf), value_of(origin)
    for role, tensor in (("target", y), ("source", x)):
        if tensor.ndim < 2:
            raise ValueError(f"batch_jacobian: {role} must have rank at least 2, a batch and what "
                             f"is differentiated; got {tensor.spec}. Use jacobian")
    if y.spec.shape[0] != x.spec.shape[0]:
        raise ValueError(f"batch_jacobian: Need first dimension of target {y.spec} to match that "
                         f"of source {x.spec}")
    _check_flags(tape, use_pfor)
    work = _Rows(tape, leaf, [origin])
    size = math.prod(require_known(y.spec.shape))
    rows = work.all(1) if size and work.connected() else [None]
    work.done()
    full = (*y.spec.shape, *x.spec.shape[1:])
    return _empty(full, x) if rows[0] is None else _shaped(rows[0], full)
