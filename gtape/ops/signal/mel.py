"""Mel-scale features of sound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype
from gtape.core.size_limits import room_for
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_float, as_int
from gtape.ops.signal.cosine import dct


def _mel(hertz: TensorLike) -> Any:
    """HTK's scale: 1127 log(1 + f / 700)."""
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


def linear_to_mel_weight_matrix(num_mel_bins: int = 20, num_spectrogram_bins: int = 129,
                                sample_rate: int = 8000, lower_edge_hertz: float = 125.0,
                                upper_edge_hertz: float = 3800.0, dtype: object = dtypes.float32,
                                name: str | None = None) -> Tensor:
    """[num_spectrogram_bins, num_mel_bins]: triangles equally spaced on the mel scale, by which a
    spectrogram is multiplied.

    Raises:
        ValueError: no bins, or edges that are not 0 <= lower < upper <= sample_rate / 2.
    """
    bins = as_int(num_mel_bins, "num_mel_bins")
    count = as_int(num_spectrogram_bins, "num_spectrogram_bins")
    rate = as_float(sample_rate, "sample_rate")
    low = as_float(lower_edge_hertz, "lower_edge_hertz")
    high = as_float(upper_edge_hertz, "upper_edge_hertz")
    wanted = as_dtype(dtype)
    if bins <= 0 or count <= 0 or rate <= 0:
        raise ValueError(f"linear_to_mel_weight_matrix: the numbers of bins and the sample rate "
                         f"must be positive; got {bins}, {count}, {rate}")
    if not 0 <= low < high <= rate / 2:
        raise ValueError(f"linear_to_mel_weight_matrix: the edges must satisfy 0 <= lower < upper "
                         f"<= {rate / 2}; got {low} and {high}")
    if not wanted.is_floating:
        raise ValueError(f"linear_to_mel_weight_matrix: the dtype must be floating; got "
                         f"{wanted.name}")
    with room_for("linear_to_mel_weight_matrix", Spec((count, bins), wanted)):
        spectrum = _mel(np.linspace(0.0, rate / 2, count)[1:])[:, None]
        edges = np.linspace(_mel(low), _mel(high), bins + 2)
        lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
        rising = (spectrum - lower) / (center - lower)
        falling = (upper - spectrum) / (upper - center)
        weights = np.maximum(0.0, np.minimum(rising, falling))
        return convert(np.pad(weights, ((1, 0), (0, 0))).astype(wanted.np_dtype))


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None,
                                    ) -> Tensor:
    """Mel-frequency cepstral coefficients: dct of type 2 over the last axis, times 1/√(2N).

    Raises:
        ValueError: no bins.
    """
    x = convert(log_mel_spectrograms)
    bins = x.spec.shape[-1] if x.ndim else 0
    if not bins:
        raise ValueError(f"mfccs_from_log_mel_spectrograms needs at least one bin in the last "
                         f"axis; got {x.spec}")
    return dct(x, type=2) * (1 / math.sqrt(2.0 * bins))
