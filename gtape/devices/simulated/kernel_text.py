"""CUDA kernel text as g++ can compile it: what C++ lacks is written in other words.

Three things of CUDA are no C++: kernels are called by name from outside, `extern __shared__ T x[]`
is memory whose size the launch gives, and variables marked `__device__` or `__constant__` have
addresses that the host may ask for. All else the header `simulated/kernel.h` does by macros.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

_COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_KERNEL = re.compile(r"__global__\s[^;{}()=]*?\b(?P<name>[A-Za-z_]\w*)\s*\(")
_ATTRIBUTE = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)"
                        r"|__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
_DYNAMIC = re.compile(
    r"\bextern\s+(?P<before>(?:__align__\s*\([^)]*\)\s*|alignas\s*\([^)]*\)\s*)*)__shared__\s+"
    r"(?P<type>[^;=\[\]]*?)\s*\b(?P<name>[A-Za-z_]\w*)\s*\[\s*\](?P<inner>(?:\s*\[[^\]]*\])*)\s*;")
_VARIABLE = re.compile(r"\b(?:__device__|__constant__)\b(?P<declared>[^;(){}=]*?)"
                       r"\b(?P<name>[A-Za-z_]\w*)\s*(?P<sizes>(?:\[[^\]]*\]\s*)*)(?=[;={])")
_ALIGNED = re.compile(r"__(?:align__|launch_bounds__)\s*\([^()]*\)|alignas\s*\([^()]*\)")


class AdaptedText(NamedTuple):
    """Text for the compiler, and the symbol of each name expression."""

    text: str
    symbols: dict[str, str]


def adapted(text: str, name: str, expressions: Sequence[str]) -> AdaptedText:
    """`text`, known to the compiler as `name`, with what its library is to export.

    Kernels with C linkage are exported under their names, those that name expressions ask for
    (`&softmax<float>`) under names made here.
    """
    blank = _blanked(text)
    changes: list[tuple[int, int, str]] = []
    kernels = _kernels(blank, changes)
    _dynamic_memory(blank, changes)
    variables = _variables(blank, changes)
    # From the end: places before it stay right.
    for first, last, new in sorted(changes, reverse=True):
        text = text[:first] + new + text[last:]
    exports = [f"SIMULATED_KERNEL({kernel}, &gtape_global_{kernel})" for kernel in kernels]
    exports += [f"SIMULATED_SIZE({variable})" for variable in variables]
    symbols = {}
    for expression in expressions:
        entry = expression.strip().removeprefix("&").strip()
        symbols[expression] = symbol = entry if entry in kernels else _symbol(entry)
        if entry not in kernels:
            exports.append(f"SIMULATED_KERNEL({symbol}, &{entry})")
    end = "\n".join([*exports, "SIMULATED_SHARED", ""])
    return AdaptedText(f'#line 1 "{name}"\n{text}\n#line 1 "exports"\n{end}', symbols)


def _blanked(text: str) -> str:
    """`text` with spaces for comments, strings and directives, so that positions stay."""
    def spaces(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    # "C" stays: linkage is told by it.
    return _DIRECTIVE.sub(spaces, _COMMENT_OR_STRING.sub(
        lambda found: '"C"' if found[0] == '"C"' else spaces(found), text))


def _kernels(blank: str, changes: list[tuple[int, int, str]]) -> list[str]:
    """The names of kernels with C linkage. Each gets a name of its own in the text, since C has
    functions called `add` or `index` that would be meant as well."""
    blocks = _linkage_blocks(blank)
    names: list[str] = []
    # _KERNEL ends at parentheses, which attributes have before the name.
    bare = _ATTRIBUTE.sub(lambda found: " " * len(found[0]), blank)
    for found in _KERNEL.finditer(bare):
        start = max(blank.rfind(c, 0, found.start()) for c in ";{}") + 1
        before = blank[start:found.start()]
        if "template" in before:  # exported where a name expression asks for it
            continue
        if 'extern "C"' not in re.sub(r"\s+", " ", before) and not any(
                a < found.start() < b for a, b in blocks):
            continue
        changes.append((*found.span("name"), f"gtape_global_{found['name']}"))
        if found["name"] not in names:
            names.append(found["name"])
    return names


def _linkage_blocks(blank: str) -> list[tuple[int, int]]:
    """Where `extern "C" { ... }` begin and end."""
    blocks = []
    for found in re.finditer(r'extern\s+"C"\s*\{', blank):
        depth, at = 1, found.end()
        while depth and at < len(blank):
            depth += (blank[at] == "{") - (blank[at] == "}")
            at += 1
        blocks.append((found.start(), at))
    return blocks


def _dynamic_memory(blank: str, changes: list[tuple[int, int, str]]) -> None:
    for found in _DYNAMIC.finditer(blank):
        kind = " ".join(_ALIGNED.sub(" ", found["type"]).split())
        if found["inner"].strip():  # a[][4]: an array of rows
            new = (f"auto& {found['name']} = *reinterpret_cast<gtape_emulator::plain<{kind}> (*)"
                   f"[1024]{found['inner'].strip()}>(gtape_emulator::dynamic_shared);")
        else:
            new = f"SIMULATED_DYNAMIC({found['name']}, {kind});"
        # As many lines as before: messages name lines of the user's text.
        changes.append((*found.span(), new + "\n" * blank.count("\n", *found.span())))


def _variables(blank: str, changes: list[tuple[int, int, str]]) -> list[str]:
    names = []
    for found in _VARIABLE.finditer(blank):
        words = found["declared"].split()
        if not words or {"inline", "operator", "struct", "template"} & set(words):
            continue
        word = 10 if blank.startswith("__device__", found.start()) else 12
        changes.append((found.start(), found.start() + word, "SIMULATED_VARIABLE"))
        if "static" not in words:  # no symbol to the host, which cannot ask for it
            names.append(found["name"])
    return names


def _symbol(expression: str) -> str:
    # For backtraces; the digest tells symbols apart.
    readable = re.sub(r"\W+", "_", expression)[:40]
    return f"{readable}_{sha256(expression.encode()).hexdigest()[:12]}"
