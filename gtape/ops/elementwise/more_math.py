"""Complex parts of any tensor, polynomials, orderings, permutations and confusion matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gtape.core.convert import convert, convert_like
from gtape.core.dtypes import as_dtype, bool_, int32, int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.recording import CUT, mark_all
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.opdef.eager_functions import unspecialised
from gtape.opdef.primitive import primitive
from gtape.opdef.scalar_ops import ScalarFunction
from gtape.ops.arguments import as_int
from gtape.ops.elementwise import scalars as s
from gtape.ops.shape.casting import cast


# ---------------------------------------------------------------- complex parts
def _number(name: str, value: Any) -> Tensor:
    found = convert(value)
    if not (found.dtype.is_differentiable or found.dtype.is_integer):
        raise TypeError(f"{name} takes numbers; got {found.spec}")
    return found


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part; a real tensor is given back as it is.

    Raises:
        TypeError: no numbers.
    """
    x = _number("real", input)
    return s.real_part(x) if x.dtype.is_complex else x


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part; zeros for a real tensor.

    Raises:
        TypeError: no numbers.
    """
    x = _number("imag", input)
    if x.dtype.is_complex:
        return s.imag_part(x)
    from gtape.ops.shape.creation import zeros_like

    return zeros_like(x)


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; a real tensor is given back as it is.

    Raises:
        TypeError: no numbers.
    """
    found = _number("conj", x)
    return s.conj(found) if found.dtype.is_complex else found


def _real_angle(x: Any) -> Any:
    """π where x < 0, else 0; its gradient is None."""
    return s.where(x < 0, math.pi, 0)


_real_angle_op = ScalarFunction(_real_angle, types="real_float", name="real_angle",
                                domain=(0.5, 2.0))
_real_angle_op.declare()
real_angle = unspecialised(_real_angle_op, ("x",))


def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of z in radians; for a real tensor π where it is negative and 0 elsewhere.

    Raises:
        TypeError: no numbers.
    """
    x = _number("angle", input)
    return s.complex_angle(x) if x.dtype.is_complex else real_angle(x)


# ---------------------------------------------------------------- elementwise
nextafter = s.scalar_op("nextafter(a, b)", cuda="", types="real_float",
                        names=("x1", "x2"), tf_name="NextAfter",
                        doc="The next number after x1 in the direction of x2.",
                        d_a=lambda g: g, d_b=lambda g: s.zero(g))


@s.scalar_function
def reciprocal_no_nan(x: Any) -> Any:
    """1 / x, and 0 where x is 0."""
    return s.divide_no_nan(1, x)


reciprocal_no_nan.op.domain = (0.5, 2.0)


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """Σ coeffs[i] xⁿ⁻¹⁻ⁱ by Horner's rule: the highest power comes first. 0 for no coefficients.

    Raises:
        ValueError: `coeffs` is no list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"polyval takes a list of coefficients, the highest power first; got "
                         f"{type(coeffs).__name__}. Write list(coeffs), or tf.unstack(coeffs)")
    at = convert(x)
    if not coeffs:
        from gtape.ops.shape.creation import zeros_like

        return zeros_like(at)
    total = convert_like(coeffs[0], at._t, "polyval")
    for coefficient in coeffs[1:]:
        total = coefficient + total * at  # type: ignore[operator]
    return total


# ---------------------------------------------------------------- orderings
def _neighbours(name: str, x: Any, compare: Any) -> Tensor:
    """Whether `compare` holds between all elements that follow each other."""
    from gtape.ops.reductions.more_reductions import reduce_all_
    from gtape.ops.shape.layout import reshape_
    from gtape.ops.shape.packing import split_

    found = convert(x)
    if not (found.dtype.is_floating or found.dtype.is_integer):
        raise TypeError(f"{name} takes real numbers; got {found.spec}")
    n = math.prod(found.spec.shape)
    if n < 2:
        return convert(True, bool_, found._t.device)
    flat = reshape_(found, shape=(n,))
    before, _ = split_(flat, sizes=(n - 1, 1), axis=0)
    _, after = split_(flat, sizes=(1, n - 1), axis=0)
    return reduce_all_(compare(before, after), axis=(0,))


def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element is smaller than the one before it in row-major order.

    Raises:
        TypeError: no real numbers.
    """
    return _neighbours("is_non_decreasing", x, s.less_equal)


def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether every element is larger than the one before it in row-major order.

    Raises:
        TypeError: no real numbers.
    """
    return _neighbours("is_strictly_increasing", x, s.less)


# ---------------------------------------------------------------- permutations
@primitive(nondifferentiable=True, tf_name="InvertPermutation")
def invert_permutation_(xp: Any, x: Any) -> Any:
    """y with y[x[i]] = i."""
    n = x.size
    if xp is np and not np.array_equal(np.sort(x), np.arange(n)):
        raise InvalidArgumentError(f"invert_permutation: x must hold each of 0 … {n - 1} once; got "
                                   f"{shown(x.tolist())}")
    made = xp.zeros_like(x)
    made[x] = xp.arange(n, dtype=x.dtype)
    return made


@invert_permutation_.infer
def _(x: Spec) -> Spec:
    if x.ndim != 1 or x.dtype not in (int32, int64):
        raise InvalidArgumentError(f"invert_permutation takes an int32 or int64 vector; got {x}")
    return x


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """y with y[x[i]] = i, for a permutation x of 0 … n - 1.

    Raises:
        InvalidArgumentError: `x` is no vector of integers, or no permutation.
    """
    return invert_permutation_(convert(x))


# ---------------------------------------------------------------- confusion matrix
def _class_numbers(name: str, values: Any, like: Any = None) -> Tensor:
    found = cast(values, int64) if like is None else cast(convert(values, None, like), int64)
    if found.ndim and found.spec.shape[-1:] == (1,) and found.ndim == 2:
        from gtape.ops.shape.layout import reshape_

        found = reshape_(found, shape=found.spec.shape[:1])
    if found.ndim != 1:
        raise InvalidArgumentError(f"confusion_matrix: {name} must be a vector; got {found.spec}")
    return found


def confusion_matrix(labels: Any, predictions: Any, num_classes: Any = None, weights: Any = None,
                     dtype: Any = int32, name: str | None = None) -> Tensor:
    """[classes, classes] counts: entry (i, j) is how often label i was predicted as j.

    Args:
        labels, predictions: vectors of class numbers from 0.
        num_classes: how many classes there are; one more than the largest number unless given.
        weights: what each pair counts, 1 unless given.
        dtype: of the counts.

    Raises:
        InvalidArgumentError: no vectors of one length, or class numbers out of range.
    """
    from gtape.ops.checks.ranges import within
    from gtape.ops.indexing.gathering import scatter_nd_
    from gtape.ops.shape.creation import ones
    from gtape.ops.shape.packing import stack_

    wanted = as_dtype(dtype)
    truth = _class_numbers("labels", convert(labels))
    guess = _class_numbers("predictions", predictions, truth._t.device)
    if truth.spec.shape != guess.spec.shape:
        raise InvalidArgumentError(f"confusion_matrix: labels and predictions must have one "
                                   f"length; got {truth.spec} and {guess.spec}")
    pairs = stack_(truth, guess, axis=1)
    if num_classes is None:
        count = int(np.asarray(pairs._peek()).max(initial=-1)) + 1
    else:
        count = as_int(num_classes, "confusion_matrix: num_classes")
    pairs = within(pairs, 0, count, "confusion_matrix: class numbers")
    if weights is None:
        each: Tensor = ones(truth.spec.shape, wanted)
    else:
        each = cast(convert(weights, None, truth._t.device), wanted)
        if each.spec.shape != truth.spec.shape:
            raise InvalidArgumentError(f"confusion_matrix: the weights must have the shape of the "
                                       f"labels, {truth.spec}; got {each.spec}")
    mark_all(CUT, "confusion_matrix", (truth, guess), ())
    return scatter_nd_(pairs, each, shape=(count, count))
