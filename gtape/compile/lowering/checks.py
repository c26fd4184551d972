"""Tests of values at run time: indices and numbers that are wrong, premises that do not hold."""

from __future__ import annotations

from collections.abc import Sequence

from gtape.compile.ir.builder import Attrs, Builder, invoked, lowers
from gtape.compile.ir.nodes import Value
from gtape.core.spec import Spec
from gtape.opdef.cuda_text import C_TYPES
from gtape.ops.checks import numerics
from gtape.ops.control.branches import premise_
from gtape.ops.indexing import gathering


def within(b: Builder, indices: Value, limit: int | None, what: str, *,
           low: int | None = 0) -> None:
    """A test at run time that all indices lie in [low, limit); None is no bound."""
    # Before any step that uses the indices, in a pass of its own: those then go without bounds, and
    # nothing is written when one is wrong.
    bounds = ["-__LONG_MAX__ - 1" if low is None else f"{low}L",
              "__LONG_MAX__" if limit is None else f"{limit}L"]
    b.call("within", invoked("all_within", f"{indices.size}L", *bounds), [indices], None,
           ("cpu_indexing.h",), checks=what)


@lowers(gathering.within_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    low, high, what = attrs["low"], attrs["high"], attrs["what"]
    # The bounds are signed numbers of 64 bits, of which the upper half of uint64 is none.
    if x[0].dtype not in C_TYPES or x[0].dtype == "uint64":
        return None
    if x[0].size and (low, high) != (None, None):
        must = (f"must be >= {low}" if high is None else f"must be below {high}" if low is None
                else f"must lie in [{low}, {high})")
        within(b, x[0], high, f"{what} {must}", low=low)
    return x[0]


@lowers(numerics.check_numerics_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value | None:
    (value,) = x
    if value.dtype not in ("float32", "float64"):
        return None
    if value.size:
        checks = (f"{attrs['message']} : Tensor had Inf or NaN values (shape {list(value.shape)}, "
                  f"{value.dtype})")
        b.call("check numerics", invoked("all_finite", f"{value.size}L"), x, None,
               ("cpu_integers.h",), checks=checks)
    return value


@lowers(premise_)
def _(b: Builder, x: list[Value], attrs: Attrs, specs: Sequence[Spec]) -> Value:
    """A condition that a program needs: where it does not hold, the call runs as Python."""
    expected = "true" if attrs["expected"] else "false"
    # As a check that fails, but the call is then run by Python and is no error.
    b.call("premise", lambda held: f"(*{held} == {expected})", x, None, checks=attrs["why"],
           premise=True)
    return x[0]
