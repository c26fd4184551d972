"""gtape.nn: what neural networks are made of. Names are imported when they are first used."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.nn.activations": """
        crelu elu gelu leaky_relu relu relu6 selu silu softplus softsign swish""",
    "gtape.ops.elementwise.scalars": "sigmoid tanh",
    "gtape.ops.nn.softmax": "log_softmax softmax",
    "gtape.ops.nn.losses": """
        compute_average_loss l2_loss log_poisson_loss scale_regularization_loss
        sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits
        sparse_softmax_cross_entropy_with_logits weighted_cross_entropy_with_logits""",
    "gtape.ops.nn.convolution": """
        atrous_conv2d atrous_conv2d_transpose bias_add conv1d conv1d_transpose conv2d
        conv2d_transpose conv3d conv3d_transpose conv_transpose convolution depthwise_conv2d
        depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input separable_conv2d""",
    "gtape.ops.nn.ctc": "ctc_beam_search_decoder ctc_greedy_decoder ctc_loss",
    "gtape.ops.nn.pooling": """
        avg_pool avg_pool1d avg_pool2d avg_pool3d dilation2d erosion2d max_pool max_pool1d
        max_pool2d max_pool3d max_pool_with_argmax pool""",
    "gtape.ops.nn.normalization": """
        batch_norm_with_global_normalization batch_normalization local_response_normalization
        lrn=local_response_normalization""",
    "gtape.ops.reductions.moments": """
        moments normalize_moments sufficient_statistics weighted_moments""",
    "gtape.ops.nn.dropout": "dropout experimental",
    "gtape.ops.indexing.gathering": "embedding_lookup",
    "gtape.ops.sparse.reductions": "embedding_lookup_sparse safe_embedding_lookup_sparse",
    "gtape.ops.shape.blocks": "depth_to_space space_to_batch space_to_depth with_space_to_batch",
    "gtape.ops.nn.projections": "isotonic_regression",
    "gtape.ops.linalg.norms": "l2_normalize",
    "gtape.ops.reductions.reductions": "zero_fraction",
    "gtape.ops.indexing.sorting": "approx_max_k approx_min_k in_top_k top_k",
}

_SAMPLED = "compute the full loss: gtape.nn.softmax_cross_entropy_with_logits"
_CELLS = "use the layers of gtape.keras.layers"
_ABSENT = {
    "ctc_unique_labels": "gtape.nn.ctc_loss needs none",
    "collapse_repeated": "gtape.nn.ctc_greedy_decoder merges repeated classes",
    "sampled_softmax_loss": _SAMPLED, "nce_loss": _SAMPLED, "compute_accidental_hits": _SAMPLED,
    "all_candidate_sampler": _SAMPLED, "fixed_unigram_candidate_sampler": _SAMPLED,
    "learned_unigram_candidate_sampler": _SAMPLED,
    "fractional_avg_pool": "use gtape.nn.avg_pool", "fractional_max_pool": "use gtape.nn.max_pool",
    "RNNCellDeviceWrapper": _CELLS, "RNNCellDropoutWrapper": _CELLS,
    "RNNCellResidualWrapper": _CELLS,
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE, _ABSENT)
