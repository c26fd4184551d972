"""Optional: an element that may be missing."""

from __future__ import annotations

from typing import Any

from gtape.core import nest
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.data import elements
from gtape.data.arguments import specs_of

_NOTHING = object()


class Optional:
    """A value, or none: what `Iterator.get_next_as_optional` gives.

    Made by `Optional.from_value(value)` and `Optional.empty(element_spec)`.
    """

    def __init__(self, value: Any, element_spec: Any) -> None:
        self._value = value
        self._element_spec = element_spec

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An Optional with a value: a nest of tensors, and of what becomes one."""
        made = elements.element_of(value)
        return Optional(made, elements.spec_of(made))

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An Optional without a value.

        Raises:
            TypeError: `element_spec` is neither None nor a nest of specs.
        """
        if element_spec is not None:
            specs_of(element_spec, "Optional.empty: element_spec")
        return Optional(_NOTHING, element_spec)

    @property
    def element_spec(self) -> Any:
        """The specs of the value."""
        return self._element_spec

    @property
    def _has(self) -> bool:
        return self._value is not _NOTHING

    def has_value(self, name: str | None = None) -> Any:
        """Whether there is a value: a scalar tensor."""
        return convert(self._has)

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: there is none.
        """
        if self._value is _NOTHING:
            raise InvalidArgumentError("The given optional does not have a value.")
        return self._value

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self._element_spec)

    def __eq__(self, other: object) -> bool:
        """Empty ones of one spec are equal, so that they share the traces of functions."""
        return self is other or (isinstance(other, Optional) and not self._has and not other._has
                                 and self._type_spec == other._type_spec)

    def __hash__(self) -> int:
        return id(self) if self._has else hash(self._type_spec)

    def __repr__(self) -> str:
        return f"<Optional element_spec={self._element_spec}>"


class OptionalSpec:
    """The spec of an `Optional` whose value has the specs `element_spec`."""

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    def is_compatible_with(self, other: Any) -> bool:
        """Whether an Optional, or the spec of one, has this spec."""
        return getattr(other, "element_spec", None) == self.element_spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OptionalSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(tuple(nest.flatten(self.element_spec)))

    def __repr__(self) -> str:
        return f"OptionalSpec({self.element_spec!r})"
