"""The lines of kernel text that a compiler complains about."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DIRECTIVE = re.compile(r'^#line (\d+) "([^"]+)"$')
_ERROR = re.compile(r"^([^\s(][^(\n]*)\((\d+)\): (?:catastrophic )?error", re.MULTILINE)


def located(text: str, file: str) -> Iterator[tuple[str, int, str]]:
    """Each line of `text` with the file and number that `#line` directives give it; `file` is the
    name of what stands before the first."""
    number = 0
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        if directive:
            file, number = directive[2], int(directive[1]) - 1
        else:
            number += 1
            yield file, number, line


def excerpt(text: str, file: str, number: int, around: int = 2) -> str:
    """Line `number` of `file` with its neighbours; "" where `text` has no such line."""
    near = {n: line for f, n, line in located(text, file)
            if f == file and abs(n - number) <= around}
    if number not in near:
        return ""
    return "\n".join(f"{'>' if n == number else ' '} {n:4} | {line}"
                     for n, line in sorted(near.items()))


def complaint(text: str, log: str) -> str:
    """The place of the first error in NVRTC's `log`, shown in `text`; "" where it names none."""
    for error in _ERROR.finditer(log):
        shown = excerpt(text, error[1], int(error[2]))
        if shown:
            return f"{error[1]}:{error[2]}\n{shown}"
    return ""
