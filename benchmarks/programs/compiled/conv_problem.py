"""W7: what is computed, and its loss and gradients in float64 NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.programs.mlp_problem import cross_entropy

Array = np.ndarray


@dataclass(frozen=True)
class Problem:
    """Images (batch, side, side, 1), labels (batch,), and the parameters.

    Kernels (3, 3, 1, 16) and (3, 3, 16, 32) without padding, relu after each, maxima of 2 x 2, a
    dense layer of 10, softmax cross entropy; a bias after every kernel.
    """

    images: Array
    labels: Array
    parameters: list[Array]

    @property
    def batch(self) -> int:
        return len(self.images)

    @classmethod
    def of(cls, side: int, batch: int = 64) -> Problem:
        rng = np.random.default_rng(7)
        features = 32 * ((side - 4) // 2) ** 2

        def layer(*shape: int) -> list[Array]:
            kernel = rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1]))
            bias = 0.1 * rng.normal(size=shape[-1])
            return [kernel.astype(np.float32), bias.astype(np.float32)]

        images = rng.uniform(size=(batch, side, side, 1)).astype(np.float32)
        labels = rng.integers(0, 10, batch).astype(np.int32)
        return cls(images, labels, layer(3, 3, 1, 16) + layer(3, 3, 16, 32) + layer(features, 10))


def conv(x: Array, kernel: Array) -> Array:
    """y[b, i, j, o] = sum over u, v, c of x[b, i + u, j + v, c] kernel[u, v, c, o]."""
    windows = sliding_window_view(x, kernel.shape[:2], axis=(1, 2))
    return np.tensordot(windows, kernel, ((4, 5, 3), (0, 1, 2)))


def conv_gradients(x: Array, kernel: Array, g: Array) -> tuple[Array, list[Array]]:
    """The gradients of x, and of kernel and bias, for the gradient g of the result."""
    windows = sliding_window_view(x, kernel.shape[:2], axis=(1, 2))
    of_kernel = np.tensordot(windows, g, ((0, 1, 2), (0, 1, 2))).transpose(1, 2, 0, 3)
    edge = (kernel.shape[0] - 1, kernel.shape[1] - 1)
    padded = np.pad(g, ((0, 0), (edge[0],) * 2, (edge[1],) * 2, (0, 0)))
    of_x = conv(padded, kernel[::-1, ::-1].swapaxes(2, 3))
    return of_x, [of_kernel, g.sum(axis=(0, 1, 2))]


def reference(problem: Problem) -> tuple[Array, list[Array]]:
    """The loss and the gradients of all parameters in float64."""
    x = problem.images.astype(np.float64)
    kernel1, bias1, kernel2, bias2, kernel, bias = (
        p.astype(np.float64) for p in problem.parameters
    )
    h1 = np.maximum(conv(x, kernel1) + bias1, 0)
    h2 = np.maximum(conv(h1, kernel2) + bias2, 0)
    rows, side = len(x), h2.shape[1] // 2
    squares = h2.reshape(rows, side, 2, side, 2, -1)
    largest = squares.max(axis=(2, 4), keepdims=True)
    flat = largest.reshape(rows, -1)
    loss, g = cross_entropy(flat @ kernel + bias, problem.labels)
    of_dense = [flat.T @ g, g.sum(axis=0)]
    of_pooled = (g @ kernel.T).reshape(largest.shape)
    of_h2 = (of_pooled * (squares == largest)).reshape(h2.shape) * (h2 > 0)
    of_h1, of_second = conv_gradients(h1, kernel2, of_h2)
    _, of_first = conv_gradients(x, kernel1, of_h1 * (h1 > 0))
    return loss, [*of_first, *of_second, *of_dense]
