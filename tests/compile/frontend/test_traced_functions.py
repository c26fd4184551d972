"""Public functions inside a trace equal the same calls outside, values and gradients.

The ops themselves are in test_every_op; these are the functions around them, which check and
arrange their arguments.
"""

import numpy as np
import pytest

import gtape as tf
from tests.compile.frontend.graph_calls import as_graph

_R = np.random.default_rng(11)
X = _R.standard_normal((3, 4)).astype("f")
P = _R.uniform(0.1, 0.9, (3, 4)).astype("f")
V = _R.uniform(0.2, 2.0, 5).astype("f")
A = (X[:, :3] @ X[:, :3].T + 3 * np.eye(3)).astype("f")
I4 = _R.standard_normal((2, 6, 6, 3)).astype("f")
N = np.array([2, 0, 1, 2], "i4")
Y = np.array([0, 3, 1], "i4")
H = np.eye(4, dtype="f")[Y]
B = X > 0
Z = (X + 1j * P).astype("c8")

CALLS = {
    # values and shapes
    "one_hot": (lambda n: tf.one_hot(n, 4), N),
    "one_hot_axis": (lambda n: tf.one_hot(n, 3, on_value=2, off_value=-1, axis=0), N),
    "shape": (lambda x: x * tf.cast(tf.shape(x)[0] + tf.size(x) + tf.rank(x), tf.float32), X),
    "zeros_like": (lambda x: tf.zeros_like(x) + tf.ones_like(x) * x, X),
    "fill": (lambda x: tf.fill([2, 3], x[0, 0]), X),
    "linspace": (lambda x: tf.linspace(x[0, 0], x[0, 1], 5), X),
    "eye": (lambda x: tf.eye(3) * x[0, 0], X),
    "range": (lambda x: tf.cast(tf.range(4), tf.float32) * x, X),
    "meshgrid": (lambda v: tf.meshgrid(v, v * 2), V),
    "ensure_shape": (lambda x: tf.ensure_shape(x, [None, 4]) * 2, X),
    "sequence_mask": (lambda n: tf.sequence_mask(n, 3, tf.float32), N),
    "unravel_index": (lambda n: tf.unravel_index(n, [2, 3]), N),
    "saturate_cast": (lambda x: tf.saturate_cast(x * 300, tf.int8), X),
    "bitcast": (lambda x: tf.bitcast(x, tf.int32), X),
    # picking and placing
    "index_scalar": (lambda x, n: x[n[1]], X, N),
    "index_sum": (lambda x, n: x[n[1]] + x[1, n[2]] + x[n[2], n[1]], X, N),
    "index_scalars": (lambda x, n: x[1, n[2]] + x[n[2], n[1]], X, N),
    "index_negative": (lambda x, n: x[n - 3], X, N),
    "index_mixed": (lambda x, n: x[n[0], 1:, None] * x[..., n[1]][:, None, None], X, N),
    "index_arrays": (lambda x, n: x[[0, 1, 2, 0], n], X, N),
    "gather": (lambda x, n: tf.gather(x, n, axis=1), X, N),
    "gather_batch": (lambda x, n: tf.gather(x, tf.stack([n, n, n]), batch_dims=1), X, N),
    "gather_nd_batch": (lambda x: tf.gather_nd(x, [[0], [3], [2]], batch_dims=1), X),
    "embedding_lookup": (lambda x, n: tf.nn.embedding_lookup(x, n, max_norm=1.0), X, N),
    "embedding_gradient": (lambda x, n: tf.nn.embedding_lookup(x, n) ** 2, X, N),
    "scatter_nd": (lambda v, n: tf.scatter_nd(n[:, None], v[:4], [6]), V, N),
    "tensor_scatter_add": (lambda v, n: tf.tensor_scatter_nd_add(v, n[:, None], v[:4]), V, N),
    "tensor_scatter_update": (
        lambda v, n: tf.tensor_scatter_nd_update(v, n[1:, None], v[:3]), V, N),
    "where": (lambda b, x: tf.where(b, x, 0.0), B, X),
    "dynamic_slice": (lambda x: tf.slice(x, [0, 1], [2, -1]), X),
    "strided_slice": (lambda x: tf.strided_slice(x, [0, 3], [3, 0], [2, -1]), X),
    "reverse_sequence": (lambda x: tf.reverse_sequence(x, [1, 2, 4], seq_axis=1), X),
    "reverse_sequence_traced": (
        lambda x, n: tf.reverse_sequence(x, n[:3], seq_axis=1, batch_axis=0), X, N),
    "repeat": (lambda x: tf.repeat(x, [1, 2, 0], axis=0), X),
    "split": (lambda x: tf.split(x, [1, 3], axis=1), X),
    "pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]], constant_values=2.0), X),
    "roll": (lambda x: tf.roll(x, 1, 0), X),
    "sort": (lambda x: tf.sort(x, direction="DESCENDING"), X),
    "argsort": (lambda x: tf.argsort(x), X),
    "top_k": (lambda x: tf.math.top_k(x, 2), X),
    "searchsorted": (lambda v: tf.searchsorted(tf.sort(v), v), V),
    "invert_permutation": (lambda n: tf.math.invert_permutation(n[:3]), N),
    "in_top_k": (lambda x, y: tf.math.in_top_k(y, x, 2), X, Y),
    "bincount": (lambda n: tf.math.bincount(n, minlength=5, maxlength=5), N),
    "bincount_weights": (
        lambda n, v: tf.math.bincount(n, v[:4], minlength=4, maxlength=4), N, V),
    "histogram": (lambda x: tf.histogram_fixed_width(x, [-1.0, 1.0], 4), X),
    "confusion_matrix": (lambda n: tf.math.confusion_matrix(n, n, num_classes=4), N),
    "unsorted_segment_mean": (
        lambda v, n: tf.math.unsorted_segment_mean(v[:4], n, num_segments=4), V, N),
    "unsorted_segment_max": (
        lambda v, n: tf.math.unsorted_segment_max(v[:4], n, num_segments=3), V, N),
    # reductions and norms
    "moments": (lambda x: tf.nn.moments(x, 0), X),
    "weighted_moments": (lambda x, p: tf.nn.weighted_moments(x, 0, p), X, P),
    "clip_by_global_norm": (lambda x, v: tf.clip_by_global_norm([x, v, None], 1.0)[0][:2], X, V),
    "clip_by_norm": (lambda x: tf.clip_by_norm(x, 1.0, axes=1), X),
    "global_norm": (lambda x, v: tf.linalg.global_norm([x, v]), X, V),
    "norm": (lambda x: tf.norm(x, ord=1, axis=1), X),
    "reduce_std": (lambda x: tf.math.reduce_std(x, 0), X),
    "count_nonzero": (lambda b: tf.math.count_nonzero(b), B),
    "zero_fraction": (lambda x: tf.nn.zero_fraction(tf.nn.relu(x)), X),
    "cumsum": (lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), X),
    "logsumexp": (lambda x: tf.reduce_logsumexp(x, 1, keepdims=True), X),
    "cumulative_logsumexp": (lambda x: tf.math.cumulative_logsumexp(x, 1), X),
    "is_increasing": (lambda v: tf.math.is_strictly_increasing(tf.sort(v)), V),
    "add_n": (lambda x: tf.add_n([x, x * 2]), X),
    "polyval": (lambda x: tf.math.polyval([1.0, 2.0, 3.0], x), X),
    # matrices
    "einsum": (lambda x: tf.einsum("ij,kj->ik", x, x), X),
    "tensordot": (lambda x: tf.tensordot(x, x, [[1], [1]]), X),
    "matvec": (lambda a, v: tf.linalg.matvec(a, v[:3]), A, V),
    "inv": (lambda a: tf.linalg.inv(a), A),
    "solve": (lambda a: tf.linalg.solve(a, a * 2), A),
    "cholesky": (lambda a: tf.linalg.cholesky(a), A),
    "logdet": (lambda a: tf.linalg.logdet(a), A),
    "det": (lambda a: tf.linalg.det(a), A),
    "eigh": (lambda a: tf.linalg.eigh(a)[0], A),
    "qr": (lambda a: tf.linalg.qr(a), A),
    "svd": (lambda a: tf.linalg.svd(a, compute_uv=False), A),
    "pinv": (lambda x: tf.linalg.pinv(x), X),
    "lstsq": (lambda a: tf.linalg.lstsq(a, a), A),
    "expm": (lambda a: tf.linalg.expm(a * 0.1), A),
    "band_part": (lambda a: tf.linalg.band_part(a, 1, 0), A),
    "diag": (lambda v: tf.linalg.diag(v), V),
    "set_diag": (lambda a, v: tf.linalg.set_diag(a, v[:3]), A, V),
    "trace": (lambda a: tf.linalg.trace(a), A),
    "triangular_solve": (lambda a: tf.linalg.triangular_solve(tf.linalg.cholesky(a), a), A),
    "normalize": (lambda x: tf.linalg.normalize(x, axis=1)[0], X),
    "cross": (lambda a: tf.linalg.cross(a, a[::-1]), A),
    # networks
    "softmax_ce": (lambda x, h: tf.nn.softmax_cross_entropy_with_logits(h, x), X, H),
    "sparse_ce": (lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x), X, Y),
    "sigmoid_ce": (lambda x, h: tf.nn.sigmoid_cross_entropy_with_logits(h, x), X, H),
    "weighted_ce": (lambda x, h: tf.nn.weighted_cross_entropy_with_logits(h, x, 2.0), X, H),
    "batch_normalization": (
        lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, 0), 0.1, 2.0, 1e-3), X),
    "bias_add": (lambda x: tf.nn.bias_add(x, x[0]), X),
    "conv2d": (lambda i: tf.nn.conv2d(i, i[0, :2, :2, :, None], 1, "SAME"), I4),
    "max_pool": (lambda i: tf.nn.max_pool2d(i, 2, 2, "VALID"), I4),
    "avg_pool": (lambda i: tf.nn.avg_pool2d(i, 3, 2, "SAME"), I4),
    "depth_to_space": (lambda i: tf.nn.space_to_depth(i, 2), I4),
    "lrn": (lambda i: tf.nn.local_response_normalization(i), I4),
    "l2_normalize": (lambda x: tf.nn.l2_normalize(x, 1), X),
    "gelu": (lambda x: tf.nn.gelu(x, approximate=True), X),
    "crelu": (lambda x: tf.nn.crelu(x), X),
    # images, signals, complex numbers
    "resize": (lambda i: tf.image.resize(i, [4, 9]), I4),
    "flip": (lambda i: tf.image.flip_left_right(i), I4),
    "rot90": (lambda i: tf.image.rot90(i), I4),
    "adjust_brightness": (lambda i: tf.image.adjust_brightness(i, 0.1), I4),
    "per_image_standardization": (lambda i: tf.image.per_image_standardization(i), I4),
    "rgb_to_grayscale": (lambda i: tf.image.rgb_to_grayscale(i), I4),
    "total_variation": (lambda i: tf.image.total_variation(i), I4),
    "psnr": (lambda i: tf.image.psnr(i, i * 0.9, 1.0), I4),
    "extract_patches": (
        lambda i: tf.image.extract_patches(i, [1, 2, 2, 1], [1, 2, 2, 1], [1] * 4, "VALID"), I4),
    "rfft": (lambda x: tf.abs(tf.signal.rfft(x)), X),
    "stft": (lambda v: tf.abs(tf.signal.stft(tf.tile(v, [8]), 8, 4)), V),
    "dct": (lambda x: tf.signal.dct(x), X),
    "frame": (lambda v: tf.signal.frame(v, 3, 1), V),
    "complex": (lambda x: tf.math.real(tf.complex(x, x) * tf.complex(x, -x)), X),
    "conj": (lambda z: tf.math.imag(tf.math.conj(z)) + tf.abs(z) + tf.math.angle(z), Z),
    # Python's own
    "operators": (lambda x: abs(-x) ** 2 / 3 - x // 2 + x % 2 + (2 - x) * (1 / (x + 9)), X),
    "comparisons": (lambda x: (x > 0) & (x <= 1) | ~(x == 2), X),
    "iteration": (lambda x: [row * i for i, row in enumerate(x)], X),
    "unpacking": (lambda x: tf.add_n(list(x)), X),
    "custom_gradient": (lambda x: _doubled(x), X),
    "recompute_grad": (lambda x: tf.recompute_grad(lambda q: tf.sin(q) * q)(x), X),
    "stop_gradient": (lambda x: x * tf.stop_gradient(x), X),
    "map_fn": (lambda x: tf.map_fn(lambda r: tf.reduce_sum(r * r), x), X),
    "vectorized_map": (lambda x: tf.vectorized_map(lambda r: r / tf.reduce_max(r), x), P),
    "scan": (lambda x: tf.scan(lambda a, r: a * 0.5 + r, x), X),
    "foldr": (lambda x: tf.foldr(lambda a, r: a * 0.5 + r, x), X),
    "clip_by_value": (lambda x: tf.clip_by_value(x, -0.5, tf.constant(0.5)), X),
    "check_numerics": (lambda x: tf.debugging.check_numerics(x, "x"), X),
    # losses
    **{f"loss_{n}": (lambda p, h, n=n: getattr(tf.keras.losses, n)()(h, p), P, H) for n in (
        "BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy",
        "CategoricalFocalCrossentropy", "CategoricalHinge", "CosineSimilarity", "Dice", "Hinge",
        "Huber", "KLDivergence", "LogCosh", "MeanAbsoluteError", "MeanAbsolutePercentageError",
        "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson", "SquaredHinge", "Tversky")},
    "loss_sparse": (lambda x, y: tf.keras.losses.SparseCategoricalCrossentropy(True)(y, x), X, Y),
    "loss_ignored": (lambda x, y: tf.keras.losses.SparseCategoricalCrossentropy(
        True, ignore_class=3)(y, x), X, Y),
    "loss_weighted": (lambda p, h: tf.keras.losses.MeanSquaredError()(
        h, p, sample_weight=p[:, 0]), P, H),
    **{f"activation_{n}": (lambda x, n=n: getattr(tf.keras.activations, n)(x), X) for n in (
        "celu", "elu", "exponential", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu",
        "hard_tanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6",
        "selu", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign",
        "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "tanh", "tanh_shrink")},
    "sparse_accuracy": (lambda x, y: tf.convert_to_tensor(
        tf.keras.metrics.sparse_categorical_accuracy(y, x)), X, Y),
}


@tf.custom_gradient
def _doubled(x):
    return x * 3, lambda g: g * 2


def _with_gradient(fn):
    def both(*args):
        at = [x for x in args if x.dtype.is_floating or x.dtype.is_complex]
        with tf.GradientTape() as tape:
            tape.watch(at)
            made = fn(*args)
            floats = [v for v in tf.nest.flatten(made) if tf.is_tensor(v) and v.dtype.is_floating]
            loss = [tf.reduce_sum(tf.sin(v)) for v in floats]
        grads = tape.gradient(loss, at) if loss and at else []
        return made, [g.to_dense() if hasattr(g, "to_dense") else g for g in grads]

    return both


@pytest.mark.parametrize("name", CALLS)
def test_the_same_in_a_trace(name):
    fn, *given = CALLS[name]
    args = [tf.constant(a) for a in given]
    eager, graph = _with_gradient(fn)(*args), as_graph(_with_gradient(fn))(*args)
    a, b = tf.nest.flatten(eager), tf.nest.flatten(graph)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert (x is None) == (y is None)
        if x is not None:
            assert np.asarray(x).dtype == np.asarray(y).dtype
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


NEEDS_VALUES = {
    "unique": (tf.unique, N),
    "boolean_mask": (tf.boolean_mask, X, B),
    "mask_index": (lambda x, b: x[b], X, B),
    "where_alone": (tf.where, B),
    "segment_sum": (tf.math.segment_sum, V[:4], np.sort(N)),
    "bincount": (tf.math.bincount, N),
    "repeat": (lambda x, n: tf.repeat(x, n[:3], axis=0), X, N),
    "dynamic_partition": (lambda v, n: tf.dynamic_partition(v[:4], n, 3), V, N),
    "sequence_mask": (tf.sequence_mask, N),
    "confusion_matrix": (lambda n: tf.math.confusion_matrix(n, n), N),
}


@pytest.mark.parametrize("name", NEEDS_VALUES)
def test_shapes_that_depend_on_values_are_not_traced(name):
    fn, *given = NEEDS_VALUES[name]
    with pytest.raises((tf.errors.InvalidArgumentError, NotImplementedError), match="trac"):
        as_graph(fn)(*[tf.constant(a) for a in given])


BAD = {
    "gather": (lambda n: tf.gather(tf.ones(3), n), [0, 7]),
    "gather_batch": (lambda n: tf.gather(tf.ones((2, 3)), n, batch_dims=1), [[0], [7]]),
    "gather_nd": (lambda n: tf.gather_nd(tf.ones((2, 3)), n), [[0, 5]]),
    "index": (lambda n: tf.ones(3)[n], 3),
    "unsorted_segment_sum": (
        lambda n: tf.math.unsorted_segment_sum(tf.ones(2), n, num_segments=2), [0, 2]),
    "confusion_matrix": (lambda n: tf.math.confusion_matrix(n, n, num_classes=2), [0, 2]),
    "reverse_sequence": (
        lambda n: tf.reverse_sequence(tf.ones((2, 3)), n, seq_axis=1), [0, 4]),
    "bincount": (lambda n: tf.math.bincount(n, minlength=3, maxlength=3), [0, -1]),
    "unravel_index": (lambda n: tf.unravel_index(n, [2, 3]), [6]),
}


@pytest.mark.parametrize("name", BAD)
def test_checks_of_values_are_made_at_every_call(name):
    fn, bad = BAD[name]
    call = as_graph(fn)
    call(tf.zeros_like(tf.constant(bad)))
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(tf.constant(bad))
