"""Random tensors of every source: `tf.random`, the stateless functions, and `Generator`.

A source is a function: the number of values wanted -> the Philox key and offset to draw them at.
Noise is made on the current device; location and scale are applied by recorded ops where they are
tensors, so samples are differentiable in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.convert import convert, convert_like
from gtape.core.custom_gradient import custom_gradient
from gtape.core.device import ArrayType
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import case, ints
from gtape.core.placement import at_home, current_device
from gtape.core.recording import CUT, mark_all
from gtape.core.spec import Spec, broadcast_shapes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.kinds.primitive import primitive
from gtape.ops.arguments import as_int, as_shape, host_value
from gtape.ops.layout import broadcast_to_, identity_
from gtape.ops.random_streams import mixed, sample, take

Source = Callable[[int], tuple[tuple[int, int], int]]


def stream(seed: Any) -> Source:
    """The stream of an op seed under the global seed."""
    op_seed = None if seed is None else as_int(seed, "seed")
    return lambda count: take(op_seed, count)


def stateless(name: str, seed: Any) -> Source:
    """The source of a stateless function: its two seed numbers alone decide.

    Raises:
        InvalidArgumentError: the seed is not two integers.
    """
    first, second = seed_pair(name, seed)
    key = mixed(2, first, second)
    return lambda count: (key, 0)


def seed_pair(name: str, seed: Any) -> tuple[int, int]:
    """A stateless seed as two numbers."""
    found = host_value(seed, f"{name}: seed")
    if found.shape != (2,) or found.dtype.kind not in "iu":
        raise InvalidArgumentError(f"{name}: the seed must be two integers, a shape of [2]; got "
                                   f"{found.dtype}{list(found.shape)}. Write seed=[1, 2]")
    return int(found[0]), int(found[1])


def _real_type(name: str, dtype: Any) -> ArrayType:
    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise TypeError(f"{name}: dtype must be a real floating type; got {wanted!r}")
    return current_device().typed(wanted)


def _made(array: Any, array_type: ArrayType) -> EagerTensor:
    return EagerTensor(array, array_type)


def _numbers(*values: Any) -> bool:
    return all(type(v) in (float, int) for v in values)


def _located(noise: EagerTensor, mean: Any, stddev: Any, name: str) -> Tensor:
    """noise · stddev + mean, recorded."""
    from gtape.ops.scalars import add, multiply

    scaled = multiply(noise, convert_like(stddev, noise._t, name))
    return add(scaled, convert_like(mean, noise._t, name))


def _normal_like(distribution: str, source: Source, shape: Any, mean: Any, stddev: Any,
                 dtype: Any) -> Tensor:
    array_type = _real_type(distribution, dtype)
    dims = as_shape(shape, f"{distribution}: shape")
    key, offset = source(math.prod(dims))
    plain = _numbers(mean, stddev)
    parameters = {"mean": mean, "stddev": stddev} if plain else {}
    array = sample(distribution, key, offset, dims, array_type.xp,
                   dtype=array_type.dtype.np_dtype, **parameters)
    noise = _made(array, array_type)
    return noise if plain else _located(noise, mean, stddev, distribution)


def normal(source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    """mean + stddev · standard normal values, differentiable in mean and stddev."""
    return _normal_like("normal", source, shape, mean, stddev, dtype)


def truncated_normal(source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    """`normal` within two standard deviations of the mean."""
    return _normal_like("truncated_normal", source, shape, mean, stddev, dtype)


def uniform(source: Source, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    """Values in [minval, maxval): floats, differentiable in the bounds, or integers.

    Raises:
        ValueError: integers without maxval.
        InvalidArgumentError: integers with minval >= maxval.
    """
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
    key, offset = source(math.prod(dims))
    plain = _numbers(minval, maxval)
    parameters = {"low": float(minval), "high": float(maxval)} if plain else {}
    array = sample("uniform", key, offset, dims, array_type.xp, dtype=wanted.np_dtype,
                   **parameters)
    noise = _made(array, array_type)
    if plain:
        return noise
    from gtape.ops.scalars import subtract

    low, high = (convert_like(v, array_type, "uniform") for v in (minval, maxval))
    return _located(noise, low, subtract(high, low), "uniform")


def _integers(source: Source, dims: tuple[int, ...], low: int, high: int, dtype: DType) -> Tensor:
    if low >= high:
        raise InvalidArgumentError(f"uniform: integers need minval < maxval; got [{low}, {high}), "
                                   f"whose upper end is excluded")
    array_type = current_device().typed(dtype)
    key, offset = source(math.prod(dims))
    array = sample("uniform_int", key, offset, dims, array_type.xp, dtype=dtype.np_dtype, low=low,
                   high=high)
    return _made(array, array_type)


def full_integers(source: Source, shape: Any, dtype: Any) -> Tensor:
    """Integers over the whole range of `dtype`.

    Raises:
        TypeError: no integer type.
    """
    wanted = as_dtype(dtype)
    if not wanted.is_integer:
        raise TypeError(f"uniform_full_int: dtype must be an integer type; got {wanted!r}")
    dims = as_shape(shape, "uniform_full_int: shape")
    return _integers(source, dims, int(wanted.min), int(wanted.max) + 1, wanted)


def _classes(x: Tensor, key: tuple[int, int], offset: int, count: int) -> Any:
    """The array of `categorical`, by kernels where x has them."""
    gpu = x._t.device.executor
    if gpu is not None:
        from gtape.devices.cuda.kernels import random_numbers

        found = random_numbers.categorical(gpu, key, offset, x._array_(), count)
        if found is not None:
            return found
    from gtape.numerics.distributions import categorical as drawn

    return drawn(x._t.xp, key, offset, x._array_(), count)


@at_home
def categorical(source: Source, logits: Any, num_samples: Any, dtype: Any) -> Tensor:
    """[batch, num_samples] class numbers of probability softmax(logits).

    Raises:
        InvalidArgumentError: logits are no matrix of floats, or have no classes.
    """
    x = convert(logits)
    if x.ndim != 2 or not x.dtype.is_floating or not x.spec.shape[1]:
        raise InvalidArgumentError(f"categorical: logits must be a real floating matrix "
                                   f"[batch, classes]; got {x.spec}")
    count = as_int(num_samples, "categorical: num_samples")
    if count < 0:
        raise InvalidArgumentError(f"categorical: num_samples must not be negative; got {count}")
    key, offset = source(x.spec.shape[0] * count)
    found = _classes(x, key, offset, count)
    wanted = dtypes.int64 if dtype is None else as_dtype(dtype)
    made = _made(found.astype(wanted.np_dtype), x._t.device.typed(wanted))
    mark_all(CUT, "categorical", (x,), (made,))
    return made


@primitive(nondifferentiable=True, tf_name="RandomGammaGrad")
def gamma_slope_(xp: Any, alpha: Any, drawn: Any) -> Any:
    """dx/da of a gamma value x of shape a at a fixed probability P(a, x).

    Figurnov, Mohamed & Mnih 2018, "Implicit reparameterization gradients" (arXiv:1805.08498):
    -(dP/da) / p(x), where dP/da is a central difference of P, or of 1 - P above the mean.
    """
    from gtape.numerics.special import igamma, igammac, lgamma

    a, x = alpha.astype(np.float64), drawn.astype(np.float64)
    step = 1e-4 * xp.minimum(a, xp.sqrt(a))
    lower = igamma(xp, a + step, x) - igamma(xp, a - step, x)
    upper = igammac(xp, a - step, x) - igammac(xp, a + step, x)
    slope = xp.where(x < a, lower, upper) / (2 * step)
    density = xp.exp((a - 1) * xp.log(x) - x - lgamma(xp, a))
    return (-slope / density).astype(alpha.dtype)


@gamma_slope_.infer
def _(alpha: Spec, drawn: Spec) -> Spec:
    return drawn


@custom_gradient
def _as_function_of_alpha(alpha: Tensor, drawn: Tensor) -> Any:
    """`drawn`, values of the gamma distribution of shape alpha, with its derivative in alpha."""
    def grad(g: Tensor) -> tuple[Any, None]:
        return g * gamma_slope_(alpha, drawn), None  # type: ignore[operator]

    return identity_(drawn), grad


def gamma(source: Source, shape: Any, alpha: Any, beta: Any, dtype: Any) -> Tensor:
    """Gamma values of shape alpha and rate beta, of shape `shape` + that of the parameters.

    Differentiable in alpha and beta.
    """
    from gtape.ops.scalars import divide, maximum

    array_type = _real_type("gamma", dtype)
    a = convert(alpha, array_type.dtype, array_type.device)
    b = convert(1.0 if beta is None else beta, array_type.dtype, array_type.device)
    dims = (*as_shape(shape, "gamma: shape"), *broadcast_shapes("gamma", a.spec, b.spec))
    key, offset = source(math.prod(dims))
    spread = broadcast_to_(a, shape=dims)
    array = sample("gamma", key, offset, dims, array_type.xp, dtype=array_type.dtype.np_dtype,
                   alpha=spread._array_(), beta=1.0)
    drawn = _as_function_of_alpha(spread, _made(array, array_type))
    if beta is not None:
        drawn = divide(drawn, b)
    return maximum(drawn, float(np.finfo(array_type.dtype.np_dtype).tiny))


def poisson(source: Source, shape: Any, lam: Any, dtype: Any, outer: bool = True) -> Tensor:
    """Poisson values of mean lam, of shape `shape` + that of lam (or `shape`, where not `outer`).

    Not differentiable.
    """
    mean = convert(lam)
    dims = as_shape(shape, "poisson: shape")
    dims = (*dims, *mean.spec.shape) if outer else dims
    key, offset = source(math.prod(dims))
    array_type = mean._t.device.typed(as_dtype(dtype))
    array = sample("poisson", key, offset, dims, array_type.xp, dtype=array_type.dtype.np_dtype,
                   mean=mean._array_())
    return _made(array, array_type)


def binomial(source: Source, shape: Any, counts: Any, probs: Any, dtype: Any) -> Tensor:
    """Numbers of successes in `counts` trials of probability `probs`. Not differentiable."""
    n = convert(counts)
    p = convert(probs, None, n._t.device)
    dims = as_shape(shape, "binomial: shape")
    key, offset = source(math.prod(dims))
    array_type = n._t.device.typed(as_dtype(dtype))
    array = sample("binomial", key, offset, dims, array_type.xp, dtype=array_type.dtype.np_dtype,
                   counts=n._array_(), probs=p._array_())
    return _made(array, array_type)


@at_home
def parameterized_truncated_normal(source: Source, shape: Any, means: Any, stddevs: Any,
                                   minvals: Any, maxvals: Any) -> Tensor:
    """Normal values between `minvals` and `maxvals`, by the inverse of their distribution.

    Not differentiable.
    """
    from gtape.numerics.special import erfc, ndtri

    mean = convert(means)
    array_type = mean._t
    xp = array_type.xp
    dims = as_shape(shape, "parameterized_truncated_normal: shape")
    key, offset = source(math.prod(dims))
    m, s, low, high = (convert_like(v, array_type, "parameterized_truncated_normal")._array_()
                       .astype(np.float64) for v in (mean, stddevs, minvals, maxvals))
    below, above = (0.5 * erfc(xp, -(xp.asarray(v) - m) / (s * math.sqrt(2))) for v in (low, high))
    u = sample("uniform", key, offset, dims, xp, dtype=np.float64)
    drawn = m + s * ndtri(xp, below + u * (above - below))
    return _made(xp.clip(drawn, low, high).astype(array_type.dtype.np_dtype), array_type)


@primitive(nondifferentiable=True, tf_name="RandomShuffle")
def shuffle_(xp: Any, value: Any, order: Any) -> Any:
    """The rows of `value` in the given order."""
    return xp.take(value, order, axis=0)


@shuffle_.infer
def _(value: Spec, order: Spec) -> Spec:
    return value


shuffle_.cases = [case((4, 2), ints(4, below=4))]


@at_home
def shuffle(source: Source, value: Any) -> Tensor:
    """The rows of `value` in random order. Not differentiable.

    Raises:
        InvalidArgumentError: a scalar.
    """
    x = convert(value)
    if not x.ndim:
        raise InvalidArgumentError(f"shuffle: a scalar has no rows; got {x.spec}")
    rows = x.spec.shape[0]
    key, offset = source(rows)
    from gtape.numerics.distributions import permutation

    order = permutation(x._t.xp, key, offset, rows)
    return shuffle_(x, _made(order, x._t.device.typed(dtypes.int64)))


def stateless_seeds(name: str, seed: Any, data: Any) -> Tensor:
    """[n, 2]: a new stateless seed for each number of `data`, of the dtype of `seed`."""
    first, second = seed_pair(name, seed)
    found = convert(seed)
    wide = np.array([mixed(3, first, second, int(n)) for n in data], np.uint32)
    return convert(wide.astype(np.int32).astype(found.dtype.np_dtype).reshape(-1, 2))
