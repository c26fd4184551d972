"""All variables of an optimizer updated by one kernel, where their device has kernels.

The rules here are those of `step` of the classes named; a class that overrides `step` is not
served. Gradients are read as they are: unscaling, the limits on them, weight decay and the update
are one pass, and a limit by norm adds one more. Nothing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gtape.devices.cuda.addresses import address
from gtape.devices.cuda.kernels import optimizers as kernels
from gtape.devices.cuda.kernels.optimizers import Layout, Limits
from gtape.keras.optimizers import adam, adaptive, flat, gradient_descent

#: A group of variables, and which of them are updated: position in it -> position of the gradient.
Places = tuple[flat.Group, dict[int, int]]


def _flags(name: str, *values: bool) -> str:
    return f"{name}<{', '.join(str(bool(v)).lower() for v in values)}>"


#: By the function `step`: optimizer -> the name of its rule in kernels/optimizers.cuh.
_RULES: dict[Any, Callable[[Any], str]] = {
    gradient_descent.SGD.step:
        lambda o: _flags("MomentumSGD", o.nesterov) if o.slots else "SGD",
    gradient_descent.Lion.step: lambda o: "Lion",
    adam.Adam.step: lambda o: _flags("Adam", o.amsgrad),
    adam.Adamax.step: lambda o: "Adamax",
    adam.Nadam.step: lambda o: "Nadam",
    adaptive.Adagrad.step: lambda o: "Adagrad",
    adaptive.RMSprop.step: lambda o: _flags("RMSprop", o.momentum > 0, o.centered),
    adaptive.Adadelta.step: lambda o: "Adadelta"}


def fused(optimizer: Any, places: Sequence[Places]) -> Fused | None:
    """What updates these groups, on a device with kernels; None where they do not serve all."""
    device = places[0][0].type.device
    rule = _RULES.get(type(optimizer).step)
    if rule is None or any(
            group.type.device is not device or group.type.dtype.name not in kernels.FLOATS
            for group, _ in places):
        return None
    return Fused(optimizer, rule(optimizer), device, places)


class Fused:
    """One launch for all groups of a dtype."""

    def __init__(self, optimizer: Any, rule: str, device: Any, places: Sequence[Places]) -> None:
        self._optimizer, self._rule, self._device = optimizer, rule, device
        by_dtype: dict[Any, list[Places]] = {}
        for group, found in places:
            by_dtype.setdefault(group.type.dtype, []).append((group, found))
        self._batches = [_Batch(device.executor, members, len(optimizer.slots))
                         for members in by_dtype.values()]

    def update(self, gradients: Sequence[Any], rate: Any, step: int, unscale: float) -> None:
        """New values of all variables.

        Args:
            gradients: dense arrays in the variables' dtypes, still to be multiplied by `unscale`.
        """
        with self._device.scope():
            for batch in self._batches:
                batch.collect(gradients)
            norms = self._norms(unscale)
            for batch, limits in zip(self._batches, norms):
                batch.launch(self._optimizer, self._rule, rate, step, limits, unscale)

    def _norms(self, unscale: float) -> list[Any]:
        """The limits on the gradients of each batch."""
        settings, batches = self._optimizer._settings, self._batches
        if settings.clipvalue is not None:
            return [Limits(bound=settings.clipvalue)] * len(batches)
        if settings.clipnorm is None and settings.global_clipnorm is None:
            return [Limits()] * len(batches)
        ends = np.cumsum([0, *(batch.layout.pieces for batch in batches)]).tolist()
        squares = self._device.executor.empty((ends[-1],), np.dtype(np.float64))
        parts = [squares[start:end] for start, end in pairwise(ends)]
        for batch, part in zip(batches, parts):
            batch.square(part, unscale)
        if settings.clipnorm is not None:
            return [Limits("each", settings.clipnorm, part) for part in parts]
        return [Limits("all", settings.global_clipnorm, squares)] * len(batches)


class _Batch:
    """The variables of one dtype."""

    def __init__(self, gpu: Any, places: Sequence[Places], slots: int) -> None:
        self._gpu, self._slots = gpu, slots
        self._places = [(group, dict(sorted(found.items()))) for group, found in places]
        self.dtype = places[0][0].type.dtype
        members = [(group, at) for group, found in self._places for at in found]
        self._order = [i for _, found in self._places for i in found.values()]
        self.layout = Layout(gpu, [group.length(at) for group, at in members],
                             [group.decayed for group, _ in members])
        self._starts = [np.array([group.bounds[at][0] for at in found], np.int64)
                        * self.dtype.np_dtype.itemsize for group, found in self._places]
        self._held: list[Any] = []

    def collect(self, gradients: Sequence[Any]) -> None:
        """Make the table of an update, and the arrays that receive the new values."""
        gpu, dtype = self._gpu, self.dtype.np_dtype
        contiguous = gpu.contiguous
        self._held = [contiguous(gradients[i]) for i in self._order]
        given = [address(a) for a in self._held]
        self._fresh = [gpu.empty((group.size,), dtype) for group, _ in self._places]
        self._table = self.layout.table(
            np.concatenate([self._present(*place) for place in zip(self._places, self._starts)]),
            given, self._within(self._fresh),
            [self._within([group.slots[i] for group, _ in self._places])
             for i in range(self._slots)])

    def _present(self, place: Places, starts: np.ndarray) -> np.ndarray:
        """The addresses of the present values of variables."""
        group, found = place
        flat_array = group.laid_out()
        if flat_array is not None:
            return address(flat_array) + starts
        arrays = [self._gpu.contiguous(group.states[at]._value._a) for at in found]
        self._held += arrays
        return np.array([address(a) for a in arrays], np.int64)

    def _within(self, flats: Sequence[Any]) -> np.ndarray:
        """The addresses of the variables' parts of flat arrays, one for each group."""
        return np.concatenate([address(f) + starts for f, starts in zip(flats, self._starts)])

    def square(self, out: Any, unscale: float) -> None:
        kernels.square_sums(self._gpu, self._table, self.dtype.name, unscale, out)

    def launch(self, optimizer: Any, rule: str, rate: Any, step: int, limits: Any,
               unscale: float) -> None:
        """Update, and give the variables their new values."""
        # The kernel computes in float32 where the dtype is shorter.
        real = np.float64 if self.dtype.name == "float64" else np.float32
        decay = optimizer._settings.weight_decay
        shrink = 0.0 if decay is None else float(real(decay) * real(rate))
        kernels.update(self._gpu, self._table, rule, self.dtype.name,
                       optimizer.constants(real, real(rate), step), limits=limits,
                       unscale=unscale, shrink=shrink)
        for (group, found), flat_array in zip(self._places, self._fresh):
            group.give(flat_array, list(found))
        self._held, self._fresh = [], []
