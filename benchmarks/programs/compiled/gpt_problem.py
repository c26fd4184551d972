"""W8: what is trained, and the losses of its first steps in float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.programs.compiled import transformer_reference as exact
from benchmarks.programs.compiled.transformer import (
    Sizes,
    dense_parameters,
    norm_parameters,
    normal,
)
from benchmarks.programs.mlp_problem import RATE, Adam, cross_entropy

SIZES = Sizes(batch=16, time=64, width=128, heads=4, causal=True)
LAYERS, VOCABULARY, DECAY = 4, 128, 0.1
BATCHES = 16

Array = np.ndarray


@dataclass(frozen=True)
class Problem:
    """Tokens and the tokens that follow them, int32 (batches, batch, time), and the parameters.

    `parameters`: embeddings of tokens and of positions; in every block gain and shift of a norm,
    kernel and bias of queries, keys and values, and of the attention's last product, gain and
    shift of a norm, kernels and biases to four times the width and back; gain and shift of the
    last norm; kernel and bias to the logits.
    """

    tokens: Array
    targets: Array
    parameters: list[Array]

    @classmethod
    def random(cls) -> Problem:
        rng, width = np.random.default_rng(8), SIZES.width
        parameters = [
            normal(rng, VOCABULARY, width, scale=0.5),
            normal(rng, SIZES.time, width, scale=0.5),
        ]
        for _ in range(LAYERS):
            parameters += norm_parameters(rng, width)
            parameters += dense_parameters(rng, width, 3 * width)
            parameters += dense_parameters(rng, width, width)
            parameters += norm_parameters(rng, width)
            parameters += dense_parameters(rng, width, 4 * width)
            parameters += dense_parameters(rng, 4 * width, width)
        parameters += norm_parameters(rng, width) + dense_parameters(rng, width, VOCABULARY)
        text = rng.integers(0, VOCABULARY, (BATCHES, SIZES.batch, SIZES.time + 1), np.int32)
        return cls(text[..., :-1].copy(), text[..., 1:].copy(), parameters)

    def batches(self, convert: Callable[[Array], Any]) -> Iterator[tuple[Any, Any]]:
        """The batches in a peer's own arrays, made beforehand, over and over again."""
        pairs = zip(self.tokens, self.targets, strict=True)
        return cycle([(convert(x), convert(y)) for x, y in pairs])


def block(x: Array, p: list[Array]) -> tuple[Array, exact.Rule]:
    """One layer: attention and perceptron, each after a norm and added to its input."""
    unit1, norm1 = exact.norm(x, *p[0:2])
    heads, attention = exact.attention(SIZES, unit1, *p[2:4])
    attended, last = exact.dense(heads, *p[4:6])
    middle = x + attended
    unit2, norm2 = exact.norm(middle, *p[6:8])
    wide, up = exact.dense(unit2, *p[8:10])
    active, gelu = exact.gelu(wide)
    narrow, down = exact.dense(active, *p[10:12])

    def rule(g: Array) -> tuple[Array, list[Array]]:
        of_active, of_down = down(g)
        of_unit, of_up = up(gelu(of_active))
        of_middle, of_norm2 = norm2(of_unit)
        g = g + of_middle
        of_heads, of_last = last(g)
        of_unit, of_projection = attention(of_heads)
        of_x, of_norm1 = norm1(of_unit)
        return g + of_x, [*of_norm1, *of_projection, *of_last, *of_norm2, *of_up, *of_down]

    return middle + narrow, rule


def gradients(parameters: list[Array], tokens: Array, targets: Array) -> tuple[Array, list[Array]]:
    """The loss, and its derivative by every parameter, in the dtype of the parameters."""
    x = (parameters[0][tokens] + parameters[1]).reshape(-1, SIZES.width)
    rules = []
    for start in range(2, len(parameters) - 4, 12):
        x, rule = block(x, parameters[start : start + 12])
        rules.append(rule)
    unit, norm = exact.norm(x, *parameters[-4:-2])
    logits, dense = exact.dense(unit, *parameters[-2:])
    loss, g = cross_entropy(logits, targets.reshape(-1))
    g, of_dense = dense(g)
    g, of_norm = norm(g)
    found = [*of_norm, *of_dense]
    for rule in reversed(rules):
        g, of_block = rule(g)
        found = [*of_block, *found]
    by_token = np.zeros_like(parameters[0])
    np.add.at(by_token, tokens.reshape(-1), g)
    return loss, [by_token, g.reshape(*tokens.shape, -1).sum(axis=0), *found]


def reference_losses(problem: Problem, steps: int, *, late: bool) -> Array:
    """The losses of the first steps with AdamW (Loshchilov and Hutter, arXiv:1711.05101);
    `late` as in Adam."""
    parameters = [p.astype(np.float64) for p in problem.parameters]
    adam = Adam(parameters, late=late)
    losses = []
    for tokens, targets in zip(problem.tokens[:steps], problem.targets[:steps], strict=True):
        loss, slopes = gradients(parameters, tokens, targets)
        for parameter in parameters:
            parameter *= 1 - RATE * DECAY
        adam.update(slopes)
        losses.append(loss)
    return np.array(losses)
