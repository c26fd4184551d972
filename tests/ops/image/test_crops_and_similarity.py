"""crop_and_resize, resize_with_pad, ssim and paddings of blocks, by TensorFlow's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_RANDOM = np.random.RandomState(0)
_IMAGES = _RANDOM.rand(2, 16, 18, 3).astype(np.float32)
_NOISY = np.clip(_IMAGES + _RANDOM.randn(2, 16, 18, 3) * 0.1, 0, 1).astype(np.float32)
_SMALL = _IMAGES[:, :6, :9]
_BOXES = [[0.0, 0.0, 1.0, 1.0], [0.2, 0.1, 0.8, 0.9], [-0.2, 0.3, 1.3, 0.6], [0.9, 0.9, 0.1, 0.2]]


@pytest.mark.parametrize(("method", "size", "total"), [
    ("bilinear", [3, 4], 37.7754), ("bilinear", [1, 1], 6.2167), ("bilinear", [8, 12], 413.4402),
    ("nearest", [3, 4], 34.5141), ("nearest", [1, 1], 4.3158), ("nearest", [8, 12], 409.1474)])
def test_crop_and_resize(method: str, size: list[int], total: float) -> None:
    made = tf.image.crop_and_resize(_SMALL, _BOXES, [0, 1, 1, 0], size, method, -1.0)
    assert made.shape == (4, *size, 3)
    np.testing.assert_allclose(made.numpy().sum(), total, atol=2e-3)


def test_crops_of_integers_are_float32() -> None:
    made = tf.image.crop_and_resize((_SMALL * 255).astype(np.uint8), _BOXES, [0, 1, 1, 0], [3, 4])
    assert made.dtype == tf.float32
    np.testing.assert_allclose(made.numpy().ravel()[:5],
                               [139, 182, 153, 101.66666, 209.66666], rtol=1e-6)


def test_the_gradients_of_crops_are_tensorflows() -> None:
    images, boxes = tf.constant(_SMALL), tf.constant(_BOXES)
    with tf.GradientTape() as tape:
        tape.watch([images, boxes])
        made = tf.image.crop_and_resize(images, boxes, [0, 1, 1, 0], [3, 4]) ** 2
    by_image, by_box = (g.numpy() for g in tape.gradient(made, [images, boxes]))
    np.testing.assert_allclose(by_image.ravel()[:3], [1.09763, 1.43038, 1.20553], rtol=1e-5)
    np.testing.assert_allclose(by_image.sum(), 123.5509, rtol=1e-5)
    np.testing.assert_allclose(by_box[0], [1.64773, -8.11591, 1.64773, -3.74654], rtol=1e-5)


@pytest.mark.parametrize("wrong", [
    {"box_indices": [0, 1, 1, 2]}, {"box_indices": [0, 1, 1, -1]}, {"boxes": _BOXES[:2]},
    {"crop_size": [0, 3]}, {"image": _SMALL[0]}, {"method": "cubic"}])
def test_crops_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    right = {"image": _SMALL, "boxes": _BOXES, "box_indices": [0, 1, 1, 0], "crop_size": [3, 4]}
    with pytest.raises(tf.errors.InvalidArgumentError, match="crop_and_resize"):
        tf.image.crop_and_resize(**right | wrong)


@pytest.mark.parametrize(("target", "total"), [
    ((4, 4), 22.2413), ((12, 12), 295.7093), ((10, 3), 19.329), ((6, 9), 166.1712),
    ((7, 30), 215.6381)])
def test_resize_with_pad(target: tuple[int, int], total: float) -> None:
    made = tf.image.resize_with_pad(_SMALL, *target)
    assert made.shape == (2, *target, 3)
    np.testing.assert_allclose(made.numpy().sum(), total, atol=2e-3)


def test_padding_is_halved_before_the_size_is_rounded() -> None:
    assert tf.image.resize_with_pad(_SMALL, 4, 4).numpy()[0, 0].all()
    assert tf.image.resize_with_pad(_SMALL[0], 5, 11, method="nearest").numpy()[0, 1].all()
    with pytest.raises(ValueError, match="positive target"):
        tf.image.resize_with_pad(_SMALL, 0, 4)


def test_the_methods_have_names() -> None:
    by_name = tf.image.resize(_SMALL, [3, 4], method=tf.image.ResizeMethod.LANCZOS3)
    assert by_name.numpy().tolist() == tf.image.resize(_SMALL, [3, 4], "lanczos3").numpy().tolist()
    assert tf.image.ResizeMethod.NEAREST_NEIGHBOR == "nearest"


def test_ssim() -> None:
    np.testing.assert_allclose(tf.image.ssim(_IMAGES, _NOISY, 1.0).numpy(), [0.95484, 0.95654],
                               atol=1e-5)
    one = tf.image.ssim(_IMAGES[0], _NOISY[0], 1.0, filter_size=7, filter_sigma=1.0, k1=0.02,
                        k2=0.05)
    np.testing.assert_allclose(one.numpy(), 0.94973, atol=1e-5)
    whole = tf.image.ssim((_IMAGES * 255).astype(np.uint8), (_NOISY * 255).astype(np.uint8), 255)
    np.testing.assert_allclose(whole.numpy(), [0.95484, 0.95633], atol=1e-5)
    windows = tf.image.ssim(_IMAGES, _NOISY, 1.0, return_index_map=True)
    assert windows.shape == (2, 6, 8)
    np.testing.assert_allclose(windows.numpy()[0, 0, :3], [0.9535, 0.94957, 0.94855], atol=1e-5)


def test_equal_images_are_wholly_alike() -> None:
    x = tf.constant(_IMAGES[None])
    with tf.GradientTape() as tape:
        tape.watch(x)
        alike = tf.image.ssim(x, _IMAGES[None], 1.0)
    assert alike.shape == (1, 2)
    np.testing.assert_allclose(alike.numpy(), [[1, 1]], atol=1e-6)
    np.testing.assert_allclose(tape.gradient(alike, x).numpy(), 0, atol=1e-5)


def test_ssim_of_images_that_do_not_fit_is_refused() -> None:
    for x, y in ((_SMALL, _SMALL), (_IMAGES, _IMAGES[:, :, :17]), (_IMAGES[0, 0], _IMAGES[0, 0])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="filter_size"):
            tf.image.ssim(x, y, 1.0)


@pytest.mark.parametrize(("shape", "block", "base", "paddings", "crops"), [
    ([11], [3], None, [[0, 1]], [[0, 1]]),
    ([4, 7], [2, 3], None, [[0, 0], [0, 2]], [[0, 0], [0, 2]]),
    ([4, 7], [2, 3], [[1, 0], [0, 2]], [[1, 1], [0, 2]], [[0, 1], [0, 0]]),
    ([0], [3], None, [[0, 0]], [[0, 0]])])
def test_paddings_that_blocks_need(shape: Any, block: Any, base: Any, paddings: Any,
                                   crops: Any) -> None:
    found = tf.required_space_to_batch_paddings(shape, block, base)
    assert [v.numpy().tolist() for v in found] == [paddings, crops]
    assert all(v.dtype == tf.int32 for v in found)


def test_paddings_of_blocks_that_do_not_fit() -> None:
    for shape, block in (([3], [3, 2]), ([3], [0])):
        with pytest.raises(ValueError, match="block_shape"):
            tf.required_space_to_batch_paddings(shape, block)
