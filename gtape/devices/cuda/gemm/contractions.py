"""What stands on matrix products: dense layers, contractions of two arrays, convolutions of one
cell.

The dense layer y = f(x W + b) has its bias and activation inside the products. Forward it is one
launch: b belongs to the columns of x W, which is what the epilogue BIAS adds, and f follows in
registers. Backward it is one elementwise launch and two products. With z = x W + b:

    dz = dy f'(z)          elementwise
    dx = dz Wᵀ             a product
    dW = xᵀ dz, db = Σ dz  a product with the epilogue BGRADA: in it dz is the library's first
                           factor (`layout`), and db sums dz over the axis that the product sums

The epilogues DRELU and DGELU, with and without BGRAD, cannot take over the first line: they act on
the result of a product, and the product that makes dy belongs to the backward of the layer above.
`gemm.matmul` has them for who sees both layers at once. So relu needs no bit mask: y > 0 tells its
slope, and y is kept in any case, as the input of the next layer. Only gelu saves something, its
input z, which the epilogue writes beside y; it is the form with tanh, the library has no other.

All functions give None where cuBLASLt does not serve the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from gtape.devices.cuda.gemm.blaslt import Epilogue
from gtape.devices.cuda.gemm.gemm import matmul
from gtape.devices.cuda.gemm.problem import auxiliary
from gtape.devices.cuda.runtime.executor import Executor

if TYPE_CHECKING:
    from gtape.core.device import Array

_FORWARD = {None: Epilogue.BIAS, "relu": Epilogue.RELU_BIAS, "gelu_tanh": Epilogue.GELU_BIAS}


def linear_forward(gpu: Executor, x: Any, w: Any, b: object, activation: str | None,
                   save: bool = True) -> tuple[Any, Any] | None:
    """(f(x W + b), z), with z the input of gelu if it is to be saved, else None.

    Args:
        x, w, b: arrays […, in], [in, units] and [units] of one float dtype.
        activation: None, "relu" or "gelu_tanh".
    """
    shape, units = (*x.shape[:-1], w.shape[1]), w.shape[1]
    epilogue, aux = _FORWARD[activation], None
    if save and activation == "gelu_tanh":
        epilogue = Epilogue.GELU_AUX_BIAS
        aux = auxiliary(gpu, epilogue, prod(shape[:-1]), units, x.dtype)
        # Padded rows would have to be copied to be z, which costs what the epilogue saves.
        if aux.shape[1] != units:
            return None
    y = matmul(gpu, _rows(gpu, x), w, epilogue=epilogue, bias=gpu.contiguous(b), aux=aux)
    if y is None:
        return None
    return y.reshape(shape), None if aux is None else aux.reshape(shape)


def linear(gpu: Executor, x: object, kernel: object, bias: object, activation: str | None) -> Any:
    """f(x W + b), with nothing saved."""
    y = linear_forward(gpu, x, kernel, bias, activation, save=False)
    return None if y is None else y[0]


def linear_backward(gpu: Executor, dz: Array, x: Array, w: Array) -> tuple[Any, Any, Any] | None:
    """(dx, dW, db) for the gradient dz […, units] of z."""
    dx = matmul(gpu, _rows(gpu, dz), w, transpose_b=True)
    weights = None if dx is None else weight_gradients(gpu, x, dz)
    return None if dx is None or weights is None else (dx.reshape(x.shape), *weights)


def weight_gradients(gpu: Executor, x: object, dz: Any) -> tuple[Any, Any] | None:
    """(xᵀ dz, Σ dz), over all axes but the last."""
    db = gpu.empty((dz.shape[-1],), dz.dtype)
    dw = matmul(gpu, _rows(gpu, x), _rows(gpu, dz), transpose_a=True, epilogue=Epilogue.BGRADA,
                bias=db)
    return None if dw is None else (dw, db)


def _rows(gpu: Executor, x: Any) -> Any:
    """x as a matrix, its leading axes one."""
    # A matrix stays as it is: the products read transposed ones without a copy.
    return x if x.ndim == 2 else gpu.contiguous(x).reshape(prod(x.shape[:-1]), x.shape[-1])


# ---------------------------------------------------------------- convolutions of one cell
def is_pointwise(size: Sequence[int], strides: Sequence[int], pads: Sequence[Sequence[int]],
                 groups: int) -> bool:
    """Whether a convolution with filters of `size` cells is a matrix product over all positions:
    y[n, o, f] = Σ x[n, o, c] w[c, f]. cuBLASLt has tensor cores for floats of two bytes."""
    return groups == 1 and {*size, *strides} == {1} and not any(map(any, pads))


def convolve(gpu: Executor, x: Any, filters: Any) -> Any:
    """x [N, *in, C] and filters [*1, C, F] -> [N, *in, F]."""
    product = matmul(gpu, _rows(gpu, x), _matrix(gpu, filters))
    return None if product is None else product.reshape((*x.shape[:-1], filters.shape[-1]))


def input_gradient(gpu: Executor, g: Any, filters: Any) -> Any:
    """g [N, *in, F] and filters [*1, C, F] -> [N, *in, C]."""
    product = matmul(gpu, _rows(gpu, g), _matrix(gpu, filters), transpose_b=True)
    return None if product is None else product.reshape((*g.shape[:-1], filters.shape[-2]))


def filter_gradient(gpu: Executor, x: Any, g: Any) -> Any:
    """x [N, *in, C] and g [N, *in, F] -> [*1, C, F]."""
    product = matmul(gpu, _rows(gpu, x), _rows(gpu, g), transpose_a=True)
    shape = (*(1,) * (x.ndim - 2), x.shape[-1], g.shape[-1])
    return None if product is None else product.reshape(shape)


def _matrix(gpu: Executor, filters: Any) -> Any:
    return gpu.contiguous(filters).reshape(filters.shape[-2:])


# ---------------------------------------------------------------- einsum
class _Letters(NamedTuple):
    """The letters of an equation: those of both arrays and the result, of a and the result, of b
    and the result, and of both arrays alone."""

    batch: str
    rows: str
    columns: str
    inner: str


def einsum(gpu: Executor, *values: Any, equation: str) -> Any:
    """The contraction "ab,bc->ac" of two arrays, any number of letters of each kind, as one batched
    product; the result may be a view. None also where it is no product of two matrices."""
    if len(values) != 2:
        return None
    a, b = values
    terms, _, result = equation.partition("->")
    first, _, second = terms.partition(",")
    letters = _letters(first, second, result)
    if letters is None:
        return None
    batch, rows, columns, inner = letters
    sizes = dict(zip(first, a.shape)) | dict(zip(second, b.shape))
    product = matmul(gpu, _stack(a, first, batch, rows, inner, sizes),
                     _stack(b, second, batch, inner, columns, sizes))
    if product is None:
        return None
    order = batch + rows + columns
    product = product.reshape(tuple(sizes[x] for x in order))
    return product if order == result else product.transpose([order.index(x) for x in result])


@lru_cache(1024)  # a program has few equations; the limit is for those that are put together
def _letters(first: str, second: str, result: str) -> _Letters | None:
    """None: a letter repeats, or stands in one term alone, or nothing is summed."""
    if len(set(first)) < len(first) or len(set(second)) < len(second):
        return None
    both = [x for x in first if x in second]
    letters = _Letters("".join(x for x in both if x in result),
                       "".join(x for x in first if x not in second),
                       "".join(x for x in second if x not in first),
                       "".join(x for x in both if x not in result))
    lone = any(x not in result for x in letters.rows + letters.columns)
    return None if lone or not letters.inner else letters


def _stack(x: Any, term: str, batch: str, rows: str, columns: str, sizes: dict[str, int]) -> Any:
    """x as matrices [batch…, rows, columns]; a view where several letters of a kind allow it."""
    order = batch + rows + columns
    seen = x if order == term else x.transpose([term.index(c) for c in order])
    if len(rows) == 1 and len(columns) == 1:
        return seen
    return seen.reshape((*[sizes[c] for c in batch], prod(sizes[c] for c in rows),
                         prod(sizes[c] for c in columns)))
