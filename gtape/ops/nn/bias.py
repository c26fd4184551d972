"""bias_add: one number for each channel."""

from __future__ import annotations

from gtape.core.annotations import TensorLike
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.tensor import Tensor
from gtape.ops.elementwise.scalars import add
from gtape.ops.linalg.products import pair
from gtape.ops.shape.layout import reshape_


def bias_add(value: TensorLike, bias: TensorLike, data_format: str | None = None,
             name: str | None = None) -> Tensor:
    """`value` plus `bias` [C] along the channels: the last axis, or axis 1 for 'NC…'.

    Raises:
        InvalidArgumentError: `bias` has not one number per channel, or `value` has rank below 2.
        ValueError: an unknown layout.
    """
    x, b = pair("bias_add", value, bias)
    if data_format is not None and not (
            isinstance(data_format, str) and data_format.startswith("N")):
        raise ValueError(f"bias_add: data_format must be None, 'N…C' or 'NC…'; got "
                         f"{shown(data_format)}")
    if x.ndim < 2:
        raise InvalidArgumentError(f"bias_add: the value must have rank 2 or more; got {x.spec}")
    first = data_format is not None and data_format.startswith("NC") and len(data_format) > 2
    channels = x.spec.shape[1 if first else -1]
    if b.spec.shape != (channels,):
        raise InvalidArgumentError(f"bias_add: the bias must have shape [{channels}], one number "
                                   f"per channel of {x.spec}; got {b.spec}")
    if first and x.ndim > 2:
        b = reshape_(b, shape=(channels,) + (1,) * (x.ndim - 2))
    return add(x, b)
