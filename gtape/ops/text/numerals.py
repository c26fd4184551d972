"""Numbers as strings and strings as numbers."""

from __future__ import annotations

import re

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype, float32, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int
from gtape.ops.control.host_functions import array_text
from gtape.ops.text.steps import array_of, each, of_all, per_value, strings
from gtape.trace.host_steps import step

_FLOAT = re.compile(rb"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|0[xX][0-9a-fA-F]+"
                    rb"|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*")
_INTEGER = re.compile(rb"\s*[+-]?\d+\s*")
_NUMBERS = tuple(map(as_dtype, ("float32", "float64", "int32", "int64", "uint32", "uint64")))
#: The largest width that C's printf takes.
_WIDEST = 2**31 - 1
_FILLS = ("", " ", "-", "0", "+", "#")


def _number(text: bytes, dtype: DType) -> float:
    pattern = _FLOAT if dtype.is_floating else _INTEGER
    if pattern.fullmatch(text):
        if not dtype.is_floating:
            # Longer ones are out of range, and Python refuses to read very long ones.
            number = int(text) if len(text.strip()) < 64 else 1 << 64
            if dtype.min <= number <= dtype.max:
                return number
        elif b"x" in text.lower():
            return float(int(text, 16))
        else:
            return float(text)
    raise InvalidArgumentError(f"tf.strings.to_number could not correctly convert the string "
                               f"{shown(text)} to {dtype.name}")


@per_value
def to_number(input: TensorLike, out_type: object = float32, name: str | None = None) -> Tensor:
    """The number that each string says: float32, float64, int32, int64, uint32 or uint64. Raises
    InvalidArgumentError: a string is no number of this type, or another type."""
    dtype = as_dtype(out_type)
    if dtype not in _NUMBERS:
        raise InvalidArgumentError(f"tf.strings.to_number: out_type must be one of "
                                   f"{', '.join(d.name for d in _NUMBERS)}; got {dtype.name}")
    exact = np.float64 if dtype.is_floating else dtype.np_dtype

    @np.errstate(over="ignore")
    def numbers(texts: list[bytes]) -> np.ndarray:
        # By way of float64: "3.5e38" is inf as float32, not an error.
        return np.array([_number(text, dtype) for text in texts], exact).astype(dtype.np_dtype)

    return of_all("to_number", numbers, strings(input, "to_number"), dtype)


def _check_format(dtype: DType, precision: int, scientific: bool, shortest: bool,
                  fill: str) -> None:
    if scientific and shortest:
        raise InvalidArgumentError("tf.strings.as_string: choose scientific or shortest, not both")
    for what, given in (("precision is", precision >= 0),
                        ("scientific and shortest are", scientific or shortest)):
        if given and not dtype.is_differentiable:
            raise InvalidArgumentError(f"tf.strings.as_string: {what} for floating numbers; got "
                                       f"{dtype.name}")
    if fill not in _FILLS:
        raise InvalidArgumentError(f"tf.strings.as_string: fill must be one of {_FILLS}; got "
                                   f"{shown(fill)}")


@per_value
def as_string(input: TensorLike, precision: int = -1, scientific: bool = False,
              shortest: bool = False, width: int = -1, fill: str = "", name: str | None = None,
              ) -> Tensor:
    """Each number as its digits, as C's printf writes them; 'true' and 'false' for bools.

    Args:
        input: numbers, bools or strings.
        precision: digits behind the point; 6 unless given.
        scientific: 1.5e+00 in place of 1.5.
        shortest: whichever of both is shorter.
        width: at least so many characters.
        fill: what to fill up with, in front of the number: '0' or ' '; '-' puts the number first;
            '+' and ' ' put a sign before positive numbers.

    Raises:
        InvalidArgumentError: a format that this dtype does not have; a width beyond int32.
    """
    x = convert(input)
    digits, wide = as_int(precision, "as_string: precision"), as_int(width, "as_string: width")
    if max(digits, wide) > _WIDEST:
        raise InvalidArgumentError(f"tf.strings.as_string: precision and width must be at most "
                                   f"{_WIDEST}; got {digits} and {wide}")
    _check_format(x.dtype, digits, scientific, shortest, fill)
    if x.dtype.is_bool:
        return each("as_string", lambda v: b"true" if v else b"false", x, string)
    flags = fill + (str(wide) if wide >= 0 else "")
    if x.dtype is string or x.dtype.is_integer:
        letter = f"%{flags}{'s' if x.dtype is string else 'd'}".encode()
        return each("as_string", lambda v: letter % v, x, string)
    kind = ("e" if scientific else "g" if shortest else "f")
    form = f"%{flags}{f'.{digits}' if digits >= 0 else ''}{kind}"

    def written(value: float) -> str:
        # C fills inf and nan with spaces where a number gets zeros, Python with zeros.
        return (form if np.isfinite(value) else form.replace("%0", "%")) % value

    if x.dtype.is_complex:
        return each("as_string",
                    lambda v: f"({written(v.real)},{written(v.imag)})".encode(), x, string)
    return each("as_string", lambda v: written(float(v)).encode(), x, string)


def format(template: str, inputs: TensorLike, placeholder: str = "{}", summarize: int = 3,
           name: str | None = None) -> Tensor:
    """`template` with the tensors in place of the placeholders, written as tf.print does.

    Args:
        template: a string.
        inputs: a tensor, or a list or tuple of them.
        placeholder: what stands for a tensor in the template.
        summarize: how many entries at either end of an axis are shown; -1 for all.

    Raises:
        ValueError: as many placeholders as tensors are needed.
    """
    for what, text in (("template", template), ("placeholder", placeholder)):
        if not isinstance(text, str) or not (text or what == "template"):
            raise ValueError(f"tf.strings.format: the {what} must be a string; got {shown(text)}")
    items = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    parts = template.split(placeholder)
    if len(parts) - 1 != len(items):
        raise ValueError(f"tf.strings.format: the template has {len(parts) - 1} placeholders "
                         f"{placeholder!r}, and there are {len(items)} tensors")
    tensors = [convert(x) for x in items]

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        shown_arrays = [array_text(a, summarize) for a in arrays]
        text = "".join(a + b for a, b in zip(parts, [*shown_arrays, ""]))
        return [array_of([text.encode()], (), string)]

    return step("format", run, tensors, [Spec((), string)])[0]
