"""Layer norm and multi-head attention in each library's words, and what starts their parameters.

Activations are rows, (batch time, width): a product with a kernel is then one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class Sizes:
    """What attention is computed over; `causal`: no row attends to a later one."""

    batch: int
    time: int
    width: int
    heads: int
    causal: bool = False

    @property
    def head(self) -> int:
        return self.width // self.heads

    @property
    def scale(self) -> float:
        return self.head**-0.5

    def mask(self) -> np.ndarray:
        """What is added to the scores: 0, or a number that leaves no weight."""
        late = np.triu(np.ones((self.time, self.time), np.float32), 1)
        return -1e9 * late


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * rng.normal(size=shape)).astype(np.float32)


def norm_parameters(rng: np.random.Generator, width: int) -> list[np.ndarray]:
    """Gain and shift, away from 1 and 0 so that a wrong rule shows."""
    return [1 + normal(rng, width, scale=0.1), normal(rng, width, scale=0.1)]


def dense_parameters(rng: np.random.Generator, inputs: int, outputs: int) -> list[np.ndarray]:
    """Kernel and bias."""
    return [normal(rng, inputs, outputs, scale=inputs**-0.5), normal(rng, outputs, scale=0.1)]


class TapeWords:
    """TensorFlow's and gtape's text."""

    def __init__(self, tf: Any, sizes: Sizes) -> None:
        self.tf, self.sizes = tf, sizes
        self.mask = tf.constant(sizes.mask())

    def norm(self, x: Any, gain: Any, shift: Any) -> Any:
        tf = self.tf
        centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
        return centred * tf.math.rsqrt(variance + NORM_EPSILON) * gain + shift

    def dense(self, x: Any, kernel: Any, bias: Any) -> Any:
        return self.tf.matmul(x, kernel) + bias

    def attention(self, rows: Any, kernel: Any, bias: Any) -> Any:
        """The heads' results, before the last product."""
        tf, s = self.tf, self.sizes
        qkv = tf.reshape(self.dense(rows, kernel, bias), (s.batch, s.time, 3, s.heads, s.head))
        q, k, v = tf.unstack(tf.transpose(qkv, (2, 0, 3, 1, 4)))
        scores = tf.matmul(q, k, transpose_b=True) * s.scale
        if s.causal:
            scores = scores + self.mask
        heads = tf.matmul(tf.nn.softmax(scores), v)
        return tf.reshape(tf.transpose(heads, (0, 2, 1, 3)), (s.batch * s.time, s.width))


class TorchWords:
    """torch's text, with its own kernels for the norm and the attention."""

    def __init__(self, sizes: Sizes) -> None:
        import torch

        self.torch, self.sizes = torch, sizes

    def norm(self, x: Any, gain: Any, shift: Any) -> Any:
        layer_norm = self.torch.nn.functional.layer_norm
        return layer_norm(x, (self.sizes.width,), gain, shift, NORM_EPSILON)

    def dense(self, x: Any, kernel: Any, bias: Any) -> Any:
        return self.torch.addmm(bias, x, kernel)

    def attention(self, rows: Any, kernel: Any, bias: Any) -> Any:
        s = self.sizes
        qkv = self.dense(rows, kernel, bias).view(s.batch, s.time, 3, s.heads, s.head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind()
        attend = self.torch.nn.functional.scaled_dot_product_attention
        heads = attend(q, k, v, is_causal=s.causal)
        return heads.transpose(1, 2).reshape(s.batch * s.time, s.width)


class JaxWords:
    """JAX's text."""

    def __init__(self, sizes: Sizes) -> None:
        import jax

        self.jax, self.sizes = jax, sizes
        self.mask = jax.numpy.asarray(sizes.mask())

    def norm(self, x: Any, gain: Any, shift: Any) -> Any:
        jnp = self.jax.numpy
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centred**2, axis=-1, keepdims=True)
        return centred * self.jax.lax.rsqrt(variance + NORM_EPSILON) * gain + shift

    def dense(self, x: Any, kernel: Any, bias: Any) -> Any:
        return x @ kernel + bias

    def attention(self, rows: Any, kernel: Any, bias: Any) -> Any:
        s = self.sizes
        qkv = self.dense(rows, kernel, bias).reshape(s.batch, s.time, 3, s.heads, s.head)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-1, -2) * s.scale
        if s.causal:
            scores = scores + self.mask
        heads = self.jax.nn.softmax(scores) @ v
        return heads.transpose(0, 2, 1, 3).reshape(s.batch * s.time, s.width)
