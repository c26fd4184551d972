"""Names of gtape.signal; written by `python -m gtape._stub`."""

from gtape.ops.signal.cosine import dct as dct
from gtape.ops.signal.cosine import idct as idct
from gtape.ops.signal.cosine import inverse_mdct as inverse_mdct
from gtape.ops.signal.cosine import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
from gtape.ops.signal.cosine import mdct as mdct
from gtape.ops.signal.cosine import (
    mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms,
)
from gtape.ops.signal.fourier import fft as fft
from gtape.ops.signal.fourier import fft2d as fft2d
from gtape.ops.signal.fourier import fft3d as fft3d
from gtape.ops.signal.fourier import fftnd as fftnd
from gtape.ops.signal.fourier import fftshift as fftshift
from gtape.ops.signal.fourier import ifft as ifft
from gtape.ops.signal.fourier import ifft2d as ifft2d
from gtape.ops.signal.fourier import ifft3d as ifft3d
from gtape.ops.signal.fourier import ifftnd as ifftnd
from gtape.ops.signal.fourier import ifftshift as ifftshift
from gtape.ops.signal.fourier import irfft as irfft
from gtape.ops.signal.fourier import irfft2d as irfft2d
from gtape.ops.signal.fourier import irfft3d as irfft3d
from gtape.ops.signal.fourier import irfftnd as irfftnd
from gtape.ops.signal.fourier import rfft as rfft
from gtape.ops.signal.fourier import rfft2d as rfft2d
from gtape.ops.signal.fourier import rfft3d as rfft3d
from gtape.ops.signal.fourier import rfftnd as rfftnd
from gtape.ops.signal.frames import frame as frame
from gtape.ops.signal.frames import hamming_window as hamming_window
from gtape.ops.signal.frames import hann_window as hann_window
from gtape.ops.signal.frames import inverse_stft as inverse_stft
from gtape.ops.signal.frames import inverse_stft_window_fn as inverse_stft_window_fn
from gtape.ops.signal.frames import kaiser_bessel_derived_window as kaiser_bessel_derived_window
from gtape.ops.signal.frames import kaiser_window as kaiser_window
from gtape.ops.signal.frames import overlap_and_add as overlap_and_add
from gtape.ops.signal.frames import stft as stft
from gtape.ops.signal.frames import vorbis_window as vorbis_window
