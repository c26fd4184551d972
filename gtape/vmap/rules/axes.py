"""Batching rules of ops that work along named axes, or on the last axes whatever is in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.core.op import Op
from gtape.core.tensor import Tensor
from gtape.ops.checks import numerics
from gtape.ops.image import adjustments
from gtape.ops.indexing import gathering, masking, sorting
from gtape.ops.linalg import (
    diagonals,
    eigen,
    matrix_functions,
    norms,
    solving,
    systems,
)
from gtape.ops.nn import dropout, losses, normalization, softmax
from gtape.ops.random import functions
from gtape.ops.reductions import (
    cumulative,
    histograms,
    moments,
    reductions,
    sums,
)
from gtape.ops.shape import arranging, casting, identity, packing
from gtape.ops.signal import fourier, frames
from gtape.vmap.operand import Attrs, Operand, batches

Operands = Sequence[Operand]


def run(op: Any, tensors: Sequence[Tensor], attrs: Attrs) -> tuple[Tensor, ...]:
    """The op's results."""
    return op.reapply(list(tensors), tuple(attrs.values()))


def behind(axis: int | tuple[int, ...]) -> Any:
    """An axis, or several, counted with that of the elements in front."""
    return axis + 1 if isinstance(axis, int) else tuple(a + 1 for a in axis)


@batches(reductions.reduce_sum_, reductions.reduce_mean_, reductions.reduce_max_,
         reductions.reduce_min_, reductions.reduce_prod_, reductions.reduce_all_,
         reductions.reduce_any_, sums.reduce_logsumexp_,
         moments.reduce_variance_, norms.euclidean_norm_, sums.share_,
         softmax.softmax_, softmax.softmax_grad_, softmax.log_softmax_, softmax.log_softmax_grad_,
         cumulative.cumsum_, cumulative.cumprod_,
         cumulative.cumulative_logsumexp_, cumulative.linear_scan_,
         sorting.arg_extreme_,
         packing.concat_, packing.stack_, packing.split_, packing.unstack_)
def _along(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    return run(op, [x.full() for x in xs], attrs | {"axis": behind(attrs["axis"])})


@batches(fourier.fft_, fourier.ifft_, fourier.rfft_, fourier.irfft_, normalization.normal_grad_)
def _over(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    return run(op, [x.full() for x in xs], attrs | {"axes": behind(attrs["axes"])})


@batches(masking.compress_, masking.expand_)
def _indexed_along(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, index = xs
    if index.batched:
        return None
    return run(op, [x.tensor, index.tensor], attrs | {"axis": behind(attrs["axis"])})


@batches(arranging.reverse_sequence_)
def _sequences(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, lengths = xs
    if lengths.batched:
        return None
    return run(op, [x.tensor, lengths.tensor], {n: behind(a) for n, a in attrs.items()})


@batches(identity.identity_, identity.optimization_barrier_, identity.stop_gradient_, casting.cast_,
         casting.bitcast_, numerics.check_numerics_, gathering.within_, histograms.bins_,
         sums.add_n_, functions.gamma_slope_, diagonals.cross_, matrix_functions.det_,
         matrix_functions.cofactors_, matrix_functions.cofactor_change_, matrix_functions.slogdet_,
         systems.pinv_, matrix_functions.expm_, matrix_functions.logm_,
         matrix_functions.square_root_, solving.inv_, solving.cholesky_, eigen.eigh_,
         eigen.eig_, eigen.svd_, eigen.qr_, systems.lu_,
         systems.tridiagonal_solve_, diagonals.diag_part_, diagonals.diag_, diagonals.set_diag_,
         diagonals.band_part_, sorting.take_along_, sorting.put_along_, sorting.sort_,
         sorting.argsort_, sorting.top_k_, sorting.searchsorted_, frames.frames_, frames.overlap_,
         losses.softmax_cross_entropy_, losses.cross_entropy_grad_,
         losses.sparse_softmax_cross_entropy_, losses.sparse_cross_entropy_grad_,
         losses.pick_class_, losses.place_class_)
def _whatever_is_in_front(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    return run(op, [x.full() for x in xs], attrs)


@batches(dropout.masked_scale_)
def _masked(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, kept = xs
    return run(op, [x.full(), kept.aligned(len(x.shape))], attrs)


@batches(adjustments.adjust_contrast_)
def _contrast(op: Any, xs: Operands, attrs: Attrs) -> Any:
    return None if xs[1].batched else run(op, [x.tensor for x in xs], attrs)
