"""Images: contrast without a gradient, geometry, colour, resizing, patches, fake quantization."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

I = tf.image
_IMAGE = np.random.default_rng(0).uniform(0, 1, (2, 4, 6, 3)).astype(np.float32)


def _gradient(fn, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    return tape.gradient(y, x)


def test_contrast_is_about_the_mean_of_each_channel():
    mean = _IMAGE.mean((1, 2), keepdims=True)
    np.testing.assert_allclose(I.adjust_contrast(_IMAGE, 2.0), (_IMAGE - mean) * 2 + mean,
                               rtol=1e-5, atol=1e-6)


def test_contrast_has_no_gradient():
    with pytest.raises(LookupError, match="no entry for: AdjustContrastv2"):
        _gradient(lambda x: I.adjust_contrast(x, 2.0), _IMAGE)


def test_contrast_of_integers_and_its_errors():
    image = np.array([[[0], [255]], [[100], [200]]], np.uint8)
    assert I.adjust_contrast(image, 1.0).numpy().tolist() == image.tolist()
    with pytest.raises(ValueError):
        I.adjust_contrast(tf.ones((2, 2)), 1.0)


def test_flips_and_turns():
    np.testing.assert_array_equal(I.flip_left_right(_IMAGE), _IMAGE[:, :, ::-1])
    np.testing.assert_array_equal(I.flip_up_down(_IMAGE[0]), _IMAGE[0, ::-1])
    np.testing.assert_array_equal(I.transpose(_IMAGE), _IMAGE.swapaxes(1, 2))
    for k in range(-1, 5):
        np.testing.assert_array_equal(I.rot90(_IMAGE, k), np.rot90(_IMAGE, k, (1, 2)))
    with pytest.raises(ValueError, match="images"):
        I.flip_left_right(tf.ones((2, 2)))


def test_crops_and_pads_are_adjoint():
    cut = I.crop_to_bounding_box(_IMAGE, 1, 2, 2, 3)
    np.testing.assert_array_equal(cut, _IMAGE[:, 1:3, 2:5])
    grown = I.pad_to_bounding_box(cut, 1, 2, 4, 6)
    got = _gradient(lambda x: I.crop_to_bounding_box(x, 1, 2, 2, 3) * cut, _IMAGE)
    np.testing.assert_array_equal(got, grown)
    assert I.central_crop(_IMAGE, 0.5).shape == (2, 2, 4, 3)
    assert I.resize_with_crop_or_pad(_IMAGE, 6, 3).shape == (2, 6, 3, 3)
    for box in ((3, 0, 2, 2), (0, 0, 0, 1), (-1, 0, 1, 1)):
        with pytest.raises(ValueError, match="bounding_box"):
            I.crop_to_bounding_box(_IMAGE, *box)


def test_colours_and_dtypes():
    grey = I.rgb_to_grayscale(_IMAGE)
    np.testing.assert_allclose(grey[..., 0], _IMAGE @ [0.2989, 0.587, 0.114], rtol=1e-5)
    assert I.grayscale_to_rgb(grey).shape == _IMAGE.shape
    whole = I.convert_image_dtype(_IMAGE, tf.uint8)
    np.testing.assert_allclose(I.convert_image_dtype(whole, tf.float32), _IMAGE, atol=1 / 255)
    full = I.convert_image_dtype(tf.ones((1, 1, 1)), tf.uint8, saturate=True)
    assert full.numpy().item() == 255
    with pytest.raises(ValueError, match="3 channels"):
        I.rgb_to_grayscale(grey)


def test_standardization_and_variation():
    made = I.per_image_standardization(_IMAGE).numpy()
    np.testing.assert_allclose(made.mean((1, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(made.std((1, 2, 3)), 1, rtol=1e-5)
    assert not I.per_image_standardization(tf.ones((2, 2, 1))).numpy().any()
    wanted = np.abs(np.diff(_IMAGE, axis=1)).sum((1, 2, 3)) + np.abs(
        np.diff(_IMAGE, axis=2)).sum((1, 2, 3))
    np.testing.assert_allclose(I.total_variation(_IMAGE), wanted, rtol=1e-5)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "area", "lanczos3", "lanczos5",
                                    "gaussian", "mitchellcubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_resizing_keeps_a_constant_and_hands_back_all_of_the_gradient(method, antialias):
    def resized(x):
        return I.resize(x, (7, 3), method, antialias=antialias)

    np.testing.assert_allclose(resized(np.full((1, 4, 6, 1), 2.5, np.float32)), 2.5, rtol=1e-5)
    assert _gradient(resized, _IMAGE).numpy().sum() == pytest.approx(2 * 7 * 3 * 3, rel=1e-4)


def test_resizing_values_and_dtypes():
    line = np.array([0.0, 1.0], np.float32).reshape(1, 2, 1)
    np.testing.assert_allclose(I.resize(line, (1, 4)).numpy().ravel(), [0, 0.25, 0.75, 1])
    assert I.resize(line, (1, 4), "nearest").numpy().ravel().tolist() == [0, 0, 1, 1]
    assert I.resize(np.ones((2, 2, 1), np.uint8), (3, 3), "nearest").dtype == tf.uint8
    assert I.resize(np.ones((2, 2, 1), np.uint8), (3, 3)).dtype == tf.float32
    assert I.resize(_IMAGE, (10, 12), preserve_aspect_ratio=True).shape == (2, 8, 12, 3)


@pytest.mark.parametrize("size, method, error", [
    ((2, 2), "best", ValueError), ((2,), "bilinear", ValueError), ((0, 2), "bilinear", ValueError)])
def test_resizing_errors(size, method, error):
    with pytest.raises(error, match="resize"):
        I.resize(_IMAGE, size, method)


def test_patches():
    made = I.extract_patches(_IMAGE, [1, 2, 3, 1], [1, 2, 3, 1], [1, 1, 1, 1], "VALID")
    assert made.shape == (2, 2, 2, 18)
    np.testing.assert_array_equal(made[0, 1, 1].numpy().reshape(2, 3, 3), _IMAGE[0, 2:4, 3:6])
    for sizes in ([2, 2, 2, 1], [1, 2, 2]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="sizes"):
            I.extract_patches(_IMAGE, sizes, [1, 1, 1, 1], [1, 1, 1, 1], "SAME")


# ---------------------------------------------------------------- fake quantization


def test_fake_quantization():
    fake = tf.quantization.fake_quant_with_min_max_args
    np.testing.assert_allclose(fake([0.3, 7.0]), [0.28235295, 5.9764705], rtol=1e-6)
    assert _gradient(fake, [0.3, 7.0]).numpy().tolist() == [1, 0]
    assert fake(tf.zeros(3)).numpy().tolist() == [0, 0, 0]
    for wrong in ({"min": 1.0, "max": 1.0}, {"num_bits": 1}):
        with pytest.raises(tf.errors.InvalidArgumentError):
            fake([0.0], **wrong)


def test_the_bounds_of_fake_quantization_learn():
    x, low, high = tf.constant([-5.0, -3.0, 0.0, 9.0]), tf.Variable(-2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.quantization.fake_quant_with_min_max_vars(x, low, high)
    assert [g.numpy() for g in tape.gradient(y, [low, high])] == [2, 1]
    per_channel = tf.quantization.fake_quant_with_min_max_vars_per_channel(
        tf.ones((3, 2)), [-1.0, -0.5], [1.0, 0.5])
    np.testing.assert_allclose(per_channel.numpy()[0], [1.0, 0.5], atol=0.01)


def test_patches_larger_than_the_image_are_none():
    one = [1, 1, 1, 1]
    assert tf.image.extract_patches(tf.zeros([2, 4, 4, 3]), [1, 5, 5, 1], one, one,
                                    "VALID").shape == (2, 0, 0, 75)
