"""Gradients of the eager program in float64, of both orders, against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np

import gtape as tf

from .compare import Finding
from .elaborate import Elaborated, sources
from .program import Assign, walk
from .running import ERRORS, Setting

_STEP = 1e-5
#: What is not the derivative on purpose, is documented to have none by some operands, or jumps with
#: a quotient, which may be so large that it does at every step.
_APART = ("stop_gradient", "tf.math.zeta", "tf.math.betainc", "tf.math.igamma", "floormod",
          "floordiv", "truncatemod", "truncatediv")
#: What jumps has the slope of its steps where these are closer to each other than ours.
_JUMPS = ("tf.round", "tf.floor", "tf.math.ceil", "tf.math.rint", "tf.math.floor")
_LARGE = 1e3


def difference(made: Elaborated) -> Finding | None:
    """Where a gradient is not the slope that steps to both sides show.

    Nothing is said where steps of two lengths, or to two sides, do not show one slope: at kinks,
    jumps, and where digits are lost; and nothing of numbers so large that steps do not move them.
    """
    if not made.program.order or made.program.kind == "special" or any(
            a in made.text for a in _APART) or any(
            isinstance(line, Assign) for line in walk(made.program.lines)):
        return None
    slopes = _Slopes(made)
    try:
        for order in range(1, made.program.order + 1):
            found = slopes.check(order)
            if found:
                return Finding("derivative", "differences", f"order {order}: {found}")
    except ERRORS:  # a step led out of what an op takes
        return None
    return None


class _Slopes:
    def __init__(self, made: Elaborated) -> None:
        self._setting = Setting(made, wide=True)
        self._names = sources(made.given)
        arguments = [g for g in made.given if g.role == "argument"]
        self._start = self._setting.arguments()
        self._places = {g.name: i for i, g in enumerate(arguments)}
        rng = np.random.default_rng(0)
        self._direction: dict[str, np.ndarray] = {}
        #: Away from ties of equal numbers, at which there is no slope.
        self._offset: dict[str, np.ndarray] = {}
        for name in self._names:
            array = self._setting.array(next(g for g in made.given if g.name == name))
            step = rng.choice([-1.0, 1.0, 0.5], array.shape)
            self._direction[name] = np.asarray(
                step * (1 + 0.5j) if array.dtype.kind == "c" else step)
            self._offset[name] = rng.normal(size=array.shape) * 1e-3

    def check(self, order: int) -> str:
        gradients = self._at(0.0)[order]
        predicted, scale = 0.0, 0.0
        for name, gradient in zip(self._names, gradients):
            if gradient is not None:
                product = np.conj(np.asarray(gradient)) * self._direction[name]
                predicted += float(np.sum(np.real(product)))
                scale += float(np.sum(np.abs(product)))
        seen = [self._value(order, s * _STEP) for s in (-2, -1, 0, 1, 2)]
        if not np.isfinite([predicted, scale, *seen]).all():
            return ""
        near, far = (seen[3] - seen[1]) / (2 * _STEP), (seen[4] - seen[0]) / (4 * _STEP)
        sides = (seen[3] - seen[2]) / _STEP, (seen[2] - seen[1]) / _STEP
        if max(map(abs, seen)) > _LARGE and any(j in self._setting.made.text for j in _JUMPS):
            return ""
        lost = 1e-15 * max(map(abs, seen)) / _STEP
        unsure = 50 * abs(near - far) + lost * 50
        if abs(sides[0] - sides[1]) > 1e-3 * (scale + abs(near)) + unsure:
            return ""
        if abs(predicted - near) > 3e-6 * (scale + abs(near)) + unsure + 1e-8:
            return f"the gradients give a slope of {predicted:.6g}, steps {near:.6g}"
        return ""

    def _value(self, order: int, step: float) -> float:
        if order == 1:
            _, loss = self._moved(step, self._setting.space["forward"])
            return float(loss)
        return float(self._setting.space["slope_of"](self._at(step)[1]))

    def _at(self, step: float) -> Any:
        return self._moved(step, self._setting.program)

    def _moved(self, step: float, function: Any) -> Any:
        """What a function of the program gives some steps away."""
        setting = self._setting
        setting.reset()
        arguments = list(self._start)
        for name in self._names:
            move = self._offset[name] + step * self._direction[name]
            if name in self._places:
                at = self._places[name]
                arguments[at] = tf.constant(np.asarray(arguments[at]) + move)
            else:
                setting.variables[name].assign(setting.variables[name].numpy() + move)
        with np.errstate(all="ignore"):
            return function(*arguments)
