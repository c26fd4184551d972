"""Products, convolutions, pooling, linear algebra and random draws."""

from __future__ import annotations

from . import values
from .ops import Draw, Operand, op

_CHANNELS = (1, 2, 3, 5, 7, 8, 10, 16, 17)


@op("number", "number", short=True, weight=5)
def product(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    if x.rank < 2 or x.dtype == "uint8":
        return None
    first, second = d.chance(0.3), d.chance(0.3)
    *batch, m, k = x.shape
    inner = m if first else k
    if y is None:
        n = values.length(d.rng)
        shape = [*batch[d.below(len(batch) + 1):], *((n, inner) if second else (inner, n))]
        y = d.fresh(shape, x.dtype)
    if y.rank < 2 or y.dtype != x.dtype or y.shape[-1 if second else -2] != inner:
        return None
    if any(1 not in (a, b) and a != b for a, b in zip(batch[::-1], y.shape[:-2][::-1])):
        return None
    return f"tf.matmul({x}, {y}, transpose_a={first}, transpose_b={second})"


@op("smooth", short=True, weight=2)
def contraction(d: Draw, x: Operand) -> str | None:
    if not 1 <= x.rank <= 4:
        return None
    letters = "ijkl"[:x.rank]
    n = d.choice((1, 3, 5, 10))
    text, shape = d.choice([
        (f"{letters},{letters[-1]}z->{letters[:-1]}z", (x.shape[-1], n)),
        (f"{letters},{letters[0]}->{letters[1:]}", x.shape[:1]),
        (f"{letters},{letters}->{letters[0]}", x.shape),
        (f"{letters},zi->z{letters[1:]}", (n, x.shape[0])),
        (f"...{letters[-1]},z{letters[-1]}->z...", (n, x.shape[-1]))])
    return f"tf.einsum('{text}', {x}, {d.fresh(shape, x.dtype)})"


@op("float", short=True)
def dense(d: Draw, x: Operand) -> str | None:
    if x.rank != 2:
        return None
    n = d.choice(_CHANNELS)
    kernel, bias = d.fresh((x.shape[1], n), x.dtype), d.fresh((n,), x.dtype)
    return f"tf.nn.relu(tf.nn.bias_add(tf.matmul({x}, {kernel}), {bias}))"


def image(d: Draw, x: Operand) -> str | None:
    """`x` as images [n, h, w, c]; None where it has none."""
    return str(x) if x.rank == 4 and x.size else None


@op("wide", short=True, weight=5)
def convolution(d: Draw, x: Operand) -> str | None:
    if d.infinite or x.rank != 4 or not x.size:
        return None
    size, c = (d.choice((1, 2, 3, 5)), d.choice((1, 2, 3))), x.shape[-1]
    padding = d.choice(("SAME", "VALID"))
    if padding == "VALID" and (x.shape[1] < size[0] or x.shape[2] < size[1]):
        padding = "SAME"
    stride = d.choice((1, 1, 2, 3))
    kind = d.below(4)
    if kind == 0:
        filters = d.fresh((*size, c, d.choice((1, 2, 3))), x.dtype)
        return (f"tf.nn.depthwise_conv2d({x}, {filters}, [1, {stride}, {stride}, 1], '{padding}')")
    filters = d.fresh((*size, c, d.choice(_CHANNELS)), x.dtype)
    if kind == 1 and stride == 1:
        return f"tf.nn.conv2d({x}, {filters}, 1, '{padding}', dilations={d.choice((1, 2))})" if (
            padding == "SAME") else f"tf.nn.conv2d({x}, {filters}, 1, '{padding}')"
    return f"tf.nn.conv2d({x}, {filters}, {stride}, '{padding}')"


@op("wide", short=True, weight=2)
def transposed_convolution(d: Draw, x: Operand) -> str | None:
    if d.infinite or x.rank != 4 or not x.size or x.size > 800:
        return None
    n, h, w, c = x.shape
    out, k, stride = d.choice((1, 3, 5, 10)), d.choice((1, 2, 3)), d.choice((1, 2))
    filters = d.fresh((k, k, out, c), x.dtype)
    return (f"tf.nn.conv2d_transpose({x}, {filters}, {[n, h * stride, w * stride, out]}, {stride}, "
            f"'SAME')")


@op("wide", short=True, weight=1.5)
def line_convolution(d: Draw, x: Operand) -> str | None:
    if d.infinite or x.rank != 3 or not x.size:
        return None
    filters = d.fresh((d.choice((1, 2, 3)), x.shape[2], d.choice(_CHANNELS)), x.dtype)
    return f"tf.nn.conv1d({x}, {filters}, {d.choice((1, 2))}, 'SAME')"


@op("wide", weight=2.5)
def pooled(d: Draw, x: Operand) -> str | None:
    if x.rank != 4 or not x.size:
        return None
    size = d.choice((1, 2, 3))
    padding = "SAME" if min(x.shape[1:3]) < size else d.choice(("SAME", "VALID"))
    name = d.choice(("avg_pool2d", "max_pool2d"))
    return f"tf.nn.{name}({x}, {size}, {d.choice((1, 2, 3))}, '{padding}')"


@op("float", short=True, weight=2)
def images_of(d: Draw, x: Operand) -> str | None:
    """Anything as images, so that convolutions have something to work on."""
    c = d.choice((1, 1, 2, 3, 5))
    h, w = d.choice(((1, 1), (3, 5), (7, 4), (8, 8), (5, 9), (13, 6)))
    n = d.choice((1, 1, 2, 3))
    if d.chance(0.15):  # so many that the gradient of a filter is summed in parts
        n, h, w, c = d.choice(((4, 28, 28, 1), (16, 13, 13, 1), (8, 17, 15, 2)))
    count = n * h * w * c
    if not 0 < x.size <= 4096:
        return None
    times = -(-count // x.size)
    return (f"tf.reshape(tf.tile(tf.reshape({x}, [-1]), [{times}])[:{count}], "
            f"[{n}, {h}, {w}, {c}])")


@op("float", short=True)
def looked_up(d: Draw, x: Operand) -> str | None:
    if x.rank != 2 or not x.size:
        return None
    ids = d.fresh((d.choice((1, 4, 9)),), "int32", limit=x.shape[0])
    return f"tf.nn.embedding_lookup({x}, {ids})"


@op("wide", weight=1.5)
def of_a_matrix(d: Draw, x: Operand) -> str | None:
    """Linear algebra of a well conditioned matrix that is made of `x`."""
    if x.rank < 2 or not x.size or x.shape[-2] > 8 or x.size > 300:
        return None
    n = x.shape[-2]
    square = f"(tf.matmul({x}, {x}, transpose_b=True) * 0.1 + tf.eye({n}, dtype=tf.{x.dtype}))"
    right = d.fresh((*x.shape[:-2], n, d.choice((1, 3))), x.dtype)
    return d.choice([f"tf.linalg.inv({square})", f"tf.linalg.cholesky({square})",
                     f"tf.linalg.solve({square}, {right})", f"tf.linalg.logdet({square})",
                     f"tf.linalg.det({square})", f"tf.linalg.trace({square})",
                     f"tf.linalg.triangular_solve({square}, {right})"])


@op("float", weight=1.5)
def with_noise(d: Draw, x: Operand) -> str | None:
    """Draws of a state and of a seed; a Generator's numbers go on from call to call."""
    name = d.choice(("normal", "uniform"))
    seed = [d.below(1000), d.below(1000)]
    if d.chance(0.5):
        draw = f"tf.random.stateless_{name}({list(x.shape)}, {seed}, dtype=tf.{x.dtype})"
    else:
        draw = f"generator.{name}({list(x.shape)}, dtype=tf.{x.dtype})"
    return f"{x} + {draw}" if d.chance(0.5) else f"{x} * tf.cast({draw} > 0.25, tf.{x.dtype})"


@op("complex")
def transformed(d: Draw, x: Operand) -> str | None:
    return f"tf.signal.{d.choice(('fft', 'ifft'))}({x})" if x.rank and x.shape[-1] else None


@op("wide")
def real_transform(d: Draw, x: Operand) -> str | None:
    return f"tf.signal.rfft({x})" if x.rank and x.shape[-1] else None
