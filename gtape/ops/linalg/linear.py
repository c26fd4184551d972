"""linear: f(x W + b), a dense layer as one op, with its bias and activation in the product.

On a GPU forward is one launch, and backward one elementwise launch and two products
(`devices.cuda.gemm.contractions`). On the CPU it is the ops of its definition.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from gtape.core.annotations import TensorLike
from gtape.core.context import active
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.composite import composite
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import one_dtype
from gtape.ops.elementwise.scalars import add
from gtape.ops.linalg.products import matmul_, pair
from gtape.ops.nn.activations import gelu_tanh_, gelu_tanh_gradient, relu, relu_gate
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape.layout import broadcast_to_, reshape_

_ACTIVATIONS = (None, "relu", "gelu_tanh")


def linear(x: TensorLike, kernel: TensorLike, bias: TensorLike, activation: str | None = None,
           ) -> Tensor:
    """f(x W + b) over the last axis of x.

    Args:
        x, kernel, bias: tensors […, in], [in, units] and [units] of one dtype.
        activation: f: None, "relu", or "gelu_tanh", gelu in its form with tanh.

    Raises InvalidArgumentError: shapes that do not fit;
    ValueError: another activation."""
    left, weights = pair("linear", x, kernel)
    offset = pair("linear", left, bias)[1]
    if activation not in _ACTIVATIONS:
        raise ValueError(f"linear: activation must be None, 'relu' or 'gelu_tanh'; got "
                         f"{shown(activation)}. Call another one on the result")
    if weights.ndim != 2 or offset.spec.shape != weights.spec.shape[1:]:
        raise InvalidArgumentError(f"linear: the kernel must have shape [in, units] and the bias "
                                   f"[units]; got {weights.spec} and {offset.spec}")
    # Only a tape reads the input of gelu: without one it need not be written to memory.
    if activation == "gelu_tanh" and active():
        return linear_gelu_(left, weights, offset)
    return linear_(left, weights, offset, activation=activation)


# ---------------------------------------------------------------- forward
@composite
def linear_(x: Tensor, kernel: Tensor, bias: Tensor, *, activation: str | None = None) -> Tensor:
    """f(x W + b), with nothing saved: backward relu reads the result, gelu computes its input."""
    z = add(matmul_(x, kernel), bias)
    if activation is None:
        return z
    return relu(z) if activation == "relu" else gelu_tanh_(z)


@linear_.vjp("x", "kernel", "bias")
def _(g: Tensor, x: Tensor, kernel: Tensor, bias: Tensor, y: Tensor, *, activation: str | None,
      ) -> _Gradients:
    if activation == "relu":
        g = relu_gate(g, y)
    elif activation == "gelu_tanh":
        g = gelu_tanh_gradient(g, add(matmul_(x, kernel), bias))
    return _Gradients(g, x, kernel)


linear_.on_cuda("gemm.contractions.linear")
linear_.cases = [case((4, 3), (3, 5), (5,), activation=None),
                 case((2, 4, 3), (3, 5), (5,), activation=None),
                 case((4, 3), (3, 5), (5,), activation="relu"),
                 case((4, 3), (3, 5), (5,), activation="gelu_tanh")]


@composite(saves="z")
def linear_gelu_(x: Tensor, kernel: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """gelu(x W + b) in its form with tanh, and the input of gelu."""
    z = add(matmul_(x, kernel), bias)
    return gelu_tanh_(z), z


@linear_gelu_.vjp("x", "kernel", "bias")
def _(g: Tensor, x: Tensor, kernel: Tensor, z: Tensor) -> _Gradients:
    return _Gradients(gelu_tanh_gradient(g, z), x, kernel)


linear_gelu_.on_cuda("gemm.contractions.linear_forward", activation="gelu_tanh")
linear_gelu_.cases = [case((4, 3), (3, 5), (5,)), case((2, 2, 3), (3, 2), (2,))]


# ---------------------------------------------------------------- backward
# A sequence that computes its items: weights and bias come from one kernel, and x costs a
# product that a first layer, whose inputs are data, never asks for.
class _Gradients:
    """The gradients of x, W and b for the gradient dz of x W + b, each when it is asked for."""

    def __init__(self, dz: Tensor, x: Tensor, kernel: Tensor) -> None:
        self.dz, self.x, self.kernel = dz, x, kernel

    def __getitem__(self, i: int) -> Tensor:
        if i == 0:
            return matmul_(self.dz, self.kernel, transpose_b=True)
        return self._weights[i - 1]  # IndexError beyond b ends an iteration

    @cached_property
    def _weights(self) -> tuple[Tensor, Tensor]:
        return weight_gradients_(self.x, self.dz)


@primitive(outputs="weights bias")
def weight_gradients_(xp: ArrayModule, x: Array, dz: Array) -> tuple[Array, ...]:
    """(xᵀ dz, Σ dz), both summed over all axes but the last: the gradients of W and b."""
    # One product over all rows; batch by batch there would be a sum of products.
    rows = [v.reshape(math.prod(v.shape[:-1]), v.shape[-1]) for v in (x, dz)]
    return (matmul_.value(xp, *rows, transpose_a=True), reduce_sum_.value(xp, rows[1], axis=(0,)))


@weight_gradients_.infer
def _(x: Spec, dz: Spec) -> tuple[Spec, ...]:
    one_dtype("weight_gradients", (x, dz))
    if x.ndim < 2 or x.shape[:-1] != dz.shape[:-1]:
        raise InvalidArgumentError(f"weight_gradients: the inputs and the gradient must have the "
                                   f"same axes but the last, at least one; got {x} and {dz}")
    return x.reshaped((x.shape[-1], dz.shape[-1])), x.reshaped((dz.shape[-1],))


@weight_gradients_.defined
def _(x: Tensor, dz: Tensor) -> Any:
    x, dz = (reshape_(v, shape=(math.prod(v.shape[:-1]), v.shape[-1])) for v in (x, dz))
    return matmul_(x, dz, transpose_a=True), reduce_sum_(dz, axis=(0,))


weight_gradients_.vjp(x=lambda gs, dz:
                      None if gs[0] is None else matmul_(dz, gs[0], transpose_b=True))


@weight_gradients_.vjp("dz")
def _(gs: Any, x: Tensor, dz_spec: Spec) -> Tensor:
    if gs[0] is None:
        return broadcast_to_(gs[1], shape=dz_spec.shape)
    part = matmul_(x, gs[0])
    return part if gs[1] is None else add(part, gs[1])


weight_gradients_.on_cuda("gemm.contractions.weight_gradients")
weight_gradients_.cases = [case((4, 3), (4, 2)), case((2, 3, 2), (2, 3, 4))]
