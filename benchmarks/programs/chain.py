"""W1 and W12: chains of elementwise operations, forward, recorded, and with the gradient.

A chain's text is written once: every peer has `tanh`, `exp` and `sin` under these names and
`*`, `+` between its arrays. The reference is float64 NumPy: the value as written, the derivative
by the complex step f'(x) = Im f(x + ih) / h (Squire and Trapp, SIAM Review 40(1), 1998), which
shares no rule with any of the peers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

A, B = 0.5, 0.1

Body = Callable[[Any, Any, Any, Any], Any]


def small_ops(ops: Any, y: Any, a: Any, b: Any) -> Any:
    """W1: y <- sin(exp(a tanh(y) + b)), four times: 20 operations."""
    for _ in range(4):
        t = ops.tanh(y)
        w = ops.exp(t * a + b)
        y = ops.sin(w)
    return y


def layers(count: int) -> Body:
    """W12: y <- tanh(a y + b), `count` times; a backward rule needs each layer's result only."""

    def body(ops: Any, y: Any, a: Any, b: Any) -> Any:
        for _ in range(count):
            y = ops.tanh(y * a + b)
        return y

    return body


@dataclass(frozen=True)
class Chain:
    """One peer's chain on one input; what a peer has no word for is None.

    `forward()` returns the value, `record()` a tuple of the value and whatever holds the record,
    `gradient()` the value and the gradient.
    """

    forward: Callable[[], Any]
    record: Callable[[], tuple[Any, ...]] | None
    gradient: Callable[[], tuple[Any, Any]]


def reference(body: Body, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The chain's value and derivative at `x`, in float64."""
    step = 1e-30
    shifted = body(np, x.astype(np.complex128) + 1j * step, A, B)
    return shifted.real, shifted.imag / step


def tape_chain(tf: Any, body: Body, x_value: np.ndarray) -> Chain:
    """The program as TensorFlow's users write it; `tf` is tensorflow or gtape."""
    x, a, b = tf.constant(x_value), tf.constant(A), tf.constant(B)

    def forward() -> Any:
        return body(tf, x, a, b)

    def record() -> tuple[Any, ...]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = body(tf, x, a, b)
        return y, tape

    def gradient() -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = body(tf, x, a, b)
        return y, tape.gradient(y, x)

    return Chain(forward, record, gradient)


def torch_chain(body: Body, x_value: np.ndarray) -> Chain:
    import torch

    constant = torch.tensor(x_value)
    x = torch.tensor(x_value, requires_grad=True)
    a, b = torch.tensor(A), torch.tensor(B)
    seed = torch.ones_like(constant)

    def gradient() -> tuple[Any, Any]:
        y = body(torch, x, a, b)
        return y, torch.autograd.grad(y, x, seed)[0]

    return Chain(
        lambda: body(torch, constant, a, b),
        lambda: (body(torch, x, a, b),),
        gradient,
    )


def jax_chain(body: Body, x_value: np.ndarray, *, compiled: bool) -> Chain:
    import jax
    import jax.numpy as jnp

    x, a, b = jnp.asarray(x_value), jnp.float32(A), jnp.float32(B)
    seed = jnp.ones_like(x)

    def value(x: Any) -> Any:
        return body(jnp, x, a, b)

    def pull_back(x: Any) -> tuple[Any, Any]:
        y, back = jax.vjp(value, x)
        return y, back(seed)[0]

    both = jax.value_and_grad(value) if x.ndim == 0 else pull_back
    if compiled:
        value, both = jax.jit(value), jax.jit(both)
    return Chain(
        lambda: jax.block_until_ready(value(x)),
        None if compiled else lambda: jax.block_until_ready(jax.vjp(value, x)),
        lambda: jax.block_until_ready(both(x)),
    )


def autograd_chain(body: Body, x_value: np.ndarray) -> Chain:
    import autograd
    import autograd.numpy as anp

    x, a, b = x_value, np.float32(A), np.float32(B)
    seed = np.ones_like(x)

    def value(x: Any) -> Any:
        return body(anp, x, a, b)

    def record() -> tuple[Any, ...]:
        back, y = autograd.make_vjp(value)(x)
        return y, back

    def pull_back(x: Any) -> tuple[Any, Any]:
        y, back = record()
        return y, back(seed)

    both = autograd.value_and_grad(value) if x.ndim == 0 else pull_back
    return Chain(lambda: value(x), record, lambda: both(x))


def numpy_small_ops(x_value: np.ndarray) -> Chain:
    """The floor of W1: its 20 forward and 28 backward ufunc calls, written by hand."""
    constants = tuple(np.array(v, np.float32) for v in (A, B, 1))
    return by_hand(x_value, constants, np.multiply, np.add, np.subtract)


def scalar_small_ops(x_value: np.ndarray) -> Chain:
    """The same on NumPy scalars, whose operators do without a ufunc: `x_value` of shape ()."""
    constants = tuple(np.float32(v) for v in (A, B, 1))
    return by_hand(x_value[()], constants, operator.mul, operator.add, operator.sub)


def by_hand(x: Any, constants: tuple[Any, ...], multiply: Any, add: Any, subtract: Any) -> Chain:
    """W1's forward and backward pass with nothing recorded but the two values per round."""
    a, b, one = constants
    tanh, exp, sin, cos = np.tanh, np.exp, np.sin, np.cos

    def forward_keeping() -> tuple[Any, list[tuple[Any, Any]]]:
        y, kept = x, []
        for _ in range(4):
            t = tanh(y)
            w = exp(add(multiply(t, a), b))
            y = sin(w)
            kept.append((t, w))
        return y, kept

    def gradient() -> tuple[Any, Any]:
        y, kept = forward_keeping()
        g = np.ones_like(y)
        for t, w in reversed(kept):
            g = multiply(multiply(g, cos(w)), w)
            g = multiply(multiply(g, a), subtract(one, multiply(t, t)))
        return y, g

    return Chain(lambda: forward_keeping()[0], None, gradient)


def chain_of(peer: str, body: Body, x: np.ndarray) -> Chain:
    """The chain in the words of `peer`: a column of the tables, other than numpy."""
    if peer == "torch":
        return torch_chain(body, x)
    if peer in ("jax", "jax jit"):
        return jax_chain(body, x, compiled=peer == "jax jit")
    if peer == "autograd":
        return autograd_chain(body, x)
    return tape_chain(import_module(peer), body, x)
