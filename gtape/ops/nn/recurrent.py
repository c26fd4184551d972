"""Recurrences: LSTM and GRU over whole sequences, with gradients of their own.

The inputs come projected already: one product before the first step. So do the gradients leave: a
step back has one product, and the weights' gradient is one over all steps after the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.autodiff.custom_gradient import custom_gradient
from gtape.core.annotations import TensorLike
from gtape.core.tensor import Tensor
from gtape.ops.elementwise.scalars import sigmoid, tanh
from gtape.ops.linalg.products import matmul
from gtape.ops.reductions.reductions import reduce_sum
from gtape.ops.shape.layout import reshape
from gtape.ops.shape.packing import concat, split, stack, unstack

#: The h of every step or of the last one, and the last state.
Run = tuple[list[Tensor], list[Tensor]]


def lstm(x: TensorLike, weights: TensorLike, h: TensorLike, c: TensorLike,
         return_sequences: bool = True) -> Run:
    """Long short-term memory. For each x_t, with σ the sigmoid:

        i, f, g, o = x_t + h W, a quarter of the columns each
        c = σ(f) c + σ(i) tanh(g)
        h = σ(o) tanh(c)

    Hochreiter & Schmidhuber 1997; with forget gates: Gers, Schmidhuber & Cummins 2000.

    Args:
        x: [steps, batch, 4 units], the inputs times their weights, with the bias; at least a step.
        weights: W, [units, 4 units].
        h, c: the state before the first step, [batch, units]; all of one floating dtype.
        return_sequences: whether to give the h of every step, in order, or of the last one.

    Returns a list of h, and the last state, [h, c].
    Raises InvalidArgumentError: shapes that do not fit."""
    *outputs, c = _lstm(x, weights, h, c, return_sequences)
    return outputs, [outputs[-1], c]


def gru(x: TensorLike, weights: TensorLike, bias: TensorLike, h: TensorLike,
        return_sequences: bool = True) -> Run:
    """Gated recurrent units. For each x_t, with σ the sigmoid:

        z, r, n = x_t, a third of the columns each
        z', r', n' = h W + b, likewise
        u = σ(z + z')
        h = u h + (1 - u) tanh(n + σ(r + r') n')

    Cho et al. 2014, arXiv:1406.1078, with the reset gate after the product, as cuDNN has it.

    Args:
        x, weights, h, return_sequences: as for `lstm`, with 3 units where it has 4.
        bias: b, [3 units].

    Returns a list of h, and the last state, [h].
    Raises InvalidArgumentError: shapes that do not fit."""
    outputs = _gru(x, weights, bias, h, return_sequences)
    return outputs, outputs[-1:]


# Derivatives s (1 - s) of what was saved are written d s - d s s: the compiler makes what does not
# depend on d ahead of time, where it would only be more to keep.

@custom_gradient
def _lstm(x: Tensor, weights: Tensor, h: Tensor, c: Tensor, return_sequences: bool) -> Any:
    saved, before, outputs = [], [], []
    # Unrolled: a trace is one program, whose loops the compiler joins step by step.
    for given in unstack(x):
        before.append(h)
        gates = [a + b for a, b in zip(split(given, 4, 1), split(matmul(h, weights), 4, 1))]
        enter, keep, new, leave = (
            sigmoid(gates[0]), sigmoid(gates[1]), tanh(gates[2]), sigmoid(gates[3]))
        old, c = c, keep * c + enter * new
        short = tanh(c)
        h = leave * short
        saved.append((enter, keep, new, leave, old, short))
        outputs.append(h)

    def backward(*cotangents: Tensor) -> tuple[Tensor | None, ...]:
        *d_outputs, dc = cotangents
        dh, parts = None, []
        for enter, keep, new, leave, old, short in reversed(saved):
            dh = _with_next(dh, d_outputs)
            d_short, d_leave = dh * leave, dh * short * leave
            dc = dc + (d_short - d_short * short * short)
            d_enter, d_keep, d_new = dc * new * enter, dc * old * keep, dc * enter
            parts.append(concat([
                d_enter - d_enter * enter, d_keep - d_keep * keep, d_new - d_new * new * new,
                d_leave - d_leave * leave], 1))
            dh, dc = matmul(parts[-1], weights, transpose_b=True), dc * keep
        # They were made last to first.
        dx = stack(parts[::-1])
        return dx, _over_steps(before, dx), dh, dc, None

    return (*(outputs if return_sequences else outputs[-1:]), c), backward


@custom_gradient
def _gru(x: Tensor, weights: Tensor, bias: Tensor, h: Tensor, return_sequences: bool) -> Any:
    saved, before, outputs = [], [], []
    for given in unstack(x):
        before.append(h)
        of_update, of_reset, of_new = split(given, 3, 1)
        from_update, from_reset, from_new = split(matmul(h, weights) + bias, 3, 1)
        update, reset = sigmoid(of_update + from_update), sigmoid(of_reset + from_reset)
        new = tanh(of_new + reset * from_new)
        saved.append((update, reset, new, from_new, h))
        h = update * h + (1 - update) * new
        outputs.append(h)

    def backward(*cotangents: Tensor) -> tuple[Tensor | None, ...]:
        d_outputs = list(cotangents)
        dh, of_inputs, of_states = None, [], []
        for update, reset, new, from_new, old in reversed(saved):
            dh = _with_next(dh, d_outputs)
            kept = dh * update
            d_update, d_new = kept * (old - new), dh - kept
            d_update, d_new = d_update - d_update * update, d_new - d_new * new * new
            d_reset = d_new * from_new * reset
            d_reset = d_reset - d_reset * reset
            of_inputs.append(concat([d_update, d_reset, d_new], 1))
            of_states.append(concat([d_update, d_reset, d_new * reset], 1))
            dh = kept + matmul(of_states[-1], weights, transpose_b=True)
        d_states = stack(of_states[::-1])
        return (stack(of_inputs[::-1]), _over_steps(before, d_states),
                reduce_sum(d_states, (0, 1)), dh, None)

    return outputs if return_sequences else outputs[-1:], backward


def _with_next(dh: Tensor | None, d_outputs: list[Any]) -> Any:
    """The gradient of the state, with that of the latest output that is left, if any."""
    # Where only the last output was given, its cotangent is the one there is.
    if not d_outputs:
        return dh
    return d_outputs.pop() if dh is None else dh + d_outputs.pop()


def _over_steps(states: Sequence[Tensor], d: Tensor) -> Tensor:
    """Σ hᵀ d over all steps and the batch: the gradient of the weights."""
    before, after = (reshape(v, (-1, v.shape[-1])) for v in (stack(states), d))
    return matmul(before, after, transpose_a=True)
