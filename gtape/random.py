"""gtape.random: random tensors, the same numbers from the same seeds on every device.

The generator is Philox4x32-10 (Salmon et al. 2011): counter-based, so a number is a pure function
of the seeds and of its position. `set_seed(n)` restarts the sequence that the functions without
`stateless` draw from.
"""

from __future__ import annotations

from typing import Any, SupportsFloat, SupportsIndex

from gtape.core import dtypes as _dtypes
from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.spec import Spec as _Spec
from gtape.core.spec import room_for as _room_for
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int
from gtape.ops.arguments import as_shape as _as_shape
from gtape.ops.random import functions as _ops
from gtape.ops.random.generator import (
    Algorithm,
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from gtape.ops.random.streams import set_seed
from gtape.ops.shape.layout import broadcast_to

__all__ = [
    "Algorithm", "Generator", "categorical", "create_rng_state", "fold_in", "gamma",
    "get_global_generator", "normal", "poisson", "set_global_generator", "set_seed", "shuffle",
    "split", "stateless_binomial", "stateless_categorical", "stateless_gamma", "stateless_normal",
    "stateless_parameterized_truncated_normal", "stateless_poisson",
    "stateless_truncated_normal", "stateless_uniform", "truncated_normal", "uniform"]

_FLOAT = _dtypes.float32
_ABSENT = ("all_candidate_sampler", "fixed_unigram_candidate_sampler",
           "learned_unigram_candidate_sampler", "log_uniform_candidate_sampler",
           "uniform_candidate_sampler")


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise AttributeError(f"gtape.random has no '{name}': compute the full softmax, or draw "
                             f"classes with gtape.random.categorical")
    raise AttributeError(f"gtape.random has no '{name}'; it has {', '.join(__all__)}")


def normal(shape: IntsLike, mean: TensorLike = 0.0, stddev: TensorLike = 1.0,
           dtype: DTypeLike = _FLOAT, seed: int | None = None, name: str | None = None) -> Tensor:
    """mean + stddev · standard normal values; differentiable in mean and stddev. Raises
    InvalidArgumentError: negative lengths. TypeError: not a real floating dtype."""
    return _ops.normal(_ops.stream(seed), shape, mean, stddev, dtype)


def truncated_normal(shape: IntsLike, mean: float = 0.0, stddev: float = 1.0,
                     dtype: DTypeLike = _FLOAT, seed: int | None = None, name: str | None = None,
                     ) -> Tensor:
    """`normal` values within two standard deviations of the mean."""
    return _ops.truncated_normal(_ops.stream(seed), shape, mean, stddev, dtype)


def uniform(shape: IntsLike, minval: float = 0, maxval: TensorLike | None = None,
            dtype: DTypeLike = _FLOAT, seed: int | None = None, name: str | None = None) -> Tensor:
    """Values in [minval, maxval), by default [0, 1); integers need maxval. Raises ValueError:
    integers without maxval; InvalidArgumentError: integers with minval >= maxval."""
    return _ops.uniform(_ops.stream(seed), shape, minval, maxval, dtype)


def gamma(shape: IntsLike, alpha: TensorLike, beta: SupportsFloat | None = None,
          dtype: DTypeLike = _FLOAT, seed: int | None = None, name: str | None = None) -> Tensor:
    """Gamma values of shape alpha and rate beta, [*shape, *parameters]; differentiable in both."""
    return _ops.gamma(_ops.stream(seed), shape, alpha, beta, dtype)


def poisson(shape: IntsLike, lam: TensorLike, dtype: DTypeLike = _FLOAT, seed: int | None = None,
            name: str | None = None) -> Tensor:
    """Poisson values of mean lam, [*shape, *lam]. Not differentiable."""
    return _ops.poisson(_ops.stream(seed), shape, lam, dtype)


def categorical(logits: TensorLike, num_samples: SupportsIndex, dtype: DTypeLike | None = None,
                seed: int | None = None, name: str | None = None) -> Tensor:
    """[batch, num_samples] class numbers, of probability softmax(logits). Not differentiable.
    Raises InvalidArgumentError: logits are no matrix of floats."""
    return _ops.categorical(_ops.stream(seed), logits, num_samples, dtype)


def shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of `value` in random order. Not differentiable."""
    return _ops.shuffle(_ops.stream(seed), value)


# ---------------------------------------------------------------- stateless
def split(seed: TensorLike, num: int = 2, alg: str = "auto_select") -> Tensor:
    """[num, 2]: independent seeds for the stateless functions, made from one."""
    (count,) = _as_shape([num], "split: num")
    with _room_for("split", _Spec((count, 2), _dtypes.int64)):
        return _ops.stateless_seeds("split", seed, range(count))


def fold_in(seed: TensorLike, data: int, alg: str = "auto_select") -> Tensor:
    """[2]: a seed made from a seed and an integer, such as the number of a step."""
    return _ops.stateless_seeds("fold_in", seed, [as_int(data, "fold_in: data")])[0]


def stateless_normal(shape: IntsLike, seed: TensorLike, mean: float = 0.0, stddev: float = 1.0,
                     dtype: DTypeLike = _FLOAT, name: str | None = None,
                     alg: str = "auto_select") -> Tensor:
    """`normal` as a pure function of the two numbers in `seed`."""
    return _ops.normal(_ops.stateless("stateless_normal", seed), shape, mean, stddev, dtype)


def stateless_truncated_normal(shape: IntsLike, seed: TensorLike, mean: float = 0.0,
                               stddev: float = 1.0, dtype: DTypeLike = _FLOAT,
                               name: str | None = None, alg: str = "auto_select") -> Tensor:
    """`truncated_normal` as a pure function of the two numbers in `seed`."""
    return _ops.truncated_normal(_ops.stateless("stateless_truncated_normal", seed), shape, mean,
                                 stddev, dtype)


def stateless_uniform(shape: IntsLike, seed: TensorLike, minval: TensorLike | None = 0,
                      maxval: TensorLike | None = None, dtype: object = _FLOAT,
                      name: str | None = None, alg: str = "auto_select") -> Tensor:
    """`uniform` as a pure function of `seed`; integers with minval=None cover their whole range.
    Raises ValueError: integers with one bound alone."""
    source = _ops.stateless("stateless_uniform", seed)
    # The whole range of a dtype has no maxval: that would be one more than the largest value.
    if minval is None and maxval is None and _dtypes.as_dtype(dtype).is_integer:
        return _ops.full_integers(source, shape, dtype)
    return _ops.uniform(source, shape, minval, maxval, dtype)


def stateless_gamma(shape: Any, seed: Any, alpha: object, beta: Any = None,
                    dtype: DTypeLike = _FLOAT, name: str | None = None) -> Tensor:
    """Gamma values as a pure function of `seed`; `shape` ends with that of the parameters. Raises
    InvalidArgumentError: it does not."""
    wanted = _dtypes.as_dtype(dtype)
    # TensorFlow: here `shape` is that of the result, above it comes before the parameters'.
    a = broadcast_to(_ops.convert(alpha, wanted), shape)
    return _ops.gamma(_ops.stateless("stateless_gamma", seed), (), a, beta, dtype)


def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: DTypeLike = _dtypes.int32,
                      name: str | None = None) -> Tensor:
    """Poisson values as a pure function of `seed`; lam broadcasts to `shape`."""
    return _ops.poisson(_ops.stateless("stateless_poisson", seed), shape, lam, dtype, outer=False)


def stateless_binomial(shape: IntsLike, seed: TensorLike, counts: SupportsFloat,
                       probs: SupportsFloat, output_dtype: DTypeLike = _dtypes.int32,
                       name: str | None = None) -> Tensor:
    """Successes in `counts` trials of probability `probs`, as a pure function of `seed`."""
    return _ops.binomial(_ops.stateless("stateless_binomial", seed), shape, counts, probs,
                         output_dtype)


def stateless_categorical(logits: TensorLike, num_samples: SupportsIndex, seed: TensorLike,
                          dtype: DTypeLike = _dtypes.int64, name: str | None = None) -> Tensor:
    """`categorical` as a pure function of the two numbers in `seed`."""
    return _ops.categorical(_ops.stateless("stateless_categorical", seed), logits, num_samples,
                            dtype)


def stateless_parameterized_truncated_normal(shape: IntsLike, seed: TensorLike,
                                             means: SupportsFloat = 0.0,
                                             stddevs: SupportsFloat = 1.0,
                                             minvals: SupportsFloat = -2.0,
                                             maxvals: SupportsFloat = 2.0,
                                             name: str | None = None) -> Tensor:
    """Normal values between `minvals` and `maxvals`, as a pure function of `seed`."""
    source = _ops.stateless("stateless_parameterized_truncated_normal", seed)
    return _ops.parameterized_truncated_normal(source, shape, means, stddevs, minvals, maxvals)
