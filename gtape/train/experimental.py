"""gtape.train.experimental: state of Python objects in checkpoints."""

from __future__ import annotations

__all__ = ["PythonState"]


class PythonState:
    """Base class of objects whose state is no tensor: override `serialize` and `deserialize`. A
    `Checkpoint` keeps the text that `serialize()` gives, and hands it to `deserialize` when it is
    restored. `deserialize` raises an error, such as ValueError, for a text that it cannot take;
    every object of the restore is then handed the text that `serialize()` gave before."""

    def serialize(self) -> str:
        """The state as text."""
        raise NotImplementedError(f"{type(self).__name__} must define serialize()")

    def deserialize(self, string_value: str) -> None:
        """Take the state from the text that `serialize` gave."""
        raise NotImplementedError(f"{type(self).__name__} must define deserialize(string_value)")
