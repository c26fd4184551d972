"""The batching rules of all primitives, by subject; see `vmap.batch_trace`.

Gathers and scatters: where the indices are the same for all elements, their axis goes behind the
rows. Otherwise the elements are parts of one larger table: an index gets the number of its element
in front, or, as a plain number, is moved by the rows of the elements before.

Products: where one operand is the same for all elements, all of them are one product: the elements
become rows, or columns, of the other operand.

Windows: images of all elements are one longer list of images. Where the filters differ too, the
elements are groups of channels of one convolution: its parts do not mix.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

from gtape.core.op import Op
from gtape.core.tensor import EagerTensor, Tensor
from gtape.ops.checks import numerics
from gtape.ops.elementwise.scalars import add, greater_equal, less, logical_and, multiply, where
from gtape.ops.image import adjustments
from gtape.ops.indexing import gathering, getitem, masking, scattering, segments, sorting, unique
from gtape.ops.indexing.gathering import gather_
from gtape.ops.indexing.getitem import WHOLE_AXIS
from gtape.ops.linalg import (
    diagonals,
    eigen,
    linear,
    matrix_functions,
    norms,
    solving,
    systems,
)
from gtape.ops.linalg.contraction import einsum_
from gtape.ops.linalg.products import matmul_
from gtape.ops.nn import convolution, dropout, losses, normalization, pooling, projections, softmax
from gtape.ops.random import functions
from gtape.ops.reductions import (
    cumulative,
    histograms,
    moments,
    reductions,
    sums,
)
from gtape.ops.reductions.reductions import reduce_sum_
from gtape.ops.shape import arranging, blocks, casting, identity, layout, packing, padding
from gtape.ops.shape.layout import broadcast_to_, reshape_, sum_to_, swap_last, transpose_
from gtape.ops.shape.packing import concat_
from gtape.ops.signal import fourier, frames
from gtape.vmap.operand import Attrs, Operand, batches, moved

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


@batches(reshape_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor | Operand:
    (x,), shape = xs, attrs["shape"]
    if x.diagonal is not None:
        # A diagonal stays one: its places are flat positions, which reshaping keeps.
        lead = x.shape[:x.lead]
        if shape[:x.lead] == lead:
            return Operand.onehot(reshape_(x.diagonal, shape=shape), x.lead, x.ones)
    return x.reshaped(shape)


@batches(broadcast_to_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    (x,), shape = xs, attrs["shape"]
    return broadcast_to_(x.aligned(len(shape)), shape=(x.size, *shape))


@batches(sum_to_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    (x,), shape = xs, attrs["shape"]
    padded = (1,) * (len(x.shape) - len(shape)) + tuple(shape)
    summed = sum_to_(x.tensor, shape=(x.size, *padded))
    return summed if padded == shape else reshape_(summed, shape=(x.size, *shape))


@batches(reductions.broadcast_in_dim_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    (x,) = xs
    return run(op, [x.tensor], {"shape": (x.size, *attrs["shape"]), "axis": behind(attrs["axis"])})


@batches(layout.transpose_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    return run(op, [xs[0].tensor], {"perm": (0, *behind(attrs["perm"]))})


@batches(padding.pad_, padding.mirror_pad_, padding.mirror_fold_)
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    return run(op, [xs[0].tensor], attrs | {"paddings": ((0, 0), *attrs["paddings"])})


@batches(getitem.getitem_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    return run(op, [xs[0].tensor], {"key": (WHOLE_AXIS, *attrs["key"])})


@batches(getitem.put_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Any:
    (x,), shape = xs, tuple(attrs["shape"])
    # As many elements, and keys of single places: only axes of length 1 are new, and a diagonal
    # stays one.
    everything = math.prod(shape) == math.prod(x.shape) and all(
        e is None or type(e) is int or e == WHOLE_AXIS for e in attrs["key"])
    if everything and x.diagonal is not None and not x.lead:
        return Operand.onehot(reshape_(x.diagonal, shape=shape), 0, x.ones)
    if everything:
        return x.reshaped(shape)
    return run(op, [x.tensor], {"key": (WHOLE_AXIS, *attrs["key"]), "shape": (x.size, *shape)})


def _numbers(indices: Operand, step: int, shape: tuple[int, ...]) -> EagerTensor:
    """0, step, 2 step … for the elements, in the dtype of the indices."""
    array_type = indices.array_type
    with array_type.device.scope():
        numbers = array_type.xp.arange(indices.size) * step
        return EagerTensor(numbers.astype(array_type.dtype.np_dtype).reshape(shape), array_type)


def _flat(indices: Operand, rows: int) -> Tensor:
    """Indices of the rows of all elements below each other; what was outside stays outside."""
    index = indices.full()
    first = _numbers(indices, rows, (indices.size,) + (1,) * len(indices.shape))
    # Moved, an index outside its element would be a row of another element.
    inside = logical_and(greater_equal(index, 0), less(index, rows))
    beyond = where(less(index, 0), index, rows * indices.size)
    return where(inside, add(index, first), beyond)


def _joined(x: Operand) -> Tensor:
    """The rows of all elements below each other."""
    return reshape_(x.full(), shape=(x.size * x.shape[0], *x.shape[1:]))


@batches(gather_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    params, indices = xs
    axis = attrs["axis"]
    if not indices.batched:
        return gather_(params.tensor, indices.tensor, axis=axis + 1)
    if not params.batched:
        return moved(gather_(params.tensor, indices.tensor, axis=axis), axis, 0)
    first = Operand.of(moved(params.tensor, axis + 1, 1))
    gathered = gather_(_joined(first), _flat(indices, first.shape[0]), axis=0)
    for i in range(axis):
        gathered = moved(gathered, 1 + len(indices.shape) + i, 1 + i)
    return gathered


@batches(functions.shuffle_, unique.unique_)  # both take rows by given positions
def _(op: Any, xs: Operands, attrs: Attrs) -> Any:
    x, order = xs
    return None if order.batched else gather_(x.tensor, order.tensor, axis=1)


@batches(gathering.scatter_rows_, gathering.rows_or_zero_, segments.segment_extreme_,
         segments.segment_prod_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor:
    x, indices = xs
    if not indices.batched:
        return moved(run(op, [x.along(1), indices.tensor], attrs)[0], 1, 0)
    if op.name == "rows_or_zero_":
        flat = reshape_(_flat(indices, x.shape[0]), shape=(x.size * indices.shape[0],))
        (computed,) = run(op, [_joined(x), flat], attrs)
        return reshape_(computed, shape=(x.size, indices.shape[0], *x.shape[1:]))
    name = "rows" if op.name == "scatter_rows_" else "count"
    rows = attrs[name]
    flat = reshape_(_flat(indices, rows), shape=(x.size * indices.shape[0],))
    (computed,) = run(op, [_joined(x), flat], attrs | {name: rows * x.size})
    return reshape_(computed, shape=(x.size, rows, *x.shape[1:]))


def _numbered(indices: Operand) -> Tensor:
    """Index tuples with the number of their element in front."""
    whole = indices.full()
    shape = (*whole.spec.shape[:-1], 1)
    first = _numbers(indices, 1, (indices.size,) + (1,) * len(indices.shape))
    return concat_(broadcast_to_(first, shape=shape), whole, axis=len(shape) - 1)


@batches(gathering.gather_nd_, gathering.scatter_nd_, scattering.tensor_scatter_update_,
         scattering.tensor_scatter_max_, scattering.tensor_scatter_min_, scattering.cleared_,
         scattering.gather_last_, scattering.put_last_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    at = op.params.index("indices")
    if op.name == "gather_nd_" and not xs[0].batched:
        return run(op, [x.tensor for x in xs], attrs)
    if "shape" in attrs:
        attrs = attrs | {"shape": (xs[0].size, *attrs["shape"])}
    return run(op, [_numbered(x) if i == at else x.full() for i, x in enumerate(xs)], attrs)


@batches(matmul_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Tensor | Operand:
    a, b = xs
    turned_a, turned_b = attrs["transpose_a"], attrs["transpose_b"]
    if not b.batched and len(b.shape) == 2:
        product = _rows(a, b.tensor, turned_a, turned_b)
    elif not a.batched and len(a.shape) == 2 and len(b.shape) == 2:
        product = _columns(a.tensor, b, turned_a, turned_b)
    else:
        product = None
    if product is not None:
        return product
    rank = max(len(a.shape), len(b.shape))
    return matmul_(a.aligned(rank), b.aligned(rank), transpose_a=turned_a, transpose_b=turned_b)


def _rows(a: Operand, b: Tensor, turned_a: bool, turned_b: bool) -> Tensor | Operand | None:
    """a b for every a: their rows below each other are one matrix. Axes that come first in memory
    come first in the product too."""
    columns = b.spec.shape[0 if turned_b else 1]
    *batch, rows, inner = a.shape
    if turned_a:
        if inner != 1 and rows != 1:  # more than a reshape: elements would have to move
            return None
        rows, inner = inner, rows
    if a.diagonal is not None and math.prod(batch) * rows == math.prod(a.shape[:a.lead]) and (
            inner == a.size):
        return _scaled_rows(a, b, turned_b, (*batch, rows, columns))
    shape = (*batch, rows, inner)
    whole = a.along(a.lead) if a.shape == shape else moved(a.reshaped(shape), 0, a.lead)
    flat = reshape_(whole, shape=(a.size * math.prod(shape[:-1]), inner))
    product = matmul_(flat, b, transpose_b=turned_b)
    return Operand.of(reshape_(product, shape=(*whole.spec.shape[:-1], columns)), a.lead)


def _scaled_rows(a: Operand, b: Tensor, turned_b: bool, shape: tuple[int, ...]) -> Tensor:
    """a b where a is one-hot in its columns: row i of b, times what a holds there."""
    assert a.diagonal is not None
    b = swap_last(b) if turned_b else b
    lines = math.prod(shape[:-1])
    # A product with a one-hot matrix picks rows: nothing is multiplied by zeros and added up.
    rows = reshape_(b, shape=(a.size, 1, shape[-1]))
    if a.ones:
        scaled = rows if lines == 1 else broadcast_to_(rows, shape=(a.size, lines, shape[-1]))
    else:
        factors = transpose_(reshape_(a.diagonal, shape=(lines, a.size)), perm=(1, 0))
        scaled = multiply(rows, reshape_(factors, shape=(a.size, lines, 1)))
    return reshape_(scaled, shape=(a.size, *shape))


def _columns(a: Tensor, b: Operand, turned_a: bool, turned_b: bool) -> Tensor | None:
    """a b for every b of one column: side by side they are one matrix."""
    rows = a.spec.shape[1 if turned_a else 0]
    inner, columns = b.shape[::-1] if turned_b else b.shape
    if columns != 1 or inner == 1:
        return None
    if b.diagonal is not None and not b.lead:
        return reshape_(_scaled_rows(b, a, not turned_a, (1, rows)), shape=(b.size, rows, 1))
    flat = reshape_(b.tensor, shape=(b.size, inner))
    product = matmul_(flat, a, transpose_b=not turned_a)
    return reshape_(product, shape=(b.size, rows, 1))


@batches(einsum_)
def _(op: object, xs: Operands, attrs: Attrs) -> Any:
    terms, _, result = attrs["equation"].partition("->")
    # The axis of the elements is a letter like any other, and the contraction's order is found with
    # it.
    letter = next((x for x in string.ascii_letters if x not in terms), None)
    if letter is None:
        return None
    marked = [letter + t if x.batched else t for x, t in zip(xs, terms.split(","))]
    return einsum_(*[x.tensor for x in xs], equation=f"{','.join(marked)}->{letter}{result}")


@batches(linear.weight_gradients_)
def _(op: Op, xs: Operands, attrs: Attrs) -> tuple[Tensor, ...]:
    x, dz = xs
    rows = math.prod(x.shape[:-1])
    left = x.reshaped((rows, x.shape[-1]))
    right = dz.reshaped((rows, dz.shape[-1]))
    weights = matmul_(left, right, transpose_a=True)
    if not dz.batched:
        bias = reduce_sum_(right, axis=(0,))
        return weights, broadcast_to_(bias, shape=(x.size, dz.shape[-1]))
    return weights, reduce_sum_(right, axis=(1,))


@batches(solving.solve_, solving.triangular_solve_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Any:
    a, b = xs
    if a.batched or len(a.shape) != 2 or len(b.shape) != 2:
        rank = max(len(a.shape), len(b.shape))
        return run(op, [a.aligned(rank), b.aligned(rank)], attrs)
    rows, columns = b.shape
    # One matrix for all right sides: it is factored once.
    side_by_side = reshape_(b.along(1), shape=(rows, b.size * columns))
    (solutions,) = run(op, [a.tensor, side_by_side], attrs)
    return transpose_(reshape_(solutions, shape=(rows, b.size, columns)), perm=(1, 0, 2))


@batches(losses.l2_loss_)
def _(op: Op, xs: Operands, attrs: Attrs) -> Any:
    (t,) = xs
    if t.spec.dtype.size < 4:  # the op computes in float32, and rounds once
        return None
    flat = t.reshaped((math.prod(t.shape),))
    return multiply(reduce_sum_(multiply(flat, flat), axis=(1,)), 0.5)


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
    if attrs.get("batch"):  # positions in the batch: one list of all images counts on
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
