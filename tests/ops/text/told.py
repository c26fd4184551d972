"""Tests of rows: what calls give, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Given = list[tuple[Callable[[], Any], Any]]
Refused = list[tuple[Callable[[], Any], type[Exception]]]


def _plain(value: Any) -> Any:
    """The numbers and strings of a result, as lists."""
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "to_list"):
        return value.to_list()
    array = value.numpy()
    return array if isinstance(array, bytes) else array.tolist()


def gives(rows: Given) -> Callable[..., None]:
    """A test that each call gives this; NaN is NaN."""
    @pytest.mark.parametrize("call, wanted", rows)
    def test(call: Callable[[], Any], wanted: Any) -> None:
        found = repr(_plain(call()))
        assert found == repr(wanted), f"{found} is not {wanted!r}"

    return test


def refuses(rows: Refused) -> Callable[..., None]:
    """A test that each call raises this."""
    @pytest.mark.parametrize("call, error", rows)
    def test(call: Callable[[], Any], error: type[Exception]) -> None:
        with pytest.raises(error):
            call()

    return test
