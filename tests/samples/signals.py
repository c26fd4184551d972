"""Samples of transforms, frames and images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import gtape as tf
from tests.samples.sample import COMPLEX, WIDE, Sample, of, sample

sf = pytest.importorskip("scipy.fft")


def samples() -> Iterator[Sample]:
    yield from _transforms()
    yield from _frames()
    yield from _images()


def _transforms() -> Iterator[Sample]:
    for n in (1, 7, 8):
        for name in ("fft", "ifft"):
            yield sample(f"signal.{name}", of(3, n), reference=getattr(np.fft, name),
                         dtypes=COMPLEX, orders=2 if n == 7 else 0)
        yield sample("signal.rfft", of(3, n), reference=np.fft.rfft, dtypes=WIDE,
                     orders=2 if n == 7 else 0)
    yield sample("signal.irfft", of(3, 5), reference=np.fft.irfft, dtypes=COMPLEX)
    yield sample("signal.irfft", of(3, 4), fft_length=[7], dtypes=COMPLEX,
                 reference=lambda x, fft_length: np.fft.irfft(x, 7))
    for name in ("fft2d", "ifft2d"):
        yield sample(f"signal.{name}", of(2, 3, 5), dtypes=COMPLEX,
                     reference=getattr(np.fft, name[:-1]))
    yield sample("signal.fft3d", of(2, 3, 4), reference=np.fft.fftn, dtypes=COMPLEX)
    yield sample("signal.ifft3d", of(2, 3, 4), reference=np.fft.ifftn, dtypes=COMPLEX)
    yield sample("signal.rfft2d", of(3, 5), reference=np.fft.rfft2, dtypes=WIDE)
    yield sample("signal.irfft2d", of(3, 3), reference=np.fft.irfft2, dtypes=COMPLEX)
    yield sample("signal.rfft3d", of(2, 3, 4), reference=np.fft.rfftn, dtypes=WIDE)
    yield sample("signal.irfft3d", of(2, 3, 3), reference=np.fft.irfftn, dtypes=COMPLEX)
    for name in ("fftshift", "ifftshift"):
        yield sample(f"signal.{name}", of(3, 5), reference=getattr(np.fft, name), dtypes=WIDE)
    for kind in (1, 2, 3, 4):
        yield sample("signal.dct", of(3, 6), type=kind, dtypes=WIDE,
                     reference=lambda x, type: sf.dct(x, type))
        yield sample("signal.idct", of(3, 6), type=kind, dtypes=WIDE, near=64,
                     reference=lambda x, type: sf.idct(x, type) * (10 if type == 1 else 12))
    yield sample("signal.mdct", of(32), frame_length=8, dtypes=WIDE, near=64)
    yield sample("signal.inverse_mdct", of(3, 4), dtypes=WIDE, near=64)


def _frames() -> Iterator[Sample]:
    yield sample("signal.frame", of(11), frame_length=4, frame_step=3, dtypes=WIDE,
                 reference=lambda x, frame_length, frame_step: np.stack(
                     [x[i:i + 4] for i in range(0, 8, 3)]))
    yield sample("signal.frame", of(2, 7), frame_length=4, frame_step=2, pad_end=True, dtypes=WIDE)
    yield sample("signal.overlap_and_add", of(3, 4), frame_step=3, dtypes=WIDE)
    yield sample("signal.stft", of(16), frame_length=6, frame_step=3, dtypes=WIDE)
    yield sample("signal.inverse_stft", of(4, 5), frame_length=8, frame_step=4, dtypes=COMPLEX)
    yield sample("signal.inverse_stft", of(3, 33), frame_length=64, frame_step=64, near=64,
                 dtypes=("complex64",), function=lambda x, frame_length, frame_step: (
                     tf.signal.inverse_stft(x, frame_length, frame_step,
                                            window_fn=tf.signal.inverse_stft_window_fn(64))),
                 orders=0)
    yield sample("signal.mfccs_from_log_mel_spectrograms", of(2, 6), dtypes=WIDE, near=64)


def _images() -> Iterator[Sample]:
    image = of(2, 6, 5, 3, low=0.1, high=0.9)
    for name, options in (
            ("central_crop", {"central_fraction": 0.5}),
            ("flip_left_right", {}), ("flip_up_down", {}), ("transpose", {}), ("rot90", {"k": 3}),
            ("rgb_to_grayscale", {}), ("total_variation", {}), ("rgb_to_hsv", {}),
            ("hsv_to_rgb", {}), ("sobel_edges", {}), ("rgb_to_yuv", {}), ("yuv_to_rgb", {}),
            ("rgb_to_yiq", {}), ("yiq_to_rgb", {}),
            ("image_gradients", {}), ("crop_to_bounding_box", {
                "offset_height": 1, "offset_width": 2, "target_height": 3, "target_width": 2}),
            ("pad_to_bounding_box", {"offset_height": 1, "offset_width": 2, "target_height": 8,
                                     "target_width": 9}),
            ("resize_with_crop_or_pad", {"target_height": 4, "target_width": 8}),
            ("convert_image_dtype", {"dtype": "float64"})):
        yield sample(f"image.{name}", image, dtypes=WIDE, near=64, **options)
    yield sample("image.grayscale_to_rgb", of(2, 3, 3, 1), dtypes=WIDE)
    # These compute in float32 whatever comes in, so that differences see nothing of them.
    single = {"dtypes": ("float32",), "orders": 0}
    yield sample("image.psnr", image, of(2, 6, 5, 3), max_val=1.0, **single)
    yield sample("image.ssim", of(1, 12, 11, 2, low=0, high=1), of(1, 12, 11, 2, low=0, high=1),
                 max_val=1.0, **single)
    yield sample("image.resize_with_pad", image, target_height=4, target_width=8, **single)
    yield sample("image.crop_and_resize", image, np.array([[0.1, 0.2, 0.7, 0.9]], np.float32),
                 np.array([1]), crop_size=[3, 2], **single)
    yield sample("image.adjust_hue", image, delta=0.2, **single)
    yield sample("image.adjust_saturation", image, saturation_factor=0.5, **single)
    yield sample("image.adjust_brightness", image, delta=0.1, **single,
                 reference=lambda x, delta: x + delta)
    yield sample("image.adjust_gamma", image, gamma=2.0, **single,
                 reference=lambda x, gamma: x ** gamma)
    yield sample("image.per_image_standardization", image, **single)
    yield sample("image.adjust_contrast", image, contrast_factor=2.0, dtypes=("float32",),
                 gradients=False)
    yield sample("image.extract_patches", image, sizes=[1, 2, 2, 1], strides=[1, 1, 2, 1],
                 rates=[1, 1, 1, 1], padding="VALID", dtypes=WIDE)
    yield sample("extract_volume_patches", of(1, 3, 4, 3, 2), ksizes=[1, 2, 2, 2, 1],
                 strides=[1, 1, 1, 1, 1], padding="VALID", dtypes=WIDE)
    for method in ("bilinear", "nearest"):
        for size in ([3, 4], [11, 7]):
            # Resized images are float32 whatever comes in.
            yield sample("image.resize", image, size=size, method=method, **single)
