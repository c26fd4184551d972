"""Keras' LSTM and GRU of whole sequences, as gtape's recurrences.

Keras goes step by step where there is none: for masks, other activations, unknown lengths.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gtape as tf
from gtape.ops import recurrent


def amend_rnn(module: ModuleType) -> None:
    """Give Keras' TensorFlow backend these forms."""
    for name in ("lstm", "gru"):
        plain = getattr(module, f"_do_{name}_arguments_support_cudnn")
        setattr(module, name, _form(getattr(module, name), plain, getattr(recurrent, name)))


def _form(form: Callable[..., Any], plain: Callable[..., bool], run: Callable[..., Any]) -> Any:
    """`run` with the arguments of Keras' `form`; NotImplementedError where they are not `plain`."""
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(form).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        x, bias, first = given["inputs"], given["bias"], 0 if given["time_major"] else 1
        kernel, weights = map(tf.convert_to_tensor, (given["kernel"], given["recurrent_kernel"]))
        # Only use_bias is no argument of the form itself.
        wanted = {n: given.get(n, bias is not None) for n in inspect.signature(plain).parameters}
        if given["mask"] is not None or None in x.shape or not x.shape[first] or (
                x.dtype != kernel.dtype) or not plain(**wanted):
            raise NotImplementedError
        own, *other = tf.unstack(bias) if len(bias.shape) == 2 else [bias]
        rows = tf.reshape(x if first == 0 else tf.transpose(x, (1, 0, 2)), (-1, x.shape[2]))
        x = tf.reshape(tf.matmul(rows, kernel) + own, (x.shape[first], -1, kernel.shape[1]))
        states = [value for name, value in given.items() if name.startswith("initial_state")]
        outputs, state = run(tf.reverse(x, [0]) if given["go_backwards"] else x, weights, *other,
                             *states, given["return_sequences"])
        return state[0], tf.stack(outputs, axis=first), state

    return call
