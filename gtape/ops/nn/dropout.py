"""dropout: a random part of the values set to 0 while training.

What is kept is decided by the numbers of `bernoulli` at a position of a Philox stream. On the host
and in traced functions they make a mask that the tape keeps. Where kernels compute, the mask is
drawn again in the backward pass and nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

from gtape.core import dtypes
from gtape.core.annotations import IntsLike, TensorLike
from gtape.core.composite_tensor import takes_composites
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.tensor import Tensor
from gtape.opdef.composite import composite
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_float, as_int, as_shape
from gtape.ops.elementwise.scalars import multiply, where
from gtape.ops.random.draws import drawn
from gtape.ops.random.functions import stateless
from gtape.ops.random.streams import Key, Position, take


@primitive(linear="x")
def masked_scale_(xp: ArrayModule, x: Array, kept: object, *, scale: float) -> Array:
    """scale x where `kept` holds, else 0."""
    return xp.where(kept, x * x.dtype.type(scale), x.dtype.type(0))


masked_scale_.defined(lambda x, kept, *, scale: where(kept, multiply(x, scale), 0.0))


@masked_scale_.infer
def _(x: Spec, kept: Spec, *, scale: float) -> Spec:
    if broadcast_shapes("dropout", x, kept) != x.shape:
        raise InvalidArgumentError(f"dropout: noise_shape {list(kept.shape)} cannot be stretched "
                                   f"to the shape of {x}")
    return x


masked_scale_.vjp(x=lambda g, kept, *, scale: masked_scale_(g, kept, scale=scale))
masked_scale_.cases = [case((2, 3), [[True, False, True], [False, True, True]], scale=2.0),
                       case((2, 3), [[True], [False]], scale=1.5)]


@composite
def redrawn_dropout_(x: Tensor, *, key: Key, offset: int, rate: float) -> Tensor:
    """masked_scale_ by the mask at (key, offset), which the record does not keep."""
    return _masked(x, x.spec.shape, (key, offset), rate)


# Its own adjoint: the mask at the same position, drawn again.
redrawn_dropout_.vjp(x=lambda g, **attrs: redrawn_dropout_(g, **attrs))
redrawn_dropout_.on_cuda("kernels.random_numbers.dropout")
redrawn_dropout_.cases = [case((2, 3), key=(1, 2), offset=3, rate=0.5)]


def _masked(x: Tensor, shape: tuple[int, ...], position: Position, rate: float) -> Tensor:
    share = 1 - rate
    kept = drawn("bernoulli", position, shape, x._t.device.typed(dtypes.bool_), probability=share)
    return masked_scale_(x, kept, scale=1 / share)


def _noise_shape(noise_shape: IntsLike | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """`noise_shape` with each None replaced by the length of x there."""
    if noise_shape is None:
        return shape
    if isinstance(noise_shape, (list, tuple)) and len(noise_shape) == len(shape):
        noise_shape = [n if m is None else m for n, m in zip(shape, noise_shape)]
    return as_shape(noise_shape, "dropout: noise_shape")


@takes_composites
def dropout(x: TensorLike, rate: float, noise_shape: IntsLike | None = None,
            seed: int | None = None, name: str | None = None) -> Tensor:
    """Each value 0 with probability `rate`, else x / (1 - rate).

    Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from overfitting".
    A rate of 0 gives x itself. The tape keeps one bool per value, on a GPU nothing.

    Args:
        noise_shape: the shape of the random choice, which broadcasts to that of x.

    Raises ValueError: a rate outside [0, 1), or x is not floating;
    InvalidArgumentError: a noise_shape that does not broadcast to the shape of x."""
    op_seed = None if seed is None else as_int(seed, "dropout: seed")
    return _dropout(x, rate, noise_shape, lambda count: take(op_seed, count))


def _dropout(x: TensorLike, rate: float, noise_shape: IntsLike | None,
             source: Callable[[int], Position]) -> Tensor:
    tensor = convert(x)
    share = as_float(rate, "dropout: rate")
    if not 0 <= share < 1:
        raise ValueError(f"dropout: rate must be a number in [0, 1); got {shown(share)}")
    if not tensor.dtype.is_floating:
        raise ValueError(f"dropout: x must be a real floating tensor, because it is scaled; got "
                         f"{tensor.spec}. Write tf.cast(x, tf.float32)")
    # TensorFlow gives x itself too, and draws nothing.
    if share == 0:
        return tensor
    shape = _noise_shape(noise_shape, tensor.spec.shape)
    position = source(math.prod(shape))
    # A kernel draws the mask again in the backward pass: less to read than a mask in memory.
    if type(position) is tuple and tensor._t.device.executor is not None and (
            shape == tensor.spec.shape):
        return redrawn_dropout_(tensor, key=position[0], offset=position[1], rate=share)
    return _masked(tensor, shape, position, share)


def stateless_dropout(x: TensorLike, rate: float, seed: TensorLike, rng_alg: object = None,
                      noise_shape: IntsLike | None = None, name: str | None = None) -> Tensor:
    """`dropout` as a pure function of the two numbers in `seed`.

    Raises:
        ValueError: a rate outside [0, 1), or x is not floating.
        InvalidArgumentError: a seed that is not two integers, or a noise_shape that does not
            broadcast to the shape of x.
    """
    return _dropout(x, rate, noise_shape, stateless("stateless_dropout", seed))


#: tf.nn.experimental.
experimental = SimpleNamespace(stateless_dropout=stateless_dropout)
