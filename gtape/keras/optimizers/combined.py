"""Optimizers made of optimizers: one for each part of a model, and one for scaled losses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from gtape.core.state import tracer_now
from gtape.core.tensor import Tensor, wrap
from gtape.core.text import shown
from gtape.keras import naming
from gtape.keras.optimizers.gradients import Settings, prepared
from gtape.keras.optimizers.optimizer import Optimizer
from gtape.keras.variables import HostNumber
from gtape.ops.casting import cast
from gtape.ops.transfer import move


class OptimizerMap(MutableMapping[str, Any]):
    """Optimizers by the path of a variable: the very path, else the one pattern that matches it,
    else the default."""

    def __init__(self, default_optimizer: Optimizer,
                 optimizer_map: dict[str, Optimizer] | None = None) -> None:
        if not isinstance(default_optimizer, Optimizer):
            raise TypeError(f"the default must be an Optimizer; got {shown(default_optimizer)}")
        self.default_optimizer = default_optimizer
        self._by_pattern = dict(optimizer_map or {})

    def __getitem__(self, key: str) -> Optimizer:
        if key in self._by_pattern:
            return self._by_pattern[key]
        found = [p for p in self._by_pattern if re.fullmatch(p, key)]
        if len(found) > 1:
            raise ValueError(f"several patterns match the variable '{key}': {', '.join(found)}")
        return self._by_pattern[found[0]] if found else self.default_optimizer

    def __setitem__(self, key: str, optimizer: Optimizer) -> None:
        if key in self._by_pattern:
            raise ValueError(f"the map holds '{key}' already")
        if not isinstance(key, str) or not isinstance(optimizer, Optimizer):
            raise ValueError(f"an OptimizerMap maps strings to Optimizers; got {shown(key)} and "
                             f"{shown(optimizer)}")
        self._by_pattern[key] = optimizer

    def __delitem__(self, key: str) -> None:
        del self._by_pattern[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_pattern)

    def __len__(self) -> int:
        return len(self._by_pattern)

    def __call__(self, variable: Any) -> Optimizer:
        return self[getattr(variable, "path", variable.name)]


class _Delegating(Optimizer):
    """An optimizer that only hands on gradients."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(0.0, name=name)


class MultiOptimizer(_Delegating):
    """Each variable is updated by the optimizer that `optimizer_map(variable)` gives."""

    def __init__(self, optimizer_map: Any, name: str | None = None) -> None:
        if not callable(optimizer_map):
            raise ValueError(f"MultiOptimizer takes an OptimizerMap, or a function from variables "
                             f"to optimizers; got {shown(optimizer_map)}")
        super().__init__(name)
        self.optimizer_map = optimizer_map

    @property
    def learning_rate(self) -> Any:
        """That of the default optimizer."""
        return self.optimizer_map.default_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.optimizer_map.default_optimizer.learning_rate = value

    def _split(self, variables: Sequence[Any]) -> list[tuple[Optimizer, list[int]]]:
        spread: dict[int, tuple[Optimizer, list[int]]] = {}
        for i, variable in enumerate(variables):
            chosen = self.optimizer_map(variable)
            spread.setdefault(id(chosen), (chosen, []))[1].append(i)
        return list(spread.values())

    def build(self, variables: Iterable[Any]) -> None:
        given = list(variables)
        super().build(given)
        for optimizer, at in self._split(given):
            optimizer.build([given[i] for i in at])

    @property
    def variables(self) -> list[Any]:
        """The state of all the optimizers."""
        split = self._split(list(self._known.values()))
        return [self._iterations, *(v for optimizer, _ in split for v in optimizer.variables)]

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        given = list(grads)
        variables = self._variables_for(given, trainable_variables)
        for optimizer, at in self._split(variables):
            part = [given[i] for i in at]
            if any(g is not None for g in part):
                optimizer.apply(part, [variables[i] for i in at])
        self._iterations.advance()


class LossScaleOptimizer(_Delegating):
    """Multiplies losses by a large factor, so that small float16 gradients do not vanish.

    `scale_loss(loss)` multiplies; `apply` divides. A step with a gradient that is not finite is
    left out, and halves the factor; after `dynamic_growth_steps` good steps it doubles.
    Micikevicius et al. 2018, arXiv:1710.03740.
    """

    def __init__(self, inner_optimizer: Optimizer, initial_scale: float = 2.0**15,
                 dynamic_growth_steps: int = 2000, name: str | None = None) -> None:
        if isinstance(inner_optimizer, LossScaleOptimizer) or not isinstance(
                inner_optimizer, Optimizer):
            raise ValueError(f"LossScaleOptimizer takes another optimizer; got "
                             f"{shown(inner_optimizer)}")
        super().__init__(name)
        self.inner_optimizer = inner_optimizer
        with naming.scope(self.name):
            self._scale = HostNumber(initial_scale, "float64", "dynamic_scale")
            self._good = HostNumber(0, "int64", "good_steps")
        self.dynamic_growth_steps = dynamic_growth_steps

    @property
    def dynamic_scale(self) -> Any:
        """The present factor: a number, or in a traced function a tensor."""
        return self._scale._state._value if tracer_now() else float(self._scale.number())

    @dynamic_scale.setter
    def dynamic_scale(self, value: Any) -> None:
        self._scale.assign(value)

    @property
    def _good_steps(self) -> int:
        return int(self._good.number())

    @_good_steps.setter
    def _good_steps(self, value: int) -> None:
        self._good.put(value)

    @property
    def learning_rate(self) -> Any:
        """That of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    @property
    def variables(self) -> list[Any]:
        """The state of the inner optimizer."""
        return self.inner_optimizer.variables

    def build(self, variables: Iterable[Any]) -> None:
        given = list(variables)
        super().build(given)
        self.inner_optimizer.build(given)

    def scale_loss(self, loss: Any) -> Any:
        """loss times the present factor."""
        scaled, factor = self.inner_optimizer.scale_loss(loss), self.dynamic_scale
        if isinstance(factor, Tensor):
            factor = move(cast(factor, scaled.dtype), scaled._t.device)
        return scaled * factor

    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
        given = list(grads)
        variables = self._variables_for(given, trainable_variables)
        pairs = [(g, v) for g, v in zip(given, variables) if g is not None]
        if tracer_now() is not None:
            from gtape.keras.optimizers import traced

            traced.scaled_update(self, pairs)
            self._iterations.advance()
            return
        settings = Settings(None, None, None, None, False, 0.0, None, self.dynamic_scale, None)
        with np.errstate(all="ignore"):
            arrays = prepared(settings, [g for g, _ in pairs],
                              [v._resource_() for _, v in pairs])
        if all(bool(_finite(v, a)) for a, (_, v) in zip(arrays, pairs)):
            self.inner_optimizer.apply([wrap(a) for a in arrays], [v for _, v in pairs])
            self._good_steps += 1
            if self._good_steps >= self.dynamic_growth_steps:
                self.dynamic_scale, self._good_steps = self.dynamic_scale * 2, 0
        else:
            self.dynamic_scale, self._good_steps = self.dynamic_scale / 2, 0
        self._iterations.advance()


def _finite(variable: Any, array: Any) -> Any:
    xp = variable._resource_()._value._t.xp
    return xp.isfinite(array).all()
