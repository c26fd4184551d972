"""gtape.signal: Fourier and cosine transforms, windows, frames, mel features."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.signal.cosine": """
        dct idct inverse_mdct linear_to_mel_weight_matrix mdct mfccs_from_log_mel_spectrograms""",
    "gtape.ops.signal.fourier": """
        fft fft2d fft3d fftnd ifft ifft2d ifft3d ifftnd irfft irfft2d irfft3d irfftnd rfft rfft2d
        rfft3d rfftnd fftshift ifftshift""",
    "gtape.ops.signal.frames": """
        frame hamming_window hann_window inverse_stft inverse_stft_window_fn
        kaiser_bessel_derived_window kaiser_window overlap_and_add stft vorbis_window""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
