"""Random arrays by rejection: gamma, Poisson and binomial.

Each element owns one counter.  Attempt number t reads that counter in the 64-bit plane t, so
a value does not depend on how often its neighbours were rejected, and attempts are repeated
for the rejected elements only.  All is computed in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array
from .distributions import Key, counter_words
from .gamma_function import lgamma64

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Shape = Sequence[int]
# u (n, 4), the uniform numbers of an attempt, and parameters -> (values, accepted).
Attempt = Callable[..., tuple[Array, Array]]

# The least acceptance, of PTRS at a mean of 10, is 0.7: 1e-21 of the elements are left.
MOST_ATTEMPTS = 40
# Means up to here are inverted term by term; the probability of more terms is below 1e-16.
INVERSION_MEAN, INVERSION_TERMS = 10.0, 60


def gamma(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike, alpha: Array,
          beta: Array) -> Array:
    """Gamma values of shape alpha > 0 and rate beta > 0, both broadcast to `shape`. Marsaglia &
    Tsang 2000, "A simple method for generating gamma variables"; for alpha < 1 a value of alpha + 1
    times u**(1 / alpha)."""
    alphas, betas = (_spread(xp, p, shape) for p in (alpha, beta))
    boosted = xp.where(alphas < 1.0, alphas + 1.0, alphas)
    with np.errstate(all="ignore"):
        values = _accepted(xp, key, offset, _gamma_attempt, boosted)
        # The fourth word, which no attempt reads.
        u = _unit(xp, counter_words(xp, key, _counters(xp, offset, alphas.size)))[:, 3]
        values = xp.where(alphas < 1.0, values * u ** (1.0 / alphas), values)
    return (values / betas).astype(dtype).reshape(shape)


def poisson(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike,
            mean: Array) -> Array:
    """Poisson values of `mean`, broadcast to `shape`; 0 where it is negative. Inversion below a
    mean of 10; above, the algorithm PTRS of Hörmann 1993, "The transformed rejection method for
    generating Poisson random variables"."""
    means = xp.maximum(_spread(xp, mean, shape), 0)
    with np.errstate(all="ignore"):
        large = _accepted(xp, key, offset, _poisson_attempt, xp.maximum(means, INVERSION_MEAN))
        u = _unit(xp, counter_words(xp, key, _counters(xp, offset, means.size)))[:, 3]
        small_mean = xp.minimum(means, INVERSION_MEAN)
        small = _inverted(xp, u, xp.exp(-small_mean), lambda k, p: p * (small_mean / k),
                          INVERSION_TERMS)
    return xp.where(means < INVERSION_MEAN, small, large).astype(dtype).reshape(shape)


def binomial(xp: ModuleType, key: Key, offset: int, shape: Shape, dtype: DTypeLike, counts: Array,
             probs: Array) -> Array:
    """Numbers of successes in `counts` trials of probability `probs`, broadcast to `shape`.
    Inversion where the mean of successes or of failures is below 10; else the algorithm BTRS of
    Hörmann 1993, "The generation of binomial random variates"."""
    n, p = (_spread(xp, v, shape) for v in (counts, probs))
    flipped = p > 0.5
    rare = xp.where(flipped, 1.0 - p, p)
    small = n * rare < INVERSION_MEAN
    with np.errstate(all="ignore"):
        # Elements that are inverted go through rejection as a harmless case.
        n_in, p_in = xp.where(small, 40.0, n), xp.where(small, 0.5, rare)
        by_rejection = _accepted(xp, key, offset, _binomial_attempt, n_in, p_in)
        u = _unit(xp, counter_words(xp, key, _counters(xp, offset, n.size)))[:, 3]
        odds, trials = xp.where(small, rare / (1.0 - rare), 0.0), xp.where(small, n, 0.0)
        none = xp.where(small, xp.exp(n * xp.log1p(-rare)), 1.0)
        by_inversion = _inverted(xp, u, none, lambda k, q: q * (odds * (trials - k + 1.0) / k),
                                 INVERSION_TERMS)
        hits = xp.where(small, xp.minimum(by_inversion, n), by_rejection)
        # No trials have no success, whatever their probability, nan too.
        drawn = xp.where(n == 0, 0.0, xp.where(flipped, n - hits, hits))
        return drawn.astype(dtype).reshape(shape)


def _gamma_attempt(xp: ModuleType, u: Array, alpha: Array) -> tuple[Array, Array]:
    d = alpha - 1.0 / 3.0
    # Box and Muller's normal value: of two words, so that an attempt takes one counter.
    x = xp.sqrt(-2.0 * xp.log(u[:, 0])) * xp.cos(2.0 * xp.pi * u[:, 1])
    v = (1.0 + x / xp.sqrt(9.0 * d)) ** 3
    bound = 0.5 * x * x + d - d * v + d * xp.log(v)
    return d * v, (v > 0.0) & (xp.log(u[:, 2]) < bound)


def _poisson_attempt(xp: ModuleType, uniforms: Array, mean: Array) -> tuple[Array, Array]:
    spread = xp.sqrt(mean)
    b = 0.931 + 2.53 * spread
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2.0)
    u, v = uniforms[:, 0] - 0.5, uniforms[:, 1]
    us = 0.5 - xp.abs(u)
    k = xp.floor((2.0 * a / us + b) * u + mean + 0.43)
    # Candidates below 0 are refused at the end; lgamma gets none of them.
    density = k * xp.log(mean) - mean - lgamma64(xp, xp.maximum(k, 0.0) + 1.0)
    hat = xp.log(v * inverse_alpha / (a / (us * us) + b))
    surely = (us >= 0.07) & (v <= squeeze)
    possible = (k >= 0.0) & ((us >= 0.013) | (v <= us))
    return k, (k >= 0.0) & (surely | possible & (hat <= density))


def _binomial_attempt(xp: ModuleType, uniforms: Array, n: Array, p: Array) -> tuple[Array, Array]:
    spread = xp.sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    mode = xp.floor((n + 1.0) * p)
    u, v = uniforms[:, 0] - 0.5, uniforms[:, 1]
    us = 0.5 - xp.abs(u)
    k = xp.floor((2.0 * a / us + b) * u + c)
    inside = (k >= 0.0) & (k <= n)
    # What lies outside is refused by `inside`, which was found before: lgamma has poles there.
    k = xp.clip(k, 0.0, n)
    hat = xp.log(v * alpha / (a / (us * us) + b))
    density = _log_choose(xp, n, k) - _log_choose(xp, n, mode)
    density = density + (k - mode) * xp.log(p / (1.0 - p))
    surely = (us >= 0.07) & (v <= squeeze)
    return k, inside & (surely | (hat <= density))


def _log_choose(xp: ModuleType, n: Array, k: Array) -> Array:
    """log of n! / (k! (n - k)!) up to log(n!)."""
    return -lgamma64(xp, k + 1.0) - lgamma64(xp, n - k + 1.0)


def _accepted(xp: ModuleType, key: Key, offset: int, attempt: Attempt, *parameters: Array) -> Array:
    """The first accepted value of each element."""
    counters = _counters(xp, offset, parameters[0].size)
    values = xp.full(counters.size, xp.nan)
    waiting = xp.arange(counters.size)
    for plane in range(MOST_ATTEMPTS):
        u = _unit(xp, counter_words(xp, key, counters[waiting], plane))
        drawn, accepted = attempt(xp, u, *(p[waiting] for p in parameters))
        values[waiting[accepted]] = drawn[accepted]
        waiting = waiting[~accepted]
        if not waiting.size:
            break
    return values


def _inverted(xp: ModuleType, u: Array, first: Array, following: Callable[[int, Array], Array],
              terms: int) -> Array:
    """The least k with u <= p(0) + ... + p(k), p(0) = `first`, p(k) = following(k, p(k - 1))."""
    k, probability, rest = xp.zeros_like(u), first, u - first
    for term in range(1, terms):
        k = k + (rest > 0.0)
        probability = following(term, probability)
        rest = rest - probability
    return k


def _counters(xp: ModuleType, offset: int, count: int) -> Array:
    return xp.arange(count, dtype=xp.uint64) + xp.uint64(offset % 2**64)


def _unit(xp: ModuleType, raw: Array) -> Array:
    """uint32 words as float64 in (0, 1)."""
    # Never 0 or 1: the logarithms and quotients of attempts would be infinite.
    return (raw + 0.5) * 2.0**-32


def _spread(xp: ModuleType, parameter: Array, shape: Shape) -> Array:
    return xp.broadcast_to(xp.asarray(parameter, xp.float64), shape).ravel()
