"""Batching rules of convolutions, pooling and other ops on windows of images.

Images of all elements are one longer list of images. Where the filters differ too, the elements are
groups of channels of one convolution: its parts do not mix.
"""

from __future__ import annotations

from typing import Any

from gtape.core.op import Op
from gtape.core.tensor import Tensor
from gtape.ops.indexing import sorting
from gtape.ops.nn import convolution, pooling, projections
from gtape.ops.shape import blocks
from gtape.ops.shape.layout import broadcast_to_, reshape_, transpose_
from gtape.vmap.operand import Attrs, Operand, batches
from gtape.vmap.rules.axes import Operands, run


def _folded(x: Operand) -> Tensor:
    """The images of all elements."""
    return reshape_(x.full(), shape=(x.size * x.shape[0], *x.shape[1:]))


def _unfolded(tensor: Tensor, size: int) -> Tensor:
    shape = tensor.spec.shape
    return reshape_(tensor, shape=(size, shape[0] // size, *shape[1:]))


def _more_images(attrs: Attrs, size: int) -> Attrs:
    if "shape" not in attrs:
        return attrs
    first, *rest = attrs["shape"]
    return attrs | {"shape": (first * size, *rest)}


@batches(pooling.max_pool_, pooling.max_pool_grad_, pooling.max_pool_pick_, pooling.max_pool_index_,
         pooling.avg_pool_, pooling.avg_pool_grad_, blocks.patches_, blocks.fold_,
         pooling.put_winners_, pooling.pick_winners_, projections.piece_means_,
         sorting.in_top_k_)
def _images(op: Op, xs: Operands, attrs: Attrs) -> Any:
    if attrs.get("batch"):
        return None
    size = xs[0].size
    images = run(op, [_folded(x) for x in xs], _more_images(attrs, size))
    return [_unfolded(y, size) for y in images]


@batches(pooling.dilation_)
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, filters = xs
    if filters.batched:
        return None
    results = run(op, [_folded(x), filters.tensor], attrs)
    return [_unfolded(y, x.size) for y in results]


def _widened(x: Operand, groups: int = 1) -> Tensor:
    """The channels of all elements, last: group by group, in a group element by element."""
    *rest, channels = x.shape
    rank = len(rest)
    if not x.batched:
        parts = reshape_(x.tensor, shape=(*rest, groups, 1, channels // groups))
        parts = broadcast_to_(parts, shape=(*rest, groups, x.size, channels // groups))
    else:
        apart = reshape_(x.tensor, shape=(x.size, *rest, groups, channels // groups))
        parts = transpose_(apart, perm=(*range(1, rank + 2), 0, rank + 2))
    return reshape_(parts, shape=(*rest, x.size * channels))


def _narrowed(tensor: Tensor, size: int, groups: int = 1) -> Tensor:
    """The elements of what `_widened` gives."""
    *rest, channels = tensor.spec.shape
    rank = len(rest)
    apart = reshape_(tensor, shape=(*rest, groups, size, channels // groups // size))
    moved = transpose_(apart, perm=(rank + 1, *range(rank + 1), rank + 2))
    return reshape_(moved, shape=(size, *rest, channels // size))


@batches(convolution.convolution_, convolution.filter_grad_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    """Both are linear in x and in what has the features as its last axis."""
    x, other = xs
    size, groups = x.size, attrs["groups"]
    if not other.batched and op.name == "convolution_":
        (result,) = run(op, [_folded(x), other.tensor], attrs)
        return _unfolded(result, size)
    if not x.batched:
        (result,) = run(op, [x.tensor, _widened(other, groups)], attrs)
        return _narrowed(result, size, groups)
    # Groups keep the elements apart, as they keep groups of channels of one image apart.
    (result,) = run(op, [_widened(x), _widened(other)], attrs | {"groups": groups * size})
    return _narrowed(result, size)


@batches(convolution.input_grad_)
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    a, filters = xs
    size = a.size
    if not filters.batched:
        (result,) = run(op, [_folded(a), filters.tensor], _more_images(attrs, size))
        return _unfolded(result, size)
    *rest, channels = attrs["shape"]
    attrs = attrs | {"groups": attrs["groups"] * size, "shape": (*rest, channels * size)}
    (result,) = run(op, [_widened(a), _widened(filters)], attrs)
    return _narrowed(result, size)


@batches(convolution.depthwise_, convolution.depthwise_input_grad_)
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, filters = xs
    size = x.size
    if not filters.batched:
        (result,) = run(op, [_folded(x), filters.tensor], _more_images(attrs, size))
        return _unfolded(result, size)
    if "shape" in attrs:
        *rest, channels = attrs["shape"]
        attrs = attrs | {"shape": (*rest, channels * size)}
    (result,) = run(op, [_widened(x), _depths(filters)], attrs)
    return _narrowed(result, size)


def _depths(filters: Operand) -> Tensor:
    """The filters of all elements: their channels are the last axis but one."""
    *sizes, channels, times = filters.shape
    rank = len(sizes)
    apart = transpose_(filters.full(), perm=(*range(1, rank + 1), 0, rank + 1, rank + 2))
    return reshape_(apart, shape=(*sizes, filters.size * channels, times))


@batches(convolution.depthwise_filter_grad_)
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, a = xs
    (result,) = run(op, [_widened(x), _widened(a)], attrs)
    *sizes, channels, times = result.spec.shape
    rank = len(sizes)
    apart = reshape_(result, shape=(*sizes, x.size, channels // x.size, times))
    return transpose_(apart, perm=(rank, *range(rank), rank + 1, rank + 2))
