"""gtape.image: images as tensors [n, h, w, c] or [h, w, c]."""

from __future__ import annotations

from typing import Any

from gtape.files.images import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from gtape.ops.image.adjustments import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    convert_image_dtype,
    grayscale_to_rgb,
    per_image_standardization,
    psnr,
    rgb_to_grayscale,
    total_variation,
)
from gtape.ops.image.augmentation import (
    random_brightness,
    random_contrast,
    random_crop,
    random_flip_left_right,
    random_flip_up_down,
    random_hue,
    random_saturation,
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_crop,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
    stateless_random_hue,
    stateless_random_saturation,
)
from gtape.ops.image.colour import (
    adjust_hue,
    adjust_saturation,
    hsv_to_rgb,
    rgb_to_hsv,
    rgb_to_yiq,
    rgb_to_yuv,
    yiq_to_rgb,
    yuv_to_rgb,
)
from gtape.ops.image.crops import crop_and_resize
from gtape.ops.image.geometry import (
    central_crop,
    crop_to_bounding_box,
    extract_patches,
    flip_left_right,
    flip_up_down,
    image_gradients,
    pad_to_bounding_box,
    resize_with_crop_or_pad,
    rot90,
    sobel_edges,
    transpose,
)
from gtape.ops.image.resizing import ResizeMethod, resize, resize_with_pad
from gtape.ops.image.similarity import ssim

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue",
    "adjust_saturation", "central_crop", "convert_image_dtype", "crop_and_resize",
    "crop_to_bounding_box", "decode_and_crop_jpeg", "decode_bmp", "decode_gif", "decode_image",
    "decode_jpeg", "decode_png", "encode_jpeg", "encode_png", "extract_jpeg_shape",
    "extract_patches", "flip_left_right", "flip_up_down", "grayscale_to_rgb", "hsv_to_rgb",
    "image_gradients", "is_jpeg", "pad_to_bounding_box", "per_image_standardization", "psnr",
    "random_brightness", "random_contrast", "random_crop", "random_flip_left_right",
    "random_flip_up_down", "random_hue", "random_saturation", "resize", "resize_with_crop_or_pad",
    "resize_with_pad", "rgb_to_grayscale", "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv", "rot90",
    "sobel_edges", "ssim", "stateless_random_brightness", "stateless_random_contrast",
    "stateless_random_crop", "stateless_random_flip_left_right", "stateless_random_flip_up_down",
    "stateless_random_hue", "stateless_random_saturation", "total_variation", "transpose",
    "yiq_to_rgb", "yuv_to_rgb",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"gtape.image has no '{name}'. It has {', '.join(__all__)}; write the "
                         f"rest in tensor functions")
