"""Layers that are random in training and pass their input on otherwise."""

from __future__ import annotations

from typing import Any

from gtape.keras.layers.arguments import channels_first, share
from gtape.keras.layers.layer import Layer
from gtape.keras.seeds import SeedGenerator
from gtape.ops.draws import drawn
from gtape.ops.dropout import dropped
from gtape.ops.scalars import add


class Dropout(Layer):
    """In training, elements become 0 with probability `rate`, the others grow by 1 / (1 - rate).

    Srivastava et al. 2014 (JMLR 15).

    Args:
        noise_shape: the shape of the random mask, with 1 where elements share their fate.
    """

    def __init__(self, rate: float, noise_shape: Any = None, seed: int | None = None,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = share("rate", rate)
        self.noise_shape = noise_shape
        self.seed = seed
        self.seed_generator = SeedGenerator(seed)
        self.built = True

    def _mask_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self.noise_shape is None:
            return shape
        return tuple(n if m is None else m for n, m in zip(shape, self.noise_shape, strict=True))

    def call(self, inputs: Any, training: bool | None = False) -> Any:
        if not training or not self.rate:
            return inputs
        return dropped(inputs, self._mask_shape(inputs.spec.shape), self.seed_generator.next(),
                       self.rate)


class SpatialDropout1D(Dropout):
    """Dropout of whole channels of [batch, steps, channels]. Tompson et al., arXiv:1411.4280."""

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(rate, seed=seed, **kwargs)

    def _mask_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[0], 1, shape[2])


class SpatialDropout2D(Dropout):
    """Dropout of whole channels of images. Tompson et al., arXiv:1411.4280."""

    def __init__(self, rate: float, data_format: str | None = None, seed: int | None = None,
                 **kwargs: Any) -> None:
        super().__init__(rate, seed=seed, **kwargs)
        self._first = channels_first(data_format)

    def _mask_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (shape[0], shape[1], 1, 1) if self._first else (shape[0], 1, 1, shape[3])


class GaussianNoise(Layer):
    """In training, normal noise of standard deviation `stddev` is added."""

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if stddev < 0:
            raise ValueError(f"stddev must not be negative; got {stddev}")
        self.stddev = float(stddev)
        self.seed_generator = SeedGenerator(seed)
        self.built = True

    def call(self, inputs: Any, training: bool | None = False) -> Any:
        if not training or not self.stddev:
            return inputs
        return add(inputs, drawn("normal", self.seed_generator.next(), inputs.spec.shape,
                                 inputs._t, mean=0.0, stddev=self.stddev))
