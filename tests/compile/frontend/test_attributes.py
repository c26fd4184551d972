"""AttributeWatch: what counts as a change of a Python object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gtape.compile.frontend.repeated_calls import AttributeWatch


class Holder:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def _owner() -> Any:
    inner = Holder(rate=0.5)
    return Holder(rate=0.25, name="owner", many=[1, 2], inner=inner, listed=[Holder(rate=1.5)],
                  named={"a": Holder(rate=2.5)}, other=object())


_CHANGES: dict[str, Callable[[Any], object]] = {
    "a number": lambda o: setattr(o, "rate", 0.75),
    "another type": lambda o: setattr(o, "name", None),
    "a new attribute": lambda o: setattr(o, "more", 1),
    "one less": lambda o: delattr(o, "other"),
    "another object": lambda o: setattr(o, "other", object()),
    "one inside": lambda o: setattr(o.inner, "rate", 9.0),
    "one in a list": lambda o: setattr(o.listed[0], "rate", 9.0),
    "one in a dict": lambda o: setattr(o.named["a"], "rate", 9.0),
}


@pytest.mark.parametrize("name", _CHANGES)
def test_a_change_is_seen(name: str) -> None:
    owner = _owner()
    seen = AttributeWatch(owner, (Holder,))
    assert seen.hold() and seen == AttributeWatch(owner, (Holder,))
    _CHANGES[name](owner)
    assert not seen.hold()
    assert seen != AttributeWatch(owner, (Holder,))


def test_containers_are_compared_by_length_when_looked_at_again() -> None:
    owner = _owner()
    seen = AttributeWatch(owner, (Holder,))
    owner.many.append(3)
    assert seen.hold()
    assert seen != AttributeWatch(owner, (Holder,))


def test_the_same_number_is_no_change_though_another_object() -> None:
    owner = _owner()
    seen = AttributeWatch(owner, (Holder,))
    owner.rate = float("0.25")
    assert not seen.hold()
    assert seen == AttributeWatch(owner, (Holder,))
    owner.rate = 1
    before = AttributeWatch(owner, (Holder,))
    owner.rate = True
    assert before != AttributeWatch(owner, (Holder,))


def test_objects_of_other_classes_are_not_looked_into() -> None:
    owner = Holder(inner=_owner())
    seen = AttributeWatch(owner, (int,))
    owner.inner.rate = 9.0
    assert seen.hold() and seen == AttributeWatch(owner, (int,))


def test_objects_that_hold_each_other() -> None:
    owner = _owner()
    owner.inner.owner = owner
    assert sorted(AttributeWatch(owner, (Holder,)).named("rate")) == [0.25, 0.5, 1.5, 2.5]
