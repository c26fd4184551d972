"""Every public function that has a gradient has samples; the others are listed here by reason."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterator
from typing import Any

import gtape as tf
from gtape import image, linalg, math, nn, signal
from tests.samples.test_samples import _SAMPLES

#: No gradient flows: the results are whole numbers, bools or specs, or piecewise constant.
_WITHOUT_GRADIENT = """
approx_top_k argmax argmin argsort bitcast broadcast_dynamic_shape broadcast_static_shape equal
floor greater greater_equal histogram_fixed_width histogram_fixed_width_bins less less_equal
logical_and logical_not logical_or not_equal one_hot range rank reduce_all reduce_any round
searchsorted sequence_mask shape shape_n size truncatediv truncatemod unique unique_with_counts
unravel_index get_static_value type_spec_from_value as_dtype is_tensor is_symbolic_tensor
random_index_shuffle stop_gradient
math.approx_max_k math.approx_min_k math.bincount math.ceil math.confusion_matrix
math.count_nonzero math.floordiv math.in_top_k math.invert_permutation math.is_finite math.is_inf
math.is_nan math.is_non_decreasing math.is_strictly_increasing math.logical_xor math.rint
linalg.matrix_rank nn.ctc_beam_search_decoder nn.ctc_greedy_decoder
"""
#: They make tensors of no tensors, or take functions, or say something about the program.
_NO_COMPUTATION = """
Assert assert_equal assert_greater assert_less assert_rank case cond constant control_dependencies
convert_to_tensor custom_gradient device executing_eagerly eye foldl foldr function get_logger
grad_pass_through gradients group guarantee_const hessians inside_function map_fn no_gradient no_op
nondifferentiable_batch_function numpy_function ones ones_like print py_function recompute_grad
scan switch_case tuple vectorized_map while_loop zeros zeros_like
signal.hamming_window signal.hann_window signal.kaiser_bessel_derived_window signal.kaiser_window
required_space_to_batch_paddings
signal.vorbis_window signal.linear_to_mel_weight_matrix signal.inverse_stft_window_fn
"""
#: They read or write files and strings, or take SparseTensors: their own tests have the gradients.
_OF_OTHER_VALUES = """
as_string fingerprint image.decode_and_crop_jpeg image.decode_bmp image.decode_gif
image.decode_image image.decode_jpeg image.decode_png image.encode_jpeg image.encode_png
image.extract_jpeg_shape image.is_jpeg nn.embedding_lookup_sparse nn.safe_embedding_lookup_sparse
"""
#: They draw random numbers, and change images by functions that have samples.
_AT_RANDOM = """
image.random_brightness image.random_contrast image.random_crop image.random_flip_left_right
image.random_flip_up_down image.random_hue image.random_saturation
image.stateless_random_brightness image.stateless_random_contrast image.stateless_random_crop
image.stateless_random_flip_left_right image.stateless_random_flip_up_down
image.stateless_random_hue image.stateless_random_saturation
"""
#: Other names and forms of functions that have samples.
_BY_ANOTHER_NAME = """
conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2 fftnd ifftnd irfftnd rfftnd
space_to_batch_nd nn.avg_pool2d nn.conv_transpose nn.depthwise_conv2d_backprop_filter
nn.depthwise_conv2d_backprop_input nn.sufficient_statistics nn.with_space_to_batch
"""


def _public() -> Iterator[tuple[str, Any]]:
    for prefix, module in (("", tf), ("math.", math), ("nn.", nn), ("linalg.", linalg),
                           ("signal.", signal), ("image.", image)):
        for name in dir(module):
            found = getattr(module, name, None)
            if not name.startswith("_") and callable(found) and not inspect.isclass(found) and (
                    not inspect.ismodule(found)):
                yield prefix + name, found


def _function(name: str) -> Any:
    return operator.attrgetter(name)(tf)


def test_every_public_function_has_samples_or_a_reason() -> None:
    sampled = {id(_function(s.name)) for s in _SAMPLES if s.name != "getitem"}
    listed = " ".join((_WITHOUT_GRADIENT, _NO_COMPUTATION, _BY_ANOTHER_NAME,
                       _OF_OTHER_VALUES, _AT_RANDOM)).split()
    known = sampled | {id(_function(name)) for name in listed}
    missing = sorted({name for name, found in _public() if id(found) not in known})
    assert not missing, f"write samples of {', '.join(missing)}, or say here why there are none"


def test_what_is_listed_as_without_samples_has_none() -> None:
    sampled = {id(_function(s.name)) for s in _SAMPLES if s.name != "getitem"}
    both = [name for name in " ".join((_WITHOUT_GRADIENT, _NO_COMPUTATION)).split()
            if id(_function(name)) in sampled]
    assert not both
