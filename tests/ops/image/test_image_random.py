"""Images changed at random: the same by the same seed, and what may come of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

_IMAGES = tf.constant(np.random.RandomState(0).rand(200, 4, 5, 3).astype(np.float32))
_NAMES = {"random_flip_left_right": (), "random_flip_up_down": (), "random_brightness": (0.3,),
          "random_contrast": (0.5, 1.5), "random_hue": (0.3,), "random_saturation": (0.5, 1.5),
          "random_crop": ([200, 2, 3, 3],)}


@pytest.mark.parametrize("name", sorted(_NAMES))
def test_the_seed_decides(name: str) -> None:
    function, arguments = getattr(tf.image, f"stateless_{name}"), _NAMES[name]
    once = function(_IMAGES, *arguments, seed=(1, 2)).numpy()
    assert once.tolist() == function(_IMAGES, *arguments, seed=tf.constant([1, 2])).numpy().tolist()
    others = [function(_IMAGES, *arguments, seed=(1, n)).numpy() for n in range(3, 9)]
    assert any(once.shape != v.shape or (once != v).any() for v in others)


@pytest.mark.parametrize("name", sorted(_NAMES))
def test_a_function_draws_anew_at_every_call_and_the_global_seed_starts_again(name: str) -> None:
    function, arguments = getattr(tf.image, name), _NAMES[name]

    def draws() -> list[Any]:
        tf.random.set_seed(7)
        changed = tf.function(lambda x: function(x, *arguments))
        return [changed(_IMAGES).numpy() for _ in range(6)]

    first, second = draws(), draws()
    assert any((first[0] != v).any() for v in first[1:])
    assert all((a == b).all() for a, b in zip(first, second))


def test_about_half_of_a_batch_is_flipped() -> None:
    made = tf.image.random_flip_left_right(_IMAGES, seed=1).numpy()
    x = _IMAGES.numpy()
    flipped = (made == x[:, :, ::-1]).all((1, 2, 3))
    assert (flipped | (made == x).all((1, 2, 3))).all()
    assert 60 < flipped.sum() < 140
    down = tf.image.random_flip_up_down(_IMAGES[0], seed=1).numpy()
    assert (down == x[0]).all() or (down == x[0, ::-1]).all()


def test_a_crop_is_a_block_of_the_value_from_every_place() -> None:
    x = tf.reshape(tf.range(12), (3, 4))
    corners = {int(tf.image.random_crop(x, [2, 3], seed=n)[0, 0]) for n in range(60)}
    assert corners == {0, 1, 4, 5}
    block = tf.image.random_crop(x, [2, 3]).numpy()
    assert (np.diff(block, axis=1) == 1).all() and (np.diff(block, axis=0) == 4).all()
    assert tf.image.random_crop(x, [3, 4]).numpy().tolist() == x.numpy().tolist()


def test_gradients_go_through_a_crop() -> None:
    x = tf.ones((3, 4))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.image.stateless_random_crop(x, [2, 2], seed=[1, 2])
    slope = tape.gradient(y, x).numpy()
    assert slope.sum() == 4 and set(slope.ravel().tolist()) == {0, 1}


def test_brightness_stays_in_its_bounds() -> None:
    one = _IMAGES[0]
    changes = [float((tf.image.random_brightness(one, 0.25) - one)[0, 0, 0]) for _ in range(30)]
    assert max(map(abs, changes)) <= 0.2501 and max(changes) > 0 > min(changes)


@pytest.mark.parametrize(("name", "arguments"), [
    ("random_brightness", (-1.0,)), ("random_contrast", (0.5, 0.2)),
    ("random_contrast", (-0.5, 0.2)), ("random_saturation", (0.5, 0.5)), ("random_hue", (0.6,)),
    ("random_hue", (-0.1,))])
def test_bounds_that_cannot_be_are_refused(name: str, arguments: Any) -> None:
    with pytest.raises(ValueError, match=name):
        getattr(tf.image, name)(_IMAGES, *arguments)


def test_crops_larger_than_the_value_are_refused() -> None:
    for size in ([2, 9], [2], [2, -1]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="random_crop"):
            tf.image.random_crop(tf.ones((3, 4)), size)
