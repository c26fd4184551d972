"""Code points of strings, and strings of code points."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gtape.core.convert import convert
from gtape.core.dtypes import int32, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_int
from gtape.ops.text.steps import each, one_of, per_value, strings
from gtape.trace.host_steps import step

_ERRORS = ("strict", "replace", "ignore")
_OUTPUTS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
_REPLACEMENT = 0xFFFD


class Decoding:
    """How strings are read."""

    def __init__(self, encoding: str, errors: str = "replace", replacement_char: int = _REPLACEMENT,
                 replace_control_characters: bool = False) -> None:
        try:
            self.encoding = codecs.lookup(encoding).name
        except (LookupError, TypeError):
            raise InvalidArgumentError(f"there is no input_encoding {shown(encoding)}; write "
                                       f"'UTF-8', 'UTF-16-BE' …") from None
        self.errors = one_of("errors", errors, _ERRORS)
        self.replacement = _code_point(as_int(replacement_char, "replacement_char"))
        self.replaces_controls = replace_control_characters

    def points(self, text: bytes) -> list[tuple[int, int]]:
        """The code points with the bytes at which they begin."""
        placed: list[tuple[int, int]] = []
        at = 0
        while at < len(text):
            end, point = self._next(text, at)
            if point is None:
                if self.errors == "strict":
                    raise InvalidArgumentError(f"the string {shown(text)} is not {self.encoding} "
                                               f"at byte {at}; give errors='replace' or 'ignore'")
                point = self.replacement if self.errors == "replace" else None
            elif self.replaces_controls and point < 0x20:
                point = None if self.errors == "ignore" else self.replacement
            if point is not None:
                placed.append((point, at))
            at = end
        return placed

    def _next(self, text: bytes, at: int) -> tuple[int, int | None]:
        """The end of the character at a byte, and its code point; None where it is none."""
        # Byte by byte: only so a decoder tells where each character ends.
        decoder = codecs.getincrementaldecoder(self.encoding)("strict")
        for end in range(at + 1, len(text) + 1):
            try:
                character = decoder.decode(text[end - 1:end], final=False)
            except UnicodeDecodeError as error:
                return max(at + error.end, at + 1), None
            if character:
                return end, ord(character)
        return len(text), None

    def text(self, text: bytes) -> str:
        """The text of a string, with what stands for errors."""
        if not self.replaces_controls and (self.errors != "replace"
                                           or self.replacement == _REPLACEMENT):
            try:
                return text.decode(self.encoding, self.errors)
            except UnicodeDecodeError:
                pass
        return "".join(chr(p) for p, _ in self.points(text))


def _code_point(value: int) -> int:
    if not 0 <= value <= 0x10FFFF or 0xD800 <= value < 0xE000:
        raise InvalidArgumentError(f"a replacement_char must be a code point of Unicode; got "
                                   f"{value}")
    return value


@per_value
def unicode_transcode(input: str, input_encoding: str, output_encoding: str,
                      errors: str = "replace", replacement_char: int = _REPLACEMENT,
                      replace_control_characters: bool = False, name: str | None = None) -> Tensor:
    """Each string in another encoding.

    `output_encoding` is 'UTF-8', 'UTF-16-BE' or 'UTF-32-BE'; the other arguments and the errors are
    those of `unicode_decode`.
    """
    one_of("tf.strings.unicode_transcode: output_encoding", output_encoding, _OUTPUTS)
    decoding = Decoding(input_encoding, errors, replacement_char, replace_control_characters)
    return each("unicode_transcode", lambda b: decoding.text(b).encode(output_encoding),
                strings(input, "unicode_transcode"), string)


def _encoded(points: Sequence[int], encoding: str, errors: str, replacement: int) -> bytes:
    characters = []
    for point in points:
        if 0 <= point <= 0x10FFFF and not 0xD800 <= point < 0xE000:
            characters.append(chr(point))
        elif errors == "strict":
            raise InvalidArgumentError(f"{point} is no code point of Unicode, or is a surrogate; "
                                       f"give errors='replace' or 'ignore'")
        elif errors == "replace":
            characters.append(chr(replacement))
    return "".join(characters).encode(encoding)


def unicode_encode(input: Any, output_encoding: str, errors: str = "replace",
                   replacement_char: Any = _REPLACEMENT, name: str | None = None) -> Any:
    """The strings of rows of code points.

    Args:
        input: int32 [..., n], or a RaggedTensor whose last axis is ragged.
        output_encoding: 'UTF-8', 'UTF-16-BE' or 'UTF-32-BE'.
        errors: what to do with numbers that are no code point: 'replace', 'ignore' or 'strict'.
        replacement_char: what to replace them by.

    Returns:
        Strings [...].

    Raises:
        InvalidArgumentError: a number that is no code point where errors='strict'; no int32.
    """
    one_of("tf.strings.unicode_encode: output_encoding", output_encoding, _OUTPUTS)
    one_of("errors", errors, _ERRORS)
    other = _code_point(as_int(replacement_char, "replacement_char"))
    if hasattr(input, "with_flat_values"):
        *outer, splits = [s.numpy() for s in input.nested_row_splits]
        flat = input.flat_values.numpy().tolist()
        encoded = convert([_encoded(flat[a:b], output_encoding, errors, other)
                           for a, b in pairwise(splits)], string)
        return type(input).from_nested_row_splits(encoded, outer) if outer else encoded
    x = convert(input)
    if x.dtype is not int32 or not x.ndim:
        raise InvalidArgumentError(f"tf.strings.unicode_encode takes rows of int32; got {x.spec}")

    def run(array: np.ndarray) -> list[np.ndarray]:
        texts = np.empty(array.shape[:-1], object)
        flat = texts.reshape(-1)
        for i, row in enumerate(array.reshape(flat.size, array.shape[-1]).tolist()):
            flat[i] = _encoded(row, output_encoding, errors, other)
        return [texts]

    return step("unicode_encode", run, [x], [Spec(x.spec.shape[:-1], string)])[0]
