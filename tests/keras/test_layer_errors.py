"""An error in a layer keeps its class and its words; Keras adds the layer and its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf

keras = tf.keras


class _Wrong(keras.layers.Layer):
    def call(self, x: Any) -> Any:
        return tf.matmul(x, tf.ones((7, 3)))


def _fitted(**options: Any) -> None:
    model = keras.Sequential([_Wrong()])
    model.compile("sgd", "mse", **options)
    model.fit(np.ones((2, 4)), np.ones((2, 3)), verbose=0)


@pytest.mark.parametrize("run", [lambda: _Wrong()(tf.ones((2, 4))), _fitted,
                                 lambda: _fitted(run_eagerly=True)])
def test_an_error_of_an_operation_is_told(run: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=(
            r"(?s)the columns of a must equal the rows of b.*float32\[7,3\].*Arguments received")):
        run()
