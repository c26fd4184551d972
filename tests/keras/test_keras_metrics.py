"""Metrics: values over several batches, weights, reset, names."""

from __future__ import annotations

import numpy as np
import pytest

import gtape as tf

metrics = tf.keras.metrics
RNG = np.random.default_rng(0)
LABELS = (RNG.random(40) > 0.4).astype(np.float32)
SCORES = np.clip(0.3 * LABELS + 0.7 * RNG.random(40), 0, 1).astype(np.float32)


def test_mean_and_sum():
    mean = metrics.Mean()
    assert float(mean.result()) == 0
    mean.update_state([1.0, 3.0])
    mean.update_state(5.0)
    assert float(mean.result()) == 3
    assert float(mean([2.0, 4.0], sample_weight=[0.0, 0.0])) == 3
    mean.reset_state()
    assert float(mean.result()) == 0
    assert float(metrics.Sum()([[1.0, 2.0], [3.0, 4.0]], [1.0, 0.5])) == pytest.approx(6.5)


def test_accuracies():
    assert float(metrics.BinaryAccuracy()([[1.0], [0.0]], [[0.7], [0.6]])) == 0.5
    assert float(metrics.Accuracy()([1, 2, 3], [1, 2, 0])) == pytest.approx(2 / 3)
    scores = [[0.1, 0.9, 0.0], [0.2, 0.3, 0.5]]
    assert float(metrics.SparseCategoricalAccuracy()([1, 0], scores)) == 0.5
    assert float(metrics.SparseCategoricalAccuracy()([[1], [2]], scores)) == 1
    assert float(metrics.CategoricalAccuracy()(np.eye(3)[[1, 0]], np.array(scores))) == 0.5
    assert float(metrics.SparseTopKCategoricalAccuracy(2)([0, 1], scores)) == 1
    assert float(metrics.TopKCategoricalAccuracy(1)(np.eye(3)[[0, 2]], np.array(scores))) == 0.5


def test_precision_recall_against_counts():
    positive = SCORES > 0.5
    tp = (positive & (LABELS == 1)).sum()
    precision, recall = metrics.Precision(), metrics.Recall()
    for part in (slice(0, 15), slice(15, 40)):
        precision.update_state(LABELS[part], SCORES[part])
        recall.update_state(LABELS[part], SCORES[part])
    assert float(precision.result()) == pytest.approx(tp / positive.sum())
    assert float(recall.result()) == pytest.approx(tp / LABELS.sum())
    several = metrics.TruePositives(thresholds=[0.8, 0.2])
    several.update_state(LABELS, SCORES)
    np.testing.assert_array_equal(several.result(), [((t < SCORES) & (LABELS == 1)).sum()
                                                     for t in (0.8, 0.2)])


def test_scores_outside_the_unit_interval():
    with pytest.raises(ValueError, match="lie in"):
        metrics.Precision()([1.0], [1.5])
    with pytest.raises(ValueError):
        metrics.AUC(curve="XYZ")


def test_auc_against_sorting():
    pairs = [(a, b) for a in SCORES[LABELS == 1] for b in SCORES[LABELS == 0]]
    wanted = np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs])
    area = metrics.AUC(num_thresholds=2000)
    assert float(area(LABELS, SCORES)) == pytest.approx(wanted, abs=3e-3)
    assert 0.5 < float(metrics.AUC(curve="PR")(LABELS, SCORES)) <= 1


def test_points_on_curves():
    assert 0 < float(metrics.SensitivityAtSpecificity(0.5)(LABELS, SCORES)) <= 1
    assert 0 < float(metrics.PrecisionAtRecall(0.5)(LABELS, SCORES)) <= 1
    assert float(metrics.RecallAtPrecision(0.0)(LABELS, SCORES)) == 1


def test_iou():
    metric = metrics.MeanIoU(2)
    metric.update_state([0, 0, 1, 1], [0, 1, 0, 1])
    assert float(metric.result()) == pytest.approx(1 / 3)
    assert float(metrics.BinaryIoU([1])([0.0, 1.0], [0.2, 0.9])) == 1


def test_f_scores_and_r2():
    one_hot = np.eye(3)[[0, 1, 2, 2]]
    predicted = np.eye(3)[[0, 1, 1, 2]]
    np.testing.assert_allclose(metrics.F1Score()(one_hot, predicted), [1, 2 / 3, 2 / 3], rtol=1e-5)
    assert float(metrics.F1Score("micro")(one_hot, predicted)) == pytest.approx(0.75, rel=1e-5)
    y, p = RNG.random((20, 1)), RNG.random((20, 1))
    wanted = 1 - ((y - p) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert float(metrics.R2Score()(y, p)) == pytest.approx(wanted, rel=1e-4)


def test_correlations():
    x = RNG.standard_normal((3, 10))
    assert float(metrics.PearsonCorrelation()(x, 2 * x + 1)) == pytest.approx(1, rel=1e-5)
    assert float(metrics.CosineSimilarity()(x, -x)) == pytest.approx(-1, rel=1e-5)
    assert float(metrics.ConcordanceCorrelation()(x, x)) == pytest.approx(1, rel=1e-4)


def test_metrics_are_not_recorded():
    x = tf.Variable([1.0, 2.0])
    metric = metrics.MeanSquaredError()
    with tf.GradientTape() as tape:
        y = x * 2
        metric.update_state([0.0, 0.0], y)
    np.testing.assert_allclose(tape.gradient(y, x), [2, 2])
    assert float(metric.result()) == 10


def test_own_metric_and_names():
    class Count(metrics.Metric):
        def __init__(self):
            super().__init__(name="count")
            self.seen = self.add_weight(name="seen")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.seen.assign_add(tf.cast(tf.size(y_true), tf.float32))

        def result(self):
            return self.seen

    count = Count()
    count.update_state([1, 2, 3], [1, 2, 3])
    assert float(count.result()) == 3
    assert metrics.get("mae").name == "mae"
    assert metrics.get("sparse_categorical_accuracy").name == "sparse_categorical_accuracy"
    with pytest.raises(ValueError):
        metrics.get("nonsense")
