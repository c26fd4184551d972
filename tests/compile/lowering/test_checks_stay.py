"""What an op refuses eagerly a traced function refuses too, though nobody reads the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gtape as tf
from gtape import testing
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import Op
from gtape.ops import every_module

pytestmark = pytest.mark.native
every_module()

#: Parts of derivatives: the op that they belong to has refused the same indices before.
_OF_DERIVATIVES = {"cleared_", "gather_last_", "put_last_"}


@pytest.fixture(params=["native", "NumPy"], autouse=True)
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("GTAPE_NATIVE", "1" if request.param == "native" else "0")
    return request.param


def _refused() -> dict[str, tuple[Op, Any, list[Any]]]:
    """By the name of every op that refuses some integers: it, a case of it, and such inputs."""
    found: dict[str, tuple[Op, Any, list[Any]]] = {}
    for op, case in testing.declared():
        drawn = testing.draw(case, case.dtypes[0], seed=1)
        for at, x in enumerate(map(np.asarray, drawn)):
            if x.dtype not in (np.int32, np.int64) or op.name in found:
                continue
            for bad in (-9, 10**6):
                inputs = [convert(np.full_like(x, bad) if i == at else a)
                          for i, a in enumerate(drawn)]
                try:
                    testing.call(op, inputs, case)
                except InvalidArgumentError:
                    found[op.name] = (op, case, inputs)
                    break
                except (IndexError, ValueError):  # where indices are gtape's own
                    break
    return found


_REFUSED = _refused()


def test_ops_that_refuse_integers_are_known() -> None:
    assert {name for name, (op, _, _) in _REFUSED.items() if not op.refuses} == _OF_DERIVATIVES


@pytest.mark.parametrize("name", sorted(set(_REFUSED) - _OF_DERIVATIVES))
def test_an_unused_result_is_refused(name: str) -> None:
    op, case, inputs = _REFUSED[name]

    @tf.function
    def f(*tensors: Any) -> Any:
        testing.call(op, tensors, case)
        return tf.constant(1.0)

    with pytest.raises(InvalidArgumentError):
        f(*inputs)


X = tf.constant(np.arange(12.0, dtype="f").reshape(3, 4))
_FUNCTIONS = {
    "gather": lambda x, at: tf.gather(x, at, axis=1),
    "gather first": lambda x, at: tf.gather(x, at),
    "gather batched": lambda x, at: tf.gather(x, tf.stack([at] * 3), axis=1, batch_dims=1),
    "embedding": lambda x, at: tf.nn.embedding_lookup(x, at),
    "gather_nd": lambda x, at: tf.gather_nd(x, at[:, None]),
    "scatter_nd": lambda x, at: tf.scatter_nd(at[:, None], x[:2], [5, 4]),
    "tensor_scatter_nd_add": lambda x, at: tf.tensor_scatter_nd_add(x, at[:, None], x[:2]),
    "labels": lambda x, at: tf.nn.sparse_softmax_cross_entropy_with_logits(at, x[:2]),
    "segments": lambda x, at: tf.math.unsorted_segment_sum(x[:2], at, 3),
    "x[i]": lambda x, at: x[at[1]],
    "in a branch": lambda x, at: tf.cond(x[0, 0] < 1.0, lambda: tf.gather(x, at), lambda: x[:2]),
    "in a loop": lambda x, at: tf.while_loop(lambda i, y: i < 2, lambda i, y: (
        i + 1, y + tf.gather(x, at)), [0, x[:2]])[1],
}
#: Negative numbers of segments are dropped, and those of rows are counted from the end.
_WRONG = {"segments": [0, 3], "x[i]": [0, 7]}


@pytest.mark.parametrize("name", _FUNCTIONS)
@pytest.mark.parametrize("result", ["gradient", "nothing", "shape"])
def test_of_a_result_that_nobody_reads(name: str, result: str) -> None:
    def gives(x: Any, at: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = _FUNCTIONS[name](x, at)
        if result == "gradient":
            return tf.convert_to_tensor(tape.gradient(y, x))
        return tf.constant(0.0) if result == "nothing" else tf.shape(y)

    wrong = tf.constant(_WRONG.get(name, [0, -3]))
    with pytest.raises(InvalidArgumentError):
        gives(X, wrong)
    with pytest.raises(InvalidArgumentError):
        tf.function(gives)(X, wrong)


def test_gradients_do_not_use_indices_before_they_are_refused() -> None:
    """The table is ready late, in a kernel that waits for a step in Python; complex numbers are
    gathered by NumPy, and so are the rows of the second derivative, which needs no table."""
    def f(x: Any, w: Any, at: Any) -> Any:
        late = (x * 2.0) * tf.math.real(tf.exp(tf.complex(x, x)))
        table = tf.complex(late, late)
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as inner:
                inner.watch(table)
                y = tf.reduce_sum(tf.math.real(tf.gather(table, at) * w))
            rows = tf.convert_to_tensor(inner.gradient(y, table))
            total = tf.reduce_sum(tf.math.real(rows) * x)
        return outer.gradient(total, w), late

    w = tf.complex(X[:2], X[:2])
    for call in (f, tf.function(f)):
        found = call(X, w, tf.constant([2, 0]))[0].numpy()
        assert found.tolist() == X.numpy()[[2, 0]].tolist()
        with pytest.raises(InvalidArgumentError, match="gather: indices must lie in"):
            call(X, w, tf.constant([0, 3]))


@pytest.mark.parametrize("op", [tf.math.floordiv, tf.math.floormod, tf.truncatediv, tf.truncatemod])
def test_division_of_integers_by_zero(op: Any) -> None:
    def f(x: Any) -> Any:
        op(tf.constant([1, 2]), x)
        return x + 1

    for call in (f, tf.function(f)):
        with pytest.raises(InvalidArgumentError, match="division by zero"):
            call(tf.constant([1, 0]))
        assert call(tf.constant([1, 3])).numpy().tolist() == [2, 4]


def test_an_initial_value_needs_no_check_of_an_argument() -> None:
    held: list[Any] = []

    @tf.function
    def f(x: Any, at: Any) -> Any:
        tf.gather(x, at)
        if not held:
            held.append(tf.Variable(tf.constant([1.0, 2.0]) * 2.0))
        return held[0] + 1.0

    assert f(X, tf.constant([0, 1])).numpy().tolist() == [3.0, 5.0]
