"""Names of the root namespace; written by `python -m gtape._stub`."""

from keras._tf_keras import keras as keras
from keras._tf_keras.keras import initializers as initializers
from keras._tf_keras.keras import losses as losses
from keras._tf_keras.keras import metrics as metrics
from keras._tf_keras.keras import optimizers as optimizers

from gtape import audio as audio
from gtape import autodiff as autodiff
from gtape import autograph as autograph
from gtape import bitwise as bitwise
from gtape import compat as compat
from gtape import config as config
from gtape import data as data
from gtape import debugging as debugging
from gtape import distribute as distribute
from gtape import dtypes as dtypes
from gtape import errors as errors
from gtape import experimental as experimental
from gtape import image as image
from gtape import inspect as inspect
from gtape import io as io
from gtape import linalg as linalg
from gtape import lookup as lookup
from gtape import math as math
from gtape import nest as nest
from gtape import nn as nn
from gtape import quantization as quantization
from gtape import ragged as ragged
from gtape import random as random
from gtape import raw_ops as raw_ops
from gtape import sets as sets
from gtape import signal as signal
from gtape import sparse as sparse
from gtape import strings as strings
from gtape import summary as summary
from gtape import test as test
from gtape import testing as testing
from gtape import train as train
from gtape import types as types
from gtape.autodiff.backward import RegisterGradient as RegisterGradient
from gtape.autodiff.backward import no_gradient as no_gradient
from gtape.autodiff.custom_gradient import custom_gradient as custom_gradient
from gtape.autodiff.custom_gradient import grad_pass_through as grad_pass_through
from gtape.autodiff.custom_gradient import recompute_grad as recompute_grad
from gtape.autodiff.gradient_request import UnconnectedGradients as UnconnectedGradients
from gtape.autodiff.gradient_request import explain_none as explain_none
from gtape.autodiff.tape import GradientTape as GradientTape
from gtape.compile.frontend.function import function as function
from gtape.core.context import init_scope as init_scope
from gtape.core.dtypes import DType as DType
from gtape.core.dtypes import as_dtype as as_dtype
from gtape.core.dtypes import bfloat16 as bfloat16
from gtape.core.dtypes import bool_ as _bool
from gtape.core.dtypes import complex64 as complex64
from gtape.core.dtypes import complex128 as complex128
from gtape.core.dtypes import double as double
from gtape.core.dtypes import float16 as float16
from gtape.core.dtypes import float32 as float32
from gtape.core.dtypes import float64 as float64
from gtape.core.dtypes import half as half
from gtape.core.dtypes import int8 as int8
from gtape.core.dtypes import int16 as int16
from gtape.core.dtypes import int32 as int32
from gtape.core.dtypes import int64 as int64
from gtape.core.dtypes import string as string
from gtape.core.dtypes import uint8 as uint8
from gtape.core.dtypes import uint16 as uint16
from gtape.core.dtypes import uint32 as uint32
from gtape.core.dtypes import uint64 as uint64
from gtape.core.indexed_slices import IndexedSlices as IndexedSlices
from gtape.core.indexed_slices import IndexedSlicesSpec as IndexedSlicesSpec
from gtape.core.introspection import executing_eagerly as executing_eagerly
from gtape.core.introspection import get_logger as get_logger
from gtape.core.introspection import get_static_value as get_static_value
from gtape.core.introspection import gradients as gradients
from gtape.core.introspection import hessians as hessians
from gtape.core.introspection import inside_function as inside_function
from gtape.core.introspection import is_symbolic_tensor as is_symbolic_tensor
from gtape.core.introspection import is_tensor as is_tensor
from gtape.core.module import Module as Module
from gtape.core.spec import TensorShape as TensorShape
from gtape.core.tensor import Tensor as Tensor
from gtape.core.type_specs import NoneTensorSpec as NoneTensorSpec
from gtape.core.type_specs import TensorSpec as TensorSpec
from gtape.core.type_specs import TypeSpec as TypeSpec
from gtape.core.type_specs import type_spec_from_value as type_spec_from_value
from gtape.core.variable import Variable as Variable
from gtape.core.variable import VariableAggregation as VariableAggregation
from gtape.core.variable import VariableSynchronization as VariableSynchronization
from gtape.core.variable import name_scope as name_scope
from gtape.data.iterators import OptionalSpec as OptionalSpec
from gtape.devices.probe import DeviceSpec as DeviceSpec
from gtape.devices.probe import device as device
from gtape.ops.checks.assertions import Assert as Assert
from gtape.ops.checks.assertions import assert_equal as assert_equal
from gtape.ops.checks.assertions import assert_greater as assert_greater
from gtape.ops.checks.assertions import assert_less as assert_less
from gtape.ops.checks.assertions import assert_rank as assert_rank
from gtape.ops.control.host_functions import numpy_function as numpy_function
from gtape.ops.control.host_functions import print_ as _print
from gtape.ops.control.host_functions import py_function as py_function
from gtape.ops.control.loops import foldl as foldl
from gtape.ops.control.loops import foldr as foldr
from gtape.ops.control.loops import map_fn as map_fn
from gtape.ops.control.loops import (
    nondifferentiable_batch_function as nondifferentiable_batch_function,
)
from gtape.ops.control.loops import scan as scan
from gtape.ops.control.loops import vectorized_map as vectorized_map
from gtape.ops.control.loops import while_loop as while_loop
from gtape.ops.control.selection import case as case
from gtape.ops.control.selection import cond as cond
from gtape.ops.control.selection import switch_case as switch_case
from gtape.ops.control.selection import where as where
from gtape.ops.control.tensor_array import TensorArray as TensorArray
from gtape.ops.control.tensor_array import TensorArraySpec as TensorArraySpec
from gtape.ops.elementwise.clipping import clip_by_global_norm as clip_by_global_norm
from gtape.ops.elementwise.clipping import clip_by_norm as clip_by_norm
from gtape.ops.elementwise.clipping import clip_by_value as clip_by_value
from gtape.ops.elementwise.operators import absolute as _abs
from gtape.ops.elementwise.operators import round_ as _round
from gtape.ops.elementwise.operators import signum as _sign
from gtape.ops.elementwise.operators import truediv as _divide
from gtape.ops.elementwise.operators import truediv as truediv
from gtape.ops.elementwise.scalars import acos as acos
from gtape.ops.elementwise.scalars import acosh as acosh
from gtape.ops.elementwise.scalars import add as add
from gtape.ops.elementwise.scalars import asin as asin
from gtape.ops.elementwise.scalars import asinh as asinh
from gtape.ops.elementwise.scalars import atan as atan
from gtape.ops.elementwise.scalars import atan2 as atan2
from gtape.ops.elementwise.scalars import atanh as atanh
from gtape.ops.elementwise.scalars import cos as cos
from gtape.ops.elementwise.scalars import cosh as cosh
from gtape.ops.elementwise.scalars import divide as _realdiv
from gtape.ops.elementwise.scalars import equal as equal
from gtape.ops.elementwise.scalars import exp as exp
from gtape.ops.elementwise.scalars import floor as floor
from gtape.ops.elementwise.scalars import greater as greater
from gtape.ops.elementwise.scalars import greater_equal as greater_equal
from gtape.ops.elementwise.scalars import less as less
from gtape.ops.elementwise.scalars import less_equal as less_equal
from gtape.ops.elementwise.scalars import logical_and as logical_and
from gtape.ops.elementwise.scalars import logical_not as logical_not
from gtape.ops.elementwise.scalars import logical_or as logical_or
from gtape.ops.elementwise.scalars import make_complex as _complex
from gtape.ops.elementwise.scalars import maximum as maximum
from gtape.ops.elementwise.scalars import minimum as minimum
from gtape.ops.elementwise.scalars import multiply as multiply
from gtape.ops.elementwise.scalars import negative as negative
from gtape.ops.elementwise.scalars import not_equal as not_equal
from gtape.ops.elementwise.scalars import power as _pow
from gtape.ops.elementwise.scalars import sigmoid as sigmoid
from gtape.ops.elementwise.scalars import sin as sin
from gtape.ops.elementwise.scalars import sinh as sinh
from gtape.ops.elementwise.scalars import sqrt as sqrt
from gtape.ops.elementwise.scalars import square as square
from gtape.ops.elementwise.scalars import subtract as subtract
from gtape.ops.elementwise.scalars import tan as tan
from gtape.ops.elementwise.scalars import tanh as tanh
from gtape.ops.elementwise.scalars import truncatediv as truncatediv
from gtape.ops.elementwise.scalars import truncatemod as truncatemod
from gtape.ops.indexing.gathering import gather as gather
from gtape.ops.indexing.gathering import gather_nd as gather_nd
from gtape.ops.indexing.masking import boolean_mask as boolean_mask
from gtape.ops.indexing.masking import sequence_mask as sequence_mask
from gtape.ops.indexing.scattering import scatter_nd as scatter_nd
from gtape.ops.indexing.scattering import tensor_scatter_nd_add as tensor_scatter_nd_add
from gtape.ops.indexing.scattering import tensor_scatter_nd_max as tensor_scatter_nd_max
from gtape.ops.indexing.scattering import tensor_scatter_nd_min as tensor_scatter_nd_min
from gtape.ops.indexing.scattering import tensor_scatter_nd_sub as tensor_scatter_nd_sub
from gtape.ops.indexing.scattering import tensor_scatter_nd_update as tensor_scatter_nd_update
from gtape.ops.indexing.segments import dynamic_partition as dynamic_partition
from gtape.ops.indexing.segments import dynamic_stitch as dynamic_stitch
from gtape.ops.indexing.slicing import slice_ as _slice
from gtape.ops.indexing.slicing import strided_slice as strided_slice
from gtape.ops.indexing.sorting import approx_top_k as approx_top_k
from gtape.ops.indexing.sorting import argmax as argmax
from gtape.ops.indexing.sorting import argmin as argmin
from gtape.ops.indexing.sorting import argsort as argsort
from gtape.ops.indexing.sorting import searchsorted as searchsorted
from gtape.ops.indexing.sorting import sort as sort
from gtape.ops.indexing.unique import unique as unique
from gtape.ops.indexing.unique import unique_with_counts as unique_with_counts
from gtape.ops.linalg.contraction import einsum as einsum
from gtape.ops.linalg.contraction import tensordot as tensordot
from gtape.ops.linalg.eigen import eig as eig
from gtape.ops.linalg.eigen import eigvals as eigvals
from gtape.ops.linalg.matrix_functions import matrix_square_root as matrix_square_root
from gtape.ops.linalg.norms import norm as norm
from gtape.ops.linalg.products import matmul as matmul
from gtape.ops.nn.convolution import conv as conv
from gtape.ops.nn.convolution import conv2d_backprop_filter_v2 as conv2d_backprop_filter_v2
from gtape.ops.nn.convolution import conv2d_backprop_input_v2 as conv2d_backprop_input_v2
from gtape.ops.ragged.ragged_tensor import RaggedTensor as RaggedTensor
from gtape.ops.ragged.ragged_tensor import RaggedTensorSpec as RaggedTensorSpec
from gtape.ops.random.functions import random_index_shuffle as random_index_shuffle
from gtape.ops.random.initializers import Constant as _constant_initializer
from gtape.ops.random.initializers import Ones as _ones_initializer
from gtape.ops.random.initializers import RandomNormal as _random_normal_initializer
from gtape.ops.random.initializers import RandomUniform as _random_uniform_initializer
from gtape.ops.random.initializers import Zeros as _zeros_initializer
from gtape.ops.reductions.cumulative import cumsum as cumsum
from gtape.ops.reductions.histograms import histogram_fixed_width as histogram_fixed_width
from gtape.ops.reductions.histograms import histogram_fixed_width_bins as histogram_fixed_width_bins
from gtape.ops.reductions.reductions import reduce_all as reduce_all
from gtape.ops.reductions.reductions import reduce_any as reduce_any
from gtape.ops.reductions.reductions import reduce_max as reduce_max
from gtape.ops.reductions.reductions import reduce_mean as reduce_mean
from gtape.ops.reductions.reductions import reduce_min as reduce_min
from gtape.ops.reductions.reductions import reduce_prod as reduce_prod
from gtape.ops.reductions.reductions import reduce_sum as reduce_sum
from gtape.ops.reductions.sums import add_n as add_n
from gtape.ops.reductions.sums import reduce_logsumexp as reduce_logsumexp
from gtape.ops.reductions.sums import scalar_mul as scalar_mul
from gtape.ops.shape.arranging import meshgrid as meshgrid
from gtape.ops.shape.arranging import repeat as repeat
from gtape.ops.shape.arranging import reverse as reverse
from gtape.ops.shape.arranging import reverse_sequence as reverse_sequence
from gtape.ops.shape.arranging import roll as roll
from gtape.ops.shape.arranging import tile as tile
from gtape.ops.shape.blocks import batch_to_space as batch_to_space
from gtape.ops.shape.blocks import extract_volume_patches as extract_volume_patches
from gtape.ops.shape.blocks import (
    required_space_to_batch_paddings as required_space_to_batch_paddings,
)
from gtape.ops.shape.blocks import space_to_batch as space_to_batch
from gtape.ops.shape.blocks import space_to_batch_nd as space_to_batch_nd
from gtape.ops.shape.casting import bitcast as bitcast
from gtape.ops.shape.casting import cast as cast
from gtape.ops.shape.casting import saturate_cast as saturate_cast
from gtape.ops.shape.creation import constant as constant
from gtape.ops.shape.creation import convert_to_tensor as convert_to_tensor
from gtape.ops.shape.creation import eye as eye
from gtape.ops.shape.creation import fill as fill
from gtape.ops.shape.creation import linspace as linspace
from gtape.ops.shape.creation import one_hot as one_hot
from gtape.ops.shape.creation import ones as ones
from gtape.ops.shape.creation import ones_like as ones_like
from gtape.ops.shape.creation import range_ as _range
from gtape.ops.shape.creation import zeros as zeros
from gtape.ops.shape.creation import zeros_like as zeros_like
from gtape.ops.shape.identity import control_dependencies as control_dependencies
from gtape.ops.shape.identity import group as group
from gtape.ops.shape.identity import guarantee_const as guarantee_const
from gtape.ops.shape.identity import identity as identity
from gtape.ops.shape.identity import identity_n as identity_n
from gtape.ops.shape.identity import no_op as no_op
from gtape.ops.shape.identity import stop_gradient as stop_gradient
from gtape.ops.shape.identity import tuple_ as _tuple
from gtape.ops.shape.layout import broadcast_to as broadcast_to
from gtape.ops.shape.layout import ensure_shape as ensure_shape
from gtape.ops.shape.layout import expand_dims as expand_dims
from gtape.ops.shape.layout import reshape as reshape
from gtape.ops.shape.layout import squeeze as squeeze
from gtape.ops.shape.layout import transpose as transpose
from gtape.ops.shape.packing import concat as concat
from gtape.ops.shape.packing import parallel_stack as parallel_stack
from gtape.ops.shape.packing import split as split
from gtape.ops.shape.packing import stack as stack
from gtape.ops.shape.packing import unstack as unstack
from gtape.ops.shape.padding import pad as pad
from gtape.ops.shape.shapes import broadcast_dynamic_shape as broadcast_dynamic_shape
from gtape.ops.shape.shapes import broadcast_static_shape as broadcast_static_shape
from gtape.ops.shape.shapes import rank as rank
from gtape.ops.shape.shapes import shape as shape
from gtape.ops.shape.shapes import shape_n as shape_n
from gtape.ops.shape.shapes import size as size
from gtape.ops.shape.shapes import unravel_index as unravel_index
from gtape.ops.signal.fourier import fftnd as fftnd
from gtape.ops.signal.fourier import ifftnd as ifftnd
from gtape.ops.signal.fourier import irfftnd as irfftnd
from gtape.ops.signal.fourier import rfftnd as rfftnd
from gtape.ops.sparse.tensor import SparseTensor as SparseTensor
from gtape.ops.sparse.tensor import SparseTensorSpec as SparseTensorSpec
from gtape.ops.text.hashes import fingerprint as fingerprint
from gtape.ops.text.numerals import as_string as as_string

bool = _bool
print = _print
abs = _abs
round = _round
sign = _sign
divide = _divide
realdiv = _realdiv
complex = _complex
pow = _pow
slice = _slice
constant_initializer = _constant_initializer
ones_initializer = _ones_initializer
random_normal_initializer = _random_normal_initializer
random_uniform_initializer = _random_uniform_initializer
zeros_initializer = _zeros_initializer
range = _range
tuple = _tuple

__version__: str
newaxis: None
