"""Strings taken apart: words, bytes, characters, n-grams, whose rows are ragged; code points of
strings, and strings of code points."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.convert import convert
from gtape.core.dtypes import DType, int32, int64, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec, check_size
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_bytes, as_int, as_ints
from gtape.ops.ragged.ragged_tensor import RaggedTensor
from gtape.ops.text.steps import array_of, each, known, one_of, one_string, per_value, strings
from gtape.trace.host_steps import step

_REPLACEMENT = 0xFFFD


def _tensor(items: Sequence[object], dtype: DType) -> Tensor:
    return convert(array_of(items, (len(items),), dtype), dtype)


def _splits(rows: Sequence[Sequence[object]]) -> np.ndarray:
    return np.cumsum([0, *map(len, rows)], dtype=np.int64)


def _ragged(flat: Tensor, splits: Any, outer: Any) -> RaggedTensor:
    """Rows of `flat`, below the axes of `outer`: a shape, or nested row splits."""
    rows = RaggedTensor.from_row_splits(flat, splits)
    if isinstance(outer, tuple):
        for i, count in reversed(list(enumerate(outer))[1:]):
            rows = RaggedTensor.from_uniform_row_length(rows, count, nrows=int(np.prod(outer[:i])))
        return rows
    return RaggedTensor.from_nested_row_splits(flat, [*outer, splits])


def _rows(name: str, given: Any, pieces: Callable[[bytes], Sequence[tuple[object, ...]]],
          wanted: Sequence[DType]) -> list[Any]:
    """For each entry of the tuples of a string's pieces: vectors of a scalar, else ragged."""
    outer: Any = None
    if hasattr(given, "with_flat_values"):
        outer, given = list(given.nested_row_splits), given.flat_values
    (array,) = known(name, strings(given, name))
    rows = [pieces(text) for text in array.reshape(-1)]
    vectors = [_tensor([p[i] for row in rows for p in row], dtype)
               for i, dtype in enumerate(wanted)]
    if not array.ndim:
        return vectors
    splits = _splits(rows)
    return [_ragged(flat, splits, array.shape if outer is None else outer) for flat in vectors]


def split(input: TensorLike | CompositeTensor, sep: str | None = None, maxsplit: int = -1,
          name: str | None = None) -> Any:
    """The parts of each string between separators, as Python's `bytes.split` finds them.

    In a traced function this makes the function run eagerly, for the lengths depend on values.

    Args:
        input: a string, or a tensor or RaggedTensor of strings.
        sep: the separator; white space unless given, of which any number is one separator.
        maxsplit: at most so many splits; all where it is negative.

    Returns:
        A vector for one string; a RaggedTensor with one axis more than the input.

    Raises:
        InvalidArgumentError: no strings, or `sep` is no scalar.
    """
    between = one_string("" if sep is None else sep, "split", "sep")
    how: bytes | None = known("split", between)[0].item() or None
    # bytes.split takes no larger number of C's, and would raise OverflowError.
    most = max(-1, min(as_int(maxsplit, "split: maxsplit"), sys.maxsize))
    return _rows("split", input, lambda text: [(p,) for p in text.split(how, most)], [string])[0]


def bytes_split(input: TensorLike, name: str | None = None) -> Any:
    """The bytes of each string: a vector of one, a RaggedTensor of several. Raises
    InvalidArgumentError: no strings."""
    return _rows("bytes_split", input,
                 lambda text: [(text[i:i + 1],) for i in range(len(text))], [string])[0]


def unicode_decode(input: str, input_encoding: str, errors: str = "replace",
                   replacement_char: int = _REPLACEMENT, replace_control_characters: bool = False,
                   name: str | None = None) -> Tensor:
    """The code points of each string, int32: a vector of one, a RaggedTensor of several.

    Args:
        input: strings.
        input_encoding: how they are encoded, as 'UTF-8'.
        errors: what to do with bytes that are no character: 'replace', 'ignore' or 'strict'.
        replacement_char: what to replace them by.
        replace_control_characters: replace characters below U+0020 too.

    Raises:
        InvalidArgumentError: bytes that are no character where errors='strict'; an encoding, or
            another argument, that does not exist.
    """
    return unicode_decode_with_offsets(input, input_encoding, errors, replacement_char,
                                       replace_control_characters)[0]


def unicode_decode_with_offsets(input: str, input_encoding: str, errors: str = "replace",
                                replacement_char: int = _REPLACEMENT,
                                replace_control_characters: bool = False,
                                name: str | None = None) -> Any:
    """`unicode_decode`, and the bytes, int64, at which the characters begin: (points, offsets)."""
    how = Decoding(input_encoding, errors, replacement_char, replace_control_characters)
    return tuple(_rows("unicode_decode", input, how.points, [int32, int64]))


def unicode_split(input: TensorLike, input_encoding: str, errors: str = "replace",
                  replacement_char: object = _REPLACEMENT, name: str | None = None) -> Any:
    """The characters of each string, in its encoding: a vector of one, a RaggedTensor of several.
    Arguments and errors are those of `unicode_decode`."""
    return unicode_split_with_offsets(input, input_encoding, errors, replacement_char)[0]


def unicode_split_with_offsets(input: TensorLike, input_encoding: str, errors: str = "replace",
                               replacement_char: Any = _REPLACEMENT, name: str | None = None,
                               ) -> Any:
    """`unicode_split`, and the bytes, int64, at which the characters begin: (parts, offsets)."""
    how = Decoding(input_encoding, errors, replacement_char)

    def pieces(text: bytes) -> list[tuple[bytes, int]]:
        return [(chr(p).encode(how.encoding), at) for p, at in how.points(text)]

    return tuple(_rows("unicode_split", input, pieces, [string, int64]))


class _Ngrams:
    """How n-grams are made of a row of strings."""

    def __init__(self, widths: int | tuple[int, ...], separator: TensorLike, pads: object,
                 padding_width: Any, preserves: bool) -> None:
        self.widths = as_ints(widths, "ngrams: ngram_width")
        if not self.widths or min(self.widths) < 1:
            raise ValueError(f"tf.strings.ngrams: every ngram_width must be greater than 0; got "
                             f"{shown(widths)}")
        self.between = as_bytes(separator, "ngrams: separator")
        both = pads if isinstance(pads, (tuple, list)) else (pads, pads)
        if pads is not None and len(both) != 2:
            raise ValueError(f"tf.strings.ngrams: pad_values must be one string or two; got "
                             f"{shown(pads)}")
        self.pads = None if pads is None else [as_bytes(p, "ngrams: pad_values") for p in both]
        self.most = None if padding_width is None else as_int(padding_width, "padding_width")
        if self.most is not None and self.most < 1:
            raise ValueError(f"tf.strings.ngrams: padding_width must be greater than 0; got "
                             f"{self.most}")
        self.preserves = preserves
        if pads is not None:
            # Rows of pads: an ngram_width of 10**12 would fill the memory with them.
            check_size("ngrams", Spec((2 * self._count(max(self.widths)),), string))

    def _count(self, width: int) -> int:
        """How often a row is padded at either end."""
        return width - 1 if self.most is None else min(self.most, width - 1)

    def of(self, row: Sequence[bytes]) -> list[bytes]:
        grams: list[bytes] = []
        for width in self.widths:
            padded = self._padded(row, width)
            grams += [self.between.join(padded[i:i + width])
                      for i in range(len(padded) - width + 1)]
        # An empty row stays empty, as in TensorFlow: there is nothing to preserve.
        if not grams and self.preserves and len(row):
            grams = [self.between.join(self._padded(row, min(self.widths)))]
        return grams

    def _padded(self, row: Sequence[bytes], width: int) -> list[bytes]:
        if self.pads is None:
            return list(row)
        count = self._count(width)
        left, right = self.pads
        return [left] * count + list(row) + [right] * count


def ngrams(data: Any, ngram_width: Any, separator: TensorLike = " ", pad_values: str | None = None,
           padding_width: object = None, preserve_short_sequences: bool = False,
           name: str | None = None) -> Any:
    """Strings of `ngram_width` neighbours along the last axis, joined.

    Args:
        data: strings [..., n], or a RaggedTensor of them.
        ngram_width: how many neighbours, or a list of such numbers, whose n-grams follow one
            another.
        separator: what joins them.
        pad_values: a string to put in front of and behind every row, or a pair of them.
        padding_width: how often; ngram_width - 1 times unless given, and never more often.
        preserve_short_sequences: rows too short for any n-gram become one.

    Returns:
        A tensor, or a RaggedTensor where `data` is one.

    Raises:
        InvalidArgumentError: no strings.
        ValueError: a scalar, a width below 1, or other than one or two `pad_values`.
    """
    how = _Ngrams(ngram_width, separator, pad_values, padding_width, preserve_short_sequences)
    if hasattr(data, "with_flat_values"):
        *outer, last = data.nested_row_splits
        flat, splits = known("ngrams", strings(data.flat_values, "ngrams"), convert(last))
        rows = [how.of(list(flat[a:b])) for a, b in pairwise(splits)]
        return _ragged(_tensor([s for row in rows for s in row], string), _splits(rows), outer)
    (array,) = known("ngrams", strings(data, "ngrams"))
    if not array.ndim:
        raise ValueError("tf.strings.ngrams: the data must have at least one axis; got a scalar")
    count = int(np.prod(array.shape[:-1]))
    rows = [how.of(list(row)) for row in array.reshape(count, array.shape[-1])]
    size = len(rows[0]) if rows else 0
    return convert(array_of([s for row in rows for s in row], (*array.shape[:-1], size), string),
                   string)


_ERRORS = ("strict", "replace", "ignore")
_OUTPUTS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")


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
        # Python's decoder is much faster than going byte by byte, and replaces by the same
        # character.
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
    """Each string in another encoding. `output_encoding` is 'UTF-8', 'UTF-16-BE' or 'UTF-32-BE';
    the other arguments and the errors are those of `unicode_decode`."""
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
