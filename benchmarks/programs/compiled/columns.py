"""The columns of the compiled benchmark, and what each calls the compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from benchmarks.harness import GTAPE, JAX_JIT, TENSORFLOW, TORCH, Peer

TENSORFLOW_XLA = Peer("tensorflow xla", "tensorflow")
TORCH_COMPILE = Peer("torch.compile", "torch")
COLUMNS = (GTAPE, TENSORFLOW, TENSORFLOW_XLA, TORCH, TORCH_COMPILE, JAX_JIT)

Run = Callable[[], Any]
Made = TypeVar("Made")
Compile = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Writers(Generic[Made]):
    """A workload as the users of each library write it: what makes the call to be timed.

    `tape(tf, function)`: `tf` is gtape or tensorflow, `function` its decorator. `torch(compile)`:
    `compile` is None for eager. A call gives arrays that are ready when it returns.
    """

    tape: Callable[[Any, Compile], Made]
    torch: Callable[[Compile | None], Made]
    jax: Callable[[], Made]

    def run_of(self, column: str) -> Made:
        """The call of one column."""
        if column == JAX_JIT.column:
            return self.jax()
        if column == TORCH.column:
            return self.torch(None)
        if column == TORCH_COMPILE.column:
            return self.torch(whole_graph)
        tf = import_module(GTAPE.package if column == GTAPE.column else TENSORFLOW.package)
        if column == TENSORFLOW_XLA.column:
            return self.tape(tf, lambda body: tf.function(body, jit_compile=True))
        return self.tape(tf, tf.function)


def whole_graph(body: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile in its default mode, but for an error where it would compile in pieces."""
    import torch

    return torch.compile(body, fullgraph=True)


def adds_epsilon_late(column: str) -> bool:
    """Whether the Adam of a column adds epsilon after the bias correction."""
    return column in (TORCH.column, TORCH_COMPILE.column)
