"""gtape.signal: Fourier and cosine transforms, windows, frames, mel features."""

from __future__ import annotations

from typing import Any

from gtape.ops.signal.cosine import dct, idct, inverse_mdct, mdct
from gtape.ops.signal.fourier import (
    fft,
    fft2d,
    fft3d,
    fftnd,
    ifft,
    ifft2d,
    ifft3d,
    ifftnd,
    irfft,
    irfft2d,
    irfft3d,
    irfftnd,
    rfft,
    rfft2d,
    rfft3d,
    rfftnd,
)
from gtape.ops.signal.fourier_shift import fftshift, ifftshift
from gtape.ops.signal.frames import (
    frame,
    inverse_stft,
    inverse_stft_window_fn,
    overlap_and_add,
    stft,
)
from gtape.ops.signal.mel import linear_to_mel_weight_matrix, mfccs_from_log_mel_spectrograms
from gtape.ops.signal.windows import (
    hamming_window,
    hann_window,
    kaiser_bessel_derived_window,
    kaiser_window,
    vorbis_window,
)

__all__ = [
    "dct", "fft", "fft2d", "fft3d", "fftnd", "fftshift", "frame", "hamming_window",
    "hann_window", "idct", "ifft", "ifft2d", "ifft3d", "ifftnd", "ifftshift", "inverse_mdct",
    "inverse_stft", "inverse_stft_window_fn", "irfft", "irfft2d", "irfft3d", "irfftnd",
    "kaiser_bessel_derived_window", "kaiser_window", "linear_to_mel_weight_matrix", "mdct",
    "mfccs_from_log_mel_spectrograms", "overlap_and_add", "rfft", "rfft2d", "rfft3d", "rfftnd",
    "stft", "vorbis_window"]


def __getattr__(name: str) -> Any:
    from gtape._names import missing

    raise AttributeError(missing("gtape.signal", name, __all__))
