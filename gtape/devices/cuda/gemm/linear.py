"""The dense layer y = f(x W + b) on a GPU: its bias and activation inside the matrix products.

Forward it is one launch: b belongs to the columns of x W, which is what the epilogue BIAS adds, and
f follows in registers. Backward it is one elementwise launch and two products. With z = x W + b:

    dz = dy f'(z)          elementwise
    dx = dz Wᵀ             a product
    dW = xᵀ dz, db = Σ dz  a product with the epilogue BGRADA: in it dz is the library's first
                           factor (gemm_layout), and db sums dz over the axis that the product sums

The epilogues DRELU and DGELU, with and without BGRAD, cannot take over the first line: they act on
the result of a product, and the product that makes dy belongs to the backward of the layer above.
`gemm.matmul` has them for who sees both layers at once. So relu needs no bit mask: y > 0 tells its
slope, and y is kept in any case, as the input of the next layer. Only gelu saves something, its
input z, which the epilogue writes beside y; it is the form with tanh, the library has no other.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from gtape.devices.cuda.gemm.blaslt_enums import Epilogue
from gtape.devices.cuda.gemm.epilogue import auxiliary
from gtape.devices.cuda.gemm.gemm import matmul
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

    Returns:
        None where cuBLASLt does not serve it.
    """
    shape, units = (*x.shape[:-1], w.shape[1]), w.shape[1]
    epilogue, aux = _FORWARD[activation], None
    if save and activation == "gelu_tanh":
        epilogue = Epilogue.GELU_AUX_BIAS
        aux = auxiliary(gpu, epilogue, prod(shape[:-1]), units, x.dtype)
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
    """(dx, dW, db) for the gradient dz […, units] of z; None where cuBLASLt does not serve it."""
    dx = matmul(gpu, _rows(gpu, dz), w, transpose_b=True)
    weights = None if dx is None else weight_gradients(gpu, x, dz)
    return None if dx is None or weights is None else (dx.reshape(x.shape), *weights)


def weight_gradients(gpu: Executor, x: object, dz: Any) -> tuple[Any, Any] | None:
    """(xᵀ dz, Σ dz), over all axes but the last; None where cuBLASLt does not serve it."""
    db = gpu.empty((dz.shape[-1],), dz.dtype)
    dw = matmul(gpu, _rows(gpu, x), _rows(gpu, dz), transpose_a=True, epilogue=Epilogue.BGRADA,
                bias=db)
    return None if dw is None else (dw, db)


def _rows(gpu: Executor, x: Any) -> Any:
    """x as a matrix, its leading axes one."""
    if x.ndim == 2:
        return x
    return gpu.contiguous(x).reshape(prod(x.shape[:-1]), x.shape[-1])
