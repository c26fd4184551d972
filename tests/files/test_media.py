"""Images and sounds in files as tensors."""

from __future__ import annotations

import io as python_io
import struct
import tracemalloc
import zlib

import numpy as np
import pytest

import gtape as tf

io, errors = tf.io, tf.errors
_RNG = np.random.default_rng(0)
_IMAGE = _RNG.integers(0, 256, (5, 7, 4)).astype(np.uint8)

#: [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [250, 251, 252]]] as TensorFlow 2.21 writes it.
_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a73000000164944415408996364646"
    "26666666660e7e0fcf5fb0f000709031adccccf9e0000000049454e44ae426082")


def saved(image, kind, mode=None, **options):
    """A file written by Pillow."""
    image_module = pytest.importorskip("PIL.Image")
    made = image_module.fromarray(image)
    into = python_io.BytesIO()
    (made.convert(mode) if mode else made).save(into, kind, **options)
    return into.getvalue()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_files_keep_every_value(channels):
    pytest.importorskip("PIL")
    image = _IMAGE[..., :channels]
    assert (io.decode_png(io.encode_png(image)).numpy() == image).all()
    assert (io.decode_image(io.encode_png(image, compression=0)).numpy() == image).all()


def test_png_files_of_tensorflow_are_read():
    pytest.importorskip("PIL")
    assert io.decode_png(_PNG).numpy().tolist() == [[[1, 2, 3], [4, 5, 6]],
                                                    [[7, 8, 9], [250, 251, 252]]]


def test_png_files_of_sixteen_bits():
    pytest.importorskip("PIL")
    wide = (_IMAGE[..., :1].astype(np.uint16) * 250 + 3)
    made = io.encode_png(wide)
    assert (io.decode_png(made, dtype=tf.uint16).numpy() == wide).all()
    assert (io.decode_png(made).numpy() == wide >> 8).all()
    assert (io.decode_png(io.encode_png(_IMAGE), dtype=tf.uint16).numpy()
            == _IMAGE.astype(np.uint16) * 257).all()
    colours = io.encode_png(_IMAGE.astype(np.uint16))
    with pytest.raises(errors.UnimplementedError, match="16 bits"):
        io.decode_png(colours, dtype=tf.uint16)


def test_a_batch_of_images_is_encoded():
    made = io.encode_png(np.stack([_IMAGE, _IMAGE]))
    assert made.shape == (2,) and made.numpy()[0] == io.encode_png(_IMAGE).numpy()


def test_other_numbers_of_channels():
    pytest.importorskip("PIL")
    rgba, grey = io.encode_png(_IMAGE), io.encode_png(_IMAGE[..., :1])
    assert (io.decode_png(rgba, 3).numpy() == _IMAGE[..., :3]).all()
    assert (io.decode_png(grey, 3).numpy() == np.repeat(_IMAGE[..., :1], 3, 2)).all()
    four = io.decode_png(io.encode_png(_IMAGE[..., :3]), channels=4).numpy()
    assert (four[..., 3] == 255).all()
    # TensorFlow's weights of grey: 92 of (172, 47, 117), cut off, not rounded.
    colour = io.encode_png(np.uint8([[[172, 47, 117]]]))
    assert io.decode_png(colour, 1).numpy().tolist() == [[[92]]]


def test_palettes_and_single_bits():
    assert io.decode_png(saved(_IMAGE[..., :3], "PNG", "P")).shape == (5, 7, 3)
    bits = io.decode_image(saved(_IMAGE[..., 0], "PNG", "1"))
    assert bits.shape == (5, 7, 1) and set(np.unique(bits.numpy())) <= {0, 255}


def test_jpeg_files():
    pytest.importorskip("PIL")
    smooth = np.add.outer(np.arange(32), np.arange(48)).astype(np.uint8)[..., None]
    image = np.concatenate([smooth, smooth + 20, 255 - smooth], 2)
    made = io.encode_jpeg(image, quality=100, chroma_downsampling=False)
    found = io.decode_jpeg(made)
    assert found.dtype == tf.uint8 and np.abs(found.numpy().astype(int) - image).max() <= 4
    assert io.decode_jpeg(made, channels=1).shape == (32, 48, 1)
    assert io.decode_jpeg(made, ratio=2).shape == (16, 24, 3)
    assert io.extract_jpeg_shape(made).numpy().tolist() == [32, 48, 3]
    part = io.decode_and_crop_jpeg(made, [1, 2, 3, 4])
    assert (part.numpy() == found.numpy()[1:4, 2:6]).all()
    assert io.decode_jpeg(io.encode_jpeg(smooth, format="grayscale")).shape == (32, 48, 1)
    assert io.is_jpeg(made).numpy() and not io.is_jpeg(b"").numpy()
    assert io.decode_jpeg(saved(image, "JPEG", "CMYK")).shape == (32, 48, 3)


def test_gif_files():
    pytest.importorskip("PIL")
    from PIL import Image

    shots = [Image.fromarray(np.full((4, 6, 3), v, np.uint8)) for v in (0, 100, 200)]
    into = python_io.BytesIO()
    shots[0].save(into, "GIF", save_all=True, append_images=shots[1:])
    made = into.getvalue()
    assert io.decode_gif(made).shape == (3, 4, 6, 3)
    assert io.decode_image(made).numpy()[:, 0, 0, 0].tolist() == [0, 100, 200]
    assert io.decode_image(made, expand_animations=False).shape == (4, 6, 3)
    assert io.decode_gif(saved(_IMAGE[..., :3], "PNG")).shape == (1, 5, 7, 3)
    with pytest.raises(errors.InvalidArgumentError, match="3 frames"):
        io.decode_png(made)


def test_bmp_files():
    assert (io.decode_bmp(saved(_IMAGE[..., :3], "BMP")).numpy() == _IMAGE[..., :3]).all()
    assert (io.decode_image(saved(_IMAGE, "BMP")).numpy() == _IMAGE).all()
    assert io.decode_image(saved(_IMAGE[..., 0], "BMP"), channels=3).shape == (5, 7, 3)
    with pytest.raises(errors.InvalidArgumentError, match="PNG format"):
        io.decode_bmp(_PNG)


def test_images_as_floats_and_by_the_names_in_image():
    pytest.importorskip("PIL")
    found = tf.image.decode_image(_PNG, dtype=tf.float32)
    assert found.dtype == tf.float32 and found.numpy()[0, 0, 0] == np.float32(1 / 255)
    assert tf.image.decode_png is tf.io.decode_png and tf.image.is_jpeg is tf.io.is_jpeg


def bomb(width, height):
    """A PNG file of a few bytes that claims many pixels."""
    def part(kind, content):
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (_PNG[:8] + part(b"IHDR", head) + part(b"IDAT", zlib.compress(b"\0" * 100))
            + part(b"IEND", b""))


@pytest.mark.parametrize("content", [
    b"", b"xx", _PNG[:60], b"\xff\xd8\xff\xe0 no jpeg", b"GIF89a", b"BM" + bytes(60), b"BM",
    b"BM" + bytes(8) + struct.pack("<IIiiHHI", 54, 40, 1 << 30, 1 << 30, 1, 24, 0) + bytes(20),
    bomb(1 << 30, 1 << 30), bomb(60_000, 60_000), bomb(0, 0), _PNG[:40] + b"\xff" + _PNG[41:]])
def test_damaged_and_hostile_images_are_errors_that_allocate_nothing(content):
    pytest.importorskip("PIL")
    tracemalloc.start()
    try:
        with pytest.raises(errors.InvalidArgumentError):
            io.decode_image(content)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("call, error", [
    (lambda: io.decode_image(_PNG, channels=2), errors.InvalidArgumentError),
    (lambda: io.decode_image([_PNG]), errors.InvalidArgumentError),
    (lambda: io.decode_image(_PNG, dtype=tf.int32), errors.InvalidArgumentError),
    (lambda: io.decode_jpeg(_PNG, ratio=3), errors.InvalidArgumentError),
    (lambda: io.decode_jpeg(_PNG, try_recover_truncated=True), errors.UnimplementedError),
    (lambda: io.encode_png(_IMAGE[..., 0]), errors.InvalidArgumentError),
    (lambda: io.encode_png(_IMAGE.astype(np.float32)), errors.InvalidArgumentError),
    (lambda: io.encode_png(_IMAGE[:0]), errors.InvalidArgumentError),
    (lambda: io.encode_png(_IMAGE, compression=10), errors.InvalidArgumentError),
    (lambda: io.encode_jpeg(_IMAGE), errors.InvalidArgumentError),
    (lambda: io.encode_jpeg(_IMAGE[..., :3], quality=101), errors.InvalidArgumentError),
    (lambda: io.encode_jpeg(_IMAGE[..., :3], format="grayscale"), errors.InvalidArgumentError)])
def test_what_images_refuse(call, error):
    pytest.importorskip("PIL")
    with pytest.raises(error):
        call()


def test_without_pillow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(errors.UnavailableError, match=r"gtape\[images\]"):
        io.decode_image(_PNG)
    assert io.encode_png(_IMAGE).numpy().startswith(b"\x89PNG")


#: [[0.5, -0.5], [1, -1], [2, -2], [0.00002, -0.00004]] at 16,000 as TensorFlow 2.21 writes it.
_WAV = (b"RIFF4\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x80>\x00\x00\x00\xfa\x00\x00"
        b"\x04\x00\x10\x00data\x10\x00\x00\x00\x00@\x00\xc0\xff\x7f\x00\x80\xff\x7f\x00\x80\x01\x00"
        b"\xff\xff")


def test_sounds_have_tensorflows_bytes():
    sound = [[0.5, -0.5], [1.0, -1.0], [2, -2], [0.00002, -0.00004]]
    assert tf.audio.encode_wav(sound, 16000).numpy() == _WAV
    audio, rate = tf.audio.decode_wav(_WAV)
    assert rate.numpy() == 16000 and rate.dtype == tf.int32 and audio.dtype == tf.float32
    np.testing.assert_array_equal(audio, np.float32(
        [[16384, -16384], [32767, -32768], [32767, -32768], [1, -1]]) / 32768)


def test_sounds_of_other_lengths_and_channels():
    assert tf.audio.decode_wav(_WAV, 1).audio.numpy()[0].tolist() == [0.5]
    assert tf.audio.decode_wav(_WAV, 3).audio.numpy()[0].tolist() == [0.5, -0.5, -0.5]
    assert tf.audio.decode_wav(_WAV, desired_samples=6).audio.numpy()[4:].tolist() == [[0, 0]] * 2
    assert tf.audio.decode_wav(_WAV, desired_samples=2).audio.shape == (2, 2)

    @tf.function
    def traced(content):
        return tf.audio.decode_wav(content, 1, 3).audio * 2.0

    assert traced(tf.constant(_WAV)).numpy()[0, 0] == 1.0


@pytest.mark.parametrize("content", [
    b"", b"RIFF", _WAV[:-3], _WAV[:40], b"RIFX" + _WAV[4:], _WAV[:20] + b"\x03" + _WAV[21:],
    _WAV[:22] + b"\0" + _WAV[23:], _WAV[:34] + b"\x08" + _WAV[35:],
    _WAV[:40] + b"\xff\xff\xff\x7f" + _WAV[44:]])
def test_damaged_sounds_are_errors(content):
    with pytest.raises(errors.InvalidArgumentError, match="decode_wav"):
        tf.audio.decode_wav(content)


def test_what_sounds_refuse():
    for call in (lambda: tf.audio.encode_wav([0.5], 16000), lambda: tf.audio.encode_wav([[0.5]], 0),
                 lambda: tf.audio.decode_wav([_WAV])):
        with pytest.raises(errors.InvalidArgumentError):
            call()
    assert len(tf.audio.encode_wav(np.zeros([0, 1], np.float32), 16000).numpy()) == 44
