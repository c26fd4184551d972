"""The namespace gtape.nn: every name resolves, absent ones say what to use."""

from __future__ import annotations

import pytest

import gtape as tf
from gtape import nn


@pytest.mark.parametrize("name", sorted(nn._NAMES))
def test_every_name_is_a_documented_function(name):
    function = getattr(nn, name)
    assert callable(function) and function.__doc__


def test_absent_names_say_what_to_use():
    with pytest.raises(AttributeError, match="softmax_cross_entropy_with_logits"):
        tf.nn.sampled_softmax_loss
    with pytest.raises(AttributeError, match="did you mean relu"):
        tf.nn.rellu
    assert "conv2d" in dir(tf.nn)
