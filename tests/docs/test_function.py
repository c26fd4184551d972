"""What docs/function.md says in words: which operations are compiled, hosted, unrolled or eager."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import gtape as tf
from gtape.core.errors import EagerFunctionWarning
from gtape.devices.cpu import toolchain

pytestmark = pytest.mark.native(required=False, zones=False)

_compiled = pytest.mark.skipif(bool(toolchain.why_not()), reason=toolchain.why_not() or "compiled")
X = tf.constant([[1.0, 2.0], [3.0, 5.0]])
V = tf.Variable(X)

HOSTED = {
    "tf.cond": lambda x: tf.cond(x[0, 0] > 0, lambda: x, lambda: -x),
    "tf.while_loop": lambda x: tf.while_loop(lambda y: y[0, 0] < 9, lambda y: (y * 2,), (x,)),
    "draws by rejection": lambda x: x + tf.random.gamma([2, 2], 2.0),
    "shuffles": tf.random.shuffle,
    "linear algebra": tf.linalg.inv,
    "FFT": lambda x: tf.math.real(tf.signal.fft(tf.cast(x, tf.complex64))),
    "sorting": tf.sort,
    "complex numbers": lambda x: tf.cast(x, tf.complex64) * tf.cast(x, tf.complex64),
    "tf.print": lambda x: (tf.print(x), x)[1],
    "tf.debugging.assert_*": lambda x: (tf.debugging.assert_positive(x), x)[1],
    "tf.py_function": lambda x: tf.py_function(lambda y: y, [x], tf.TensorSpec([2, 2])),
}
COMPILED = {
    "softmax": tf.nn.softmax,
    "norms": lambda x: tf.math.l2_normalize(x, axis=1),
    "losses": lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=x, logits=x),
    "transposed products": lambda x: tf.matmul(x, x, transpose_a=True),
    "rows by index": lambda x: tf.gather(x, [1, 0, 1]),
    "convolutions": lambda x: tf.nn.conv2d(x[None, :, :, None], tf.ones([2, 2, 1, 3]), 1, "SAME"),
    "pooling": lambda x: tf.nn.max_pool2d(x[None, :, :, None], 2, 1, "SAME"),
    "tf.vectorized_map": lambda x: tf.vectorized_map(lambda r: tf.reduce_sum(tf.sin(r)), x),
    "random draws": lambda x: tf.nn.dropout(x, 0.5) + tf.random.normal([2, 2]),
    "assigning branches": lambda x: tf.cond(x[0, 0] > 0, lambda: V.assign(x + V, read_value=False),
                                            lambda: V.assign_add(x, read_value=False)),
    "Python loops": lambda x: sum((x * i for i in range(1, 4)), x),
}
EAGER = {
    "tf.unique": lambda x: tf.unique(tf.reshape(x, [4]))[0],
    "tf.boolean_mask": lambda x: tf.boolean_mask(x, x > 2),
    "tf.where": lambda x: tf.where(x > 2),
}


def _hosts(fn: Callable[..., Any], *args: Any) -> bool:
    """Whether a step of the program is Python."""
    return "host " in str(tf.function(fn).inspect(*args))


@_compiled
@pytest.mark.parametrize("name", HOSTED)
def test_hosted(name: str) -> None:
    assert _hosts(HOSTED[name], X)


@_compiled
@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name: str) -> None:
    assert not _hosts(COMPILED[name], X)


@_compiled
def test_loops_over_up_to_32_elements_are_unrolled() -> None:
    def doubled(x: Any) -> Any:
        return tf.map_fn(lambda r: r * 2.0, x)

    assert not _hosts(doubled, tf.ones([32]))
    assert _hosts(doubled, tf.ones([33]))


@_compiled
def test_cheap_values_are_computed_again_and_the_hidden_layer_is_not_stored() -> None:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(tf.nn.relu(x + 1.0)))
        return tape.gradient(y, x)

    assert "arena 0 B" in str(tf.function(slope).inspect(X))


@pytest.mark.parametrize("name", EAGER)
def test_shapes_that_depend_on_values_run_eagerly(name: str) -> None:
    with pytest.warns(EagerFunctionWarning, match=r"test_function.py:\d+"):
        tf.function(EAGER[name])(X)


def test_a_python_function_without_shapes_runs_eagerly() -> None:
    def fn(x: Any) -> Any:
        return tf.py_function(lambda y: y * 2.0, [x], tf.float32)

    with pytest.warns(EagerFunctionWarning, match="Tout"):
        assert float(tf.function(fn)(tf.constant(2.0))) == 4.0


def test_a_function_can_be_left_as_it_is() -> None:
    @tf.autograph.do_not_convert
    def inner(x: Any) -> Any:
        return 1.0 if x > 0 else 2.0

    with warnings.catch_warnings(), pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        warnings.simplefilter("error")
        tf.function(lambda x: inner(x))(tf.constant(1.0))
