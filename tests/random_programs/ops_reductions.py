"""Reductions over axes, what is made of them, scans, and ops that order or count."""

from __future__ import annotations

from .ops import Draw, Operand, op

_SUMS = ("tf.reduce_sum", "tf.reduce_prod")
_FLOAT = ("tf.reduce_mean", "tf.reduce_mean", "tf.reduce_logsumexp", "tf.math.reduce_std",
          "tf.math.reduce_variance", "tf.math.reduce_euclidean_norm")


def _reduced(d: Draw, name: str, x: Operand) -> str:
    axes = "None" if d.chance(0.2) else d.axes(x)
    return f"{name}({x}, {axes}, keepdims={d.chance(0.5)})"


@op("number", short=True, weight=4)
def total(d: Draw, x: Operand) -> str | None:
    return _reduced(d, d.choice(_SUMS) if x.size < 10 else _SUMS[0], x)


@op("integer", exact=True)
def integer_mean(d: Draw, x: Operand) -> str | None:
    return _reduced(d, "tf.reduce_mean", x) if x.size else None


@op("float", weight=2)
def float_total(d: Draw, x: Operand) -> str | None:
    return _reduced(d, d.choice(_FLOAT), x) if x.size else None


@op("real", exact=True, weight=2)
def extreme(d: Draw, x: Operand) -> str | None:
    return _reduced(d, d.choice(("tf.reduce_max", "tf.reduce_min")), x)


@op("float", exact=True, weight=1.5)
def where_largest(d: Draw, x: Operand) -> str | None:
    """Where a value equals its own maximum: a value that is reduced has one version only."""
    return None if not x.size else (
        f"{x} == tf.reduce_max({x}, {d.axes(x)}, keepdims=True)")


@op("float", weight=1.5)
def largest_of_computed(d: Draw, x: Operand) -> str | None:
    if not x.size or not x.rank:
        return None
    axis = d.axis(x)
    return (f"(lambda y: tf.where(y >= tf.reduce_max(y, {axis}, keepdims=True), y, y * 0.))"
            f"({x} * 1.1)")


@op("bool", exact=True)
def any_or_all(d: Draw, x: Operand) -> str:
    return _reduced(d, d.choice(("tf.reduce_any", "tf.reduce_all")), x)


@op("any", exact=True)
def count(d: Draw, x: Operand) -> str:
    return _reduced(d, "tf.math.count_nonzero", x)


@op("real", exact=True)
def place_of_extreme(d: Draw, x: Operand) -> str | None:
    if not x.rank or not x.size:
        return None
    name, dtype = d.choice(("tf.argmax", "tf.argmin")), d.choice(("int32", "int64"))
    return f"{name}({x}, {d.axis(x)}, tf.{dtype})"


@op("float", weight=1.5)
def norm(d: Draw, x: Operand) -> str | None:
    if not x.rank or not x.size:
        return None
    order = d.choice(("1", "2", "np.inf", "'euclidean'"))
    return f"tf.norm({x}, ord={order}, axis={d.axis(x)}, keepdims={d.chance(0.5)})"


@op("float", weight=1.5)
def normalized(d: Draw, x: Operand) -> str | None:
    """Layer normalization, by moments."""
    if not x.rank or not x.size:
        return None
    axes = d.axes(x) or [x.rank - 1]
    scale = d.fresh((x.shape[-1],), x.dtype)
    return (f"tf.nn.batch_normalization({x}, *tf.nn.moments({x}, {axes}, keepdims=True), None, "
            f"{scale}, 1e-3)")


@op("float")
def of_length_one(d: Draw, x: Operand) -> str | None:
    return f"{x} + 0.1 -> tf.nn.l2_normalize({{in}}, {d.axis(x)})" if x.rank and x.size else None


@op("float", weight=2)
def shares(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    return f"{d.choice(('tf.nn.softmax', 'tf.nn.log_softmax'))}({x}, {d.axis(x)})"


@op("float")
def half_square(d: Draw, x: Operand) -> str:
    return f"tf.nn.l2_loss({x})"


@op("number", short=True, weight=1.5)
def running(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    name = d.choice(("tf.cumsum", "tf.math.cumprod") if x.size < 10 else ("tf.cumsum",))
    return f"{name}({x}, {d.axis(x)}, exclusive={d.chance(0.5)}, reverse={d.chance(0.5)})"


@op("float")
def running_logsumexp(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    return (f"tf.math.cumulative_logsumexp({x}, {d.axis(x)}, exclusive={d.chance(0.5)}, "
            f"reverse={d.chance(0.5)})")


@op("float", exact=True)
def largest(d: Draw, x: Operand) -> str | None:
    if not x.rank or not x.shape[-1]:
        return None
    part = d.choice(("values", "indices"))
    return f"tf.math.top_k({x}, {1 + d.below(min(x.shape[-1], 9))}).{part}"


@op("real", exact=True)
def in_order(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    name = d.choice(("tf.sort", "tf.argsort"))
    direction = d.choice(("ASCENDING", "DESCENDING"))
    return f"{name}({x}, {d.axis(x)}, direction='{direction}')"


@op("float", weight=0.7)
def cross_entropy(d: Draw, x: Operand) -> str | None:
    if x.rank < 1 or not x.size:
        return None
    return (f"tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax("
            f"{d.fresh(x.shape, x.dtype)}), {x})")


@op("float")
def sparse_cross_entropy(d: Draw, x: Operand) -> str | None:
    if x.rank < 1 or not x.size:
        return None
    labels = d.fresh(x.shape[:-1], d.choice(("int32", "int64")), limit=x.shape[-1])
    return f"tf.nn.sparse_softmax_cross_entropy_with_logits({labels}, {x})"


@op("float", weight=0.7)
def sigmoid_cross_entropy(d: Draw, x: Operand) -> str | None:
    labels = f"tf.sigmoid({d.fresh(x.shape, x.dtype)})"
    return f"tf.nn.sigmoid_cross_entropy_with_logits({labels}, {x})"


@op("float", weight=1.5)
def segments(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    count = 1 + d.below(7)
    name = d.choice(("sum", "mean", "max", "min", "prod", "sqrt_n"))
    if d.chance(0.6):
        ids = d.fresh(x.shape[:1], d.choice(("int32", "int64")), limit=count)
        return f"tf.math.unsorted_segment_{name}({x}, {ids}, {count})"
    if name == "sqrt_n" or not 0 < x.shape[0] < 40:
        return None
    known = sorted(d.below(count) for _ in range(x.shape[0]))  # a trace has to know the last one
    return f"tf.math.segment_{name}({x}, {known})"


@op("index", exact=True, weight=0.5)
def counted(d: Draw, x: Operand) -> str | None:
    return f"tf.math.bincount(tf.abs({x}) % 11, minlength=11, maxlength=11)"
