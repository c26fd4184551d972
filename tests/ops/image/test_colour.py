"""Hue, saturation and value, and Sobel's filters, against TensorFlow's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

_COLOURS = [[0.2, 0.5, 0.9], [0.3, 0.3, 0.3], [1.5, 0.1, 0.6], [0.0, 0.0, 0.0], [-0.1, -0.2, -0.3],
            [0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.9, 0.1, 0.9]]


def test_rgb_to_hsv() -> None:
    np.testing.assert_allclose(tf.image.rgb_to_hsv(_COLOURS).numpy(), [
        [0.5952381, 0.7777778, 0.9], [0, 0, 0.3], [0.9404762, 0.9333333, 1.5], [0, 0, 0],
        [0.0833333, 0, -0.1], [0, 0.8888889, 0.9], [0.3333333, 0.8888889, 0.9],
        [0.8333333, 0.8888889, 0.9]], atol=1e-6)


def test_hsv_to_rgb() -> None:
    made = tf.image.hsv_to_rgb([[0.2, 0.5, 0.9], [0.3, 0.3, 0.3], [1.2, 0.5, 0.6],
                                [-0.1, 0.4, 0.7], [0.5, 1.5, 0.3]])
    np.testing.assert_allclose(made.numpy(), [
        [0.81, 0.9, 0.45], [0.228, 0.3, 0.21], [0.6, 0.3, 0.3], [0.7, 0.42, 0.42],
        [-0.15, 0.3, 0.3]], atol=1e-6)


def test_there_and_back() -> None:
    colours = np.random.RandomState(0).uniform(0.05, 1, (4, 5, 3))
    back = tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(tf.constant(colours)))
    np.testing.assert_allclose(back.numpy(), colours, atol=1e-12)


def test_the_gradient_of_rgb_to_hsv_is_tensorflows_where_the_largest_is_one() -> None:
    x = tf.constant([_COLOURS[0], _COLOURS[2]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.image.rgb_to_hsv(x)
    slope = tape.gradient(y, x, output_gradients=tf.constant([[1.0, 2.0, 3.0]] * 2)).numpy()
    np.testing.assert_allclose(slope, [[-2.0861678, -0.2380952, 3.5958679],
                                       [3.1314058, -1.2568028, -0.1190476]], rtol=1e-5)


def test_grey_and_black_have_finite_gradients() -> None:
    x = tf.constant([_COLOURS[1], _COLOURS[3]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x))
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


@pytest.mark.parametrize("convert", [tf.image.rgb_to_hsv, tf.image.hsv_to_rgb])
def test_colours_are_three_floats(convert: object) -> None:
    for wrong in (tf.zeros((2, 2)), tf.zeros((2, 3), tf.int32), tf.constant(1.0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="3 channels"):
            convert(wrong)  # type: ignore[operator]


def test_sobel_edges() -> None:
    image = np.arange(24, dtype=np.float32).reshape(1, 3, 4, 2) ** 1.5
    edges = tf.image.sobel_edges(image).numpy()
    assert edges.shape == (1, 3, 4, 2, 2)
    np.testing.assert_allclose(edges[0, 1, :, 0], [
        [275.07822, 0], [292.52094, 71.326324], [324.91675, 80.210983], [339.86987, 0]], rtol=1e-5)
    np.testing.assert_allclose(edges[0, 0, 1, 0], [0, 53.883606], atol=1e-4)
    with pytest.raises(ValueError, match="sobel_edges"):
        tf.image.sobel_edges(image[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="floating"):
        tf.image.sobel_edges(image.astype(np.int32))


_IMAGES = np.random.RandomState(0).rand(2, 4, 5, 3).astype(np.float32)


def test_hue_is_turned() -> None:
    turned = tf.image.adjust_hue(_IMAGES, 0.2).numpy()
    np.testing.assert_allclose(turned.ravel()[:6], [0.54881, 0.62796, 0.71519, 0.64589, 0.42365,
                                                    0.48022], atol=1e-5)
    np.testing.assert_allclose(tf.image.adjust_hue(_IMAGES, -0.7).numpy().ravel()[:3],
                               [0.56949, 0.54881, 0.71519], atol=1e-5)
    bytes_ = tf.image.adjust_hue((_IMAGES * 255).astype(np.uint8), 0.2)
    assert bytes_.numpy().ravel()[:6].tolist() == [139, 159, 182, 164, 108, 123]
    with pytest.raises(ValueError, match="delta"):
        tf.image.adjust_hue(_IMAGES, 1.5)


def test_saturation_is_multiplied_and_cut_off_at_1() -> None:
    for factor, expected in ((0.5, [0.632, 0.71519, 0.65898]), (3.0, [0.21606, 0.71519, 0.37791]),
                             (-1.0, [0.71519, 0.71519, 0.71519])):
        made = tf.image.adjust_saturation(_IMAGES, factor).numpy()
        np.testing.assert_allclose(made.ravel()[:3], expected, atol=1e-5)
    bytes_ = tf.image.adjust_saturation((_IMAGES * 255).astype(np.uint8), 2.0)
    assert bytes_.numpy().ravel()[:6].tolist() == [96, 182, 124, 112, 52, 164]


def test_yuv_and_yiq() -> None:
    for there, back, expected in (
            (tf.image.rgb_to_yuv, tf.image.yuv_to_rgb, [0.65263, -0.02454, -0.09107]),
            (tf.image.rgb_to_yiq, tf.image.yiq_to_rgb, [0.65263, -0.06302, -0.0702])):
        made = there(_IMAGES)
        np.testing.assert_allclose(made.numpy().ravel()[:3], expected, atol=1e-5)
        np.testing.assert_allclose(back(made).numpy(), _IMAGES, atol=1e-4)
    np.testing.assert_allclose(tf.image.yuv_to_rgb(_IMAGES).numpy().ravel()[:3],
                               [1.23589, -0.08341, 2.00212], atol=1e-5)
