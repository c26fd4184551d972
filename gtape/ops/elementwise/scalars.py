"""The scalar ops: one declaration for each.

A line gives the name and inputs, the spelling where it is not the name, and the pullback of each
input. The pullback's own parameters say what the tape keeps: `g` is the cotangent, `y` the result.
Everything else follows: the function, dtype and shape rules, both backends, every order, docs and
tests.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gtape.core.device import CPU
from gtape.core.op import case
from gtape.opdef import scalar_graph
from gtape.opdef.eager_functions import specialised, unspecialised
from gtape.opdef.elementwise import ScalarFunction, ScalarOp
from gtape.opdef.scalar_graph import Expr
from gtape.ops.elementwise import scalar_numpy as spelled

_INFIX: dict[str, Callable[..., Any]] = {
    "{0} + {1}": operator.add, "{0} - {1}": operator.sub, "{0} * {1}": operator.mul,
    "{0} / {1}": operator.truediv, "-{0}": operator.neg}
#: The rules by which the result has the type of the operands.
_OF_OPERANDS = ("number", "sum", "product", "real", "float", "real_float", "any", "select")
_PUBLIC = {1: ("x",), 2: ("x", "y"), 3: ("x", "y", "z")}


def scalar_op(signature: str, *, names: tuple[str, ...] | None = None,
              host: Callable[..., object] | None = None, **declared: Any) -> Any:
    """Declare a `ScalarOp` and give its function. `host` computes on NumPy's arrays, and on a
    Python number beside one in the array's dtype."""
    op = ScalarOp(signature, **declared)
    op.declare()
    params = names or _PUBLIC[len(op.params)]
    if op.types not in _OF_OPERANDS:
        return unspecialised(op, params)
    compute = host or _INFIX.get(op.infix or "")
    if compute is None and isinstance(op.ufunc, np.ufunc):
        compute = op.ufunc
    return specialised(op, compute or op.on(np), params, takes_numbers=compute is not None)


def scalar_function(fn: Callable[..., object], **options: Any) -> Any:
    """Declare a `ScalarFunction`, with its options, and give its Python function."""
    op = ScalarFunction(fn, **options)
    op.declare()
    if op.types not in _OF_OPERANDS:
        return unspecialised(op, op.params)
    return specialised(op, lambda *arrays: op.compute(CPU.type_of(arrays[0].dtype), arrays),
                       op.params)


def _neutral(number: float) -> Callable[[Any], Any]:
    """The other argument, where one is this number; 0.0 and -0.0 are two."""
    spellings = (str(number), str(int(number))) if number else (str(number),)

    def simpler(args: tuple[Expr, ...]) -> Expr | None:
        for given, other in (args, args[::-1]):
            if given.is_number(number) and str(given.value) in spellings:
                return other
        return None

    return simpler


# ---------------------------------------------------------------- arithmetic
zero = scalar_op("zero(x)", numpy=spelled.zero, cuda="0", types="any", d_x=lambda g: zero(g),
                 doc="0, and connected: its gradient is zeros and not None.")
add = scalar_op("add(a, b)", infix="{0} + {1}", numpy="add", cuda="a + b", types="sum",
                tf_name="AddV2", doc="x + y; of strings, one behind the other.",
                d_a=lambda g: g, d_b=lambda g: g,
                # x + 0 is 0, and not x, at -0.
                simplify=_neutral(-0.0))
subtract = scalar_op("subtract(a, b)", infix="{0} - {1}", numpy="subtract", cuda="a - b",
                     types="number", tf_name="Sub", doc="x - y.", d_a=lambda g: g,
                     d_b=lambda g: -g)
multiply = scalar_op("multiply(a, b)", infix="{0} * {1}", numpy="multiply", cuda="a * b",
                     types="product", tf_name="Mul", doc="x y; of bools, whether both hold.",
                     d_a=lambda g, b: g * b, d_b=lambda g, a: g * a, simplify=_neutral(1.0))
divide = scalar_op("divide(a, b)", infix="{0} / {1}", numpy="divide", cuda="a / b", types="float",
                   tf_name="RealDiv", doc="x / y.", d_a=lambda g, b: g / b,
                   d_b=lambda g, a, b: -g * ((a / b) / b), domain=(0.5, 2.0))
negative = scalar_op("negative(x)", infix="-{0}", numpy="negative", cuda="-x", types="number",
                     tf_name="Neg", doc="-x.", d_x=lambda g: -g)
square = scalar_op("square(x)", cuda="x * x", types="number", doc="x².",
                   d_x=lambda g, x: g * (2 * x))
squared_difference = scalar_op(
    "squared_difference(a, b)", numpy=spelled.squared_difference, cuda="(a - b) * (a - b)",
    types="real", doc="(x - y)², of complex numbers |x - y|² as a complex number.",
    d_a=lambda g, a, b: 2 * g * (a - b), d_b=lambda g, a, b: -2 * g * (a - b),
    of_complex=lambda a, b: squared_distance(a, b))
reciprocal = scalar_op("reciprocal(x)", cuda="1 / x", types="float",
                       doc="1 / x. A zero cotangent gives 0 even at 0.",
                       d_x=lambda g, y: multiply_no_nan(y * y, -g), domain=(0.5, 2.0))
over = scalar_op("over(a, b)", numpy=spelled.over, cuda="a == 0 ? 0 : a / b",
                 doc="a / b, and 0 where a is 0 whatever b is.", d_a=lambda g, b: over(g, b),
                 d_b=lambda g, a, b: -over(g * over(a, b), b), domain=(0.5, 2.0))
divide_no_nan = scalar_op(
    "divide_no_nan(a, b)", numpy=spelled.divide_no_nan, cuda="b == 0 ? 0 : a / b",
    doc="x / y, and 0 where y is 0.", d_a=lambda g, b: divide_no_nan(g, b),
    d_b=lambda g, a, b: -g * divide_no_nan(divide_no_nan(a, b), b), domain=(0.5, 2.0))
multiply_no_nan = scalar_op(
    "multiply_no_nan(a, b)", numpy=spelled.multiply_no_nan, cuda="b == 0 ? 0 : a * b",
    doc="x y, and 0 where y is 0 even if x is nan or inf.",
    d_a=lambda g, b: multiply_no_nan(g, b), d_b=lambda g, a: multiply_no_nan(a, g))
floordiv = scalar_op("floordiv(a, b)", numpy=spelled.floordiv, cuda="floor(nearest(a / b))",
                     integers=False, types="real", tf_name="FloorDiv",
                     doc="⌊x / y⌋, of the quotient as it is rounded. Not differentiable.",
                     d_a=None, d_b=None, domain=(0.5, 2.0))
floormod = scalar_op("floormod(a, b)", numpy=spelled.floormod, cuda="floor_remainder(a, b)",
                     integers=False, types="real", tf_name="FloorMod", jumps=True,
                     doc="x - y ⌊x / y⌋: the sign of y.",
                     d_a=lambda g: g, d_b=lambda g, a, b: -g * floor(a / b), domain=(0.5, 2.0))
truncatediv = scalar_op("truncatediv(a, b)", numpy=spelled.truncatediv,
                        cuda="trunc(nearest(a / b))", integers=False, types="real",
                        tf_name="TruncateDiv", d_a=None, d_b=None,
                        doc="x / y rounded towards zero. Not differentiable.", domain=(0.5, 2.0))
truncatemod = scalar_op("truncatemod(a, b)", numpy=spelled.truncatemod, cuda="fmod(a, b)",
                        integers=False, types="real", tf_name="TruncateMod", jumps=True,
                        doc="The remainder of division towards zero. No gradient is registered.",
                        domain=(0.5, 2.0))
for _divided in (floordiv, floormod, truncatediv, truncatemod):
    _divided.op.refuses = True

# ---------------------------------------------------------------- parts and signs
sign = scalar_op("sign(x)", cuda="sign_of(x)", types="real", jumps=True,
                 doc="-1, 0 or 1. Its gradient is zeros.", d_x=lambda g: zero(g))
real_abs = scalar_op("abs(x)", cuda="absolute(x)", types="real", doc="|x|; its gradient at 0 is 0.",
                     d_x=lambda g, x: g * sign(x), domain=(0.2, 2.0))
unit = scalar_op("unit(x)", numpy=spelled.unit, cuda="", types="complex", holomorphic=False,
                 doc="z / |z|, and 0 at 0.",
                 d_x=lambda g, x, y: divide_no_nan(
                  g - y * make_complex(real_part(conj(y) * g), zero(complex_abs(x))),
                  make_complex(complex_abs(x), zero(complex_abs(x)))))
complex_abs = scalar_op("complex_abs(x)", numpy="abs", cuda="", types="magnitude",
                        tf_name="ComplexAbs", holomorphic=False, doc="|z|.",
                        d_x=lambda g, x: make_complex(g, zero(g)) * unit(x))
conj = scalar_op("conj(x)", cuda="x", types="number", holomorphic=False, doc="The conjugate.",
                 d_x=lambda g: conj(g),
                 simplify=lambda a: a[0].args[0] if getattr(a[0].op, "name", "") == "conj"
                 else None)
real_part = scalar_op("real(x)", cuda="", types="magnitude", holomorphic=False,
                      doc="The real part.", d_x=lambda g: make_complex(g, zero(g)))
imag_part = scalar_op("imag(x)", cuda="", types="magnitude", holomorphic=False,
                      doc="The imaginary part.", d_x=lambda g: make_complex(zero(g), g))
complex_angle = scalar_op("angle(x)", cuda="", types="magnitude", holomorphic=False,
                          doc="The argument of z, in radians.",
                          d_x=lambda g, x: make_complex(zero(g), g) * unit(x)
                          / make_complex(complex_abs(x), zero(g)))
make_complex: Any = scalar_op("complex(a, b)", numpy=spelled.make_complex, cuda="",
                      types="make_complex", names=("real", "imag"), holomorphic=False,
                      doc="a + ib.", d_a=lambda g: real_part(g), d_b=lambda g: imag_part(g))


@partial(scalar_function, types="complex")
def squared_distance(a: Any, b: Any) -> Expr:
    """|a - b|², as a complex number."""
    gap = a - b
    total = square(real_part(gap)) + square(imag_part(gap))
    return make_complex(total, zero(total))


# ---------------------------------------------------------------- rounding
floor = scalar_op("floor(x)", integers=False, types="real", doc="⌊x⌋. Not differentiable.",
                  d_x=None)
ceil = scalar_op("ceil(x)", integers=False, types="real", doc="⌈x⌉. Not differentiable.", d_x=None)
rint = scalar_op("rint(x)", types="real_float", d_x=None,
                 doc="The nearest integer, halves to even. Not differentiable.")

# ---------------------------------------------------------------- powers, roots, logs
exp = scalar_op("exp(x)", doc="eˣ.", d_x=lambda g, y: g * y)
expm1 = scalar_op("expm1(x)", doc="eˣ - 1, exact near 0.", d_x=lambda g, x: g * exp(x))
log = scalar_op("log(x)", doc="The natural logarithm.", d_x=lambda g, x: g / x, domain=(0.2, 3.0))
log1p = scalar_op("log1p(x)", numpy=spelled.log1p, doc="log(1 + x), exact near 0.",
                  d_x=lambda g, x: g / (1 + x), domain=(-0.5, 2.0))
sqrt = scalar_op("sqrt(x)", doc="√x. A zero cotangent gives 0 even at 0.",
                 d_x=lambda g, y: over(0.5 * g, y), domain=(0.2, 3.0))
rsqrt = scalar_op("rsqrt(x)", numpy=spelled.rsqrt,
                  doc="1 / √x. A zero cotangent gives 0 even at 0.",
                  d_x=lambda g, y: multiply_no_nan(y * y * y, -0.5 * g), domain=(0.2, 3.0))
root = scalar_op("root(x)", numpy="sqrt", domain=(0.2, 3.0), cuda="sqrt(x)",
                 doc="√x with slope 0 at 0, a subgradient of norms that is finite.",
                 d_x=lambda g, y: divide_no_nan(0.5 * g, y))
log_positive = scalar_op("log_positive(a)", numpy=spelled.log_positive, cuda="a > 0 ? log(a) : 0",
                         doc="log a, and 0 where a is not positive.",
                         d_a=lambda g, a: where(a > 0, g / a, 0), domain=(0.2, 3.0))
pow_slope = scalar_op("pow_slope(a, b)", numpy=spelled.pow_slope,
                      cuda="b == 0 ? 0 : b * pow(a, b - 1)", doc="b aᵇ⁻¹, and 0 where b is 0.",
                      d_a=lambda g, a, b: g * b * pow_slope(a, b - 1),
                      d_b=lambda g, a, b: g * power(a, b - 1)
                      + g * pow_slope(a, b) * log_positive(a),
                      domain=(0.5, 2.0))
power = scalar_op("pow(a, b)", numpy=spelled.power, host=spelled.raised, integers=False,
                  types="number",
                  doc="xʸ. The exponent's gradient is 0 where x is not positive.",
                  d_a=lambda g, a, b: g * pow_slope(a, b),
                  # g y first: y log x may overflow where g y is small.
                  d_b=lambda g, a, y: g * y * log_positive(a), domain=(0.5, 2.0))
xlogy = scalar_op("xlogy(a, b)", numpy=spelled.xlogy, cuda="a == 0 ? 0 : a * log(b)",
                  doc="x log y, and 0 where x is 0.",
                  d_a=lambda g, a, b: where(equal(a, 0), zero(g), g * log(b)),
                  d_b=lambda g, a, b: g * xdivy(a, b), domain=(0.5, 2.0))
xlog1py = scalar_op("xlog1py(a, b)", numpy=spelled.xlog1py, cuda="a == 0 ? 0 : a * log1p(b)",
                    doc="x log(1 + y), and 0 where x is 0.",
                    d_a=lambda g, a, b: where(equal(a, 0), zero(g), g * log1p(b)),
                    d_b=lambda g, a, b: g * xdivy(a, 1 + b), domain=(0.5, 2.0))
xdivy = scalar_op("xdivy(a, b)", numpy=spelled.xdivy, cuda="a == 0 ? 0 : a / b",
                  doc="x / y, and 0 where x is 0.",
                  d_a=lambda g, a, b: where(equal(a, 0), zero(g), g / b),
                  d_b=lambda g, a, b: -g * xdivy(xdivy(a, b), b), domain=(0.5, 2.0))

# ---------------------------------------------------------------- trigonometry
one_minus_square = scalar_op("one_minus_square(x)", numpy=spelled.one_minus_square,
                             cuda="(1 - x) * (1 + x)", doc="1 - x², exact near 1 and -1.",
                             d_x=lambda g, x: -2 * g * x)
sin = scalar_op("sin(x)", doc="sin x.", d_x=lambda g, x: g * cos(x))
cos = scalar_op("cos(x)", doc="cos x.", d_x=lambda g, x: -g * sin(x))
tan = scalar_op("tan(x)", doc="tan x.", d_x=lambda g, y: g + g * (y * y), domain=(-1.0, 1.0))
asin = scalar_op("asin(x)", numpy="arcsin", doc="The inverse of sin.", domain=(-0.8, 0.8),
                 d_x=lambda g, x: g / sqrt(one_minus_square(x)))
acos = scalar_op("acos(x)", numpy="arccos", doc="The inverse of cos.", domain=(-0.8, 0.8),
                 d_x=lambda g, x: -g / sqrt(one_minus_square(x)))
atan = scalar_op("atan(x)", numpy="arctan", doc="The inverse of tan.",
                 d_x=lambda g, x: g / (1 + x * x))
sinh = scalar_op("sinh(x)", doc="sinh x.", d_x=lambda g, x: g * cosh(x))
cosh = scalar_op("cosh(x)", doc="cosh x.", d_x=lambda g, x: g * sinh(x))
tanh = scalar_op("tanh(x)", doc="tanh x.", d_x=lambda g, y: g - g * (y * y))
asinh = scalar_op("asinh(x)", numpy="arcsinh", doc="The inverse of sinh.",
                  # The sign of a zero imaginary part picks the root; 1 + x would lose it.
                  d_x=lambda g, x: g / sqrt(x * x - -1))
acosh = scalar_op("acosh(x)", numpy="arccosh", doc="The inverse of cosh, for x >= 1.",
                  d_x=lambda g, x: g / (sqrt(x - 1) * sqrt(x - -1)), domain=(1.5, 3.0))
atanh = scalar_op("atanh(x)", numpy="arctanh", doc="The inverse of tanh.", domain=(-0.8, 0.8),
                  d_x=lambda g, x: g / one_minus_square(x))
atan2 = scalar_op("atan2(a, b)", numpy="arctan2", types="real_float", names=("y", "x"),
                  tf_name="Atan2", doc="The angle of the point (x, y), in radians.",
                  d_a=lambda g, a, b: g * (b / (a * a + b * b)),
                  d_b=lambda g, a, b: -g * (a / (a * a + b * b)), domain=(0.5, 2.0))
sigmoid = scalar_op("sigmoid(x)", numpy=spelled.sigmoid, cuda="sigmoid(x)",
                    doc="1 / (1 + e⁻ˣ).", d_x=lambda g, y: g * y - g * y * y)

# ---------------------------------------------------------------- choice
maximum = scalar_op("maximum(a, b)", cuda="larger(a, b)", types="real",
                    doc="The larger; a tie's gradient goes to the first argument.",
                    d_a=lambda g, a, b: where(a >= b, g, 0),
                    d_b=lambda g, a, b: where(a >= b, 0, g))
minimum = scalar_op("minimum(a, b)", cuda="smaller(a, b)", types="real",
                    doc="The smaller; a tie's gradient goes to the first argument.",
                    d_a=lambda g, a, b: where(a <= b, g, 0),
                    d_b=lambda g, a, b: where(a <= b, 0, g))
where = scalar_op("where(c, a, b)", numpy=spelled.where, host=np.where, cuda="c ? a : b",
                  types="select", names=("condition", "x", "y"), tf_name="SelectV2",
                  doc="c ? x : y.", d_c=None,
                  d_a=lambda g, c: where(c, g, 0), d_b=lambda g, c: where(c, 0, g))
clip = scalar_op("clip(x, low, high)", numpy=spelled.clip, host=partial(spelled.clip, np),
                 cuda="larger(smaller(x, high), low)", types="real",
                 tf_name="ClipByValue", names=("x", "low", "high"),
                 doc="max(min(x, high), low); the gradient is 1 at the bounds, and that of low "
                 "where low > high.",
                 d_x=lambda g, x, low, high: where((x < low) | (x > high), 0, g),
                 d_low=lambda g, x, low, high: where((x < low) | (low > high), g, 0),
                 d_high=lambda g, x, low, high: where((x > high) & (low <= high), g, 0))

nextafter = scalar_op("nextafter(a, b)", cuda="", types="real_float", names=("x1", "x2"),
                      tf_name="NextAfter", doc="The next number after x1 in the direction of x2.",
                      d_a=lambda g: g, d_b=lambda g: zero(g))


@scalar_function
def reciprocal_no_nan(x: Expr) -> Expr:
    """1 / x, and 0 where x is 0."""
    return divide_no_nan(1, x)


reciprocal_no_nan.op.domain = (0.5, 2.0)

sign.op.cases = [case((2, 3)), case(())]
clip.op.cases = [case((2, 3), np.array(-0.7), np.array([0.9])), case((3,), (3,), np.array(2.0))]

# ---------------------------------------------------------------- comparisons and logic
_BOOL: dict[str, Any] = {"types": "compare", "makes_bool": True, "d_a": None, "d_b": None}
equal = scalar_op("equal(a, b)", cuda="a == b", doc="x = y, element by element.",
                  **_BOOL | {"types": "equal"})
not_equal = scalar_op("not_equal(a, b)", cuda="a != b", doc="x ≠ y.", **_BOOL | {"types": "equal"})
less = scalar_op("less(a, b)", cuda="a < b", doc="x < y.", **_BOOL)
less_equal = scalar_op("less_equal(a, b)", cuda="a <= b", doc="x <= y.", **_BOOL)
greater = scalar_op("greater(a, b)", cuda="a > b", doc="x > y.", **_BOOL)
greater_equal = scalar_op("greater_equal(a, b)", cuda="a >= b", doc="x >= y.", **_BOOL)
_LOGICAL: dict[str, Any] = {"types": "logical", "makes_bool": True}
logical_and = scalar_op("logical_and(a, b)", cuda="a && b", doc="x and y.", d_a=None, d_b=None,
                        **_LOGICAL)
logical_or = scalar_op("logical_or(a, b)", cuda="a || b", doc="x or y.", d_a=None, d_b=None,
                       **_LOGICAL)
logical_xor = scalar_op("logical_xor(a, b)", cuda="a != b", doc="Exactly one of x, y.", d_a=None,
                        d_b=None, **_LOGICAL)
logical_not = scalar_op("logical_not(x)", cuda="!x", doc="not x.", d_x=None, **_LOGICAL)
_TEST: dict[str, Any] = {"types": "test", "makes_bool": True, "integers": False, "d_x": None}
is_nan = scalar_op("is_nan(x)", numpy="isnan", cuda="nan_at(x)", doc="Whether x is nan.", **_TEST)
is_inf = scalar_op("is_inf(x)", numpy="isinf", cuda="inf_at(x)", doc="Whether x is infinite.",
                   **_TEST)
is_finite = scalar_op("is_finite(x)", numpy="isfinite", cuda="finite_at(x)",
                      doc="Whether x is neither nan nor infinite.", **_TEST)

scalar_graph.operators.update({
    name: function.op for name, function in {
        "add": add, "subtract": subtract, "multiply": multiply, "divide": divide,
        "negative": negative, "pow": power, "less": less, "less_equal": less_equal,
        "greater": greater, "greater_equal": greater_equal, "logical_and": logical_and,
        "logical_or": logical_or, "logical_not": logical_not, "conj": conj}.items()})

# ---------------------------------------------------------------- bits of integers
_INTEGER: dict[str, Any] = {"types": "integer", "d_a": None, "d_b": None}

bitwise_and = scalar_op("bitwise_and(a, b)", cuda="a & b", doc="x & y, bit by bit.", **_INTEGER)
bitwise_or = scalar_op("bitwise_or(a, b)", cuda="a | b", doc="x | y, bit by bit.", **_INTEGER)
bitwise_xor = scalar_op("bitwise_xor(a, b)", cuda="a ^ b", doc="x ^ y, bit by bit.", **_INTEGER)
left_shift = scalar_op("left_shift(a, b)", cuda="shifted_left(a, b)",
                       doc="x shifted left by y bits.", **_INTEGER)
right_shift = scalar_op("right_shift(a, b)", cuda="shifted_right(a, b)",
                        doc="x shifted right by y bits.", **_INTEGER)
invert = scalar_op("invert(x)", cuda="~x", types="integer", doc="Every bit of x flipped.", d_x=None)
