"""CTC loss against TensorFlow's numbers and against a sum over all alignments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import gtape as tf

_LOGITS = np.random.RandomState(0).randn(5, 3, 4).astype(np.float32)
_LABELS = [[1, 2, 3], [1, 1, 0], [2, 0, 0]]


def _loss(labels: Any = _LABELS, logits: Any = _LOGITS, label_length: Any = (3, 2, 1),
          logit_length: Any = (5, 4, 3), **options: Any) -> tf.Tensor:
    return tf.nn.ctc_loss(tf.constant(labels), tf.constant(logits), tf.constant(label_length),
                          tf.constant(logit_length), **options)


def _by_alignments(logits: Any, label: list[int], blank: int = 0) -> float:
    z = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    total = 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        merged = [c for c, _ in itertools.groupby(path)]
        if [c for c in merged if c != blank] == label:
            total += np.exp(sum(z[t, c] for t, c in enumerate(path)))
    return float(-np.log(total))


def test_it_is_the_sum_over_all_alignments() -> None:
    expected = [_by_alignments(_LOGITS[:5, 0], [1, 2, 3]), _by_alignments(_LOGITS[:4, 1], [1, 1]),
                _by_alignments(_LOGITS[:3, 2], [2])]
    np.testing.assert_allclose(_loss().numpy(), expected, rtol=1e-6)


def test_it_is_tensorflows() -> None:
    np.testing.assert_allclose(_loss().numpy(), [4.5192676, 6.2723665, 2.8121347], rtol=1e-6)
    np.testing.assert_allclose(_loss([[0, 1, 3], [1, 1, 0], [3, 0, 0]], blank_index=2).numpy(),
                               [3.2647295, 8.2203121, 1.8011622], rtol=1e-6)
    np.testing.assert_allclose(_loss([[0, 1, 2], [1, 1, 0], [2, 0, 0]], blank_index=-1).numpy(),
                               [3.8629603, 7.0923262, 1.2558963], rtol=1e-6)


def test_the_gradient_is_tensorflows() -> None:
    logits = tf.constant(_LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = _loss(logits=logits)
    slope = tape.gradient(loss, logits, output_gradients=tf.constant([1.0, 2.0, 3.0])).numpy()
    np.testing.assert_allclose(slope[0, 0], [-0.0227467, -0.5993394, 0.1372341, 0.4848520],
                               atol=1e-6)
    np.testing.assert_allclose(slope[0, 1], [0.3084674, -0.9778640, 0.5024028, 0.1669938],
                               atol=1e-6)
    assert not slope[4, 1].any() and not slope[3:, 2].any()


def test_either_axis_may_be_first() -> None:
    turned = _loss(logits=_LOGITS.transpose(1, 0, 2), logits_time_major=False)
    assert turned.numpy().tolist() == _loss().numpy().tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_computed_in_float32(dtype: str) -> None:
    wide = _loss(logits=tf.cast(tf.cast(_LOGITS, dtype), tf.float32))
    narrow = _loss(logits=tf.cast(_LOGITS, dtype))
    assert narrow.dtype == dtype
    assert narrow.numpy().tolist() == tf.cast(wide, dtype).numpy().tolist()


def test_no_label_is_all_blanks_and_no_frames_give_nothing() -> None:
    np.testing.assert_allclose(_loss(label_length=[0, 2, 1]).numpy()[0], 6.0099845, rtol=1e-6)
    assert _loss(label_length=[0, 2, 1], logit_length=[0, 4, 3]).numpy()[0] == 0


def test_where_no_alignment_fits_the_loss_is_a_large_number_and_the_gradient_0() -> None:
    logits = tf.constant(_LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = _loss([[1, 2, 3], [1, 1, 1], [2, 0, 0]], logits, [3, 3, 1], [2, 3, 3])
    np.testing.assert_allclose(loss.numpy()[:2], [706.8936, 706.8936], rtol=1e-6)
    slope = tape.gradient(loss, logits).numpy()
    assert not slope[:, :2].any() and slope[:, 2].any()


def test_a_function_computes_it_and_its_gradient() -> None:
    @tf.function
    def slope(logits: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = _loss(logits=logits)
        return loss, tape.gradient(loss, logits)

    loss, traced = slope(tf.constant(_LOGITS))
    assert loss.numpy().tolist() == _loss().numpy().tolist()
    np.testing.assert_allclose(traced.numpy().sum(-1), np.zeros((5, 3)), atol=1e-6)


def test_second_derivatives() -> None:
    logits = tf.constant(_LOGITS.astype(np.float64))
    weights = tf.reshape(tf.range(60.0), (5, 3, 4))
    with tf.GradientTape() as outer:
        outer.watch(logits)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = _loss(logits=logits)
        slope = tape.gradient(loss, logits)
    found = outer.gradient(slope, logits, output_gradients=tf.cast(weights, tf.float64)).numpy()
    # Of the last frame of the first sequence: TensorFlow's number (its others are nan).
    np.testing.assert_allclose(found[4, 0], [-0.1371276, -0.3056316, -0.0130134, 0.4557743],
                               atol=5e-6)


@pytest.mark.parametrize(("label", "expected"), [(0, 2.6429663), (4, 1.6494417), (-1, 1.6494417)])
def test_what_is_no_class_in_a_label_is_emitted_by_any_frame(
        label: int, expected: float) -> None:
    found = _loss([[1, label, 3], [1, 1, 0], [2, 0, 0]]).numpy()[0]
    # TensorFlow 2.21 on a CPU.
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_beyond_its_length_a_label_may_hold_anything() -> None:
    assert _loss([[1, 2, 3], [1, 1, -1], [2, 99, 0]]).numpy().tolist() == _loss().numpy().tolist()


def test_what_does_not_fit_is_refused() -> None:
    for wrong in ({"label_length": [3, 2]}, {"labels": [1, 2, 3]}, {"blank_index": 4},
                  {"labels": np.ones((3, 3), np.float32)}, {"logits": _LOGITS[0]}):
        with pytest.raises(tf.errors.InvalidArgumentError, match="ctc_loss"):
            _loss(**wrong)


def test_labels_may_be_sparse() -> None:
    labels = tf.sparse.from_dense(tf.constant(_LABELS))
    logits, lengths = tf.constant(_LOGITS), tf.constant([5, 4, 3])
    made = tf.nn.ctc_loss(labels, logits, None, lengths, blank_index=0)
    assert made.numpy().tolist() == _loss().numpy().tolist()
    with pytest.raises(ValueError, match="blank_index"):
        tf.nn.ctc_loss(labels, logits, None, lengths)


def _parts(labels: Any) -> list[Any]:
    return [v.numpy().tolist() for v in (labels.indices, labels.values, labels.dense_shape)]


def test_greedy_decoding() -> None:
    (labels,), scores = tf.nn.ctc_greedy_decoder(_LOGITS, [5, 4, 3])
    assert _parts(labels) == [[[0, 0], [1, 0], [2, 0]], [0, 0, 2], [3, 1]]
    assert scores.shape == (3, 1)
    np.testing.assert_allclose(scores.numpy()[:, 0], [-6.8888783, -6.8451920, -2.4750586],
                               rtol=1e-6)
    (labels,), _ = tf.nn.ctc_greedy_decoder(_LOGITS, [5, 4, 3], False, 0)
    assert labels.values.numpy().tolist() == [3, 3, 3, 3, 2, 3]
    (labels,), scores = tf.nn.ctc_greedy_decoder(_LOGITS, [0, 0, 0])
    assert _parts(labels) == [[], [], [3, 0]]
    assert scores.numpy().tolist() == [[0], [0], [0]]


def test_beam_search() -> None:
    labels, chances = tf.nn.ctc_beam_search_decoder(2 * _LOGITS, [5, 4, 3], 3, 3)
    assert _parts(labels[0]) == [[[0, 0], [0, 1], [1, 0], [2, 0]], [0, 1, 0, 2], [3, 2]]
    assert labels[2].values.numpy().tolist() == [2, 0, 2, 0, 1, 2]
    # A narrow beam loses paths: its chances are a little below those of a wide one.
    np.testing.assert_allclose(chances.numpy()[0], [-1.2308123, -1.6084869, -2.7019706], rtol=1e-6)
    _, wide = tf.nn.ctc_beam_search_decoder(2 * _LOGITS, [5, 4, 3])
    np.testing.assert_allclose(wide.numpy()[:, 0], [-1.2300270, -0.8979807, -0.7590884], rtol=1e-6)


def test_a_wide_beam_finds_the_chance_of_every_label() -> None:
    blank_last = _LOGITS[:, :1].astype(np.float64)
    (best,), chances = tf.nn.ctc_beam_search_decoder(blank_last, [5], 10000, 1)
    label = best.values.numpy().tolist()
    exact = _by_alignments(blank_last[:, 0], label, blank=3)
    np.testing.assert_allclose(-chances.numpy()[0, 0], exact, rtol=1e-9)


def test_decoders_refuse() -> None:
    refused = tf.errors.InvalidArgumentError
    with pytest.raises(refused, match="have 1"):
        tf.nn.ctc_beam_search_decoder(_LOGITS, [0, 1, 3], 5, 2)
    with pytest.raises(refused, match="top_paths"):
        tf.nn.ctc_beam_search_decoder(_LOGITS, [5, 4, 3], 2, 4)
    with pytest.raises(refused, match="float32 or float64"):
        tf.nn.ctc_greedy_decoder(_LOGITS.astype(np.float16), [5, 4, 3])
    with pytest.raises(refused, match="blank_index"):
        tf.nn.ctc_greedy_decoder(_LOGITS, [5, 4, 3], blank_index=4)
    with pytest.raises(tf.errors.FailedPreconditionError, match="sequence_length"):
        tf.nn.ctc_greedy_decoder(_LOGITS, [6, 0, 0])
