"""jacobian and batch_jacobian: one backward walk for each element of the target."""

from __future__ import annotations

import math
from typing import Any

from gtape.core import nest, tapeargs
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.state import active
from gtape.core.tensor import EagerTensor, Tensor, wrap
from gtape.core.walk import useful_keys, walk


def _single(value: Any, role: str) -> Any:
    if nest.is_nested(value):
        raise TypeError(f"`{role}` must be one Tensor or Variable; got a {type(value).__name__}. "
                        f"Ask for each, or stack them")
    if value is None:
        raise tapeargs.AttributeError(f"`{role}` must be a Tensor or Variable but is None; did a "
                                      f"function forget to return its result?")
    return tapeargs.leaf_state(value, role, 0, 1)


def _check_flags(tape: Any, use_pfor: bool) -> None:
    tape._check_usable()
    if not use_pfor and not tape._persistent:
        raise RuntimeError("with experimental_use_pfor=False the tape must be persistent: "
                           "tf.GradientTape(persistent=True)")


def _value(leaf: Any) -> Tensor:
    return leaf if isinstance(leaf, Tensor) else leaf._value


def _one_hot(like: Tensor, index: int) -> EagerTensor:
    """Zeros like the target with a one at a flat position."""
    made = like._filled_(0)
    assert made is not None
    with made._t.device.scope():
        flat = made._a.reshape(-1).copy()
        flat[index] = 1
    made._a = flat.reshape(made._a.shape)
    return made


class _Rows:
    """The rows of jacobians of one target with respect to several sources."""

    def __init__(self, tape: Any, target: Any, sources: list[Any]) -> None:
        self.tape = tape
        self.target = target
        self.sources = sources
        if tape._recording:
            if tape._persistent:
                tape._warn_inside()
            else:
                tape._stop()
        self.tensors = bool(active()) or not isinstance(_value(target), EagerTensor)
        self.groups = [tape._keys_of(s) for s in sources]
        self.wanted = {k for group in self.groups for k in group}
        self.useful = useful_keys(tape._records, self.wanted)
        self.key = tape._target_key(target)
        self.records = list(tape._records)

    def pull(self, seed: Tensor) -> list[Any]:
        """The gradients for one cotangent, dense."""
        grads = {self.key: seed if self.tensors else seed._array_()}
        walk(self.records, grads, self.wanted, self.useful, False, self.tensors, IndexedSlices)
        found = [self.tape._answer(grads, group, self.tensors) for group in self.groups]
        return [a.to_dense() if isinstance(a, IndexedSlices) else a for a in found]

    def connected(self) -> bool:
        return self.key in self.useful and self.target.dtype.is_differentiable

    def done(self) -> None:
        if not self.tape._persistent:
            self.tape._spend()


def _stacked(rows: list[Any], shape: tuple[int, ...], like: Tensor, as_tensors: bool) -> Any:
    """Rows joined along a new first axis, then shaped; missing rows are zeros."""
    filled = [like._filled_(0) if r is None else r for r in rows]
    if as_tensors:
        from gtape.ops.layout import reshape_
        from gtape.ops.packing import stack_

        return reshape_(stack_(*filled, axis=0), shape=shape)
    xp = like._t.xp
    return wrap(xp.stack([r._a for r in filled]).reshape(shape))


def _empty(shape: tuple[int, ...], like: Tensor) -> EagerTensor:
    return EagerTensor(like._t.xp.zeros(shape, like.dtype.np_dtype), like._t)


def jacobian(tape: Any, target: Any, sources: Any, unconnected_gradients: Any,
             use_pfor: bool) -> Any:
    """See `GradientTape.jacobian`."""
    zero = tapeargs.unconnected(unconnected_gradients)
    leaf = _single(target, "target")
    ask = tapeargs.Request.of(target, sources, None, unconnected_gradients)
    _check_flags(tape, use_pfor)
    work = _Rows(tape, leaf, ask.sources)
    value = _value(leaf)
    shape = value.spec.shape
    size = math.prod(shape)
    rows = [work.pull(_one_hot(value, i)) for i in range(size)] if work.connected() else []
    work.done()
    answers = []
    for position, source in enumerate(ask.sources):
        like = _value(source)
        full = (*shape, *like.spec.shape)
        column = [row[position] for row in rows]
        if any(part is not None for part in column):
            answers.append(_stacked(column, full, like, work.tensors))
        elif zero or (not size and work.connected()):
            answers.append(_empty(full, like))
        else:
            answers.append(None)
    return ask.packed(answers)


def batch_jacobian(tape: Any, target: Any, source: Any, unconnected_gradients: Any,
                   use_pfor: bool) -> Any:
    """See `GradientTape.batch_jacobian`."""
    tapeargs.unconnected(unconnected_gradients)
    leaf, origin = _single(target, "target"), _single(source, "source")
    y, x = _value(leaf), _value(origin)
    for role, tensor in (("target", y), ("source", x)):
        if tensor.ndim < 2:
            raise ValueError(f"batch_jacobian: {role} must have rank at least 2, a batch and what "
                             f"is differentiated; got {tensor.spec}. Use jacobian")
    if y.spec.shape[0] != x.spec.shape[0]:
        raise ValueError(f"batch_jacobian: Need first dimension of target {y.spec} to match that "
                         f"of source {x.spec}")
    _check_flags(tape, use_pfor)
    work = _Rows(tape, leaf, [origin])
    batch, inner = y.spec.shape[0], math.prod(y.spec.shape[1:])
    rows = [work.pull(_column(y, i, inner))[0] for i in range(inner)] if (
        work.connected() and batch) else []
    work.done()
    full = (*y.spec.shape, *x.spec.shape[1:])
    if not any(part is not None for part in rows):
        return _empty(full, x)
    made = _stacked(rows, (inner, *x.spec.shape), x, work.tensors)
    return _batch_first(made, full, work.tensors)


def _column(like: Tensor, index: int, inner: int) -> EagerTensor:
    """Ones at one position of every example."""
    made = like._filled_(0)
    assert made is not None
    with made._t.device.scope():
        flat = made._a.reshape(-1, inner).copy()
        flat[:, index] = 1
    made._a = flat.reshape(made._a.shape)
    return made


def _batch_first(rows: Tensor, shape: tuple[int, ...], as_tensors: bool) -> Tensor:
    """[inner, batch, x…] as [batch, y…, x…]."""
    order = (1, 0, *range(2, rows.ndim))
    if as_tensors:
        from gtape.ops.layout import reshape_, transpose_

        return reshape_(transpose_(rows, perm=order), shape=shape)
    xp = rows._t.xp
    return wrap(xp.ascontiguousarray(rows._array_().transpose(order)).reshape(shape))
