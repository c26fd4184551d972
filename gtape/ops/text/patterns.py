"""Regular expressions: TensorFlow's are RE2's, and these become Python's `re`.

RE2 takes time linear in the string for every pattern, Python's `re` does not: a pattern with
repetitions within repetitions, such as `(a+)+b`, can take time exponential in the string where it
does not match. Do not take patterns from people whom you do not trust.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np

from gtape.core.annotations import TensorLike
from gtape.core.dtypes import bool_, string
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Tensor
from gtape.ops.text.steps import array_of, one_string, per_value, strings
from gtape.trace.host_steps import step

# Strings are bytes, and need not be UTF-8: what is not goes through `re` as lone surrogates, and
# comes out as it was.
_SURROGATES = "surrogateescape"
_REPETITION = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_FLAGS = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
#: RE2 refuses more repetitions; Python's `re` would take them, and take long.
_MOST = 1000

#: What is in a class, and what is in its complement, as the inside of brackets.
_WORD = ("0-9A-Za-z_", "\\x00-/:-@\\[-\\^`{-\U0010ffff")
_DIGIT = ("0-9", "\\x00-/:-\U0010ffff")
_SPACE = ("\\t\\n\\f\\r ", "\\x00-\\x08\\x0b\\x0e-\\x1f!-\U0010ffff")
_CLASSES = {"w": _WORD[0], "W": _WORD[1], "d": _DIGIT[0], "D": _DIGIT[1], "s": _SPACE[0],
            "S": _SPACE[1]}
_NAMED = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7f", "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": "!-/:-@\\[-`{-~", "space": "\\t\\n\\x0b\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f"}
_BOUNDARY = (f"(?:(?<![{_WORD[0]}])(?=[{_WORD[0]}])|(?<=[{_WORD[0]}])(?![{_WORD[0]}]))")
_INSIDE = (f"(?:(?<![{_WORD[0]}])(?![{_WORD[0]}])|(?<=[{_WORD[0]}])(?=[{_WORD[0]}]))")
# RE2's \z is Python's \Z, and its \b knows ASCII words alone.
_PLACES = {"A": "\\A", "z": "\\Z", "b": _BOUNDARY, "B": _INSIDE}
_CONTROLS = {"a": "\\x07", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\x0b"}


def _ranges(kept: Callable[[int], bool]) -> str:
    """The inside of brackets for the code points for which `kept` holds."""
    ranges, start = [], None
    for point in range(sys.maxunicode + 2):
        inside = point <= sys.maxunicode and kept(point)
        if inside and start is None:
            start = point
        elif not inside and start is not None:
            ranges.append(f"\\U{start:08x}-\\U{point - 1:08x}")
            start = None
    return "".join(ranges)


# Each goes through all 1,114,112 code points once.
@functools.lru_cache
def _category(name: str, negated: bool) -> str:
    return _ranges(lambda p: unicodedata.category(chr(p)).startswith(name) is not negated)


@functools.lru_cache
def _complement(inside: str) -> str:
    matcher = re.compile(f"[{inside}]")
    return _ranges(lambda p: matcher.match(chr(p)) is None)


class _Translation:
    """One pattern of RE2, read from left to right and written for `re`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.parts: list[str] = []
        #: Of each open group: the groups opened for flags in it, and whether $ ends lines.
        self.groups: list[tuple[list[str], bool]] = [([], False)]

    def wrong(self, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"invalid pattern {shown(self.pattern)}: {why}. Patterns are "
                                    f"RE2's: github.com/google/re2/wiki/Syntax")

    def translated(self) -> str:
        while self.at < len(self.pattern):
            self._next()
        if len(self.groups) > 1:
            raise self.wrong("missing )")
        self.parts.append(")" * len(self.groups[0][0]))
        return "".join(self.parts)

    def _next(self) -> None:
        c = self.pattern[self.at]
        if c in "*+?":
            self.at += 1
            self._repeated(c)
        elif c == "{" and (match := _REPETITION.match(self.pattern, self.at)):
            if any(int(n or 0) > _MOST for n in match.groups()):
                raise self.wrong(f"invalid repetition size {match[0]}")
            self.at = match.end()
            self._repeated(match[0])
        else:
            self.at += 1
            self._plain(c)

    def _repeated(self, how: str) -> None:
        lazy = self.pattern.startswith("?", self.at)
        self.at += lazy
        rest = self.pattern[self.at:self.at + 1]
        if rest and (rest in "*+?" or _REPETITION.match(self.pattern, self.at)):
            raise self.wrong(f"bad repetition operator {how}{rest}")
        self.parts.append(how + "?" * lazy)

    def _plain(self, c: str) -> None:
        if c == "\\":
            self.parts.append(self._escaped())
        elif c == "[":
            self.parts.append(self._bracket())
        elif c == "(":
            self._group()
        elif c == ")":
            if len(self.groups) == 1:
                raise self.wrong("unexpected )")
            self.parts.append(")" * (len(self.groups.pop()[0]) + 1))
        elif c == "|":
            # `(?i)` holds to the end of its group in RE2, in Python only at the beginning of a
            # pattern: it becomes a group of its own, closed and opened anew at each |.
            flags = self.groups[-1][0]
            self.parts.append(")" * len(flags) + "|" + "".join(flags))
        elif c == "$":
            # Python's $ also matches before a newline at the end, RE2's does not.
            self.parts.append("$" if self.groups[-1][1] else "\\Z")
        else:
            self.parts.append(c if c in "^." else re.escape(c))

    def _group(self) -> None:
        lines = self.groups[-1][1]
        if not self.pattern.startswith("?", self.at):
            self.parts.append("(")
        elif match := re.compile(r"\?P<\w+>").match(self.pattern, self.at):
            self.parts.append("(" + match[0])
            self.at = match.end()
        else:
            match = _FLAGS.match(self.pattern, self.at)
            on, off, end = match.groups() if match else ("", "", "")
            if not match or set(on + (off or "")) - set("ims"):
                raise self.wrong(f"({self.pattern[self.at:self.at + 3]} is no group, or one of "
                                 f"flags other than i, m and s")
            self.at = match.end()
            lines = "m" in on or (lines and "m" not in (off or ""))
            opened = f"(?{on}{'-' + off if off else ''}:"
            self.parts.append(opened)
            if end == ")":
                self.groups[-1] = ([*self.groups[-1][0], opened], lines)
                return
        self.groups.append(([], lines))

    def _escaped(self) -> str:
        """What follows a backslash outside brackets."""
        c = self.pattern[self.at:self.at + 1]
        if c in _PLACES and c:
            self.at += 1
            return _PLACES[c]
        if c == "Q":
            end = self.pattern.find("\\E", self.at)
            text = self.pattern[self.at + 1:end if end >= 0 else None]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            return "".join(map(re.escape, text))
        inside, is_class = self._escape()
        return f"[{inside}]" if is_class else inside

    def _escape(self) -> tuple[str, bool]:
        """What follows a backslash anywhere, and whether it is a class of characters."""
        c = self.pattern[self.at:self.at + 1]
        self.at += 1
        if c and c in _CLASSES:
            return _CLASSES[c], True
        if c and c in "pP":
            return self._property(c == "P"), True
        if c and c in _CONTROLS:
            return _CONTROLS[c], False
        if c == "x":
            match = re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,6})\}").match(
                self.pattern, self.at)
            if match and int(match[1] or match[2], 16) <= sys.maxunicode:
                self.at = match.end()
                return f"\\U{int(match[1] or match[2], 16):08x}", False
        if match := re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}").match(self.pattern, self.at - 1):
            self.at = match.end()
            return f"\\U{int(match[0], 8):08x}", False
        if c and c.isascii() and not c.isalnum() and c != "_":
            return re.escape(c), False
        raise self.wrong(f"invalid escape \\{c}")

    def _property(self, negated: bool) -> str:
        match = re.compile(r"([A-Z])|\{(\^?)(\w+)\}").match(self.pattern, self.at)
        if not match:
            raise self.wrong("\\p needs a category such as \\pL or \\p{Lu}")
        self.at = match.end()
        inside = _category(match[1] or match[3], negated is not bool(match[2]))
        if not inside:
            raise self.wrong(f"there is no category {match[0]}; scripts such as \\p{{Greek}} are "
                             f"not supported, write ranges such as [\\x{{370}}-\\x{{3ff}}]")
        return inside

    def _bracket(self) -> str:
        parts = ["["]
        if self.pattern.startswith("^", self.at):
            parts.append("^")
            self.at += 1
        first = self.at
        while self.pattern[self.at:self.at + 1] != "]" or self.at == first:
            if self.at >= len(self.pattern):
                raise self.wrong("missing ]")
            parts.append(self._in_bracket())
        self.at += 1
        return "".join([*parts, "]"])

    def _in_bracket(self) -> str:
        match = re.compile(r"\[:(\^?)(\w+):\]").match(self.pattern, self.at)
        if match:
            if match[2] not in _NAMED:
                raise self.wrong(f"there is no class {match[0]}")
            self.at = match.end()
            inside = _NAMED[match[2]]
            return _complement(inside) if match[1] else inside
        c = self.pattern[self.at]
        self.at += 1
        if c == "\\":
            return self._escape()[0]
        # A "[" within brackets is a plain character to RE2, of which Python warns.
        return c if c == "-" else re.escape(c)


# As many as Python's own cache of patterns has: a program has a few, one that makes them has no end
# of them.
@functools.lru_cache(maxsize=512)
def compiled(pattern: bytes) -> re.Pattern[str]:
    """What matches as RE2's `pattern` does."""
    translation = _Translation(pattern.decode("utf-8", _SURROGATES))
    translated = translation.translated()
    try:
        return re.compile(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise translation.wrong(str(error).partition(" at position")[0]) from None


@functools.lru_cache(maxsize=512)
def _rewriting(rewrite: bytes, groups: int) -> tuple[str, ...]:
    """The parts of a rewrite: texts, and numbers of groups."""
    parts = re.split(r"(\\.?)", rewrite.decode("utf-8", _SURROGATES), flags=re.DOTALL)
    pieces: list[Any] = []
    for part in parts:
        if part.startswith("\\") and part != "\\\\":
            if not part[1:].isdecimal() or int(part[1:]) > groups:
                raise InvalidArgumentError(
                    f"invalid rewrite {shown(rewrite)}: a backslash must be followed by another, "
                    f"or by the number of a group, of which the pattern has {groups}")
            pieces.append(int(part[1:]))
        elif part:
            pieces.append("\\" if part == "\\\\" else part)
    return tuple(pieces)


def _replaced(text: bytes, pattern: re.Pattern[str], parts: tuple[str, ...], all_: bool) -> bytes:
    whole = text.decode("utf-8", _SURROGATES)
    pieces, end, last = [], 0, -1
    for match in pattern.finditer(whole):
        # RE2 finds no empty match right behind a match; Python does.
        if match.start() == match.end() == last:
            continue
        pieces.append(whole[end:match.start()])
        pieces += [p if isinstance(p, str) else match[p] or "" for p in parts]
        end = last = match.end()
        if not all_:
            break
    pieces.append(whole[end:])
    return "".join(pieces).encode("utf-8", _SURROGATES)


@per_value
def regex_replace(input: TensorLike, pattern: TensorLike, rewrite: TensorLike,
                  replace_global: bool = True, name: str | None = None) -> Tensor:
    r"""Each string with what matches `pattern` replaced.

    The syntax is RE2's; it runs as Python's `re`, whose time is not linear in the string for every
    pattern: one with repetitions within repetitions may take very long.

    Args:
        input: strings.
        pattern: a regular expression.
        rewrite: what to put in its place; \1 is the first group, \0 the whole match, \\ a
            backslash.
        replace_global: replace all matches, and not the first alone.

    Raises:
        InvalidArgumentError: an invalid pattern or rewrite; or no strings.
    """
    x = strings(input, "regex_replace")
    given = [one_string(v, "regex_replace", what)
             for v, what in ((pattern, "pattern"), (rewrite, "rewrite"))]

    def run(array: np.ndarray, how: np.ndarray, by: np.ndarray) -> list[np.ndarray]:
        matcher = compiled(how.item())
        parts = _rewriting(by.item(), matcher.groups)
        return [array_of([_replaced(text, matcher, parts, replace_global)
                          for text in array.reshape(-1)], array.shape, string)]

    return step("regex_replace", run, [x, *given], [Spec(x.spec.shape, string)])[0]


@per_value
def regex_full_match(input: TensorLike, pattern: str, name: str | None = None) -> Tensor:
    """Whether the whole of each string matches `pattern`, a regular expression as RE2 reads it. It
    runs as Python's `re`: see `regex_replace`. Raises InvalidArgumentError: an invalid pattern, or
    no strings."""
    x = strings(input, "regex_full_match")

    def run(array: np.ndarray, how: np.ndarray) -> list[np.ndarray]:
        matcher = compiled(how.item())
        return [array_of([matcher.fullmatch(text.decode("utf-8", _SURROGATES)) is not None
                          for text in array.reshape(-1)], array.shape, bool_)]

    return step("regex_full_match", run, [x, one_string(pattern, "regex_full_match", "pattern")],
                [Spec(x.spec.shape, bool_)])[0]
