"""The namespace gtape.nn: every name resolves, absent ones say what to use."""

from __future__ import annotations

import pytest

import gtape as tf
from gtape import nn


@pytest.mark.parametrize("name", sorted({*nn.__all__} - {"experimental"}))
def test_every_name_is_a_documented_function(name):
    function = getattr(nn, name)
    assert callable(function) and function.__doc__


def test_absent_names_say_what_to_use():
    with pytest.raises(AttributeError, match="softmax_cross_entropy_with_logits"):
        tf.nn.sampled_softmax_loss
    with pytest.raises(AttributeError, match="did you mean relu"):
        tf.nn.rellu
    assert "conv2d" in dir(tf.nn)


def test_a_list_of_tables_is_one_table():
    first, second = tf.Variable([[1.0], [2.0]]), tf.Variable([[3.0], [4.0]])
    with tf.GradientTape() as tape:
        rows = tf.nn.embedding_lookup([first, second], [3, 0])
    assert rows.numpy().tolist() == [[4], [1]]
    grads = tape.gradient(rows, [first, second])
    assert [g.numpy().tolist() for g in grads] == [[[1], [0]], [[0], [1]]]
