"""gtape.sparse: SparseTensors, and the functions of them."""

from __future__ import annotations

from gtape.ops.sparse.binary import add, maximum, minimum
from gtape.ops.sparse.conversions import (
    eye,
    from_dense,
    map_values,
    mask,
    reorder,
    to_dense,
    to_indicator,
)
from gtape.ops.sparse.counting import bincount
from gtape.ops.sparse.crossing import cross, cross_hashed
from gtape.ops.sparse.layout import (
    concat,
    expand_dims,
    fill_empty_rows,
    reset_shape,
    reshape,
    retain,
    slice,
    split,
    transpose,
)
from gtape.ops.sparse.products import sampled_addmm, sparse_dense_matmul
from gtape.ops.sparse.reductions import (
    reduce_max,
    reduce_sum,
    segment_mean,
    segment_sqrt_n,
    segment_sum,
    softmax,
)
from gtape.ops.sparse.tensor import SparseTensor

__all__ = [
    "SparseTensor", "add", "bincount", "concat", "cross", "cross_hashed", "expand_dims", "eye",
    "fill_empty_rows", "from_dense", "map_values", "mask", "maximum", "minimum", "reduce_max",
    "reduce_sum", "reorder", "reset_shape", "reshape", "retain", "sampled_addmm", "segment_mean",
    "segment_sqrt_n", "segment_sum", "slice", "softmax", "sparse_dense_matmul", "split", "to_dense",
    "to_indicator", "transpose"]
