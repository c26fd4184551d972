"""What a Keras object is to gtape: the bases that Keras' variables, layers and optimizers have."""

from __future__ import annotations

from typing import Any

from gtape.core.tensor import Tensor
from gtape.core.variable import Variable


class TensorBase:
    """Base of `keras.Variable`: whatever takes a tf.Variable takes it for the one it holds."""

    @property
    def _t(self) -> Any:
        return self.value._t  # type: ignore[attr-defined]

    @property
    def spec(self) -> Any:
        return self.value.spec  # type: ignore[attr-defined]

    def _read_(self) -> Tensor:
        value = self.value  # type: ignore[attr-defined]
        return value._read_() if isinstance(value, Variable) else value

    @property
    def _resource_(self) -> Any:
        # None has no such method, so that a variable without its value yet is no resource.
        return self._value._resource_  # type: ignore[attr-defined]


class Trackable:
    """Something that a checkpoint can hold. Keras tells which parts it has by its own lists."""

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        return trackable

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        return {}


class AutoTrackable(Trackable):
    """A Trackable whose attributes are its parts."""

    def _delete_tracking(self, name: str) -> None:
        """Nothing is kept beside the attributes."""
