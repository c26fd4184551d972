"""The versions of Keras that gtape is tested with, and the names in it that gtape relies on."""

from __future__ import annotations

from importlib import metadata

from gtape.core.errors import EngineError

#: From the first version that is tested to the first that is not.
TESTED = ("3.15", "3.16")


def _number(version: str) -> tuple[int, ...]:
    parts = []
    for part in version.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        parts.append(int(digits or 0))
    return tuple(parts)


def check() -> str:
    """The version of Keras that is installed.

    Raises:
        EngineError: there is none, or one that was not tested.
    """
    first, end = TESTED
    asked = f"'keras>={first},<{end}'"
    try:
        found = metadata.version("keras")
    except metadata.PackageNotFoundError:
        raise EngineError(f"tf.keras is the package keras, which is not installed: "
                          f"pip install {asked}") from None
    if not _number(first) <= _number(found) < _number(end):
        raise EngineError(f"gtape is tested with keras {first} to before {end} as its tf.keras; "
                          f"this is {found}: pip install {asked}")
    return found
