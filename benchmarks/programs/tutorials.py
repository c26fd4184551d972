"""W2: two programs of TensorFlow's own tutorials, where the work is a handful of scalar ops.

Control flow: x enters a product only in the rounds of a Python loop where an `if` says so;
d/dx at 2 after 6 rounds is 3 * 2**2 = 12. Second order: the first and second derivative of
x * x * x at 1, a tape within a tape: 3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

ROUNDS = 6
CONTROL_FLOW_GRADIENT = 12.0
SECOND_ORDER_GRADIENTS = (3.0, 6.0)


@dataclass(frozen=True)
class Tutorials:
    """`control_flow()` returns one derivative, `second_order()` the first and the second."""

    control_flow: Callable[[], Any]
    second_order: Callable[[], tuple[Any, Any]]


def product(x: Any, rounds: int) -> Any:
    output = 1.0
    for i in range(rounds):
        if i > 1 and i < 5:
            output = output * x
    return output


def tape_tutorials(tf: Any) -> Tutorials:
    """The tutorials' own text; `tf` is tensorflow or gtape."""
    x = tf.convert_to_tensor(2.0)
    v = tf.Variable(1.0)

    def f(x: Any, y: int) -> Any:
        output = 1.0
        for i in range(y):
            if i > 1 and i < 5:
                output = tf.multiply(output, x)
        return output

    def control_flow() -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            out = f(x, ROUNDS)
        return t.gradient(out, x)

    def second_order() -> tuple[Any, Any]:
        with tf.GradientTape() as t:
            with tf.GradientTape() as t2:
                y = v * v * v
            dy_dx = t2.gradient(y, v)
        return dy_dx, t.gradient(dy_dx, v)

    return Tutorials(control_flow, second_order)


def torch_tutorials() -> Tutorials:
    import torch

    x = torch.tensor(2.0, requires_grad=True)
    v = torch.tensor(1.0, requires_grad=True)

    def control_flow() -> Any:
        return torch.autograd.grad(product(x, ROUNDS), x)[0]

    def second_order() -> tuple[Any, Any]:
        (first,) = torch.autograd.grad(v * v * v, v, create_graph=True)
        return first, torch.autograd.grad(first, v)[0]

    return Tutorials(control_flow, second_order)


def jax_tutorials(*, compiled: bool) -> Tutorials:
    import jax
    import jax.numpy as jnp

    x, v = jnp.float32(2.0), jnp.float32(1.0)
    control_flow = jax.grad(product)
    second_order = jax.value_and_grad(jax.grad(lambda v: v * v * v))
    if compiled:
        control_flow = jax.jit(control_flow, static_argnums=1)
        second_order = jax.jit(second_order)
    return Tutorials(
        lambda: jax.block_until_ready(control_flow(x, ROUNDS)),
        lambda: jax.block_until_ready(second_order(v)),
    )


def autograd_tutorials() -> Tutorials:
    import autograd

    control_flow = autograd.grad(product)
    second_order = autograd.value_and_grad(autograd.grad(lambda v: v * v * v))
    return Tutorials(lambda: control_flow(2.0, ROUNDS), lambda: second_order(1.0))


def tutorials_of(peer: str) -> Tutorials:
    """The two programs in the words of `peer`: a column of the tables, other than numpy."""
    if peer == "torch":
        return torch_tutorials()
    if peer in ("jax", "jax jit"):
        return jax_tutorials(compiled=peer == "jax jit")
    if peer == "autograd":
        return autograd_tutorials()
    return tape_tutorials(import_module(peer))
