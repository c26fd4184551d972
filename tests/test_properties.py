"""Random shapes, broadcasts, indices, reductions and permutations, against NumPy; adjoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gtape as tf

_SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4)
_SOME = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)
_WITH_EMPTY = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)


def _array(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape)


def _assert_adjoint(f: Callable[[Any], Any], x: np.ndarray) -> None:
    """For linear f: ⟨f x, w⟩ = ⟨x, vjp w⟩ with random w."""
    source = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(source)
        y = f(source)
    w = _array(tuple(y.shape), 7)
    g = tape.gradient(y, source, output_gradients=tf.constant(w))
    left = float(np.sum(np.asarray(y) * w))
    if g is None:
        assert left == 0.0
        return
    assert g.shape == x.shape
    np.testing.assert_allclose(np.sum(np.asarray(g) * x), left, rtol=1e-12, atol=1e-12)


def _assert_same(f: Callable[[Any], Any], reference: Callable[[Any], Any], x: np.ndarray) -> None:
    got, wanted = f(tf.constant(x)), np.asarray(reference(x))
    assert tuple(got.shape) == wanted.shape
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12, atol=1e-12)


# -------------------------------------------------------------------------- broadcasting


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4, min_side=0))
def test_binary_ops_broadcast_as_numpy_does(shapes: Any) -> None:
    a, b = (_array(s, i) for i, s in enumerate(shapes.input_shapes))
    x, y = tf.constant(a), tf.constant(b)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = x * y + x / y
    np.testing.assert_allclose(np.asarray(z), a * b + a / b)
    assert tuple(z.shape) == shapes.result_shape
    dx, dy = tape.gradient(z, [x, y])
    np.testing.assert_allclose(np.asarray(dx), _summed(b + 1 / b + 0 * a, a.shape))
    np.testing.assert_allclose(np.asarray(dy), _summed(a - a / b ** 2, b.shape))


def _summed(full: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """`full` summed over what was broadcast."""
    extra = full.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        i + extra for i, n in enumerate(shape) if n == 1 and full.shape[i + extra] != 1)
    return full.sum(axis=axes, keepdims=True).reshape(shape)


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3))
def test_where_broadcasts_three_ways(shapes: Any) -> None:
    c, a, b = (_array(s, i) for i, s in enumerate(shapes.input_shapes))
    got = tf.where(tf.constant(c > 1.2), tf.constant(a), tf.constant(b))
    np.testing.assert_array_equal(np.asarray(got), np.where(c > 1.2, a, b))


@given(_SHAPES, st.integers(0, 3), st.data())
def test_broadcast_to_and_its_adjoint(shape: tuple[int, ...], lead: int, data: Any) -> None:
    source = tuple(1 if data.draw(st.booleans()) else n for n in shape)
    target = (2,) * lead + shape
    f = lambda x: tf.broadcast_to(x, target)
    _assert_same(f, lambda x: np.broadcast_to(x, target), _array(source))
    _assert_adjoint(f, _array(source))


# -------------------------------------------------------------------------- moving


@given(_SHAPES, st.data())
def test_transpose(shape: tuple[int, ...], data: Any) -> None:
    perm = data.draw(st.permutations(range(len(shape))))
    f = lambda x: tf.transpose(x, perm)
    _assert_same(f, lambda x: np.transpose(x, perm), _array(shape))
    _assert_adjoint(f, _array(shape))


@given(_SHAPES, st.data())
def test_reshape_with_one_free_length(shape: tuple[int, ...], data: Any) -> None:
    size = math.prod(shape)
    rows = data.draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    target = data.draw(st.sampled_from([[rows, -1], [-1, rows], [-1], [1, rows, size // rows]]))
    f = lambda x: tf.reshape(x, target)
    _assert_same(f, lambda x: np.reshape(x, target), _array(shape))
    _assert_adjoint(f, _array(shape))


@given(_SOME, st.data())
def test_concat_split_stack_unstack(shape: tuple[int, ...], data: Any) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    count = data.draw(st.integers(1, 3))
    parts = [_array(shape, i) for i in range(count)]
    joined = tf.concat([tf.constant(p) for p in parts], axis)
    np.testing.assert_array_equal(np.asarray(joined), np.concatenate(parts, axis))
    for got, wanted in zip(tf.split(joined, count, axis), parts, strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)
    stacked = tf.stack([tf.constant(p) for p in parts], axis)
    np.testing.assert_array_equal(np.asarray(stacked), np.stack(parts, axis))
    for got, wanted in zip(tf.unstack(stacked, axis=axis), parts, strict=True):
        np.testing.assert_array_equal(np.asarray(got), wanted)
    _assert_adjoint(lambda x: tf.concat([x, 2.0 * x], axis), parts[0])
    _assert_adjoint(lambda x: tf.stack([x, 3.0 * x], axis), parts[0])


@given(_SOME, st.data())
def test_tile_pad_reverse_roll(shape: tuple[int, ...], data: Any) -> None:
    rank = len(shape)
    counts = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    edges = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=rank,
                               max_size=rank))
    axis = data.draw(st.integers(0, rank - 1))
    shift = data.draw(st.integers(-5, 5))
    pairs = [(lambda x: tf.tile(x, counts), lambda x: np.tile(x, counts)),
             (lambda x: tf.pad(x, edges), lambda x: np.pad(x, edges)),
             (lambda x: tf.reverse(x, [axis]), lambda x: np.flip(x, axis)),
             (lambda x: tf.roll(x, shift, axis), lambda x: np.roll(x, shift, axis))]
    for f, reference in pairs:
        _assert_same(f, reference, _array(shape))
        _assert_adjoint(f, _array(shape))


# -------------------------------------------------------------------------- indexing


@given(_WITH_EMPTY, st.data())
def test_basic_indexing(shape: tuple[int, ...], data: Any) -> None:
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=6))
    x = _array(shape)
    f = lambda t: t[index]
    _assert_same(f, lambda a: a[index], x)
    _assert_adjoint(f, x)


@given(_SOME, st.data())
def test_gather_along_an_axis(shape: tuple[int, ...], data: Any) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    indices = data.draw(hnp.arrays(np.int32, hnp.array_shapes(min_dims=0, max_dims=2, max_side=3),
                                   elements=st.integers(0, shape[axis] - 1)))
    f = lambda x: tf.gather(x, indices, axis=axis)
    _assert_same(f, lambda x: np.take(x, indices, axis=axis), _array(shape))
    g = lambda x: tf.gather(tf.identity(x), indices, axis=axis)
    _assert_adjoint(g, _array(shape))


@given(_SOME, st.data())
def test_boolean_masks(shape: tuple[int, ...], data: Any) -> None:
    mask = data.draw(hnp.arrays(np.bool_, shape))
    x = _array(shape)
    _assert_same(lambda t: tf.boolean_mask(t, mask), lambda a: a[mask], x)
    _assert_same(lambda t: t[tf.constant(mask)], lambda a: a[mask], x)
    _assert_adjoint(lambda t: tf.boolean_mask(tf.identity(t), mask), x)


@given(_SOME, st.data())
def test_scatter_nd_undoes_gather_nd(shape: tuple[int, ...], data: Any) -> None:
    depth = data.draw(st.integers(1, len(shape)))
    rows = data.draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in shape[:depth])),
                              min_size=1, max_size=5))
    indices = np.array(rows, np.int32)
    x = _array(shape)
    f = lambda t: tf.gather_nd(tf.identity(t), indices)
    _assert_same(f, lambda a: a[tuple(indices.T)], x)
    _assert_adjoint(f, x)
    updates = _array((len(rows), *shape[depth:]))
    wanted = np.zeros(shape)
    np.add.at(wanted, tuple(indices.T), updates)
    got = tf.scatter_nd(indices, tf.constant(updates), shape)
    np.testing.assert_allclose(np.asarray(got), wanted)
    _assert_adjoint(lambda u: tf.scatter_nd(indices, u, shape), updates)


# -------------------------------------------------------------------------- reductions


@given(_SHAPES, st.booleans(), st.data())
def test_reductions(shape: tuple[int, ...], keepdims: bool, data: Any) -> None:
    axes = data.draw(st.one_of(st.none(), st.lists(st.integers(0, len(shape) - 1), unique=True)
                               if shape else st.just([])))
    axis = None if axes is None else tuple(axes)
    x = _array(shape)
    for f, reference in ((tf.reduce_sum, np.sum), (tf.reduce_mean, np.mean),
                         (tf.reduce_max, np.max), (tf.reduce_min, np.min),
                         (tf.reduce_prod, np.prod), (tf.math.reduce_std, np.std)):
        _assert_same(lambda t, f=f: f(t, axis=axes, keepdims=keepdims),
                     lambda a, r=reference: r(a, axis=axis, keepdims=keepdims), x)
    _assert_adjoint(lambda t: tf.reduce_sum(t, axis=axes, keepdims=keepdims), x)
    _assert_adjoint(lambda t: tf.reduce_mean(t, axis=axes, keepdims=keepdims), x)


@given(_SOME, st.booleans(), st.booleans(), st.data())
def test_cumulative_sums(shape: tuple[int, ...], exclusive: bool, reverse: bool, data: Any) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))

    def reference(a: np.ndarray) -> np.ndarray:
        turned = np.flip(a, axis) if reverse else a
        made = np.cumsum(turned, axis) - (turned if exclusive else 0)
        return np.flip(made, axis) if reverse else made

    f = lambda x: tf.cumsum(x, axis, exclusive=exclusive, reverse=reverse)
    _assert_same(f, reference, _array(shape))
    _assert_adjoint(f, _array(shape))


@given(_SOME, st.data())
def test_sort_and_argmax(shape: tuple[int, ...], data: Any) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = np.random.default_rng(3).permutation(math.prod(shape)).reshape(shape).astype(np.float64)
    _assert_same(lambda t: tf.sort(t, axis), lambda a: np.sort(a, axis), x)
    _assert_same(lambda t: tf.argmax(t, axis), lambda a: np.argmax(a, axis), x)
    _assert_adjoint(lambda t: tf.sort(t, axis), x)


# -------------------------------------------------------------------------- products


@given(hnp.mutually_broadcastable_shapes(signature="(m,n),(n,p)->(m,p)", max_dims=2, max_side=3))
def test_matmul_batches_as_numpy_does(shapes: Any) -> None:
    a, b = (_array(s, i) for i, s in enumerate(shapes.input_shapes))
    got = tf.constant(a) @ tf.constant(b)
    np.testing.assert_allclose(np.asarray(got), a @ b)
    _assert_adjoint(lambda x: x @ tf.constant(b), a)
    _assert_adjoint(lambda x: tf.constant(a) @ x, b)


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True),
       st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True), st.data())
def test_einsum(left: list[str], right: list[str], data: Any) -> None:
    every = sorted({*left, *right})
    out = data.draw(st.lists(st.sampled_from(every), unique=True))
    text = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    length = {"a": 2, "b": 3, "c": 1, "d": 2}
    a, b = (_array(tuple(length[c] for c in axes), i) for i, axes in enumerate((left, right)))
    got = tf.einsum(text, tf.constant(a), tf.constant(b))
    np.testing.assert_allclose(np.asarray(got), np.einsum(text, a, b), rtol=1e-12)
    _assert_adjoint(lambda x: tf.einsum(text, x, tf.constant(b)), a)
    _assert_adjoint(lambda x: tf.einsum(text, tf.constant(a), x), b)


# -------------------------------------------------------------------------- the tape


@given(st.lists(st.sampled_from(["sin", "tanh", "exp", "square", "double", "sum", "mix"]),
                min_size=1, max_size=8))
def test_random_chains_have_the_derivative_of_their_differences(steps: list[str]) -> None:
    apply = {"sin": tf.sin, "tanh": tf.tanh, "exp": lambda x: tf.exp(-tf.square(x)),
             "square": lambda x: tf.square(x) * 0.5, "double": lambda x: x + x * 0.3,
             "sum": lambda x: x + tf.reduce_sum(x) * 0.1, "mix": lambda x: x * tf.reverse(x, [0])}

    def f(x: Any) -> Any:
        for step in steps:
            x = apply[step](x)
        return tf.reduce_sum(x)

    at, along = _array((3,)), _array((3,), 5)
    x = tf.constant(at)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    got = float(np.sum(tape.gradient(y, x).numpy() * along))
    step = 1e-6
    ends = [float(f(tf.constant(at + s * step * along))) for s in (1, -1)]
    assume(abs(ends[0]) < 1e3)
    np.testing.assert_allclose(got, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-5)


@given(st.recursive(st.just(0), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from("abc"), inner, max_size=3) | st.tuples(inner, inner), max_leaves=6))
def test_answers_are_packed_like_any_nest_of_sources(structure: Any) -> None:
    counter = iter(range(1000))
    values = tf.nest.map_structure(lambda _: tf.Variable(float(next(counter))), structure)
    with tf.GradientTape() as tape:
        total = tf.constant(0.0)
        for v in tf.nest.flatten(values):
            total = total + v * v
    found = tape.gradient(total, values)
    tf.nest.assert_same_structure(found, values)
    for g, v in zip(tf.nest.flatten(found), tf.nest.flatten(values), strict=True):
        assert float(g) == 2 * float(v)
