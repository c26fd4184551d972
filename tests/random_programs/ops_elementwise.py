"""Elementwise ops of all arities, comparisons, selections and casts."""

from __future__ import annotations

from . import values
from .ops import Draw, Operand, fits, op, templates

templates("float", "tf.tanh({x})", "tf.sigmoid({x})", "tf.nn.relu({x})", "tf.nn.relu6({x})",
          "tf.nn.leaky_relu({x})", "tf.nn.elu({x})", "tf.nn.selu({x})", "tf.nn.gelu({x})",
          "tf.nn.gelu({x}, approximate=True)", "tf.nn.silu({x})", "tf.nn.softplus({x})",
          "tf.nn.softsign({x})", "tf.square({x}) -> tf.exp(-{in})",
          "{x} * 0.5 -> tf.math.expm1({in})",
          "tf.abs({x}) -> tf.math.log1p({in})", "tf.abs({x}) + 0.5 -> tf.math.log({in})",
          "tf.math.log_sigmoid({x})", "tf.square({x}) + 0.25 -> tf.math.rsqrt({in})",
          "tf.abs({x}) -> tf.sqrt({in})", "tf.math.erf({x})", "tf.math.erfc({x})",
          "tf.abs({x}) + 0.5 -> tf.math.lgamma({in})", "tf.abs({x}) + 0.5 -> tf.math.digamma({in})",
          "tf.sigmoid({x}) -> tf.math.ndtri({in})", "tf.tanh({x}) * 0.9 -> tf.math.erfinv({in})",
          "tf.math.bessel_i0e({x})", "tf.math.bessel_i1e({x})", "{x}**0.", "{x}**0.5", "{x}**3.",
          "tf.math.reciprocal_no_nan({x})", "tf.tanh({x}) * 0.9 -> tf.asin({in})",
          "tf.tanh({x}) * 0.9 -> tf.acos({in})", "tf.abs({x}) + 1.5 -> tf.acosh({in})",
          "tf.tanh({x}) * 0.9 -> tf.atanh({in})", "tf.math.xlogy({x}, tf.abs({x}))",
          "tf.cast({x} * 3.0, {dtype}) - tf.cast({x}, {dtype})")
templates("smooth", "tf.sin({x})", "tf.cos({x})", "tf.exp({x} * 0.5)", "tf.sinh({x} * 0.5)",
          "tf.cosh({x} * 0.5)", "tf.asinh({x})", "tf.atan({x} * 0.5)", "tf.math.reciprocal({x})",
          "{x} * {number}", "{x} / {number}", "{x} + {number}", "{number} - {x}", "{x}**2")
templates("number", "tf.square({x})", "tf.identity({x})", "tf.ones_like({x})",
          "tf.zeros_like({x})", exact=False, weight=0.5)
templates("any", "tf.identity({x})[...]", "tf.stop_gradient({x})", exact=True, weight=0.3)
templates("float", "tf.floor({x})", "tf.math.ceil({x})", "tf.round({x})", "tf.math.rint({x})",
          "tf.sign({x})", "tf.clip_by_value({x}, -1.0, 0.5)", "tf.abs({x})", "-{x}", "{x} + 0.",
          "{x} * 1.", exact=True)
templates("float", "tf.math.is_finite({x})", "tf.math.is_inf({x})", "tf.math.is_nan({x})",
          "tf.math.is_finite({x} * 1000.)", "tf.math.is_inf(tf.cast({x}, tf.float16) * 1000.)",
          exact=True, weight=0.7)
templates("integer", "{x} + 3", "{x} // 3", "{x} % 5", "-{x}", "tf.abs({x})", "tf.sign({x})",
          "{x} * 2", "{x} // 2 * 2", "tf.bitwise.invert({x})", exact=True)
templates("bool", "tf.logical_not({x})", "~{x}", exact=True)
templates("complex", "tf.math.real({x})", "tf.math.imag({x})", "tf.math.conj({x})", exact=True)
templates("complex", "tf.abs({x})", "tf.math.angle({x})", "tf.sqrt({x})", "tf.tanh({x})")

_BINARY = ("tf.add", "tf.subtract", "tf.multiply")
_FLOAT_BINARY = ("tf.divide", "tf.math.divide_no_nan", "tf.math.multiply_no_nan", "tf.atan2",
                 "tf.math.xlogy", "tf.math.floordiv", "tf.math.floormod", "tf.math.xdivy",
                 "tf.math.xlog1py", "tf.math.squared_difference")
_COMPARISONS = ("tf.equal", "tf.not_equal", "tf.less", "tf.less_equal", "tf.greater",
                "tf.greater_equal")


def pair(d: Draw, x: Operand, y: Operand | None) -> tuple[Operand, Operand] | None:
    """Two operands of one dtype that broadcast, in either order."""
    if y is None:
        y = d.partner(x)
    if y.dtype != x.dtype or not fits(x.shape, y.shape):
        return None
    return (x, y) if d.chance(0.5) else (y, x)


def _call(d: Draw, names: tuple[str, ...], x: Operand, y: Operand | None) -> str | None:
    both = pair(d, x, y)
    return both and f"{d.choice(names)}({both[0]}, {both[1]})"


@op("complex", "complex", short=True, weight=4)
def complex_arithmetic(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    return _call(d, _BINARY, x, y)


@op("real", "real", exact=True, weight=6)
def arithmetic(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    return _call(d, _BINARY, x, y)


@op("float", "float", weight=3)
def float_pairs(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    return _call(d, _FLOAT_BINARY, x, y)


@op("real", "real", exact=True, weight=2)
def extremes(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    return _call(d, ("tf.maximum", "tf.minimum"), x, y)


@op("integer", "integer", exact=True)
def integer_pairs(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    both = pair(d, x, y)
    if both is None:
        return None
    a, b = both
    name = d.choice(("tf.math.floordiv", "tf.math.floormod", "tf.truncatemod", "tf.truncatediv"))
    if d.chance(0.5):
        return f"{name}({a}, tf.abs({b}) % 7 + 1)"
    return f"tf.bitwise.{d.choice(('bitwise_and', 'bitwise_or', 'bitwise_xor'))}({a}, {b})"


@op("bool", "bool", exact=True)
def logic(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    return _call(d, ("tf.logical_and", "tf.logical_or", "tf.math.logical_xor", "tf.equal",
                     "tf.multiply"), x, y)


@op("real", "real", exact=True, weight=2)
def comparison(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    return _call(d, _COMPARISONS, x, y)


@op("float", "float", weight=2)
def chosen(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    """A selection by a comparison of the same operands."""
    both = pair(d, x, y)
    if both is None:
        return None
    a, b = both
    sign = d.choice(("<", ">", ">=", "<="))
    return f"tf.where({a} {sign} {b}, {a}, {b} * {d.number()})"


@op("any", "bool", exact=True)
def selected(d: Draw, x: Operand, mask: Operand | None = None) -> str | None:
    mask = mask or d.fresh(values.partner(d.rng, x.shape), "bool")
    if not fits(mask.shape, x.shape):
        return None
    other = d.partner(x)
    a, b = (x, other) if d.chance(0.5) else (other, x)
    return f"tf.where({mask}, {a}, {b})"


@op("any", exact=True, weight=3)
def cast(d: Draw, x: Operand) -> str | None:
    """To any dtype; out of range of an integer the result is undefined, so it is clipped."""
    to = d.choice([t for t in values.DTYPES if t != x.dtype])
    if to in values.INTEGERS and x.dtype in values.FLOATS:
        clipped = f"tf.where(tf.math.is_finite({x}), {x}, tf.zeros_like({x}))"
        low = "0." if to == "uint8" else "-200."
        return f"tf.cast(tf.clip_by_value({clipped}, {low}, 200.), tf.{to})"
    if x.dtype in values.COMPLEX and to not in values.COMPLEX:
        return None if to in values.INTEGERS else f"tf.cast(tf.math.real({x}), tf.{to})"
    return f"tf.cast({x}, tf.{to})"


@op("float", exact=True, weight=1.5)
def there_and_back(d: Draw, x: Operand) -> str:
    to = d.choice([t for t in values.FLOATS if t != x.dtype])
    return f"tf.cast(tf.cast({x}, tf.{to}), tf.{x.dtype})"


@op("float", "float")
def power(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    both = pair(d, x, y)
    return both and f"tf.abs({both[0]}) + 0.5 -> tf.pow({{in}}, {both[1]})"


@op("wide", "wide", weight=0.7)
def special_pairs(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    both = pair(d, x, y)
    if both is None:
        return None
    a, b = (f"tf.abs({v}) + 0.5" for v in both)
    return d.choice([f"tf.math.igamma({a}, {b})", f"tf.math.igammac({a}, {b})",
                     f"tf.math.zeta({a} + 1., {b})", f"tf.math.polygamma(1., {a})",
                     f"tf.math.betainc({a}, {b}, tf.sigmoid({both[1]}))",
                     f"tf.math.igamma(tf.constant(1.5, tf.{x.dtype}), {b})"])


@op("complex", "complex")
def complex_quotient(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    return _call(d, ("tf.divide", "tf.math.divide_no_nan"), x, y)


@op("wide", "wide")
def complex_of(d: Draw, x: Operand, y: Operand | None = None) -> str | None:
    if y is None:
        y = d.fresh(x.shape, x.dtype)
    return f"tf.complex({x}, {y})" if y.shape == x.shape and y.dtype == x.dtype else None


@op("number", "number", "number", short=True)
def sum_of_several(d: Draw, x: Operand, y: Operand | None = None,
                   z: Operand | None = None) -> str | None:
    others = [v or d.fresh(x.shape, x.dtype) for v in (y, z)]
    if any((v.shape, v.dtype) != (x.shape, x.dtype) for v in others):
        return None
    return f"tf.add_n([{x}, {others[0]}, {others[1]}])"
