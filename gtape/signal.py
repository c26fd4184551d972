"""gtape.signal: Fourier and cosine transforms, windows, frames, mel features."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.signal.cosine": "dct idct inverse_mdct mdct",
    "gtape.ops.signal.fourier": """
        fft fft2d fft3d fftnd ifft ifft2d ifft3d ifftnd irfft irfft2d irfft3d irfftnd rfft rfft2d
        rfft3d rfftnd fftshift ifftshift""",
    "gtape.ops.signal.frames": "frame inverse_stft inverse_stft_window_fn overlap_and_add stft",
    "gtape.ops.signal.mel": "linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms",
    "gtape.ops.signal.windows": """
        hamming_window hann_window kaiser_bessel_derived_window kaiser_window vorbis_window""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
