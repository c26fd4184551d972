"""Writes `__init__.pyi`, the static face of the lazy root namespace: `python -m gtape._stub`."""

from __future__ import annotations

import re
from pathlib import Path

from gtape import _names

PATH = Path(__file__).with_name("__init__.pyi")
_HEAD = '"""Names of the root namespace; written by `python -m gtape._stub`."""'
#: What `gtape.keras` is when it is imported: the namespace that Keras ships for TensorFlow.
_KERAS = "keras._tf_keras"


def _order(entry: tuple[str, tuple[str, str]]) -> tuple[str, str]:
    """By module and name, and numbers in a name by their size: float16 before float128."""
    module, attribute = entry[1]
    return module, re.sub(r"\d+", lambda digits: digits[0].zfill(4), f"{attribute} {entry[0]}")


def text() -> str:
    """The stub, from the table of names."""
    lines = [f"from {_KERAS if name == 'keras' else 'gtape'} import {name} as {name}"
              for name in sorted(_names.MODULES)]
    renamed = []
    for name, (module, attribute) in sorted(_names.ROOT.items(), key=_order):
        if module == "gtape.keras":
            module = f"{_KERAS}.keras"
        if name == attribute:
            lines.append(f"from {module} import {name} as {name}")
        else:
            hidden = f"_{name}"
            lines.append(f"from {module} import {attribute} as {hidden}")
            renamed.append(f"{name} = {hidden}")
    first = [line for line in lines if line.startswith(f"from {_KERAS}")]
    rest = [line for line in lines if line not in first]
    return "\n".join([_HEAD, "", *first, "", *rest, "", *renamed, "",
                      "__version__: str", "newaxis: None", ""])


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
