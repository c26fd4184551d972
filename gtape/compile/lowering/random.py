"""Random draws and the positions of streams: Philox in C++, with the numbers of eager draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gtape.compile.ir.builder import Attrs, Builder, lowers
from gtape.compile.ir.nodes import Value
from gtape.core.dtypes import FLOATS
from gtape.core.spec import Spec
from gtape.numerics.coefficients import CENTRE
from gtape.opdef.cuda_text import C_TYPES, compute_dtype
from gtape.opdef.cuda_text import number as number_text
from gtape.ops.random import draws, generator

_HEADER = ("cpu_random.h",)


def _floats(spec: Spec, *numbers: Any) -> list[str] | None:
    """Numbers in the dtype that `spec` is computed in; None where they are not finite."""
    if spec.dtype.name not in FLOATS or not all(math.isfinite(n) for n in numbers):
        return None
    return [number_text(float(n), compute_dtype(spec.dtype.name)) for n in numbers]


def _declare(distribution: str, numbers: Callable[..., list[str] | None], struct: str, *,
             counted: bool = True) -> None:
    """The rule of a draw: `numbers(spec, **parameters)` are what its distribution is made of."""
    @lowers(draws.op_of(distribution))
    def rule(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
        (spec,) = specs
        if not math.prod(spec.shape):
            return None
        made_of = numbers(spec, **dict(attrs["parameters"]))
        if made_of is None:
            return None
        kind = f"{struct.format(C_TYPES[spec.dtype.name])}{{{', '.join(made_of)}}}"
        start, count = "stream_at" if counted else "folded_stream_at", math.prod(spec.shape)
        return b.call("draw", lambda at, out: f"drawn({start}({at}), {kind}, {out}, {count}L)", x,
                      spec, _HEADER)


def _uniform(spec: Spec, low: float = 0.0, high: float = 1.0) -> list[str] | None:
    if spec.dtype.name not in FLOATS or not (math.isfinite(low) and math.isfinite(high)):
        return None
    of = np.dtype(spec.dtype.np_dtype).type
    # In the dtype, as the eager draw computes them: both give the same bits.
    end = of(high)
    with np.errstate(over="ignore"):
        # The last: rounding may reach `high`, which no draw may.
        return _floats(spec, of(high - low), of(low), end, np.nextafter(end, of(low)))


def _normal(spec: Spec, mean: float = 0.0, stddev: float = 1.0) -> list[str] | None:
    return _floats(spec, mean, stddev)


def _truncated_normal(spec: Spec, mean: float = 0.0, stddev: float = 1.0) -> list[str] | None:
    floats = _floats(spec, mean, stddev)
    return None if floats is None else [*floats, f"{{{', '.join(map(repr, CENTRE))}}}"]


def _bernoulli(spec: Spec, probability: float) -> list[str]:
    # 23 bits, as many as a float32 between 1 and 2 tells apart.
    return [f"{round((1.0 - min(max(probability, 0.0), 1.0)) * 2 ** 23)}u"]


def _integers(spec: Spec, low: int, high: int) -> list[str]:
    span = (high - low) % 2 ** 64
    # Remainders by a product, which is sooner done than a division; of a span of 1 it would not fit
    # into the word.
    inverse = min(2 ** 64 // span, 2 ** 64 - 1) if span else 0
    return [f"{n}ull" for n in (low % 2 ** 64, span, inverse)]


_declare("uniform", _uniform, "Uniform<{}>")
_declare("normal", _normal, "Normal<{}>")
_declare("truncated_normal", _truncated_normal, f"TruncatedNormal<{{}}, {len(CENTRE)}>",
         counted=False)
_declare("bernoulli", _bernoulli, "Bernoulli")
_declare("uniform_int", _integers, "Integers<{}>", counted=False)


# ---------------------------------------------------------------- positions
def _numbers(b: Builder, name: str, x: Value, count: int, text: str) -> Value:
    """A few int64: statements that read `x` and write `y`."""
    return b.call(name, lambda source, target: (
        f"{{ const {C_TYPES[x.dtype]}* x = {source}; {C_TYPES['int64']}* y = {target}; {text} }}"),
        [x], ((count,), "int64"), _HEADER)


@lowers(draws.stateless_position_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return _numbers(b, "position", x[0], 4, "keep_position(mixed(2, x[0], x[1]), y);")


@lowers(generator.position_of_state_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    return _numbers(b, "position", x[0], 4,
                    "keep_position(mixed(4, x[2]), y); y[2] = x[0]; y[3] = x[1];")


@lowers(generator.skipped_state_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    high, low = divmod(attrs["count"] % 2 ** 128, 2 ** 64)
    return _numbers(b, "skip", x[0], 3,
                    f"const Word64 low = (Word64)x[0] + {low}ull; y[0] = (long long)low; "
                    # The carry: an unsigned sum that wrapped is below what was added.
                    f"y[1] = (long long)((Word64)x[1] + {high}ull + (low < {low}ull)); "
                    f"y[2] = x[2];")


@lowers(draws.folded_seeds_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    seed, data = x
    (spec,) = specs
    if not data.size:
        return None
    kind = C_TYPES[seed.dtype]
    return b.call("fold in", lambda s, n, y: (
        f"for (long i = 0; i < {data.size}; i++) {{ const Stream made = mixed(3, {s}[0], "
        f"{s}[1], {n}[i]); {kind}* y = {y} + 2 * i; "
        f"y[0] = ({kind})(int)made.first; y[1] = ({kind})(int)made.second; }}"), x, spec, _HEADER)
