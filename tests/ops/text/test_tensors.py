"""Functions of tensors on strings: what TensorFlow gives."""

from __future__ import annotations

import gtape as tf
from tests.ops.text.told import Given, Refused, gives, refuses

_GIVEN: Given = [
    (lambda: tf.constant("a") + "b", b"ab"),
    (lambda: tf.constant(["a", "b"]) + tf.constant("c"), [b"ac", b"bc"]),
    (lambda: "x" + tf.constant(["a"]), [b"xa"]),
    (lambda: tf.add("a", "b"), b"ab"),
    (lambda: tf.equal("a", ["a", "b"]), [True, False]),
    (lambda: tf.unique(["b", "a", "b"]).y, [b"b", b"a"]),
    (lambda: tf.reverse(["a", "b"], [0]), [b"b", b"a"]),
    (lambda: tf.tile(["a"], [2]), [b"a", b"a"]),
    (lambda: tf.boolean_mask(["a", "b"], [True, False]), [b"a"]),
    (lambda: tf.squeeze([["a"]]), b"a"),
    (lambda: tf.transpose([["a", "b"]]), [[b"a"], [b"b"]]),
    (lambda: tf.where(tf.constant("") != ["a", ""]), [[0]]),
    (lambda: tf.size(["a"]), 1),
    (lambda: tf.cast("a", tf.string), b"a"),
    (lambda: tf.constant("a") == "a", True),
    (lambda: tf.concat([["a"], ["b"]], 0), [b"a", b"b"]),
    (lambda: tf.zeros([2], tf.string), [b"", b""]),
    (lambda: tf.gather_nd(["a", "b"], [[1]]), [b"b"]),
    (lambda: tf.scatter_nd([[1]], ["a"], [2]), [b"", b"a"]),
    (lambda: tf.broadcast_to("a", [2]), [b"a", b"a"]),
    (lambda: tf.slice(["a", "b"], [1], [1]), [b"b"]),
    (lambda: tf.strided_slice(["a", "b"], [1], [2]), [b"b"]),
    (lambda: tf.repeat(["a"], 2), [b"a", b"a"]),
    (lambda: tf.one_hot([0], 2, "a", "b"), [[b"a", b"b"]]),
    (lambda: tf.identity("a"), b"a"),
    (lambda: tf.roll(["a", "b"], 1, 0), [b"b", b"a"]),
    (lambda: tf.math.count_nonzero(["a", ""]), 1),
    (lambda: tf.sequence_mask([1]), [[True]]),
    (lambda: tf.unstack(["a", "b"]), [b"a", b"b"]),
    (lambda: tf.dynamic_partition(["a", "b"], [0, 1], 2), [[b"a"], [b"b"]]),
    (lambda: tf.constant(["a"], shape=[2, 2]), [[b"a", b"a"], [b"a", b"a"]]),
    (lambda: tf.constant("a", shape=[2]), [b"a", b"a"]),
    (lambda: tf.io.decode_raw("ab", tf.uint8), [97, 98]),
    (lambda: tf.constant([b"a", "b"]), [b"a", b"b"]),
    (lambda: tf.reshape(["a", "b"], [2, 1]), [[b"a"], [b"b"]]),
    (
        lambda: tf.cond(tf.constant("") == "", lambda: tf.constant("x"), lambda: tf.constant("y")),
        b"x",
    ),
]

_REFUSED: Refused = [
    (lambda: tf.constant("a") < tf.constant("b"), tf.errors.InvalidArgumentError),
    (lambda: tf.reduce_sum(["a"]), tf.errors.InvalidArgumentError),
    (lambda: tf.sort(["b", "a"]), tf.errors.InvalidArgumentError),
    (lambda: tf.ones([2], tf.string), TypeError),
    (lambda: tf.add_n(["a", "b"]), tf.errors.InvalidArgumentError),
    (lambda: tf.argsort(["b", "a"]), tf.errors.InvalidArgumentError),
    (lambda: tf.math.maximum("a", "b"), tf.errors.InvalidArgumentError),
    (lambda: tf.constant("a") * 2, tf.errors.InvalidArgumentError),
    (lambda: tf.convert_to_tensor("a", dtype=tf.int32), TypeError),
    (lambda: tf.constant(1, tf.string), TypeError),
    (lambda: tf.constant(["a", 1]), ValueError),
    (lambda: tf.cast("1", tf.int32), tf.errors.InvalidArgumentError),
]

test_what_tensorflow_gives = gives(_GIVEN)
test_what_is_refused = refuses(_REFUSED)
