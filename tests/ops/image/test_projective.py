"""Images through projective maps, against TensorFlow's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_ROW = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 6, 1)
_IMAGE = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
_MAP = [[0.9, 0.1, -0.4, 0.2, 1.1, 0.3, 0.01, 0.02]]


def _mapped(images: Any, transforms: Any, shape: Any, mode: str = "CONSTANT",
            interpolation: str = "BILINEAR", fill: float = 9.0) -> tf.Tensor:
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images, transforms=tf.constant(transforms), output_shape=tf.constant(shape),
        fill_value=tf.constant(fill), interpolation=interpolation, fill_mode=mode)


def _row(mode: str, interpolation: str) -> list[float]:
    """Half steps from 10 pixels before a row of 6."""
    return _mapped(_ROW, [[0.5, 0.0, -10.0, 0.0, 1.0, 0.0, 0.0, 0.0]], [1, 50], mode,
                   interpolation).numpy().ravel().tolist()


def test_beyond_the_image_there_is_the_fill_value() -> None:
    assert _row("CONSTANT", "NEAREST")[18:34] == [9, 9, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 9, 9, 9]
    assert _row("CONSTANT", "BILINEAR")[18:34] == [
        9, 5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7.5, 9, 9]


def test_reflected() -> None:
    assert _row("REFLECT", "NEAREST")[:24] == [
        3, 4, 4, 5, 5, 6, 6, 6, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 1, 2, 2, 3]
    assert _row("REFLECT", "BILINEAR")[5:22] == [
        5.5, 6, 6, 6, 5.5, 5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5, 1, 1, 1, 1.5]


def test_wrapped_as_tensorflow_does() -> None:
    assert _row("WRAP", "NEAREST") == [
        6, 4, 4, 5, 5, 6, 6, 6, 6, 6, 6, 3, 3, 4, 4, 5, 5, 6, 6, 6, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6,
        1, 1, 2, 2, 3, 3, 4, 4, 5, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4]


def test_the_nearest_pixel_goes_on() -> None:
    assert _row("NEAREST", "BILINEAR")[:22] == [1.0] * 21 + [1.5]


def test_a_map_with_perspective() -> None:
    made = _mapped(_IMAGE, _MAP, [3, 4], fill=0.0).numpy().ravel()
    np.testing.assert_allclose(made, [
        0.72, 2.4752474, 4.117647, 5.728155, 3.8754327, 6.796118, 8.365385, 9.904762, 3.85207,
        3.714284, 2.511923, 1.0626253], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_integers_are_cut_off(dtype: str) -> None:
    made = _mapped(tf.cast(_IMAGE * 1.7, dtype), _MAP, [3, 4], fill=2.5)
    assert made.dtype == dtype
    assert made.numpy().ravel().tolist() == [1, 3, 6, 9, 6, 11, 14, 16, 7, 7, 5, 3]


def test_one_map_serves_all_images_or_each_has_its_own() -> None:
    two = np.concatenate([_IMAGE, 2 * _IMAGE])
    same = _mapped(two, _MAP, [3, 4], fill=0.0).numpy()
    np.testing.assert_allclose(same[1], 2 * same[0], rtol=1e-6)
    still = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert _mapped(two, [still, _MAP[0]], [3, 4]).numpy()[0].tolist() == _IMAGE[0].tolist()


def test_the_gradient_is_the_exact_one() -> None:
    image = tf.constant(_IMAGE.astype(np.float64))
    with tf.GradientTape(persistent=True) as tape:
        transforms = tf.constant(_MAP)
        tape.watch([image, transforms])
        made = _mapped(image, transforms, [3, 4])
    slope = tape.gradient(made, image).numpy()
    for i in range(12):
        step = np.zeros(12)
        step[i] = 1.0
        moved = _mapped(image + step.reshape(1, 3, 4, 1), _MAP, [3, 4]).numpy() - made.numpy()
        np.testing.assert_allclose(slope.ravel()[i], moved.sum(), rtol=1e-6, atol=1e-9)
    assert tape.gradient(made, transforms) is None


def test_a_function_computes_it() -> None:
    made = tf.function(lambda x: _mapped(x, _MAP, [3, 4], fill=0.0))(tf.constant(_IMAGE))
    np.testing.assert_allclose(made.numpy(), _mapped(_IMAGE, _MAP, [3, 4], fill=0.0).numpy())


def test_what_does_not_fit_is_refused() -> None:
    for images, transforms, shape in ((_IMAGE[0], _MAP, [3, 4]), (_IMAGE, _MAP[0], [3, 4]),
                                      (_IMAGE, _MAP * 2, [3, 4]), (_IMAGE, _MAP, [3]),
                                      (_IMAGE, _MAP, [0, 4]), (_IMAGE > 0, _MAP, [3, 4])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="ImageProjectiveTransformV3"):
            _mapped(images, transforms, shape)
    for option in ({"interpolation": "CUBIC"}, {"mode": "MIRROR"}):
        with pytest.raises(ValueError, match="must be one of"):
            _mapped(_IMAGE, _MAP, [3, 4], **option)
