"""Names of gtape.nn; written by `python -m gtape._stub`."""

from gtape.ops.elementwise.scalars import sigmoid as sigmoid
from gtape.ops.elementwise.scalars import tanh as tanh
from gtape.ops.indexing.gathering import embedding_lookup as embedding_lookup
from gtape.ops.indexing.sorting import approx_max_k as approx_max_k
from gtape.ops.indexing.sorting import approx_min_k as approx_min_k
from gtape.ops.indexing.sorting import in_top_k as in_top_k
from gtape.ops.indexing.sorting import top_k as top_k
from gtape.ops.linalg.norms import l2_normalize as l2_normalize
from gtape.ops.nn.activations import crelu as crelu
from gtape.ops.nn.activations import elu as elu
from gtape.ops.nn.activations import gelu as gelu
from gtape.ops.nn.activations import leaky_relu as leaky_relu
from gtape.ops.nn.activations import relu as relu
from gtape.ops.nn.activations import relu6 as relu6
from gtape.ops.nn.activations import selu as selu
from gtape.ops.nn.activations import silu as silu
from gtape.ops.nn.activations import softplus as softplus
from gtape.ops.nn.activations import softsign as softsign
from gtape.ops.nn.activations import swish as swish
from gtape.ops.nn.convolution import atrous_conv2d as atrous_conv2d
from gtape.ops.nn.convolution import atrous_conv2d_transpose as atrous_conv2d_transpose
from gtape.ops.nn.convolution import bias_add as bias_add
from gtape.ops.nn.convolution import conv1d as conv1d
from gtape.ops.nn.convolution import conv1d_transpose as conv1d_transpose
from gtape.ops.nn.convolution import conv2d as conv2d
from gtape.ops.nn.convolution import conv2d_transpose as conv2d_transpose
from gtape.ops.nn.convolution import conv3d as conv3d
from gtape.ops.nn.convolution import conv3d_transpose as conv3d_transpose
from gtape.ops.nn.convolution import conv_transpose as conv_transpose
from gtape.ops.nn.convolution import convolution as convolution
from gtape.ops.nn.convolution import depthwise_conv2d as depthwise_conv2d
from gtape.ops.nn.convolution import (
    depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter,
)
from gtape.ops.nn.convolution import (
    depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input,
)
from gtape.ops.nn.convolution import separable_conv2d as separable_conv2d
from gtape.ops.nn.ctc import ctc_beam_search_decoder as ctc_beam_search_decoder
from gtape.ops.nn.ctc import ctc_greedy_decoder as ctc_greedy_decoder
from gtape.ops.nn.ctc import ctc_loss as ctc_loss
from gtape.ops.nn.dropout import dropout as dropout
from gtape.ops.nn.dropout import experimental as experimental
from gtape.ops.nn.losses import compute_average_loss as compute_average_loss
from gtape.ops.nn.losses import l2_loss as l2_loss
from gtape.ops.nn.losses import log_poisson_loss as log_poisson_loss
from gtape.ops.nn.losses import scale_regularization_loss as scale_regularization_loss
from gtape.ops.nn.losses import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from gtape.ops.nn.losses import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
from gtape.ops.nn.losses import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from gtape.ops.nn.losses import (
    weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits,
)
from gtape.ops.nn.normalization import (
    batch_norm_with_global_normalization as batch_norm_with_global_normalization,
)
from gtape.ops.nn.normalization import batch_normalization as batch_normalization
from gtape.ops.nn.normalization import local_response_normalization as _lrn
from gtape.ops.nn.normalization import local_response_normalization as local_response_normalization
from gtape.ops.nn.pooling import avg_pool as avg_pool
from gtape.ops.nn.pooling import avg_pool1d as avg_pool1d
from gtape.ops.nn.pooling import avg_pool2d as avg_pool2d
from gtape.ops.nn.pooling import avg_pool3d as avg_pool3d
from gtape.ops.nn.pooling import dilation2d as dilation2d
from gtape.ops.nn.pooling import erosion2d as erosion2d
from gtape.ops.nn.pooling import max_pool as max_pool
from gtape.ops.nn.pooling import max_pool1d as max_pool1d
from gtape.ops.nn.pooling import max_pool2d as max_pool2d
from gtape.ops.nn.pooling import max_pool3d as max_pool3d
from gtape.ops.nn.pooling import max_pool_with_argmax as max_pool_with_argmax
from gtape.ops.nn.pooling import pool as pool
from gtape.ops.nn.projections import isotonic_regression as isotonic_regression
from gtape.ops.nn.softmax import log_softmax as log_softmax
from gtape.ops.nn.softmax import softmax as softmax
from gtape.ops.reductions.moments import moments as moments
from gtape.ops.reductions.moments import normalize_moments as normalize_moments
from gtape.ops.reductions.moments import sufficient_statistics as sufficient_statistics
from gtape.ops.reductions.moments import weighted_moments as weighted_moments
from gtape.ops.reductions.reductions import zero_fraction as zero_fraction
from gtape.ops.shape.blocks import depth_to_space as depth_to_space
from gtape.ops.shape.blocks import space_to_batch as space_to_batch
from gtape.ops.shape.blocks import space_to_depth as space_to_depth
from gtape.ops.shape.blocks import with_space_to_batch as with_space_to_batch
from gtape.ops.sparse.reductions import embedding_lookup_sparse as embedding_lookup_sparse
from gtape.ops.sparse.reductions import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse

lrn = _lrn
