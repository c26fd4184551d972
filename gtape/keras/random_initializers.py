"""Random initializers: uniform, normal, scaled by fan-in and fan-out, orthogonal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype
from gtape.core.tensor import Tensor
from gtape.core.text import shown
from gtape.keras.config import floatx
from gtape.keras.initializer import Initializer
from gtape.keras.seeds import SeedGenerator, draw, fresh_seed

#: The standard deviation of a standard normal cut at ±2.
_CUT_STDDEV = 0.87962566103423978


class RandomInitializer(Initializer):
    """An initializer with a seed: an int, a SeedGenerator, or None for one drawn now."""

    def __init__(self, seed: Any = None) -> None:
        if seed is not None and not isinstance(seed, (int, SeedGenerator)):
            raise ValueError(f"seed must be an int, a SeedGenerator or None; got {shown(seed)}")
        self._given = seed
        self.seed = fresh_seed() if seed is None else seed

    def clone(self) -> Initializer:
        made = super().clone()
        if self._given is None:
            made.seed = fresh_seed()  # type: ignore[attr-defined]
        return made

    def _draw(self, kind: str, shape: Any, dtype: Any, **parameters: float) -> Tensor:
        wanted: DType = as_dtype(floatx() if dtype is None else dtype)
        if not wanted.is_floating:
            raise ValueError(f"{type(self).__name__} makes floating numbers; got {wanted!r}")
        return draw(kind, self.seed, shape, wanted, **parameters)


class RandomUniform(RandomInitializer):
    """Uniform in [minval, maxval)."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        super().__init__(seed)
        self.minval, self.maxval = minval, maxval

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return self._draw("uniform", shape, dtype, low=self.minval, high=self.maxval)


class RandomNormal(RandomInitializer):
    """Normal with `mean` and `stddev`."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return self._draw("normal", shape, dtype, mean=self.mean, stddev=self.stddev)


class TruncatedNormal(RandomNormal):
    """Normal, within two standard deviations of the mean."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return self._draw("truncated_normal", shape, dtype, mean=self.mean, stddev=self.stddev)


def fans(shape: Any) -> tuple[int, int]:
    """(fan-in, fan-out): how many numbers go into and out of a unit of a weight."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    receptive = math.prod(shape[:-2])
    return int(shape[-2] * receptive), int(shape[-1] * receptive)


class VarianceScaling(RandomInitializer):
    """Variance scale / n, where n is the fan-in, the fan-out or their average.

    Args:
        mode: 'fan_in', 'fan_out' or 'fan_avg'.
        distribution: 'truncated_normal', 'untruncated_normal' or 'uniform'.

    Raises:
        ValueError: another mode or distribution, or a scale that is not positive.
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in",
                 distribution: str = "truncated_normal", seed: Any = None) -> None:
        super().__init__(seed)
        distribution = distribution.lower()
        distribution = "truncated_normal" if distribution == "normal" else distribution
        if scale <= 0:
            raise ValueError(f"scale must be positive; got {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"mode must be 'fan_in', 'fan_out' or 'fan_avg'; got {shown(mode)}")
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"distribution must be 'uniform', 'truncated_normal' or "
                             f"'untruncated_normal'; got {shown(distribution)}")
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        into, out = fans(tuple(shape))
        count = {"fan_in": into, "fan_out": out, "fan_avg": (into + out) / 2}[self.mode]
        variance = self.scale / max(1.0, count)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return self._draw("uniform", shape, dtype, low=-limit, high=limit)
        stddev = math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return self._draw("normal", shape, dtype, mean=0.0, stddev=stddev)
        return self._draw("truncated_normal", shape, dtype, mean=0.0,
                          stddev=stddev / _CUT_STDDEV)


class GlorotUniform(VarianceScaling):
    """Uniform in ±√(6 / (fan-in + fan-out)). Glorot & Bengio 2010 (AISTATS)."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed)


class GlorotNormal(VarianceScaling):
    """Truncated normal, variance 2 / (fan-in + fan-out). Glorot & Bengio 2010 (AISTATS)."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)


class HeUniform(VarianceScaling):
    """Uniform in ±√(6 / fan-in). He et al. 2015, arXiv:1502.01852."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(2.0, "fan_in", "uniform", seed)


class HeNormal(VarianceScaling):
    """Truncated normal, variance 2 / fan-in. He et al. 2015, arXiv:1502.01852."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(2.0, "fan_in", "truncated_normal", seed)


class LecunUniform(VarianceScaling):
    """Uniform in ±√(3 / fan-in). LeCun et al. 1998, "Efficient BackProp"."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(1.0, "fan_in", "uniform", seed)


class LecunNormal(VarianceScaling):
    """Truncated normal, variance 1 / fan-in. LeCun et al. 1998, "Efficient BackProp"."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(1.0, "fan_in", "truncated_normal", seed)


class Orthogonal(RandomInitializer):
    """`gain` times a random matrix with orthonormal rows or columns. arXiv:1312.6120.

    Longer shapes are matrices [product of all but the last, last].

    Raises:
        ValueError: fewer than two axes.
    """

    def __init__(self, gain: float = 1.0, seed: Any = None) -> None:
        super().__init__(seed)
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        if len(shape) < 2:
            raise ValueError(f"the Orthogonal initializer needs at least two axes; got {shape}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        long, short = max(rows, columns), min(rows, columns)
        wanted = as_dtype(floatx() if dtype is None else dtype)
        normal = np.asarray(self._draw("normal", (long, short), "float64").numpy())
        q, r = np.linalg.qr(normal)
        q = q * np.sign(np.diag(r))
        made = self.gain * (q.T if rows < columns else q).reshape(shape)
        return convert(made.astype(wanted.np_dtype), wanted)


class random_uniform_initializer(RandomUniform):
    """`RandomUniform`, which draws anew at every call when it has no seed."""

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        if self._given is None:
            self.seed = fresh_seed()
        return super().__call__(shape, dtype)


class random_normal_initializer(RandomNormal):
    """`RandomNormal`, which draws anew at every call when it has no seed."""

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Tensor:
        if self._given is None:
            self.seed = fresh_seed()
        return super().__call__(shape, dtype)
