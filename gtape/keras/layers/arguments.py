"""What layers accept: tensors in their dtype, shapes, padding modes, sizes of windows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import DType
from gtape.core.tensor import Tensor
from gtape.core.text import shown


def layer_inputs(name: str, value: Any, dtype: DType | None) -> Any:
    """Inputs of a layer as tensors; floating ones in the layer's dtype. Nests keep their form.

    Raises:
        ValueError: a list of numbers, or something else that is no tensor or array.
    """
    if isinstance(value, (list, tuple)):
        return type(value)([layer_inputs(name, v, dtype) for v in value])
    if isinstance(value, dict):
        return {key: layer_inputs(name, v, dtype) for key, v in value.items()}
    if value is None:
        return None
    if not isinstance(value, Tensor) and not hasattr(value, "_read_") and not hasattr(
            value, "__array__"):
        if hasattr(value, "batch_shape"):
            raise ValueError(f"the layer '{name}' takes tensors and arrays; got a keras.Input. "
                             f"gtape has no functional API, since it computes at once: write a "
                             f"subclass of keras.Model with a call method, or keras.Sequential")
        raise ValueError(f"the layer '{name}' takes tensors and arrays; got a "
                         f"{type(value).__name__}. Write layer(tf.constant(values))")
    tensor = convert(value)
    if dtype is None or tensor.dtype is dtype or not tensor.dtype.is_floating:
        return tensor
    from gtape.ops.casting import cast

    return cast(tensor, dtype)


def _shape(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, (list, tuple)):
        return [_shape(v) for v in value]
    return {key: _shape(v) for key, v in value.items()} if isinstance(value, dict) else None


def first_shape(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The shape of the first input of a call; a list of shapes for a list of tensors."""
    for value in (*args, *kwargs.values()):
        found = _shape(value)
        if found is not None:
            return found
    return None


def leftover_arguments(layer: str, kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """The input shape among the keyword arguments a layer does not know, without the batch.

    Raises:
        ValueError: other keyword arguments.
    """
    shape = None
    if "input_shape" in kwargs:
        shape = tuple(np.atleast_1d(kwargs.pop("input_shape")).tolist())
    elif "batch_input_shape" in kwargs:
        shape = tuple(kwargs.pop("batch_input_shape"))[1:]
    elif "input_dim" in kwargs:
        shape = (int(kwargs.pop("input_dim")),)
    if kwargs:
        raise ValueError(f"{layer} takes no keyword arguments {sorted(kwargs)}")
    if shape is not None:
        from gtape.core.tape_recording import stack_level

        warnings.warn("do not pass input_shape or input_dim to a layer: put "
                      "keras.Input(shape) first into the Sequential model",
                      UserWarning, stacklevel=stack_level())
    return shape


def axis_length(layer: Any, shape: Any, axis: int) -> int:
    """The length of an axis of the input's shape.

    Raises:
        ValueError: there is no such axis, or its length is unknown.
    """
    if shape is None or isinstance(shape, list) or not -len(shape) <= axis < len(shape):
        raise ValueError(f"the layer '{layer.name}' needs an input with axis {axis}; got the "
                         f"shape {shape}")
    if shape[axis] is None:
        raise ValueError(f"the layer '{layer.name}' needs to know the length of axis {axis} of "
                         f"its input; got the shape {shape}")
    return int(shape[axis])


def check_length(layer: Any, x: Any, axis: int, length: int) -> None:
    """Raises ValueError when the input's axis has another length than the weights were made for."""
    shape = x.spec.shape
    if len(shape) < 2 or shape[axis] != length:
        raise ValueError(f"the layer '{layer.name}' was built for inputs of at least two axes, "
                         f"with length {length} in axis {axis}; got shape {shape}")


def check_rank(layer: Any, x: Any, rank: int) -> None:
    """Raises ValueError when the input has not `rank` axes."""
    if x.ndim != rank:
        raise ValueError(f"the layer '{layer.name}' takes inputs of {rank} axes; got shape "
                         f"{tuple(x.shape)}")


def sizes(name: str, value: Any, rank: int) -> tuple[int, ...]:
    """An int or a sequence of `rank` ints, all positive.

    Raises:
        ValueError: anything else.
    """
    found = (value,) * rank if isinstance(value, (int, np.integer)) else tuple(value)
    if len(found) != rank or any(not isinstance(n, (int, np.integer)) or n < 1 for n in found):
        raise ValueError(f"{name} must be a positive int or {rank} of them; got {shown(value)}")
    return tuple(int(n) for n in found)


def padding_mode(value: Any, *allowed: str) -> str:
    """'same' or 'valid' (and what else is allowed) in lower case.

    Raises:
        ValueError: another mode.
    """
    mode = value.lower() if isinstance(value, str) else value
    if mode not in ("valid", "same", *allowed):
        raise ValueError(f"padding must be one of {('valid', 'same', *allowed)}; got "
                         f"{shown(value)}")
    return mode


def channels_first(data_format: Any) -> bool:
    """Whether the channels come before the spatial axes.

    Raises:
        ValueError: neither 'channels_last' nor 'channels_first'.
    """
    if data_format not in (None, "channels_last", "channels_first"):
        raise ValueError(f"data_format must be 'channels_last' or 'channels_first'; got "
                         f"{shown(data_format)}")
    return data_format == "channels_first"


def positive(name: str, value: Any) -> int:
    """A positive int. Raises ValueError otherwise."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer; got {shown(value)}")
    return int(value)


def share(name: str, value: Any) -> float:
    """A number in [0, 1]. Raises ValueError otherwise."""
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number in [0, 1]; got {shown(value)}")
    return float(value)


