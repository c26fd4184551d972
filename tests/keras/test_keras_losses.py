"""Losses: values, reductions, weights, shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gtape as tf

losses = tf.keras.losses
Y = np.array([[0.0, 1.0], [0.0, 0.0]], np.float32)
P = np.array([[0.6, 0.4], [0.4, 0.6]], np.float32)


@pytest.mark.parametrize(("loss", "wanted"), [
    (losses.MeanSquaredError(), [0.36, 0.26]),
    (losses.MeanAbsoluteError(), [0.6, 0.5]),
    (losses.Huber(0.5), [(0.175 + 0.175) / 2, (0.08 + 0.175) / 2]),
    (losses.LogCosh(), [math.log(math.cosh(0.6)),
                        (math.log(math.cosh(0.4)) + math.log(math.cosh(0.6))) / 2]),
    (losses.BinaryCrossentropy(), [-math.log(0.4), -(math.log(0.6) + math.log(0.4)) / 2]),
    (losses.Poisson(), [(0.6 + 0.4 - math.log(0.4)) / 2, 0.5]),
    (losses.CategoricalHinge(), [1 - 0.4 + 0.6, 1.6]),
])
def test_values_and_reductions(loss, wanted):
    total = sum(wanted)
    assert float(loss(Y, P)) == pytest.approx(total / 2, rel=1e-5)
    for reduction, value in (("sum", total), ("mean", total / 2)):
        loss.reduction = reduction
        assert float(loss(Y, P)) == pytest.approx(value, rel=1e-5)
    loss.reduction = None
    np.testing.assert_allclose(loss(Y, P), wanted, rtol=1e-5)
    loss.reduction = "mean_with_sample_weight"
    weighted = loss(Y, P, sample_weight=[3.0, 1.0])
    assert float(weighted) == pytest.approx((3 * wanted[0] + wanted[1]) / 4, rel=1e-5)
    loss.reduction = "sum_over_batch_size"
    weighted = loss(Y, P, sample_weight=[3.0, 1.0])
    assert float(weighted) == pytest.approx((3 * wanted[0] + wanted[1]) / 2, rel=1e-5)


def test_cross_entropies_agree():
    logits = np.array([[1.0, 2.0, 0.5], [0.1, -1.0, 3.0]], np.float32)
    numbers, one_hot = np.array([1, 0]), np.eye(3, dtype=np.float32)[[1, 0]]
    probabilities = tf.nn.softmax(logits)
    wanted = float(losses.SparseCategoricalCrossentropy(from_logits=True)(numbers, logits))
    for value in (losses.SparseCategoricalCrossentropy()(numbers, probabilities),
                  losses.SparseCategoricalCrossentropy(from_logits=True)(numbers[:, None], logits),
                  losses.CategoricalCrossentropy(from_logits=True)(one_hot, logits),
                  losses.CategoricalCrossentropy()(one_hot, probabilities)):
        assert float(value) == pytest.approx(wanted, rel=1e-5)


def test_ignored_classes_do_not_count():
    logits = tf.constant([[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    rest = losses.SparseCategoricalCrossentropy(from_logits=True)
    assert float(loss([1, -1, 0], logits)) == pytest.approx(
        float(rest([1, 0], tf.gather(logits, [0, 2]))))


def test_label_smoothing():
    y = np.array([[0.0, 1.0]], np.float32)
    p = np.array([[0.3, 0.7]], np.float32)
    smooth = float(losses.CategoricalCrossentropy(label_smoothing=0.2)(y, p))
    assert smooth == pytest.approx(-(0.1 * math.log(0.3) + 0.9 * math.log(0.7)), rel=1e-5)


def test_ranks_are_brought_together():
    loss = losses.MeanSquaredError()
    assert float(loss([[0.0], [1.0]], [1.0, 1.0])) == 0.5
    assert float(loss([0, 1], [1.0, 1.0])) == 0.5


def test_shapes_that_do_not_fit():
    with pytest.raises(tf.errors.InvalidArgumentError):
        losses.MeanSquaredError()(tf.zeros((2, 3)), tf.zeros((2, 4)))
    with pytest.raises(tf.errors.InvalidArgumentError):
        losses.CategoricalCrossentropy()(tf.zeros((2, 3)), tf.zeros((2, 4)))
    with pytest.raises(ValueError):
        losses.MeanSquaredError(reduction="average")


def test_results_are_float32_unless_told():
    assert losses.MeanSquaredError()(np.ones(2), np.zeros(2)).dtype == tf.float32
    assert losses.MeanSquaredError(dtype="float64")(np.ones(2), np.zeros(2)).dtype == tf.float64


def test_names():
    assert losses.get("mse") is losses.mean_squared_error
    assert isinstance(losses.get("BinaryCrossentropy"), losses.BinaryCrossentropy)
    assert losses.get(None) is None
    with pytest.raises(ValueError):
        losses.get("nonsense")
    with pytest.raises(AttributeError):
        losses.Nonsense


def test_own_loss():
    class Largest(losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_max(tf.abs(y_true - y_pred), axis=-1)

    assert float(Largest()(Y, P)) == pytest.approx(0.6)


@pytest.mark.parametrize("loss", [losses.Dice(), losses.Tversky(0.3, 0.7), losses.KLDivergence(),
                                  losses.CosineSimilarity(), losses.SquaredHinge(),
                                  losses.MeanSquaredLogarithmicError(),
                                  losses.MeanAbsolutePercentageError(),
                                  losses.BinaryFocalCrossentropy(True, label_smoothing=0.1),
                                  losses.CategoricalFocalCrossentropy(from_logits=True)])
def test_gradients_are_finite(loss):
    x = tf.constant(P)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(np.eye(2, dtype=np.float32), x)
    assert np.isfinite(tape.gradient(value, x)).all() and not value.ndim


def test_circle_prefers_classes_apart():
    near = tf.constant([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    mixed = tf.constant([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    loss = losses.Circle(gamma=8, reduction="sum")
    assert float(loss([0, 0, 1, 1], near)) < float(loss([0, 0, 1, 1], mixed))


def test_a_custom_loss_gets_integer_labels_as_floats() -> None:
    class Difference(tf.keras.losses.Loss):
        def call(self, y_true, y_pred):
            return y_true - y_pred

    assert float(Difference()(np.array([1, 2]), tf.constant([0.5, 0.5]))) == 1.0
