"""tf.inspect.cuda shows the kernels that follow from a declaration."""

from __future__ import annotations

import pytest

import gtape as tf


def test_the_forward_kernel_computes_the_formula() -> None:
    text = tf.inspect.cuda(tf.tanh)
    assert "__global__" in text
    assert "tanh(x0)" in text
    assert "const float* __restrict__ in0" in text


def test_the_backward_kernel_reads_what_the_rule_reads() -> None:
    text = tf.inspect.cuda(tf.tanh, wrt="x")
    assert "in1" in text and "in2" not in text      # g and y, not x
    assert "tanh(" not in text.split("{", 1)[1]


def test_several_cotangents_are_outputs_of_one_kernel() -> None:
    text = tf.inspect.cuda(tf.multiply, wrt=["a", "b"])
    assert text.count("__global__") == 1
    assert "out0" in text and "out1" in text


def test_two_byte_floats_compute_in_float() -> None:
    text = tf.inspect.cuda(tf.nn.relu, dtype="float16")
    assert "half" in text and "float x0" in text


def test_what_cannot_be_shown_says_why() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="elementwise"):
        tf.inspect.cuda(tf.matmul)
    with pytest.raises(tf.errors.InvalidArgumentError, match="has the inputs x"):
        tf.inspect.cuda(tf.tanh, wrt="z")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no gradient flows"):
        tf.inspect.cuda(tf.floor, wrt="x")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no kernel for complex64"):
        tf.inspect.cuda(tf.exp, dtype="complex64")
