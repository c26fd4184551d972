"""First values of variables: callables `(shape, dtype)`, as `tf.zeros_initializer()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import IntsLike
from gtape.core.dtypes import DType, as_dtype
from gtape.core.formatting import shown
from gtape.core.spec import TensorShape
from gtape.core.tensor import Tensor
from gtape.ops.random import functions
from gtape.ops.shape.creation import constant, ones, zeros


class Initializer:
    """Base class: `initializer(shape, dtype)` is a tensor; `get_config()` its arguments."""

    def __call__(self, shape: IntsLike, dtype: object = dtypes.float32) -> Any:
        """A tensor of this shape. Raises ValueError: the initializer has no values of this
        dtype."""
        return self._made(shape, None if dtype is None else as_dtype(dtype))

    def _made(self, shape: Any, dtype: DType | None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(shape, dtype)")

    def get_config(self) -> dict[str, object]:
        """The arguments that make an equal initializer."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, object]) -> Initializer:
        """The initializer of a `get_config`."""
        # Configurations of older TensorFlow hold a dtype, which the call gives now.
        return cls(**{name: value for name, value in config.items() if name != "dtype"})


class Zeros(Initializer):
    """zeros_initializer: 0 everywhere, False for bool.

    Called with (shape, dtype=float32). Raises ValueError for strings.
    """

    _filled: Callable[..., Tensor] = staticmethod(zeros)

    def _made(self, shape: int | TensorShape | tuple[int, ...], dtype: DType | None) -> Tensor:
        return self._filled(shape, _required(dtype, "a number or bool", _countable))


class Ones(Zeros):
    """ones_initializer: 1 everywhere, True for bool.

    Called with (shape, dtype=float32). Raises ValueError for strings.
    """

    _filled = staticmethod(ones)


class Constant(Initializer):
    """constant_initializer: one value everywhere, or the values of a list or array in its order.

    Called with (shape, dtype=None), where None takes the dtype of the value.

    Args:
        value: a Python scalar, a list or tuple of them, or a NumPy array, with as many elements as
            the shape, or one.
        support_partition: taken and ignored.

    Raises:
        TypeError: the value is something else; when called: it has another number of elements, or
            does not fit the dtype.
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(f"constant_initializer takes a Python scalar, a list or tuple of them, "
                            f"or a NumPy array; got a {type(value).__name__}, {shown(value)}")
        self.value = value
        self.support_partition = support_partition

    # None, unlike the others: the value may say its dtype.
    def __call__(self, shape: IntsLike, dtype: object = None) -> Any:
        return super().__call__(shape, dtype)

    def _made(self, shape: tuple[int, ...], dtype: DType | None) -> Tensor:
        return constant(self.value, dtype, shape)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}  # TensorFlow's leaves out support_partition too


class _Random(Initializer):
    """Draws: anew at each call without a seed, the same numbers at each call with one."""

    _what: str
    _parameters: tuple[str, str]

    def __init__(self, first: float, second: float, seed: int | None) -> None:
        self._given = (first, second)
        self.seed = seed

    def _source(self) -> Any:
        if self.seed is None:
            return functions.stream(None)
        # Stateless: the same seed gives the same numbers at each call, whatever was drawn before.
        return functions.stateless(self._what, [self.seed, 0])  # TensorFlow's pair too

    def get_config(self) -> dict[str, object]:
        return {**dict(zip(self._parameters, self._given)), "seed": self.seed}


class RandomNormal(_Random):
    """random_normal_initializer: draws of a normal distribution.

    Called with (shape, dtype=float32). Draws anew at each call, as `tf.random.normal`; with a seed
    the same numbers at each call. Raises ValueError for a dtype that is not floating.

    Args:
        mean, stddev: of the distribution.
        seed: an int or None.
    """

    _what = "random_normal_initializer"
    _parameters = ("mean", "stddev")

    # 0.05 is TensorFlow's default, here and for RandomUniform.
    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(mean, stddev, seed)
        self.mean, self.stddev = mean, stddev

    def _made(self, shape: Any, dtype: DType | None) -> Tensor:
        wanted = _required(dtype, "floating", lambda found: found.is_floating)
        return functions.normal(self._source(), shape, self.mean, self.stddev, wanted)


class RandomUniform(_Random):
    """random_uniform_initializer: draws from [minval, maxval).

    Called with (shape, dtype=float32). Draws anew at each call, as `tf.random.uniform`; with a seed
    the same numbers at each call. Raises ValueError for a dtype that is neither floating nor an
    integer.

    Args:
        minval, maxval: the bounds; integers for an integer dtype.
        seed: an int or None.
    """

    _what = "random_uniform_initializer"
    _parameters = ("minval", "maxval")

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None,
                 ) -> None:
        super().__init__(minval, maxval, seed)
        self.minval, self.maxval = minval, maxval

    def _made(self, shape: Any, dtype: DType | None) -> Tensor:
        wanted = _required(dtype, "a real number",
                           lambda found: found.is_floating or found.is_integer)
        return functions.uniform(self._source(), shape, self.minval, self.maxval, wanted)


def _countable(dtype: DType) -> bool:
    return dtype.is_floating or dtype.is_integer or dtype.is_complex or dtype == dtypes.bool_


def _required(dtype: DType | None, what: str, holds: Callable[..., object]) -> DType:
    wanted = dtypes.float32 if dtype is None else dtype
    if not holds(wanted):
        raise ValueError(f"the dtype of this initializer must be {what}; got {wanted.name}")
    return wanted
