"""Pictures in files: which format, how large, which pixels.

Pillow opens them, but for BMP files, which are read here, as PNG files are written. How large a
picture claims to be is compared with the length of its file before a pixel is made.
"""

from __future__ import annotations

import io
import struct
import zlib
from types import ModuleType
from typing import Any

import numpy as np

from gtape.core.errors import InvalidArgumentError, UnavailableError, UnimplementedError

_PNG = b"\x89PNG\r\n\x1a\n"
_BEGINNINGS = ((b"\xff\xd8\xff", "JPEG"), (_PNG, "PNG"), (b"GIF8", "GIF"), (b"BM", "BMP"))
#: Pixels that a picture of any length of file may have, and pixels for each byte of a longer one.
_FREE, _EACH = 1 << 24, 4096
#: TensorFlow's weights of red, green and blue in a PNG file's grey, of 32768.
_GREY = np.array([9797, 19234, 3737], np.int64)
#: PNG's code of the kind of pixels, by the number of channels.
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
#: Of a BMP file: where its pixels begin, width, height, planes, bits a pixel, compression.
_BMP_HEAD = struct.Struct("<I4xiiHHI")


def format_of(content: bytes) -> str:
    """The name of a picture's format. Raises InvalidArgumentError: it is of none that is read."""
    if not content:
        raise InvalidArgumentError("Input is empty: an image file has one byte at least")
    for beginning, name in _BEGINNINGS:
        if content.startswith(beginning):
            return name
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "WEBP"
    raise InvalidArgumentError(f"Unknown image file format. One of JPEG, PNG, GIF, BMP, WebP "
                               f"required; the file begins with {content[:12]!r}")


def opened(content: bytes, name: str) -> Any:
    """Pillow's image of a file, of which only the head is read. Raises UnavailableError: Pillow is
    not installed. InvalidArgumentError: the file is damaged, or claims more pixels than it can
    hold."""
    images = _pillow("decoding images")
    try:
        if name == "PNG":  # whose checksums Pillow compares only when it is asked to
            images.open(io.BytesIO(content), formats=[name]).verify()
        # Again, since verify leaves an image that cannot be read; and by this format alone, which
        # is what the first bytes say.
        image = images.open(io.BytesIO(content), formats=[name])
        frames = getattr(image, "n_frames", 1)
    except Exception as error:
        raise _invalid(name, content, error) from None
    # A few bytes can claim a picture that fills all memory.
    pixels = image.width * image.height * frames
    if pixels > max(_FREE, len(content) * _EACH):
        raise InvalidArgumentError(
            f"Invalid {name} data, size {len(content)}: it claims {frames} pictures of "
            f"{image.width} x {image.height} pixels, more than so few bytes hold")
    return image


def _pillow(what: str) -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise UnavailableError(f"{what} needs the package pillow: pip install "
                               f"'gtape[images]'") from error
    return Image


def _invalid(name: str, content: bytes, error: Exception) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid {name} data, size {len(content)}: it is damaged or cut "
                                f"short ({error or type(error).__name__})")


def loaded(image: Any, content: bytes, name: str) -> Any:
    """The image with its pixels. Raises InvalidArgumentError: the file is damaged or cut short."""
    try:
        image.load()
    except Exception as error:
        raise _invalid(name, content, error) from None
    return image


def still(content: bytes, name: str, channels: int, wide: bool, ratio: int = 1) -> np.ndarray:
    """The pixels [height, width, channels] of a JPEG, PNG or BMP file; 0 channels for as many as it
    has. Of a PNG's 16 bits `wide` keeps all, else the upper 8; a JPEG is made smaller by `ratio`,
    2, 4 or 8."""
    if name == "BMP":
        return _channels(bmp(content), channels)
    image = opened(content, name)
    if name == "JPEG":
        return _jpeg(image, content, channels, ratio)
    # Loading may change the mode; which bits the file has is said by the one before.
    mode = image.mode
    loaded(image, content, name)
    if mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif mode == "1":
        image = image.convert("L")
    if name == "PNG" and wide and content[24:25] == b"\x10" and not mode.startswith("I"):
        raise UnimplementedError("decode_png: Pillow reads PNG files of several channels of 16 "
                                 "bits with 8 bits; decode them as tf.uint8")
    pixels = np.asarray(image)
    if image.mode.startswith("I"):
        pixels = pixels.astype(np.uint16) if wide else (pixels >> 8).astype(np.uint8)
    elif wide:
        # 257 times 255 is 65535: the whole range of uint16.
        pixels = pixels.astype(np.uint16) * np.uint16(257)
    return _channels(pixels if pixels.ndim == 3 else pixels[..., None], channels)


def _jpeg(image: Any, content: bytes, channels: int, ratio: int) -> np.ndarray:
    mode = {1: "L", 3: "RGB"}.get(channels) or ("L" if image.mode == "L" else "RGB")
    if channels == 1 and image.mode == "CMYK":
        raise InvalidArgumentError("a JPEG file of four colours is decoded to 3 channels; got "
                                   "channels=1")
    width, height = image.size
    # The decoder leaves out what a smaller picture does not need; the size may be a little larger.
    image.draft(mode if image.mode != "CMYK" else None,
                (max(width // ratio, 1), max(height // ratio, 1)))
    loaded(image, content, "JPEG")
    wanted = (-(-width // ratio), -(-height // ratio))
    if image.size != wanted:
        image = image.resize(wanted)
    pixels = np.asarray(image.convert(mode))
    return pixels if pixels.ndim == 3 else pixels[..., None]


def _channels(pixels: np.ndarray, wanted: int) -> np.ndarray:
    """The pixels with another number of channels: grey becomes red, green and blue or the reverse,
    what is transparent is left out or nothing is."""
    have = pixels.shape[2]
    if wanted in (0, have):
        return pixels
    # Of two channels the second is opacity, of four the last.
    colours = pixels[..., :1 if have < 3 else 3]
    if wanted == 1:
        if have < 3:
            return colours
        grey = colours.astype(np.int64) @ _GREY >> 15
        return grey[..., None].astype(pixels.dtype)
    if have < 3:
        colours = np.repeat(colours, 3, axis=2)
    if wanted == 3:
        return colours
    full = np.iinfo(pixels.dtype).max
    alpha = pixels[..., -1:] if have in (2, 4) else np.full_like(pixels[..., :1], full)
    return np.concatenate([colours, alpha], axis=2)


def frames(content: bytes, name: str, only_first: bool = False) -> np.ndarray:
    """The pictures [frames, height, width, 3] of a GIF or WebP file."""
    image = opened(content, name)
    size, pictures = image.size, []
    for number in range(1 if only_first else getattr(image, "n_frames", 1)):
        try:
            image.seek(number)
        except Exception as error:
            raise _invalid(name, content, error) from None
        # They are stacked into one tensor.
        if image.size != size:
            raise InvalidArgumentError(f"Invalid {name} data, size {len(content)}: picture "
                                       f"{number} is of {image.size} pixels, the first of {size}")
        loaded(image, content, name)
        alpha = name == "WEBP" and image.mode == "RGBA"
        pictures.append(np.asarray(image if alpha else image.convert("RGB")))
    return np.stack(pictures)


def jpeg(image: np.ndarray, **options: object) -> bytes:
    """The JPEG file of an image [height, width, 1 or 3] of uint8. Raises UnavailableError: Pillow
    is not installed."""
    images, into = _pillow("encoding JPEG files"), io.BytesIO()
    images.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(into, "JPEG", **options)
    return into.getvalue()


def _part(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(content, zlib.crc32(kind))
    return b"".join((len(content).to_bytes(4), kind, content, check.to_bytes(4)))


def png(image: np.ndarray, compression: int = -1) -> bytes:
    """The PNG file of an image [height, width, channels] of uint8 or uint16. Each row is stored as
    its difference to the row above, which packs better than the row. Raises InvalidArgumentError:
    no pixels, another number of channels, or another dtype."""
    if image.ndim != 3 or not image.size or image.shape[2] not in _COLOURS or (
            image.dtype not in (np.uint8, np.uint16)):
        raise InvalidArgumentError(f"encode_png takes images [height, width, channels] of 1 to 4 "
                                   f"channels of uint8 or uint16, with one pixel at least; got "
                                   f"{image.dtype.name}{list(image.shape)}")
    height, width, channels = image.shape
    rows = np.ascontiguousarray(image.astype(image.dtype.newbyteorder(">")))
    raw = rows.view(np.uint8).reshape(height, -1)
    lines = np.empty((height, raw.shape[1] + 1), np.uint8)
    # PNG's filter 2, "up": what is above is subtracted.
    lines[:, 0] = 2
    lines[0, 1:] = raw[0]
    np.subtract(raw[1:], raw[:-1], out=lines[1:, 1:])
    head = struct.pack(">IIBBBBB", width, height, 8 * image.itemsize, _COLOURS[channels], 0, 0, 0)
    return b"".join((_PNG, _part(b"IHDR", head),
                     _part(b"IDAT", zlib.compress(lines.tobytes(), compression)),
                     _part(b"IEND", b"")))


def bmp(content: bytes) -> np.ndarray:
    """The pixels [height, width, 1, 3 or 4] of a BMP file. Raises InvalidArgumentError: the file is
    damaged or cut short, or of another kind."""
    if len(content) < 34:
        raise _invalid_bmp(content, "it is cut short")
    start, width, height, _, bits, packed = _BMP_HEAD.unpack_from(content, 10)
    channels = {8: 1, 24: 3, 32: 4}.get(bits)
    if channels is None or packed not in (0, 3):
        raise _invalid_bmp(content, f"{bits} bits a pixel and the compression {packed}; only 8, 24 "
                                    f"and 32 bits without compression are read")
    # Rows begin at multiples of four bytes.
    rows, row = abs(height), (width * channels + 3) // 4 * 4
    if width <= 0 or not rows or start + rows * row > len(content):
        raise _invalid_bmp(content, f"it claims {width} x {rows} pixels from byte {start} on, more "
                                    f"than there are")
    lines = np.frombuffer(content, np.uint8, rows * row, start).reshape(rows, row)
    pixels = lines[:, :width * channels].reshape(rows, width, channels)
    # The lowest row comes first, unless the height is negative.
    if height > 0:
        pixels = pixels[::-1]
    # Blue comes first in the file.
    order = [0] if channels == 1 else [2, 1, 0, 3][:channels]
    return pixels[..., order]


def _invalid_bmp(content: bytes, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid BMP data, size {len(content)}: {what}")
