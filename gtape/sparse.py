"""gtape.sparse: SparseTensors, and the functions of them."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.sparse.arithmetic": "add maximum minimum sampled_addmm sparse_dense_matmul",
    "gtape.ops.sparse.combining": "cross cross_hashed",
    "gtape.ops.sparse.layout": """
        concat expand_dims eye fill_empty_rows from_dense map_values mask reorder reset_shape
        reshape retain slice split to_dense to_indicator transpose""",
    "gtape.ops.sparse.methods": "bincount",
    "gtape.ops.sparse.reductions": """
        reduce_max reduce_sum segment_mean segment_sqrt_n segment_sum softmax""",
    "gtape.ops.sparse.tensor": "SparseTensor",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
