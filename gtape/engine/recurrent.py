"""LSTM and GRU of whole sequences: the products with the inputs as one, before the first step.

Keras asks its backend for such a form and takes its own, step by step, where the backend has none:
for masks, other activations and lengths that are not known.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import gtape as tf

Step = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]


def amend_rnn(module: ModuleType) -> None:
    """Give Keras' TensorFlow backend these forms."""

    def lstm(inputs: Any, initial_state_h: Any, initial_state_c: Any, mask: Any, kernel: Any,
             recurrent_kernel: Any, bias: Any, activation: Any, recurrent_activation: Any,
             return_sequences: bool = False, go_backwards: bool = False, unroll: bool = False,
             time_major: bool = False) -> Any:
        plain = module._do_lstm_arguments_support_cudnn(
            activation, recurrent_activation, unroll, bias is not None)
        x = _projected(inputs, kernel, bias, mask, plain, time_major, go_backwards)
        weights = tf.convert_to_tensor(recurrent_kernel)
        *outputs, state = _lstm(return_sequences)(x, weights, initial_state_h, initial_state_c)
        return _results(outputs, [outputs[-1], state], time_major)

    def gru(inputs: Any, initial_state: Any, mask: Any, kernel: Any, recurrent_kernel: Any,
            bias: Any, activation: Any, recurrent_activation: Any, return_sequences: bool = False,
            go_backwards: bool = False, unroll: bool = False, time_major: bool = False,
            reset_after: bool = True) -> Any:
        plain = module._do_gru_arguments_support_cudnn(
            activation, recurrent_activation, unroll, bias is not None, reset_after)
        own = bias[0] if plain else None
        given = _projected(inputs, kernel, own, mask, plain, time_major, go_backwards)
        weights, recurrent = tf.convert_to_tensor(recurrent_kernel), bias[1]

        def step(x: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
            (h,) = state
            update, reset, new = tf.split(x, 3, axis=1)
            from_update, from_reset, from_new = tf.split(tf.matmul(h, weights) + recurrent, 3,
                                                         axis=1)
            z = tf.sigmoid(update + from_update)
            new = tf.tanh(new + tf.sigmoid(reset + from_reset) * from_new)
            return (z * h + (1 - z) * new,)

        return _run(step, given, (initial_state,), return_sequences, time_major)

    module.lstm, module.gru = lstm, gru  # type: ignore[attr-defined]


def _projected(inputs: Any, kernel: Any, bias: Any, mask: Any, plain: bool, time_major: bool,
               go_backwards: bool) -> Any:
    """inputs · kernel + bias of every step, in the order of the steps.

    Raises:
        NotImplementedError: Keras has to take its own way.
    """
    kernel = tf.convert_to_tensor(kernel)
    if mask is not None or not plain or inputs.shape.rank != 3 or inputs.dtype != kernel.dtype:
        raise NotImplementedError
    x = inputs if time_major else tf.transpose(inputs, (1, 0, 2))
    steps, batch, features = x.shape
    if not steps or batch is None or features is None:
        raise NotImplementedError
    flat = tf.matmul(tf.reshape(x, (steps * batch, features)), kernel) + bias
    given = tf.reshape(flat, (steps, batch, flat.shape[-1]))
    return tf.reverse(given, [0]) if go_backwards else given


def _lstm(return_sequences: bool) -> Callable[..., Any]:
    """The recurrence: (x [steps, batch, 4 units], weights, h, c) -> (h of every step or of the
    last, c). Its gradient gathers the weights' from all steps in one product."""
    @tf.custom_gradient
    def run(x: Any, weights: Any, h: Any, c: Any) -> Any:
        saved, before, outputs = [], [], []
        for given in tf.unstack(x):
            before.append(h)
            gates = zip(tf.split(given, 4, 1), tf.split(tf.matmul(h, weights), 4, 1))
            enter, keep, new, leave = (a + b for a, b in gates)
            enter, keep, new, leave = (
                tf.sigmoid(enter), tf.sigmoid(keep), tf.tanh(new), tf.sigmoid(leave))
            old, c = c, keep * c + enter * new
            short = tf.tanh(c)
            h = leave * short
            saved.append((enter, keep, new, leave, old, short))
            outputs.append(h)

        def backward(*cotangents: Any) -> Any:
            *d_outputs, dc = cotangents
            dh, parts = None, []
            for enter, keep, new, leave, old, short in reversed(saved):
                if d_outputs:
                    dh = d_outputs.pop() if dh is None else dh + d_outputs.pop()
                dc = dc + dh * leave * (1 - short * short)
                parts.append(tf.concat([
                    dc * new * enter * (1 - enter), dc * old * keep * (1 - keep),
                    dc * enter * (1 - new * new), dh * short * leave * (1 - leave)], 1))
                dh, dc = tf.matmul(parts[-1], weights, transpose_b=True), dc * keep
            dx = tf.stack(parts[::-1])
            units = weights.shape[0]
            d_weights = tf.matmul(tf.reshape(tf.stack(before), (-1, units)),
                                  tf.reshape(dx, (-1, 4 * units)), transpose_a=True)
            return dx, d_weights, dh, dc

        return (*(outputs if return_sequences else outputs[-1:]), c), backward

    return run


def _run(step: Step, given: Any, state: tuple[Any, ...], return_sequences: bool,
         time_major: bool) -> tuple[Any, Any, list[Any]]:
    """The last output, all outputs or the last one as a sequence, and the last state."""
    outputs = []
    for x in tf.unstack(given):
        state = step(x, state)
        outputs.append(state[0])
    return _results(outputs if return_sequences else outputs[-1:], list(state), time_major)


def _results(outputs: list[Any], state: list[Any], time_major: bool) -> Any:
    return outputs[-1], tf.stack(outputs, axis=0 if time_major else 1), state
