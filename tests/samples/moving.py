"""Samples of what moves, picks and packs elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import gtape as tf
from tests.samples.sample import COMPLEX, WIDE, Sample, of, sample


def samples() -> Iterator[Sample]:
    yield from _shapes()
    yield from _packing()
    yield from _picking()
    yield from _writing()
    yield from _diagonals()


def _shapes() -> Iterator[Sample]:
    for shape, to in (((2, 6), [3, -1]), ((0, 6), [0, -1, 3]), ((1,), []), ((), [1, 1])):
        yield sample("reshape", of(*shape), shape=to,
                     reference=lambda x, shape: x.reshape([2 if n == -1 and not x.size else n
                                                           for n in shape]))
    for axis in (0, 1, -1):
        yield sample("expand_dims", of(2, 3), axis=axis, reference=np.expand_dims)
    yield sample("squeeze", of(1, 3, 1), reference=np.squeeze)
    yield sample("squeeze", of(1, 3, 1), axis=[-1], reference=lambda x, axis: x[..., 0])
    for perm in (None, [2, 0, 1], [-1, 0, 1]):
        yield sample("transpose", of(2, 3, 5), perm=perm, dtypes=(*WIDE, *COMPLEX),
                     reference=lambda x, perm: np.transpose(x, perm))
    yield sample("linalg.matrix_transpose", of(2, 3, 5),
                 reference=lambda x: np.swapaxes(x, -1, -2))
    yield sample("linalg.adjoint", of(2, 3, 5), dtypes=COMPLEX,
                 reference=lambda x: np.conj(np.swapaxes(x, -1, -2)))
    yield sample("broadcast_to", of(3, 1), shape=[2, 3, 5], reference=np.broadcast_to)
    for multiples in ([2, 3], [0, 1]):
        yield sample("tile", of(2, 3), multiples=multiples,
                     reference=lambda x, multiples: np.tile(x, multiples))
    for repeats, axis in ((3, 0), ([1, 0, 2], -1), (2, None)):
        yield sample("repeat", of(2, 3), repeats=repeats, axis=axis, reference=np.repeat)
    yield sample("reverse", of(2, 3, 5), axis=[0, -1], reference=np.flip)
    yield sample("roll", of(3, 5), shift=[1, -2], axis=[0, 1], reference=np.roll)
    yield sample("reverse_sequence", of(3, 4), seq_lengths=[2, 4, 1], seq_axis=1, batch_axis=0,
                 reference=_reversed)
    yield sample("pad", of(2, 3), paddings=[[1, 0], [0, 2]], constant_values=2.0,
                 reference=lambda x, paddings, constant_values: np.pad(
                     x, paddings, constant_values=constant_values))
    for mode in ("REFLECT", "SYMMETRIC"):
        yield sample("pad", of(2, 4), paddings=[[1, 0], [2, 1]], mode=mode,
                     reference=lambda x, paddings, mode: np.pad(x, paddings, mode.lower()))
    yield sample("identity", of(2, 3), reference=lambda x: x)
    yield sample("identity_n", of(2, 3), of(2), function=lambda *x: tf.identity_n(x),
                 reference=lambda *x: x)
    yield sample("ensure_shape", of(2, 3), shape=[None, 3], reference=lambda x, shape: x)
    yield sample("fill", of(), function=lambda x: tf.fill([2, 3], x),
                 reference=lambda x: np.full((2, 3), x))
    yield sample("linspace", of(2), of(2), num=5, dtypes=WIDE,
                 reference=lambda a, b, num: np.linspace(a, b, num))


def _reversed(x: Any, seq_lengths: Any, seq_axis: int, batch_axis: int) -> Any:
    made = x.copy()
    for row, n in zip(made, seq_lengths):
        row[:n] = row[:n][::-1].copy()
    return made


def _packing() -> Iterator[Sample]:
    for axis in (0, 1, -1):
        yield sample("stack", of(2, 3), of(2, 3), axis=axis,
                     function=lambda *x, axis: tf.stack(x, axis),
                     reference=lambda *x, axis: np.stack(x, axis))
        yield sample("unstack", of(2, 3), axis=axis % 2,
                     reference=lambda x, axis: [np.take(x, i, axis) for i in range(x.shape[axis])])
    for axis in (0, -2):
        yield sample("concat", of(2, 3), of(0, 3), of(1, 3), axis=axis,
                     function=lambda *x, axis: tf.concat(x, axis),
                     reference=lambda *x, axis: np.concatenate(x, axis))
    yield sample("parallel_stack", of(2, 3), of(2, 3), function=lambda *x: tf.parallel_stack(x),
                 reference=lambda *x: np.stack(x))
    yield sample("split", of(4, 3), num_or_size_splits=2,
                 reference=lambda x, num_or_size_splits: np.split(x, 2))
    yield sample("split", of(3, 5), num_or_size_splits=[2, -1, 0], axis=1,
                 reference=lambda x, num_or_size_splits, axis: (x[:, :2], x[:, 2:], x[:, 5:]))
    yield sample("meshgrid", of(2), of(3), reference=np.meshgrid)
    yield sample("dynamic_partition", of(4, 2), np.array([1, 0, 1, 1]), num_partitions=3,
                 reference=lambda x, p, num_partitions: [x[p == i] for i in range(3)])
    yield sample("dynamic_stitch", of(2, 3), of(1, 3), reference=lambda a, b: np.stack(
        [a[1], b[0], a[0]]), function=lambda a, b: tf.dynamic_stitch([[2, 0], [1]], [a, b]))
    yield sample("space_to_batch", of(1, 4, 4, 1), block_shape=[2, 2], paddings=[[0, 0], [0, 0]])
    yield sample("batch_to_space", of(4, 2, 2, 1), block_shape=[2, 2], crops=[[0, 0], [1, 0]])
    yield sample("nn.space_to_depth", of(1, 4, 4, 2), block_size=2)
    yield sample("nn.depth_to_space", of(1, 2, 2, 8), block_size=2)


def _picking() -> Iterator[Sample]:
    rows = np.array([[2, 0], [1, 2]])
    for axis, at in ((0, rows), (1, np.array([3, 0, 3])), (-1, np.array(2)),
                     (0, np.zeros((0,), int))):
        yield sample("gather", of(3, 4), at, axis=axis,
                     reference=lambda x, i, axis: np.take(x, i, axis))
    yield sample("gather", of(2, 3), np.array([[1, 0], [2, 2]]), batch_dims=1,
                 reference=lambda x, i, batch_dims: np.take_along_axis(x, i, 1))
    yield sample("gather_nd", of(3, 4), np.array([[2, 1], [0, 3]]),
                 reference=lambda x, i: x[i[:, 0], i[:, 1]])
    yield sample("nn.embedding_lookup", of(3, 4), rows, reference=lambda x, i: x[i])
    yield sample("boolean_mask", of(3, 4), np.array([True, False, True]),
                 reference=lambda x, m: x[m])
    yield sample("slice", of(3, 4), begin=[1, 0], size=[2, -1],
                 reference=lambda x, begin, size: x[1:])
    yield sample("strided_slice", of(3, 7), begin=[2, 6], end=[0, 0], strides=[-1, -2],
                 reference=lambda x, begin, end, strides: x[2:0:-1, 6:0:-2])
    yield sample("getitem", of(3, 4, 5), function=lambda x: x[..., 1:, tf.newaxis, ::-2][1],
                 reference=lambda x: x[..., 1:, None, ::-2][1])


def _writing() -> Iterator[Sample]:
    at = np.array([[2], [0], [2]])
    for name, ufunc in (("add", np.add), ("sub", np.subtract), ("max", np.maximum),
                        ("min", np.minimum)):
        def reference(x: Any, i: Any, u: Any, ufunc: Any = ufunc) -> Any:
            made = x.copy()
            ufunc.at(made, i[:, 0], u)
            return made

        yield sample(f"tensor_scatter_nd_{name}", of(4, 2), at, of(3, 2), reference=reference)
    yield sample("tensor_scatter_nd_update", of(4, 2), np.array([[2], [0]]), of(2, 2),
                 reference=_updated)

    def scattered(i: Any, u: Any, shape: Any) -> Any:
        made = np.zeros(shape)
        np.add.at(made, i[:, 0], u)
        return made

    yield sample("scatter_nd", at, of(3, 2), shape=[4, 2], reference=scattered)


def _updated(x: Any, i: Any, u: Any) -> Any:
    made = x.copy()
    made[i[:, 0]] = u
    return made


def _diagonals() -> Iterator[Sample]:
    yield sample("linalg.diag", of(2, 3), reference=lambda x: x[..., None] * np.eye(3))
    yield sample("linalg.diag", of(3), k=1, reference=lambda x, k: np.diag(x, k))
    yield sample("linalg.diag_part", of(2, 3, 4),
                 reference=lambda x: np.diagonal(x, axis1=-2, axis2=-1))
    yield sample("linalg.diag_part", of(3, 4), k=(-1, 1), padding_value=7.0)
    yield sample("linalg.set_diag", of(3, 4), of(3), reference=_with_diagonal)
    yield sample("linalg.band_part", of(3, 4), num_lower=1, num_upper=0,
                 reference=lambda x, num_lower, num_upper: np.triu(np.tril(x), -1))
    yield sample("linalg.tensor_diag", of(2), reference=np.diag)
    yield sample("linalg.tensor_diag_part", of(3, 3), reference=np.diag)
    yield sample("linalg.trace", of(2, 3, 3), reference=lambda x: np.trace(x, axis1=-2, axis2=-1))


def _with_diagonal(x: Any, d: Any) -> Any:
    made = x.copy()
    np.fill_diagonal(made, d)
    return made
