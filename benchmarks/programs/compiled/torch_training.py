"""torch's training steps: `loss_of(parameters, *batch)` and Adam or AdamW, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.programs.compiled.columns import Compile
from benchmarks.programs.mlp_problem import BETA1, BETA2, EPSILON, RATE

Loss = Callable[..., Any]
Step = Callable[..., Any]


def optimizer_of(parameters: list[Any], decay: float) -> Any:
    """torch's Adam, AdamW where there is a decay, in its one kernel for all parameters."""
    import torch

    if not decay:
        return torch.optim.Adam(parameters, RATE, (BETA1, BETA2), EPSILON, fused=True)
    return torch.optim.AdamW(
        parameters, RATE, (BETA1, BETA2), EPSILON, weight_decay=decay, fused=True
    )


def eager_step(loss_of: Loss, start: Sequence[np.ndarray], decay: float = 0.0) -> Step:
    """The step of every torch tutorial."""
    import torch

    parameters = [torch.tensor(p, requires_grad=True) for p in start]
    optimizer = optimizer_of(parameters, decay)

    def step(*batch: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(parameters, *batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


def compiled_gradients_step(
    compile: Compile, loss_of: Loss, start: Sequence[np.ndarray], decay: float = 0.0
) -> Step:
    """Loss and gradients as one graph, and the optimizer's own kernel: fast for large arrays."""
    import torch

    parameters = [torch.tensor(p) for p in start]
    optimizer = optimizer_of(parameters, decay)
    gradients_and_loss = compile(torch.func.grad_and_value(loss_of))

    def step(*batch: Any) -> Any:
        gradients, loss = gradients_and_loss(parameters, *batch)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        return loss

    return step


def compiled_step(compile: Compile, loss_of: Loss, start: Sequence[np.ndarray]) -> Step:
    """Loss, gradients and Adam as one graph: fast where calls cost more than arithmetic."""
    import torch

    parameters = [torch.tensor(p) for p in start]
    means, squares = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    count = torch.zeros(())

    @compile
    def update(parameters: Any, means: Any, squares: Any, count: Any, *batch: Any) -> Any:
        gradients, loss = torch.func.grad_and_value(loss_of)(parameters, *batch)
        count.add_(1)
        rate = RATE / (1 - BETA1**count)
        correction = torch.rsqrt(1 - BETA2**count)
        for p, m, v, g in zip(parameters, means, squares, gradients, strict=True):
            m.lerp_(g, 1 - BETA1)
            v.lerp_(g * g, 1 - BETA2)
            p.sub_(rate * m / (v.sqrt() * correction + EPSILON))
        return loss

    return lambda *batch: update(parameters, means, squares, count, *batch)
