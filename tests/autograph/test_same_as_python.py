"""On plain values a converted function does what the function does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from gtape.autograph import convert
from tests.autograph import (
    corpus_jumps,  # noqa: F401
    corpus_names,  # noqa: F401
)
from tests.autograph.corpus import CORPUS


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The result of a call, or its exception."""
    try:
        return "result", repr(fn(*copy.deepcopy(args)))
    except Exception as error:
        kind = NameError if isinstance(error, NameError) else type(error)
        text = "" if kind is NameError else str(error)
        cause = type(error.__cause__).__name__
        return "error", kind.__name__, text, cause


@pytest.mark.parametrize(("fn", "calls"), CORPUS, ids=lambda p: getattr(p, "__name__", ""))
def test_results_and_errors(fn: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    converted = convert(fn)
    assert converted is not fn
    for args in calls:
        assert outcome(converted, args) == outcome(fn, args), args


def test_the_corpus_is_converted_and_large_enough() -> None:
    assert len(CORPUS) >= 40
    changed = [fn for fn, _ in CORPUS if "ag__" in convert(fn).__code__.co_freevars]
    assert len(changed) >= len(CORPUS) - 2
