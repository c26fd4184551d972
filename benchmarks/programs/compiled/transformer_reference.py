"""Layer norm and attention in float64 NumPy: each gives its result and its backward rule.

A rule takes the gradient of the result, and gives those of the input and of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.programs.compiled.transformer import NORM_EPSILON, Sizes

Array = np.ndarray
Rule = Callable[[Array], tuple[Array, list[Array]]]


def dense(x: Array, kernel: Array, bias: Array) -> tuple[Array, Rule]:
    """x kernel + bias."""

    def rule(g: Array) -> tuple[Array, list[Array]]:
        return g @ kernel.T, [x.T @ g, g.sum(axis=0)]

    return x @ kernel + bias, rule


def norm(x: Array, gain: Array, shift: Array) -> tuple[Array, Rule]:
    """Layer norm of every row (Ba, Kiros and Hinton, arXiv:1607.06450)."""
    centred = x - x.mean(axis=1, keepdims=True)
    slope = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + NORM_EPSILON)
    unit = centred * slope

    def rule(g: Array) -> tuple[Array, list[Array]]:
        of_unit = g * gain
        mean = of_unit.mean(axis=1, keepdims=True)
        along = (of_unit * unit).mean(axis=1, keepdims=True)
        return slope * (of_unit - mean - unit * along), [(g * unit).sum(axis=0), g.sum(axis=0)]

    return unit * gain + shift, rule


def attention(s: Sizes, rows: Array, kernel: Array, bias: Array) -> tuple[Array, Rule]:
    """The heads' results as rows (Vaswani et al., arXiv:1706.03762)."""
    projected, back = dense(rows, kernel, bias)
    split = projected.reshape(s.batch, s.time, 3, s.heads, s.head)
    q, k, v = split.transpose(2, 0, 3, 1, 4)
    scores = s.scale * q @ k.swapaxes(-1, -2)
    if s.causal:
        scores = scores + s.mask()
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)

    def rule(g: Array) -> tuple[Array, list[Array]]:
        of_heads = g.reshape(s.batch, s.time, s.heads, s.head).transpose(0, 2, 1, 3)
        of_weights = of_heads @ v.swapaxes(-1, -2)
        inner = (of_weights * weights).sum(axis=-1, keepdims=True)
        of_scores = s.scale * weights * (of_weights - inner)
        of_v = weights.swapaxes(-1, -2) @ of_heads
        parts = np.stack([of_scores @ k, of_scores.swapaxes(-1, -2) @ q, of_v])
        return back(parts.transpose(1, 3, 0, 2, 4).reshape(len(rows), 3 * s.width))

    return (weights @ v).transpose(0, 2, 1, 3).reshape(len(rows), s.width), rule


def gelu(x: Array) -> tuple[Array, Callable[[Array], Array]]:
    """gelu by tanh; its rule gives the gradient of x alone."""
    scale = np.sqrt(2 / np.pi)
    t = np.tanh(scale * (x + 0.044715 * x**3))
    slope = (1 + t + x * (1 - t * t) * scale * (1 + 0.134145 * x * x)) / 2
    return x * (1 + t) / 2, lambda g: g * slope
