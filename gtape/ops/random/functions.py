"""Random tensors of every source: `tf.random`, the stateless functions, and `Generator`.

A source is a function: the number of values wanted -> the position to draw them at. Noise is made
on the current device; location and scale are applied by recorded ops where they are tensors, so
samples are differentiable in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, SupportsFloat

import numpy as np

from gtape.autodiff.custom_gradient import custom_gradient
from gtape.core import dtypes
from gtape.core.annotations import DTypeLike, IntsLike, TensorLike
from gtape.core.convert import convert, convert_like
from gtape.core.device import Array, ArrayModule, ArrayType, at_home, current_device
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case, ints
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_shape, host_value
from gtape.ops.elementwise.scalars import add, divide, maximum, multiply, subtract
from gtape.ops.random.draws import drawn, folded_seeds_, stateless_position_
from gtape.ops.random.streams import Position, mixed, take
from gtape.ops.shape.identity import cpu, identity_, move
from gtape.ops.shape.layout import broadcast_to_
from gtape.trace.symbolic_tensor import SymbolicTensor

Source = Callable[[int], Position]


def stream(seed: int | None) -> Source:
    """The stream of an op seed under the global seed."""
    op_seed = None if seed is None else as_int(seed, "seed")
    return lambda count: take(op_seed, count)


def stateless(name: str, seed: TensorLike) -> Source:
    """The source of a stateless function: its two seed numbers alone decide. Raises
    InvalidArgumentError: the seed is not two integers."""
    if type(seed) is SymbolicTensor:
        # Positions are on the host: Python's integers make keys.
        position = stateless_position_(cpu(seed))
        return lambda count: position
    first, second = seed_pair(name, seed)
    key = mixed(2, first, second)
    return lambda count: (key, 0)  # each draw from a seed starts anew


def seed_pair(name: str, seed: TensorLike) -> tuple[int, int]:
    """A stateless seed as two numbers."""
    array = host_value(seed, f"{name}: seed")
    if array.shape != (2,) or array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"{name}: the seed must be two integers, a shape of [2]; got "
                                   f"{array.dtype}{list(array.shape)}. Write seed=[1, 2]")
    return int(array[0]), int(array[1])


def _real_type(name: str, dtype: object) -> ArrayType:
    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise TypeError(f"{name}: dtype must be a real floating type; got {wanted!r}")
    return current_device().typed(wanted)


def _numbers(*values: object) -> bool:
    return all(type(v) in (float, int) for v in values)


def _located(noise: Tensor, mean: TensorLike, stddev: TensorLike, name: str) -> Tensor:
    """noise · stddev + mean, recorded."""
    scaled = multiply(noise, convert_like(stddev, noise._t, name))
    return add(scaled, convert_like(mean, noise._t, name))


def normal(source: Source, shape: IntsLike, mean: TensorLike, stddev: TensorLike, dtype: DTypeLike,
           distribution: str = "normal") -> Tensor:
    """mean + stddev · standard normal values, differentiable in mean and stddev."""
    array_type = _real_type(distribution, dtype)
    dims = as_shape(shape, f"{distribution}: shape")
    plain = _numbers(mean, stddev)
    # Numbers go into the kernel; tensors are applied by ops, which the tape records.
    parameters = {"mean": mean, "stddev": stddev} if plain else {}
    noise = drawn(distribution, source(math.prod(dims)), dims, array_type, **parameters)
    return noise if plain else _located(noise, mean, stddev, distribution)


#: `normal` within two standard deviations of the mean.
truncated_normal = partial(normal, distribution="truncated_normal")


def uniform(source: Source, shape: IntsLike, minval: Any, maxval: Any, dtype: object) -> Tensor:
    """Values in [minval, maxval): floats, differentiable in the bounds, or integers. Raises
    ValueError: integers without maxval; InvalidArgumentError: integers with minval >= maxval."""
    wanted = as_dtype(dtype)
    dims = as_shape(shape, "uniform: shape")
    if wanted.is_integer:
        if maxval is None or minval is None:
            raise ValueError(f"uniform: integers need both minval and maxval; got minval={minval}, "
                             f"maxval={maxval} for {wanted!r}")
        return _integers(source, dims, as_int(minval, "uniform: minval"),
                         as_int(maxval, "uniform: maxval"), wanted)
    array_type = _real_type("uniform", wanted)
    minval = 0.0 if minval is None else minval
    maxval = 1.0 if maxval is None else maxval
    plain = _numbers(minval, maxval)
    parameters = {"low": float(minval), "high": float(maxval)} if plain else {}
    noise = drawn("uniform", source(math.prod(dims)), dims, array_type, **parameters)
    if plain:
        return noise
    low, high = (convert_like(v, array_type, "uniform") for v in (minval, maxval))
    return _located(noise, low, subtract(high, low), "uniform")


def _integers(source: Source, dims: tuple[int, ...], low: int, high: int, dtype: DType) -> Tensor:
    if low >= high:
        raise InvalidArgumentError(f"uniform: integers need minval < maxval; got [{low}, {high}), "
                                   f"whose upper end is excluded")
    array_type = current_device().typed(dtype)
    return drawn("uniform_int", source(math.prod(dims)), dims, array_type, low=low, high=high)


def full_integers(source: Source, shape: IntsLike, dtype: object) -> Tensor:
    """Integers over the whole range of `dtype`. Raises TypeError: no integer type."""
    wanted = as_dtype(dtype)
    if not wanted.is_integer:
        raise TypeError(f"uniform_full_int: dtype must be an integer type; got {wanted!r}")
    dims = as_shape(shape, "uniform_full_int: shape")
    # + 1, since the upper end is excluded.
    return _integers(source, dims, int(wanted.min), int(wanted.max) + 1, wanted)


@at_home
def categorical(source: Source, logits: TensorLike, num_samples: int, dtype: object) -> Tensor:
    """[batch, num_samples] class numbers of probability softmax(logits). Raises
    InvalidArgumentError: logits are no matrix of floats, or have no classes."""
    x = convert(logits)
    if x.ndim != 2 or not x.dtype.is_floating or not x.spec.shape[1]:
        raise InvalidArgumentError(f"categorical: logits must be a real floating matrix "
                                   f"[batch, classes]; got {x.spec}")
    count = as_int(num_samples, "categorical: num_samples")
    if count < 0:
        raise InvalidArgumentError(f"categorical: num_samples must not be negative; got {count}")
    wanted = dtypes.int64 if dtype is None else as_dtype(dtype)
    shape = (x.spec.shape[0], count)
    return drawn("categorical", source(math.prod(shape)), shape, x._t.device.typed(wanted), x)


@primitive(nondifferentiable=True, tf_name="RandomGammaGrad")
def gamma_slope_(xp: ArrayModule, alpha: Array, drawn: Array) -> Array:
    """dx/da of a gamma value x of shape a at a fixed probability P(a, x). Figurnov, Mohamed & Mnih
    2018, "Implicit reparameterization gradients" (arXiv:1805.08498): -(dP/da) / p(x), where dP/da
    is a central difference of P, or of 1 - P above the mean."""
    from gtape.numerics.special import igamma, igammac, lgamma

    a, x = alpha.astype(np.float64), drawn.astype(np.float64)
    # P changes over about √a, or a where that is smaller. The error of a central difference over
    # 1e-4 of that is its square, below the rounding of float32.
    step = 1e-4 * xp.minimum(a, xp.sqrt(a))
    lower = igamma(xp, a + step, x) - igamma(xp, a - step, x)
    upper = igammac(xp, a - step, x) - igammac(xp, a + step, x)
    # Above the mean P is near 1, and differences of it keep no digits; those of 1 - P do.
    slope = xp.where(x < a, lower, upper) / (2 * step)
    density = xp.exp((a - 1) * xp.log(x) - x - lgamma(xp, a))
    return (-slope / density).astype(alpha.dtype)


gamma_slope_.infer(lambda alpha, drawn: drawn)


@custom_gradient
def _as_function_of_alpha(alpha: Tensor, values: Tensor) -> Any:
    """`values`, drawn from the gamma distribution of shape alpha, with the derivative in alpha."""
    def grad(g: Tensor) -> tuple[Tensor, None]:
        return g * gamma_slope_(alpha, values), None

    return identity_(values), grad


def _numbers_for(name: str, dims: tuple[int, ...], *parameters: Tensor) -> None:
    """Raises InvalidArgumentError unless the parameters are real and stretch to `dims`."""
    for x in parameters:
        if not (x.dtype.is_integer or x.dtype.is_floating):
            raise InvalidArgumentError(f"{name}: the parameters must be real numbers; got {x.spec}")
        if broadcast_shapes(name, Spec(dims, x.dtype), x.spec) != dims:
            raise InvalidArgumentError(f"{name}: a parameter {x.spec} does not fit the shape "
                                       f"{list(dims)} of the result")


def gamma(source: Source, shape: IntsLike, alpha: TensorLike, beta: SupportsFloat | None,
          dtype: DTypeLike) -> Tensor:
    """Gamma values of shape alpha and rate beta, of shape `shape` + that of the parameters.
    Differentiable in alpha and beta."""
    array_type = _real_type("gamma", dtype)
    a = convert(alpha, array_type.dtype, array_type.device)
    b = convert(1.0 if beta is None else beta, array_type.dtype, array_type.device)
    dims = (*as_shape(shape, "gamma: shape"), *broadcast_shapes("gamma", a.spec, b.spec))
    spread = broadcast_to_(a, shape=dims)
    y = _as_function_of_alpha(
        spread, drawn("gamma", source(math.prod(dims)), dims, array_type, spread))
    if beta is not None:
        y = divide(y, b)
    # TensorFlow's: a gamma value of small alpha that rounds to 0 would have the logarithm -inf.
    return maximum(y, float(np.finfo(array_type.dtype.np_dtype).tiny))


def poisson(source: Source, shape: IntsLike, lam: TensorLike, dtype: object, outer: bool = True,
            ) -> Tensor:
    """Poisson values of mean lam, of shape `shape` + that of lam (or `shape`, where not `outer`).
    Not differentiable."""
    mean = convert(lam)
    dims = as_shape(shape, "poisson: shape")
    dims = (*dims, *mean.spec.shape) if outer else dims
    _numbers_for("poisson", dims, mean)
    return drawn("poisson", source(math.prod(dims)), dims, mean._t.device.typed(as_dtype(dtype)),
                 mean)


def binomial(source: Source, shape: IntsLike, counts: SupportsFloat, probs: SupportsFloat,
             dtype: object) -> Tensor:
    """Numbers of successes in `counts` trials of probability `probs`. Not differentiable. Raises
    InvalidArgumentError: counts beyond the range of an integer `dtype`; a floating one holds inf
    for what it cannot."""
    n = convert(counts)
    wanted = as_dtype(dtype)
    real = n.dtype.is_integer or n.dtype.is_floating
    if wanted.is_integer and type(n) is EagerTensor and real and bool(
            np.any(np.abs(n._peek().astype(np.float64)) > float(wanted.max))):
        raise InvalidArgumentError(f"binomial: counts must lie in the range of {wanted.name}, the "
                                   f"dtype of the result; got {shown(counts)}")
    p = convert(probs, None, n._t.device)
    dims = as_shape(shape, "binomial: shape")
    _numbers_for("binomial", dims, n, p)
    return drawn("binomial", source(math.prod(dims)), dims, n._t.device.typed(wanted), n, p)


@at_home
def parameterized_truncated_normal(source: Source, shape: IntsLike, means: SupportsFloat,
                                   stddevs: SupportsFloat, minvals: SupportsFloat,
                                   maxvals: SupportsFloat) -> Tensor:
    """Normal values between `minvals` and `maxvals`, by the inverse of their distribution. Not
    differentiable."""
    mean = convert(means)
    dims = as_shape(shape, "parameterized_truncated_normal: shape")
    others = [convert_like(v, mean._t, "parameterized_truncated_normal")
              for v in (stddevs, minvals, maxvals)]
    _numbers_for("parameterized_truncated_normal", dims, mean, *others)
    return drawn("bounded_normal", source(math.prod(dims)), dims, mean._t, mean, *others)


@primitive(nondifferentiable=True, tf_name="RandomShuffle")
def shuffle_(xp: ArrayModule, value: Array, order: Array) -> Array:
    """The rows of `value` in the given order."""
    return xp.take(value, order, axis=0)


shuffle_.infer(lambda value, order: value)
shuffle_.cases = [case((4, 2), ints(4, below=4))]


@at_home
def shuffle(source: Source, value: TensorLike) -> Tensor:
    """The rows of `value` in random order. Not differentiable. Raises InvalidArgumentError: a
    scalar."""
    x = convert(value)
    if not x.ndim:
        raise InvalidArgumentError(f"shuffle: a scalar has no rows; got {x.spec}")
    rows = x.spec.shape[0]
    order = drawn("permutation", source(rows), (rows,), x._t.device.typed(dtypes.int64))
    return shuffle_(x, order)


def stateless_seeds(name: str, seed: TensorLike, data: TensorLike) -> Tensor:
    """[n, 2]: a new stateless seed for each number of `data`, of the dtype of `seed`."""
    x = convert(seed)
    return move(folded_seeds_(cpu(x), cpu(convert(data))), x._t.device)


# ---------------------------------------------------------------- a shuffled order without a table
#: Those of splitmix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
#: generators").
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every input bit changes every output bit."""
    for shift, factor in zip((30, 27), _MULTIPLIERS):
        x = (x ^ (x >> np.uint64(shift))) * factor
    return x ^ (x >> np.uint64(31))


def _encrypted(x: np.ndarray, key: np.ndarray, half: np.ndarray, rounds: int) -> np.ndarray:
    # A Feistel network: a permutation whatever its rounds do, since each can be undone.
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = x >> half, x & mask
    for turn in range(rounds):
        left, right = right, left ^ (_mixed(right + key + np.uint64(turn << 40)) & mask)
    return (left << half) | right


def _permuted(index: np.ndarray, seed: np.ndarray, limit: np.ndarray, rounds: int) -> np.ndarray:
    """The images of `index` under the permutations of [0, limit] that the rows of `seed` choose."""
    with np.errstate(over="ignore"):
        key: np.ndarray = np.zeros(seed.shape[:-1], np.uint64)
        for part in np.moveaxis(seed.astype(np.int64).view(np.uint64), -1, 0):
            key = _mixed(key * np.uint64(3) + part)
        shape = np.broadcast_shapes(index.shape, key.shape, limit.shape)
        x, key, top = (np.array(np.broadcast_to(a, shape)).reshape(-1).astype(np.uint64)
                       for a in (index, key, limit))
        # Two halves of one bit at least: a Feistel network of no bits does nothing.
        bits = np.array([max(int(n).bit_length(), 2) for n in top], np.uint64)
        half = (bits + np.uint64(1)) // np.uint64(2)
        todo = np.arange(x.size)
        while todo.size:
            x[todo] = _encrypted(x[todo], key[todo], half[todo], rounds)
            # The domain is at most about four times the range, so that few walks are long.
            todo = todo[x[todo] > top[todo]]
    return x.reshape(shape).astype(index.dtype)


def random_index_shuffle(index: TensorLike, seed: TensorLike, max_index: TensorLike,
                         rounds: int = 4, name: str | None = None) -> Tensor:
    """The image of `index` under a permutation of [0, max_index] that `seed` chooses.

    Every index of the range has another image, computed by itself: a shuffled order without a
    table. The permutations are not those of TensorFlow.

    Args:
        index, max_index: integers, scalar or [n].
        seed: integers [3] or [n, 3].
        rounds: even, at least 4; more mix better.

    Raises:
        InvalidArgumentError: an index outside [0, max_index], a seed of another shape, or rounds.
    """
    like = convert(index)
    keys = host_value(seed, "random_index_shuffle: seed")
    limits = host_value(max_index, "random_index_shuffle: max_index")
    values = host_value(like, "random_index_shuffle: index")
    if values.dtype.kind not in "iu" or keys.shape[-1:] != (3,) or keys.ndim > 2:
        raise InvalidArgumentError(f"random_index_shuffle: index must be integers and seed of shape"
                                   f" [3] or [n, 3]; got {like.spec} and {list(keys.shape)}")
    # Luby and Rackoff: fewer than four rounds can be told from chance. TensorFlow's are even.
    if rounds < 4 or rounds % 2:
        raise InvalidArgumentError(f"random_index_shuffle: rounds must be even and at least 4; got "
                                   f"{rounds}")
    if bool((values < 0).any()) or bool((values > limits).any()):
        raise InvalidArgumentError(f"random_index_shuffle: indices must lie in [0, max_index]; got "
                                   f"{shown(values)} with max_index={shown(limits)}")
    return convert(_permuted(values, keys, limits, rounds), like.dtype, like._t.device)
