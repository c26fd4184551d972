"""What Keras' optimizers make of the gradients of embeddings, whatever its engine is.

With TensorFlow as Keras' engine, `python tests/keras/sparse_updates.py FILE.npz` writes the numbers
that `test_sparse_updates.py` compares: `files/sparse_updates.npz` is of Keras 3.15.1 on TensorFlow
2.21.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPE = (9, 3)
#: Rows of every step: one is asked for once, twice, by all; 3, 7 and 8 are never.
ROWS = ([1, 4, 4, 2, 1, 1], [0, 0, 6, 2, 4, 6], [1, 2, 4, 5, 6, 0], [5, 5, 5, 5, 5, 5])
STEPS = 9


def makers(optimizers: Any) -> dict[str, Callable[[], Any]]:
    """Optimizers by their names, with the options that make a way of their own."""
    def several() -> Any:
        inner = [optimizers.SGD(0.1), optimizers.Adagrad(0.1)]
        return optimizers.MultiOptimizer(lambda v: inner[len(v.shape) > 1])

    def scaled(inner: Any) -> Any:
        return optimizers.LossScaleOptimizer(inner, initial_scale=2.0, dynamic_growth_steps=3)

    return {
        "SGD": lambda: optimizers.SGD(0.1),
        "momentum": lambda: optimizers.SGD(0.1, momentum=0.9),
        "Nesterov": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        "Adam": lambda: optimizers.Adam(0.1),
        "AMSGrad": lambda: optimizers.Adam(0.1, amsgrad=True),
        "AdamW": lambda: optimizers.AdamW(0.1),
        "Adamax": lambda: optimizers.Adamax(0.1),
        "Nadam": lambda: optimizers.Nadam(0.1),
        "Ftrl": lambda: optimizers.Ftrl(
            0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.1,
            l2_shrinkage_regularization_strength=0.05, beta=0.1),
        "Lion": lambda: optimizers.Lion(0.1),
        "Lamb": lambda: optimizers.Lamb(0.1),
        "RMSprop": lambda: optimizers.RMSprop(0.1),
        "RMSprop, momentum": lambda: optimizers.RMSprop(0.1, momentum=0.5),
        "RMSprop, centered": lambda: optimizers.RMSprop(0.1, momentum=0.5, centered=True),
        "Adagrad": lambda: optimizers.Adagrad(0.1),
        "Adadelta": lambda: optimizers.Adadelta(0.1),
        "Adafactor": lambda: optimizers.Adafactor(0.1),
        "Adafactor, clipped": lambda: optimizers.Adafactor(
            0.1, clip_threshold=0.5, relative_step=False),
        "Muon": lambda: optimizers.Muon(0.1),
        "ScheduleFreeAdamW": lambda: optimizers.ScheduleFreeAdamW(0.1, warmup_steps=2),
        "clipnorm": lambda: optimizers.Adagrad(0.1, clipnorm=0.1),
        "global_clipnorm": lambda: optimizers.Adagrad(0.1, global_clipnorm=0.1),
        "clipvalue": lambda: optimizers.Adagrad(0.1, clipvalue=0.1),
        "decay": lambda: optimizers.RMSprop(0.1, weight_decay=0.1),
        "average": lambda: optimizers.Adagrad(0.1, use_ema=True, ema_overwrite_frequency=3),
        "accumulation": lambda: optimizers.Adagrad(0.1, gradient_accumulation_steps=3),
        "LossScaleOptimizer": lambda: scaled(optimizers.Adagrad(0.1)),
        "LossScaleOptimizer, Adam": lambda: scaled(optimizers.Adam(0.1)),
        "MultiOptimizer": several,
    }


def updated(tf: Any, optimizer: Any, traced: Callable[..., Any] = lambda step: step) -> np.ndarray:
    """A table and a bias after some updates, as one vector."""
    rng = np.random.default_rng(0)
    table, bias = (tf.keras.Variable(rng.standard_normal(s).astype("float32"), name=name)
                   for s, name in ((SHAPE, "table"), (SHAPE[1:], "bias")))
    optimizer.build([table, bias])

    def step(values: Any, rows: Any, slope: Any) -> None:
        optimizer.apply([tf.IndexedSlices(values, rows, tf.constant(SHAPE)), slope], [table, bias])

    run = traced(step)
    for at in range(STEPS):
        values = rng.standard_normal((len(ROWS[0]), *SHAPE[1:])).astype("float32")
        run(tf.constant(values), tf.constant(ROWS[at % len(ROWS)]), tf.constant(values[0]))
    return np.concatenate([v.numpy().ravel() for v in (table, bias)])


def fitted(keras: Any, optimizer: Any, **options: Any) -> np.ndarray:
    """The weights of a model with an embedding after `fit`, and its losses, as one vector."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 7, (16, 4)), rng.standard_normal((16, 1)).astype("float32")
    model = keras.Sequential([keras.layers.Embedding(*SHAPE), keras.layers.Flatten(),
                              keras.layers.Dense(1)])
    model.build((None, 4))
    model.set_weights([rng.standard_normal(w.shape).astype("float32") * 0.5
                       for w in model.get_weights()])
    model.compile(optimizer, "mse", **options)
    losses = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]
    return np.concatenate([*(w.ravel() for w in model.get_weights()), losses]).astype("float32")


if __name__ == "__main__":
    import tensorflow

    np.savez_compressed(sys.argv[1], **{
        f"{name}: {what}": vector for name, make in makers(tensorflow.keras.optimizers).items()
        for what, vector in (("updated", updated(tensorflow, make())),
                             ("fitted", fitted(tensorflow.keras, make())))})
