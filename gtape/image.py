"""gtape.image: images as tensors [n, h, w, c] or [h, w, c]."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.files.images": """
        decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png
        encode_jpeg encode_png extract_jpeg_shape is_jpeg""",
    "gtape.ops.image.adjustments": """
        adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation
        convert_image_dtype grayscale_to_rgb hsv_to_rgb per_image_standardization psnr
        rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv ssim total_variation yiq_to_rgb
        yuv_to_rgb""",
    "gtape.ops.image.augmentation": """
        random_brightness random_contrast random_crop random_flip_left_right random_flip_up_down
        random_hue random_saturation stateless_random_brightness stateless_random_contrast
        stateless_random_crop stateless_random_flip_left_right stateless_random_flip_up_down
        stateless_random_hue stateless_random_saturation""",
    "gtape.ops.image.resampling": "ResizeMethod crop_and_resize resize resize_with_pad",
    "gtape.ops.image.geometry": """
        central_crop crop_to_bounding_box extract_patches flip_left_right flip_up_down
        image_gradients pad_to_bounding_box resize_with_crop_or_pad rot90 sobel_edges transpose""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
