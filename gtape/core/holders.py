"""Holder: an object that stands for the tensor or the Variable that it holds."""

from __future__ import annotations

from typing import Any

from gtape.core.tensor import Tensor
from gtape.core.variable import Variable


class Holder:
    """Base of classes whose `value` is taken wherever an instance is given for a tensor.

    `_value` is what the instance holds itself, None while there is nothing yet.
    """

    _value: Any
    value: Any

    @property
    def _t(self) -> Any:
        return self.value._t

    @property
    def spec(self) -> Any:
        return self.value.spec

    def _read_(self) -> Tensor:
        value = self.value
        return value._read_() if isinstance(value, Variable) else value  # type: ignore[no-any-return]

    @property
    def _resource_(self) -> Any:
        # None has no such method, so that an instance without its value yet is no resource.
        return self._value._resource_
