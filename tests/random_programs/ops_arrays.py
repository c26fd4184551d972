"""Ops that move elements: shapes, slices, gathers, scatters, concatenations."""

from __future__ import annotations

from .ops import Draw, Operand, op


@op("any", exact=True, weight=2)
def transposed(d: Draw, x: Operand) -> str:
    return f"tf.transpose({x}, {d.shuffled(range(x.rank))})"


@op("any", exact=True, weight=2)
def reshaped(d: Draw, x: Operand) -> str:
    """Two neighbouring axes joined, one cut in two, or all joined."""
    shape = list(x.shape)
    kind = d.below(3)
    if kind == 0 and x.rank > 1:
        at = d.below(x.rank - 1)
        shape[at:at + 2] = [shape[at] * shape[at + 1]]
    elif kind == 1 and x.rank:
        at = d.below(x.rank)
        factors = [f for f in range(1, shape[at] + 1) if shape[at] % f == 0]
        factor = d.choice(factors or [1])
        shape[at:at + 1] = [factor, shape[at] // factor]
    else:
        shape = [-1] if x.size else [0]
    return f"tf.reshape({x}, {shape})"


@op("any", exact=True)
def expanded(d: Draw, x: Operand) -> str | None:
    return f"tf.expand_dims({x}, {d.below(x.rank + 1)})" if x.rank < 5 else None


@op("any", exact=True)
def squeezed(d: Draw, x: Operand) -> str | None:
    return f"tf.squeeze({x})" if 1 in x.shape else None


@op("any", exact=True)
def tiled(d: Draw, x: Operand) -> str | None:
    if not x.rank or x.size > 600:
        return None
    times = [1] * x.rank
    times[d.below(x.rank)] = d.choice((0, 2, 3))
    return f"tf.tile({x}, {times})"


@op("any", exact=True)
def repeated(d: Draw, x: Operand) -> str | None:
    if not x.rank or x.size > 600:
        return None
    return f"tf.repeat({x}, {1 + d.below(3)}, {d.below(x.rank)})"


@op("any", exact=True)
def broadcast(d: Draw, x: Operand) -> str | None:
    if x.size > 300:
        return None
    shape = [d.choice((2, 3, 5, 7)) if n == 1 else n for n in x.shape]
    return f"tf.broadcast_to({x}, {[*([d.choice((1, 2, 3))] * d.chance(0.5)), *shape]})"


@op("number", exact=True, weight=1.5)
def padded(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    mode = d.choice(("CONSTANT", "REFLECT", "SYMMETRIC"))
    most = min(n for n in x.shape) - 1 if mode != "CONSTANT" else 3
    if most < 0:
        return None
    widths = [[d.below(min(most, 3) + 1), d.below(min(most, 3) + 1)] for _ in x.shape]
    return f"tf.pad({x}, {widths}, '{mode}')"


@op("any", exact=True, weight=3)
def sliced(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    parts = []
    for n in x.shape[:1 + d.below(x.rank)]:
        parts.append(d.choice([":", f"{d.below(n)}:", f":{d.below(n) + 1}", "::2", "::-1", "-2:",
                               "1:-1", "tf.newaxis, :", *([str(d.below(n)), "-1"] if n else [])]))
    if d.chance(0.2) and len(parts) < x.rank:
        parts.append("...")
    return f"{x}[{', '.join(parts)}]"


@op("any", exact=True)
def turned(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    if d.chance(0.5):
        return f"tf.reverse({x}, {d.axes(x)})"
    return f"tf.roll({x}, {d.below(9) - 4}, {d.below(x.rank)})"


@op("any", "any", exact=True, weight=2)
def joined(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    if not x.rank:
        return None
    axis = d.below(x.rank)
    if y is None:
        shape = list(x.shape)
        shape[axis] = d.choice((1, 2, 3, 5))
        y = d.fresh(shape, x.dtype)
    without = [v.shape[:axis] + v.shape[axis + 1:] for v in (x, y)]
    if y.dtype != x.dtype or y.rank != x.rank or without[0] != without[1]:
        return None
    return f"tf.concat([{x}, {y}, {x}][{d.below(2)}:], {axis})"


@op("any", "any", exact=True)
def stacked(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    y = y or d.fresh(x.shape, x.dtype)
    if (y.shape, y.dtype) != (x.shape, x.dtype) or x.rank > 4:
        return None
    return f"tf.stack([{x}, {y}], {d.below(x.rank + 1)})"


@op("any", exact=True)
def split(d: Draw, x: Operand) -> str | None:
    if not x.rank:
        return None
    axis = d.below(x.rank)
    n = x.shape[axis]
    at = d.below(n + 1)
    if d.chance(0.5):
        return f"tf.concat(tf.split({x}, [{at}, {n - at}], {axis})[::-1], {axis})"
    return f"tf.unstack({x}, axis={axis})[{d.below(n)}]" if 0 < n < 20 else None


@op("any", exact=True, weight=3)
def gathered(d: Draw, x: Operand) -> str | None:
    if not x.rank or not x.size:
        return None
    axis = d.below(x.rank)
    dtype = d.choice(("int32", "int64"))
    if axis and d.chance(0.3):
        indices = d.fresh((*x.shape[:axis], d.choice((1, 2, 5))), dtype, limit=x.shape[axis])
        return f"tf.gather({x}, {indices}, axis={axis}, batch_dims={axis})"
    shape = d.choice([(), (1,), (3,), (5,), (2, 3)])
    indices = d.fresh(shape, dtype, limit=x.shape[axis])
    return f"tf.gather({x}, {indices}, axis={axis})"


@op("any", exact=True)
def gathered_points(d: Draw, x: Operand) -> str | None:
    if not x.rank or not x.size:
        return None
    depth = 1 + d.below(x.rank)
    indices = d.fresh((d.choice((1, 3, 5)), depth), "int32", limit=min(x.shape[:depth]))
    return f"tf.gather_nd({x}, {indices})"


@op("float", short=True, weight=1.5)
def scattered(d: Draw, x: Operand) -> str | None:
    if not x.rank or not x.shape[0]:
        return None
    rows = d.choice((3, 5, 8))
    indices = d.fresh((x.shape[0], 1), d.choice(("int32", "int64")), limit=rows)
    return f"tf.scatter_nd({indices}, {x}, {[rows, *x.shape[1:]]})"


@op("float", short=True, weight=1.5)
def updated(d: Draw, x: Operand) -> str | None:
    if not x.rank or not x.shape[0]:
        return None
    count = d.choice((1, 2, 4))
    updates = d.fresh((count, *x.shape[1:]), x.dtype)
    how = d.choice(("add", "sub", "max", "min"))
    indices = d.fresh((count, 1), "int32", limit=x.shape[0])
    return f"tf.tensor_scatter_nd_{how}({x}, {indices}, {updates})"


@op("index", exact=True)
def one_hot(d: Draw, x: Operand) -> str | None:
    if x.size > 200:
        return None
    return f"tf.one_hot({x}, {d.choice((1, 3, 10))}, axis={d.below(x.rank + 1)})"


@op("number", exact=True)
def diagonals(d: Draw, x: Operand) -> str | None:
    if x.rank < 1 or x.size > 300:
        return None
    if x.rank == 1 or d.chance(0.3):
        return f"tf.linalg.diag({x}, k={d.choice((0, 1, -1))})"
    if not x.size:
        return None
    rest = [f"tf.linalg.diag_part({x})",
            f"tf.linalg.band_part({x}, {d.below(3) - 1}, {d.below(3)})",
            f"tf.linalg.set_diag({x}, tf.linalg.diag_part({x})[..., ::-1])"]
    return d.choice(rest)


@op("any", exact=True)
def blocks_of_space(d: Draw, x: Operand) -> str | None:
    if x.rank != 4 or not x.size:
        return None
    _, h, w, c = x.shape
    if h % 2 == 0 and w % 2 == 0:
        return f"tf.nn.space_to_depth({x}, 2)"
    return f"tf.nn.depth_to_space({x}, 2)" if c % 4 == 0 else None


@op("float", exact=True)
def first_of_rows(d: Draw, x: Operand) -> str | None:
    """Rows cut to lengths of their own."""
    if x.rank != 2 or not x.size:
        return None
    lengths = d.fresh(x.shape[:1], "int32", limit=x.shape[1])
    return d.choice([
        f"tf.where(tf.sequence_mask({lengths}, {x.shape[1]}), {x}, tf.zeros_like({x}))",
        f"tf.reverse_sequence({x}, {lengths}, seq_axis=1, batch_axis=0)"])


@op("float", exact=True)
def searched(d: Draw, x: Operand) -> str | None:
    if x.rank != 1 or not x.size:
        return None
    side = d.choice(("left", "right"))
    return f"tf.searchsorted(tf.sort({x}), {d.fresh((d.choice((1, 4, 7)),), x.dtype)}, '{side}')"
