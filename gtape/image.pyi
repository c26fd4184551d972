"""Names of gtape.image; written by `python -m gtape._stub`."""

from gtape.files.images import decode_and_crop_jpeg as decode_and_crop_jpeg
from gtape.files.images import decode_bmp as decode_bmp
from gtape.files.images import decode_gif as decode_gif
from gtape.files.images import decode_image as decode_image
from gtape.files.images import decode_jpeg as decode_jpeg
from gtape.files.images import decode_png as decode_png
from gtape.files.images import encode_jpeg as encode_jpeg
from gtape.files.images import encode_png as encode_png
from gtape.files.images import extract_jpeg_shape as extract_jpeg_shape
from gtape.files.images import is_jpeg as is_jpeg
from gtape.ops.image.adjustments import adjust_brightness as adjust_brightness
from gtape.ops.image.adjustments import adjust_contrast as adjust_contrast
from gtape.ops.image.adjustments import adjust_gamma as adjust_gamma
from gtape.ops.image.adjustments import adjust_hue as adjust_hue
from gtape.ops.image.adjustments import adjust_saturation as adjust_saturation
from gtape.ops.image.adjustments import convert_image_dtype as convert_image_dtype
from gtape.ops.image.adjustments import grayscale_to_rgb as grayscale_to_rgb
from gtape.ops.image.adjustments import hsv_to_rgb as hsv_to_rgb
from gtape.ops.image.adjustments import per_image_standardization as per_image_standardization
from gtape.ops.image.adjustments import psnr as psnr
from gtape.ops.image.adjustments import rgb_to_grayscale as rgb_to_grayscale
from gtape.ops.image.adjustments import rgb_to_hsv as rgb_to_hsv
from gtape.ops.image.adjustments import rgb_to_yiq as rgb_to_yiq
from gtape.ops.image.adjustments import rgb_to_yuv as rgb_to_yuv
from gtape.ops.image.adjustments import ssim as ssim
from gtape.ops.image.adjustments import total_variation as total_variation
from gtape.ops.image.adjustments import yiq_to_rgb as yiq_to_rgb
from gtape.ops.image.adjustments import yuv_to_rgb as yuv_to_rgb
from gtape.ops.image.augmentation import random_brightness as random_brightness
from gtape.ops.image.augmentation import random_contrast as random_contrast
from gtape.ops.image.augmentation import random_crop as random_crop
from gtape.ops.image.augmentation import random_flip_left_right as random_flip_left_right
from gtape.ops.image.augmentation import random_flip_up_down as random_flip_up_down
from gtape.ops.image.augmentation import random_hue as random_hue
from gtape.ops.image.augmentation import random_saturation as random_saturation
from gtape.ops.image.augmentation import stateless_random_brightness as stateless_random_brightness
from gtape.ops.image.augmentation import stateless_random_contrast as stateless_random_contrast
from gtape.ops.image.augmentation import stateless_random_crop as stateless_random_crop
from gtape.ops.image.augmentation import (
    stateless_random_flip_left_right as stateless_random_flip_left_right,
)
from gtape.ops.image.augmentation import (
    stateless_random_flip_up_down as stateless_random_flip_up_down,
)
from gtape.ops.image.augmentation import stateless_random_hue as stateless_random_hue
from gtape.ops.image.augmentation import stateless_random_saturation as stateless_random_saturation
from gtape.ops.image.geometry import central_crop as central_crop
from gtape.ops.image.geometry import crop_to_bounding_box as crop_to_bounding_box
from gtape.ops.image.geometry import extract_patches as extract_patches
from gtape.ops.image.geometry import flip_left_right as flip_left_right
from gtape.ops.image.geometry import flip_up_down as flip_up_down
from gtape.ops.image.geometry import image_gradients as image_gradients
from gtape.ops.image.geometry import pad_to_bounding_box as pad_to_bounding_box
from gtape.ops.image.geometry import resize_with_crop_or_pad as resize_with_crop_or_pad
from gtape.ops.image.geometry import rot90 as rot90
from gtape.ops.image.geometry import sobel_edges as sobel_edges
from gtape.ops.image.geometry import transpose as transpose
from gtape.ops.image.resampling import ResizeMethod as ResizeMethod
from gtape.ops.image.resampling import crop_and_resize as crop_and_resize
from gtape.ops.image.resampling import resize as resize
from gtape.ops.image.resampling import resize_with_pad as resize_with_pad
