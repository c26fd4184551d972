"""Images in files as tensors: decode_image, encode_png and their like."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import as_dtype
from gtape.core.errors import InvalidArgumentError, UnimplementedError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.files.pictures import format_of, frames, jpeg, opened, png, still
from gtape.ops.arguments import as_bytes, as_int, as_ints, as_strings
from gtape.ops.image.adjustments import convert_image_dtype
from gtape.ops.text.steps import array_of, each
from gtape.trace.host_steps import step


def single(name: str, value: TensorLike) -> Tensor:
    """The bytes of one file. Raises InvalidArgumentError: no scalar of strings."""
    scalar = as_strings(value, name)
    if scalar.ndim:
        raise InvalidArgumentError(f"{name}: `contents` must be scalar but got shape"
                                   f"{list(scalar.shape)}")
    return scalar


def _decoded(name: str, contents: TensorLike, decode: Callable[[bytes], np.ndarray],
             dtype: dtypes.DType = dtypes.uint8) -> Tensor:
    return step(name, lambda content: [decode(content.item())], [single(name, contents)],
                [dtype])[0]


def _checked(channels: int | None, allowed: tuple[int, ...], what: str) -> int:
    wanted = channels or 0
    if wanted not in allowed:
        raise InvalidArgumentError(f"`channels` must be one of {', '.join(map(str, allowed))} for "
                                   f"{what}; got {shown(channels)}")
    return wanted


def _any(content: bytes, channels: int, wide: bool, animations: bool) -> np.ndarray:
    kind = format_of(content)
    if kind in ("GIF", "WEBP"):
        _checked(channels, (0, 3) if kind == "GIF" else (0, 3, 4), kind)
        pictures = frames(content, kind, only_first=not animations)
        if kind == "WEBP" and channels and pictures.shape[3] != channels:
            raise InvalidArgumentError(f"this WebP file has {pictures.shape[3]} channels; got "
                                       f"channels={channels}")
        return pictures if animations else pictures[0]
    allowed = {"JPEG": (0, 1, 3), "PNG": (0, 1, 3, 4), "BMP": (0, 3, 4)}[kind]
    return still(content, kind, _checked(channels, allowed, kind), wide and kind == "PNG")


def _one(content: bytes, channels: int, name: str, wide: bool = False,
         ratio: int = 1) -> np.ndarray:
    kind = format_of(content)
    if kind in ("BMP", "WEBP"):
        raise InvalidArgumentError(f"Trying to decode {kind} format using a wrong op. Use "
                                   f"`decode_image` instead. Op used: {name}")
    if kind != "GIF":
        # JPEG files have no opacity.
        if channels == 4 and kind == "JPEG":
            raise InvalidArgumentError("JPEG does not support 4 channels")
        return still(content, kind, channels, wide, ratio if kind == "JPEG" else 1)
    pictures = frames(content, kind)
    if len(pictures) != 1:
        raise InvalidArgumentError(f"Got {len(pictures)} frames, but animated gifs can only be "
                                   f"decoded by tf.io.decode_gif or tf.io.decode_image")
    _checked(channels, (0, 3), kind)
    # 257 times 255 is 65535: the whole range of uint16.
    return pictures[0].astype(np.uint16) * np.uint16(257) if wide else pictures[0]


def decode_image(contents: TensorLike, channels: int | None = None, dtype: object = dtypes.uint8,
                 name: str | None = None, expand_animations: bool = True) -> Tensor:
    """The pixels of a JPEG, PNG, BMP, GIF or WebP file: [height, width, channels], of a GIF or
    WebP file [frames, height, width, 3].

    Args:
        channels: 1 for grey, 3 for colours, 4 with opacity; 0 or None for as many as there are.
        dtype: uint8, uint16, or a floating dtype for values in [0, 1].
        expand_animations: without it a GIF gives its first picture [height, width, 3].

    Raises:
        InvalidArgumentError: the bytes are no such file, are damaged or cut short, or claim more
            pixels than so few bytes hold.
        UnavailableError: Pillow is not installed.
    """
    wanted = as_dtype(dtype)
    if wanted not in (dtypes.uint8, dtypes.uint16) and not wanted.is_floating:
        raise InvalidArgumentError(f"decode_image gives uint8, uint16 or floats; got {wanted!r}")
    count = _checked(channels, (0, 1, 3, 4), "decode_image")

    def decode(content: bytes) -> np.ndarray:
        # Byte 24 of a PNG file says how many bits a channel has.
        sixteen = content[24:25] == b"\x10" and content.startswith(b"\x89PNG")
        wide = wanted is dtypes.uint16 or (sixteen and wanted.is_floating)
        pixels = _any(content, count, wide, expand_animations)
        return pixels if wanted is dtypes.uint8 else _rescaled(pixels, wanted)

    return _decoded("decode_image", contents, decode, wanted)


def _rescaled(pixels: np.ndarray, dtype: dtypes.DType) -> np.ndarray:
    return np.asarray(convert_image_dtype(pixels, dtype).numpy())


def decode_png(contents: TensorLike, channels: int = 0, dtype: object = dtypes.uint8,
               name: str | None = None) -> Tensor:
    """The pixels [height, width, channels] of a PNG file (or of a JPEG or GIF file), uint8 or
    uint16. Raises InvalidArgumentError, UnavailableError: as `decode_image`."""
    wanted, count = as_dtype(dtype), _checked(channels, (0, 1, 3, 4), "decode_png")
    if wanted not in (dtypes.uint8, dtypes.uint16):
        raise InvalidArgumentError(f"decode_png gives uint8 or uint16; got {wanted!r}")
    return _decoded("decode_png", contents, lambda content: _one(
        content, count, "decode_png", wanted is dtypes.uint16), wanted)


def _jpeg_options(ratio: int, fancy_upscaling: bool, try_recover_truncated: bool) -> None:
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio must be 1, 2, 4, or 8, got {shown(ratio)}")
    # Refused, since pixels that differ from TensorFlow's in silence are worse.
    if try_recover_truncated or not fancy_upscaling:
        raise UnimplementedError("Pillow, by which gtape decodes JPEG files, neither recovers "
                                 "files that are cut short nor leaves out the smooth upscaling of "
                                 "colours; leave try_recover_truncated and fancy_upscaling out")


def decode_jpeg(contents: TensorLike, channels: int = 0, ratio: int = 1,
                fancy_upscaling: bool = True, try_recover_truncated: bool = False,
                acceptable_fraction: float = 1, dct_method: str = "", name: str | None = None,
                ) -> Tensor:
    """The pixels [height, width, channels] of a JPEG file (or of a PNG or GIF file), uint8. Raises
    InvalidArgumentError, UnavailableError: as `decode_image`; UnimplementedError:
    try_recover_truncated, or fancy_upscaling=False.

    Args:
        ratio: 2, 4 or 8 make the image smaller while it is decoded.
        dct_method: a hint that is not needed.
    """
    _jpeg_options(ratio, fancy_upscaling, try_recover_truncated)
    count = _checked(channels, (0, 1, 3, 4), "decode_jpeg")
    return _decoded("decode_jpeg", contents,
                    lambda content: _one(content, count, "decode_jpeg", ratio=ratio))


def decode_and_crop_jpeg(contents: TensorLike, crop_window: TensorLike, channels: int = 0,
                         ratio: int = 1, fancy_upscaling: bool = True,
                         try_recover_truncated: bool = False, acceptable_fraction: float = 1,
                         dct_method: str = "", name: str | None = None) -> Tensor:
    """The part [y, x, height, width] of a JPEG file's pixels. Raises InvalidArgumentError: the part
    reaches beyond the image, or as `decode_image`."""
    _jpeg_options(ratio, fancy_upscaling, try_recover_truncated)
    window = as_ints(crop_window, "decode_and_crop_jpeg: crop_window")

    def decode(content: bytes) -> np.ndarray:
        if format_of(content) != "JPEG":
            raise InvalidArgumentError("decode_and_crop_jpeg takes JPEG files")
        pixels = still(content, "JPEG", _checked(channels, (0, 1, 3), "JPEG"), False, ratio)
        if len(window) != 4 or min(window) < 0 or 0 in window[2:] or (
                window[0] + window[2] > pixels.shape[0] or window[1] + window[3] > pixels.shape[1]):
            raise InvalidArgumentError(f"crop_window must be [y, x, height, width] within the "
                                       f"image's {pixels.shape[:2]}; got {list(window)}")
        return pixels[window[0]:window[0] + window[2], window[1]:window[1] + window[3]]

    return _decoded("decode_and_crop_jpeg", contents, decode)


def decode_gif(contents: TensorLike, name: str | None = None) -> Tensor:
    """The pictures [frames, height, width, 3] of a GIF file, uint8; one of a JPEG or PNG file.
    Raises InvalidArgumentError, UnavailableError: as `decode_image`."""
    def decode(content: bytes) -> np.ndarray:
        if format_of(content) == "GIF":
            return frames(content, "GIF")
        return _one(content, 3, "decode_gif")[None]

    return _decoded("decode_gif", contents, decode)


def decode_bmp(contents: TensorLike, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels [height, width, channels] of a BMP file, uint8. Raises InvalidArgumentError,
    UnavailableError: as `decode_image`."""
    count = _checked(channels, (0, 3, 4), "BMP")

    def decode(content: bytes) -> np.ndarray:
        kind = format_of(content)
        if kind != "BMP":
            raise InvalidArgumentError(f"Trying to decode {kind} format using DecodeBmp op. Use "
                                       f"`decode_image` instead")
        return still(content, kind, count, False)

    return _decoded("decode_bmp", contents, decode)


def extract_jpeg_shape(contents: TensorLike, output_type: object = dtypes.int32,
                       name: str | None = None) -> Tensor:
    """[height, width, channels] of a JPEG file, of which only the head is read. Raises
    InvalidArgumentError: the bytes are no JPEG file."""
    def run(content: np.ndarray) -> list[object]:
        if format_of(content.item()) != "JPEG":
            raise InvalidArgumentError("extract_jpeg_shape takes JPEG files")
        image = opened(content.item(), "JPEG")
        return [[image.height, image.width, len(image.getbands())]]

    return step("extract_jpeg_shape", run, [single("extract_jpeg_shape", contents)],
                [Spec((3,), as_dtype(output_type))])[0]


def is_jpeg(contents: TensorLike, name: str | None = None) -> Tensor:
    """Whether the bytes begin as a JPEG file does. Raises InvalidArgumentError: `contents` is no
    scalar."""
    return each("is_jpeg", lambda content: content.startswith(b"\xff\xd8\xff"),
                single("is_jpeg", contents), dtypes.bool_)


def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> Tensor:
    """Images [..., height, width, 1 to 4] of uint8 or uint16 as PNG files, strings [...];
    `compression` from 0 for none to 9 for the smallest file, -1 for zlib's own. Raises
    InvalidArgumentError: another shape, dtype or compression; TypeError: `compression` is no
    integer."""
    level = as_int(compression, "encode_png: compression")
    if not -1 <= level <= 9:
        raise InvalidArgumentError(f"compression should be in [-1,9], got {shown(compression)}")
    given = convert(image)
    if given.ndim < 3:
        raise InvalidArgumentError(f"encode_png: images must be at least rank 3; got {given.spec}")
    # One file for each image, whatever axes there are around them.
    outer = given.spec.shape[:-3]

    def run(pixels: np.ndarray) -> list[object]:
        flat = pixels.reshape(math.prod(pixels.shape[:-3]), *pixels.shape[-3:])
        return [array_of([png(i, level) for i in flat], pixels.shape[:-3], dtypes.string)]

    return step("encode_png", run, [given], [Spec(outer, dtypes.string)])[0]


# With "", as many as the image has.
_JPEG_CHANNELS = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}


def _check_jpeg(image: Spec, format: object) -> None:
    if image.dtype is not dtypes.uint8 or len(image.shape) != 3:
        raise InvalidArgumentError(f"encode_jpeg: image must be 3-dimensional of uint8; got "
                                   f"{image}")
    channels = image.shape[2]
    if not isinstance(format, str) or channels not in _JPEG_CHANNELS.get(format, ()):
        raise InvalidArgumentError(f"encode_jpeg: image must have 1 or 3 channels, 1 for the "
                                   f"format 'grayscale' and 3 for 'rgb'; got {channels} channels "
                                   f"and the format {shown(format)}")


def _density(value: int, scale: float, what: str) -> int:
    """Dots per inch; a JPEG file has two bytes for them."""
    dots = as_int(value, f"encode_jpeg: {what}")
    if not 0 <= dots < 1 << 16 or round(dots * scale) >= 1 << 16:
        raise InvalidArgumentError(f"encode_jpeg: {what} must be fewer than 2^16 dots per inch; "
                                   f"got {dots}")
    return round(dots * scale)


def encode_jpeg(image: TensorLike, format: str = "", quality: int = 95, progressive: bool = False,
                optimize_size: bool = False, chroma_downsampling: bool = True,
                density_unit: str = "in", x_density: int = 300, y_density: int = 300,
                xmp_metadata: str = "", name: str | None = None) -> Tensor:
    """An image [height, width, 1 or 3] of uint8 as a JPEG file, a scalar of strings. Raises
    InvalidArgumentError: another shape, number of channels or quality; UnavailableError: Pillow is
    not installed.

    Args:
        format: "grayscale" or "rgb" to insist on the number of channels.
        quality: from 0 to 100.
        chroma_downsampling: colours have half the resolution.
    """
    given = convert(image)
    _check_jpeg(given.spec, format)
    if not 0 <= as_int(quality, "encode_jpeg: quality") <= 100:
        raise InvalidArgumentError(f"quality must be in [0,100], got {shown(quality)}")
    if density_unit not in ("in", "cm"):
        raise InvalidArgumentError(f"Invalid density_unit {shown(density_unit)}; it is 'in' or "
                                   "'cm'")
    scale = 1 if density_unit == "in" else 2.54  # centimetres to an inch
    options: dict[str, Any] = {
        "quality": quality, "progressive": bool(progressive), "optimize": bool(optimize_size),
        "subsampling": 2 if chroma_downsampling else 0,
        "dpi": (_density(x_density, scale, "x_density"), _density(y_density, scale, "y_density"))}
    metadata = as_bytes(xmp_metadata, "encode_jpeg: xmp_metadata")
    if metadata:
        options["xmp"] = metadata

    def run(pixels: np.ndarray) -> list[object]:
        if not pixels.size:
            raise InvalidArgumentError(f"encode_jpeg: an image has one pixel at least; got "
                                       f"{given.spec}")
        return [jpeg(pixels, **options)]

    return step("encode_jpeg", run, [given], [Spec((), dtypes.string)])[0]
