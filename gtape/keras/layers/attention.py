"""MultiHeadAttention: every position looks at all others, in several ways at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.keras import initializers
from gtape.keras.layers.arguments import positive, share
from gtape.keras.layers.layer import Layer
from gtape.keras.layers.noise import Dropout
from gtape.ops.casting import cast
from gtape.ops.layout import expand_dims, reshape, transpose
from gtape.ops.products import matmul
from gtape.ops.scalars import add, logical_and, where
from gtape.ops.softmax import softmax


class _Heads(Layer):
    """x W + b with several axes: into heads [..., heads, size], or out of them."""

    def __init__(self, into: tuple[int, ...], out: tuple[int, ...], use_bias: bool,
                 kernel_initializer: Any, bias_initializer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._into, self._out = into, out
        self.kernel = self.add_weight((*into, *out), kernel_initializer, name="kernel")
        self.bias = self.add_weight(out, bias_initializer, name="bias") if use_bias else None
        self.built = True

    def call(self, inputs: Any) -> Any:
        lead = inputs.spec.shape[: inputs.ndim - len(self._into)]
        flat = reshape(inputs, (*lead, math.prod(self._into)))
        kernel = reshape(self.kernel, (math.prod(self._into), math.prod(self._out)))
        y = reshape(matmul(flat, kernel), (*lead, *self._out))
        return y if self.bias is None else add(y, self.bias)


class MultiHeadAttention(Layer):
    """softmax(Q Kᵀ / √key_dim) V for each head, brought together by a last projection.

    Vaswani et al. 2017, arXiv:1706.03762. Called as layer(query, value, key=value), with
    query [batch, T, ...], value and key [batch, S, ...].

    Args:
        num_heads, key_dim: how many heads, and the size of their queries and keys.
        value_dim: the size of their values; key_dim unless given.
        dropout: of the attention weights, in training.
        output_shape: the size of the result; that of the query unless given.
    """

    def __init__(self, num_heads: int, key_dim: int, value_dim: int | None = None,
                 dropout: float = 0.0, use_bias: bool = True, output_shape: Any = None,
                 attention_axes: Any = None, flash_attention: Any = None,
                 kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if attention_axes not in (None, 1, (1,), [1]):
            raise ValueError(f"MultiHeadAttention attends over axis 1; got attention_axes "
                             f"{attention_axes}")
        self.num_heads = positive("num_heads", num_heads)
        self.key_dim = positive("key_dim", key_dim)
        self.value_dim = positive("value_dim", value_dim or key_dim)
        self.dropout = share("dropout", dropout)
        self.use_bias = bool(use_bias)
        self._output_size = output_shape if output_shape is None or isinstance(
            output_shape, int) else next(iter(output_shape))
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self._mask_layer = Dropout(dropout, seed=seed, name="dropout")

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        named = dict(zip(("query", "value", "key"), args)) | kwargs
        query, value = named["query"], named["value"]
        key = named.get("key")
        self.build(tuple(query.shape), tuple(value.shape),
                   tuple((value if key is None else key).shape))

    def build(  # type: ignore[override]
            self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> None:
        key_shape = value_shape if key_shape is None else key_shape
        heads = self.num_heads

        def projection(name: str, into: tuple[int, ...], out: tuple[int, ...]) -> _Heads:
            return _Heads(into, out, self.use_bias, _clone(self.kernel_initializer),
                          _clone(self.bias_initializer), dtype=self.dtype, name=name)

        self.query_dense = projection("query", (query_shape[-1],), (heads, self.key_dim))
        self.key_dense = projection("key", (key_shape[-1],), (heads, self.key_dim))
        self.value_dense = projection("value", (value_shape[-1],), (heads, self.value_dim))
        self.output_dense = projection("attention_output", (heads, self.value_dim),
                                       (self._output_size or query_shape[-1],))

    def call(self, query: Any, value: Any, key: Any = None, query_mask: Any = None,
             value_mask: Any = None, key_mask: Any = None, attention_mask: Any = None,
             return_attention_scores: bool = False, training: Any = None,
             use_causal_mask: bool = False) -> Any:
        value = convert(value)
        key = value if key is None else convert(key)
        allowed = _allowed(query, value, query_mask, value_mask, key_mask, attention_mask,
                           use_causal_mask)
        q = transpose(self.query_dense(query) * (1.0 / math.sqrt(self.key_dim)), (0, 2, 1, 3))
        k = transpose(self.key_dense(key), (0, 2, 1, 3))
        v = transpose(self.value_dense(value), (0, 2, 1, 3))
        scores = matmul(q, k, transpose_b=True)
        if allowed is not None:
            low = -3e4 if self.dtype == "float16" else -1e9
            scores = where(expand_dims(allowed, 1), scores, scores + low)
        weights = softmax(scores)
        used = self._mask_layer(weights, training=training) if self.dropout else weights
        made = self.output_dense(transpose(matmul(used, v), (0, 2, 1, 3)))
        return (made, weights) if return_attention_scores else made


def _clone(initializer: Any) -> Any:
    return initializer.clone() if hasattr(initializer, "clone") else initializer


def _allowed(query: Any, value: Any, query_mask: Any, value_mask: Any, key_mask: Any,
             attention_mask: Any, causal: bool) -> Any:
    """Which positions [batch, T, S] see which; None when all see all."""
    parts = []
    if query_mask is not None:
        parts.append(expand_dims(cast(query_mask, "bool"), 2))
    for mask in (value_mask, key_mask):
        if mask is not None:
            parts.append(expand_dims(cast(mask, "bool"), 1))
    if causal:
        rows, columns = query.shape[1], value.shape[1]
        parts.append(convert(np.tri(rows, columns, dtype=bool)[None]))
    if attention_mask is not None:
        given = cast(attention_mask, "bool")
        parts.append(given if given.ndim == 3 else expand_dims(given, 0))
    found = None
    for part in parts:
        found = part if found is None else logical_and(found, part)
    return found
