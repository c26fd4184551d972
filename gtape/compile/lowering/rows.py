"""softmax and kin, cross entropies, normalisations: formulas with sums along rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtape.compile.ir.builder import Builder, elementwise, formula, iota, lowers
from gtape.compile.ir.nodes import Value
from gtape.compile.lowering.reductions import mean
from gtape.core.spec import Spec
from gtape.ops.elementwise import scalars
from gtape.ops.nn import cross_entropy, dropout, normalization, softmax

Attrs = dict[str, Any]
_REAL = ("float32", "float64")


def _sub(b: Builder, x: Value, y: Value) -> Value:
    return elementwise(b, scalars.subtract, x, y)


def _mul(b: Builder, x: Value, y: Value) -> Value:
    return elementwise(b, scalars.multiply, x, y)


def _normalised(b: Builder, x: Value, axis: int) -> tuple[Value, Value, Value]:
    """Shifted scores, Σ of their exponentials, and these."""
    z = _sub(b, x, b.reduced("max", x, (axis,), True))
    terms = elementwise(b, scalars.exp, z)
    return z, b.reduced("sum", terms, (axis,), True), terms


def _ready(*values: Value) -> bool:
    return all(v.dtype in _REAL and v.size for v in values)


@lowers(softmax.softmax_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _ready(*x):
        return None
    _, total, terms = _normalised(b, x[0], attrs["axis"])
    return elementwise(b, scalars.divide, terms, total)


@lowers(softmax.softmax_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _ready(*x):
        return None
    g, p = x
    weighted = _mul(b, g, p)
    return _sub(b, weighted, _mul(b, p, b.reduced("sum", weighted, (attrs["axis"],), True)))


@lowers(softmax.log_softmax_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _ready(*x):
        return None
    z, total, _ = _normalised(b, x[0], attrs["axis"])
    return _sub(b, z, elementwise(b, scalars.log, total))


@lowers(softmax.log_softmax_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _ready(*x):
        return None
    g, q = x
    total = b.reduced("sum", g, (attrs["axis"],), True)
    return _sub(b, g, _mul(b, elementwise(b, scalars.exp, q), total))


@lowers(cross_entropy.softmax_cross_entropy_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> list[Value] | None:
    if not _ready(*x):
        return None
    logits, labels = x
    axis = len(logits.shape) - 1
    z, total, terms = _normalised(b, logits, axis)
    part = _mul(b, labels, _sub(b, elementwise(b, scalars.log, total), z))
    return [b.reduced("sum", part, (axis,), False), elementwise(b, scalars.divide, terms, total)]


@lowers(cross_entropy.cross_entropy_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _ready(*x):
        return None
    a, probs, labels = x
    return _mul(b, b.reshaped(a, (*a.shape, 1)), _sub(b, probs, labels))


def at_label(b: Builder, labels: Value, classes: int) -> Value:
    """Whether each class is the label, with the classes last."""
    return elementwise(b, scalars.equal, b.reshaped(labels, (*labels.shape, 1)),
                       iota(b, classes, labels.dtype))


def _integers(labels: Value) -> bool:
    return labels.dtype in ("int32", "int64") and labels.size > 0


@lowers(cross_entropy.sparse_softmax_cross_entropy_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> list[Value] | None:
    from gtape.compile.lowering.indexing import within

    logits, labels = x
    if not _ready(logits) or not _integers(labels):
        return None
    axis, classes = len(logits.shape) - 1, logits.shape[-1]
    within(b, labels, classes, "sparse_softmax_cross_entropy_with_logits: every label must lie in "
                               f"[0, {classes}), the classes of the logits")
    z, total, terms = _normalised(b, logits, axis)
    picked = _chosen(b, at_label(b, labels, classes), z)
    log_total = b.reshaped(elementwise(b, scalars.log, total), labels.shape)
    return [_sub(b, log_total, picked), elementwise(b, scalars.divide, terms, total)]


def _chosen(b: Builder, chosen: Value, x: Value) -> Value:
    """The one element of each row that is chosen."""
    zero = b.splat(0.0, x.shape, x.dtype)
    kept = elementwise(b, scalars.where, chosen, x, zero)
    return b.reduced("sum", kept, (len(x.shape) - 1,), False)


@lowers(cross_entropy.sparse_cross_entropy_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    a, probs, labels = x
    if not _ready(a, probs) or not _integers(labels):
        return None
    chosen = at_label(b, labels, probs.shape[-1])
    weight = b.reshaped(a, (*a.shape, 1))

    def part(w: Any, p: Any, c: Any) -> Any:
        node = p.graph.node
        return w * (p - node(scalars.where.op, (c, p.graph.constant(1.0), p.graph.constant(0.0))))

    return formula(b, "sparse_cross_entropy_grad", part, weight, probs, chosen)


@lowers(cross_entropy.pick_class_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, labels = x
    if not _ready(value) or not _integers(labels):
        return None
    return _chosen(b, at_label(b, labels, value.shape[-1]), value)


@lowers(cross_entropy.place_class_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, labels = x
    if not _ready(value) or not _integers(labels):
        return None
    chosen = at_label(b, labels, attrs["classes"])
    wide = b.stretched(b.reshaped(value, (*value.shape, 1)), tuple(specs[0].shape))
    return elementwise(b, scalars.where, chosen, wide, b.splat(0.0, wide.shape, wide.dtype))


@lowers(normalization.normal_grad_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    if not _ready(*x):
        return None
    a, normal, factor = x
    axes = attrs["axes"]
    along = mean(b, _mul(b, a, normal), axes, True)
    rest = _sub(b, _sub(b, a, _mul(b, normal, along)), mean(b, a, axes, True))
    return _mul(b, rest, factor)


@lowers(dropout.masked_scale_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    value, kept = x
    if not _ready(value) or kept.dtype != "bool":
        return None
    scaled = formula(b, "multiply", lambda v: v * attrs["scale"], value)
    return elementwise(b, scalars.where, kept, scaled, b.splat(0.0, value.shape, value.dtype))
