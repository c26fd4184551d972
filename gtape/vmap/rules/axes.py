"""Batching rules of ops that work along named axes, or on the last axes whatever is in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.core.tensor import Tensor
from gtape.vmap.batch_trace import Attrs, batches
from gtape.vmap.operand import Operand

Operands = Sequence[Operand]


def run(op: Any, tensors: Sequence[Tensor], attrs: Attrs) -> tuple[Tensor, ...]:
    """The op's results."""
    return op.reapply(list(tensors), tuple(attrs.values()))


def behind(axis: Any) -> Any:
    """An axis, or several, counted with that of the elements in front."""
    return axis + 1 if isinstance(axis, int) else tuple(a + 1 for a in axis)


@batches("reduce_sum_", "reduce_mean_", "reduce_max_", "reduce_min_", "reduce_prod_",
         "reduce_all_", "reduce_any_", "reduce_logsumexp_", "reduce_variance_",
         "euclidean_norm_", "share_", "softmax_", "softmax_grad_", "log_softmax_",
         "log_softmax_grad_", "sparsemax_", "cumsum_", "cumprod_", "cumulative_logsumexp_",
         "shift_", "linear_scan_", "arg_extreme_", "reverse_", "roll_", "repeat_", "concat_",
         "stack_", "split_", "unstack_")
def _along(op: Any, xs: Operands, attrs: Attrs) -> Any:
    return run(op, [x.full() for x in xs], attrs | {"axis": behind(attrs["axis"])})


@batches("fft_", "ifft_", "rfft_", "irfft_", "normal_grad_")
def _over(op: Any, xs: Operands, attrs: Attrs) -> Any:
    return run(op, [x.full() for x in xs], attrs | {"axes": behind(attrs["axes"])})


@batches("compress_", "expand_")
def _indexed_along(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, index = xs
    if index.batched:
        return None
    return run(op, [x.tensor, index.tensor], attrs | {"axis": behind(attrs["axis"])})


@batches("reverse_sequence_")
def _sequences(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, lengths = xs
    if lengths.batched:
        return None
    return run(op, [x.tensor, lengths.tensor], {n: behind(a) for n, a in attrs.items()})


@batches("identity_", "apart_", "stop_gradient_", "cast_", "bitcast_", "check_numerics_", "within_",
         "bins_", "add_n_", "gamma_slope_", "cross_", "det_", "cofactors_",
         "cofactor_change_", "slogdet_", "inv_", "cholesky_", "pinv_", "eigh_", "eig_", "svd_",
         "qr_", "lu_", "expm_", "logm_", "square_root_", "tridiagonal_solve_", "diag_part_",
         "diag_", "set_diag_", "band_part_", "take_along_", "put_along_", "sort_", "argsort_",
         "top_k_", "searchsorted_", "frames_", "overlap_", "softmax_cross_entropy_",
         "cross_entropy_grad_", "sparse_softmax_cross_entropy_", "sparse_cross_entropy_grad_",
         "pick_class_", "place_class_")
def _whatever_is_in_front(op: Any, xs: Operands, attrs: Attrs) -> Any:
    return run(op, [x.full() for x in xs], attrs)


@batches("masked_scale_")
def _masked(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, kept = xs
    return run(op, [x.full(), kept.aligned(len(x.shape))], attrs)


@batches("adjust_contrast_")
def _contrast(op: Any, xs: Operands, attrs: Attrs) -> Any:
    return None if xs[1].batched else run(op, [x.tensor for x in xs], attrs)
