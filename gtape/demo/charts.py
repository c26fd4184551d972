"""Drawings as inline SVG. Colours are CSS classes that the page defines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np

_WIDTH, _HEIGHT = 460, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 12, 34


def _svg(width: int, height: int, label: str, body: str) -> str:
    return (f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            f'aria-label="{escape(label, quote=True)}">{body}</svg>')


def _ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers within [low, high], about `count` of them."""
    span = high - low
    if span <= 0:
        return [low]
    power = 10.0 ** np.floor(np.log10(span / count))
    step = next(power * m for m in (1, 2, 5, 10) if span / (power * m) <= count)
    first = np.ceil(low / step - 1e-9)
    last = np.floor(high / step + 1e-9)
    return [float(k * step) + 0.0 for k in np.arange(first, last + 1)]


def smoothed(values: Sequence[float], window: int) -> np.ndarray:
    """Mean of the last `window` values at every position (fewer at the start)."""
    sums = np.cumsum(np.concatenate([[0.0], np.asarray(values, np.float64)]))
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


class _Plane:
    """Data coordinates on a drawing with axes."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
        self._x, self._y = x_range, y_range

    def x(self, value: float) -> float:
        low, high = self._x
        return _LEFT + (value - low) / ((high - low) or 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self._y
        return _HEIGHT - _BOTTOM - (value - low) / ((high - low) or 1) * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self, x_title: str, y_label: Callable[[float], str]) -> str:
        parts = []
        for tick in _ticks(*self._y):
            height = self.y(tick)
            parts.append(f'<path class="grid" d="M{_LEFT} {height:.1f}H{_WIDTH - _RIGHT}"/>'
                         f'<text x="{_LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">'
                         f'{y_label(tick)}</text>')
        for tick in _ticks(*self._x):
            parts.append(f'<text x="{self.x(tick):.1f}" y="{_HEIGHT - _BOTTOM + 16}" '
                         f'text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 4}" text-anchor="end">'
                     f'{escape(x_title)}</text>')
        return "".join(parts)

    def line(self, xs: Sequence[float], ys: Sequence[float], css: str) -> str:
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        return f'<polyline class="{css}" points="{points}"/>'

    def dots(self, xs: Sequence[float], ys: Sequence[float], css: str) -> str:
        return "".join(f'<circle class="{css}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3"/>'
                       for x, y in zip(xs, ys, strict=True))


def loss_curve(losses: Sequence[float]) -> str:
    """The loss of every step, thin, and its running mean, thick, on a logarithmic scale."""
    steps = range(1, len(losses) + 1)
    mean = smoothed(losses, window=max(1, len(losses) // 25))
    raw_logs, mean_logs = (np.log10(np.maximum(v, 1e-8)).tolist() for v in (losses, mean))
    decades = (float(np.floor(min(raw_logs))), float(np.ceil(max(raw_logs))))
    plane = _Plane((0, len(losses)), decades)
    body = "".join([plane.axes("step", lambda power: f"{10 ** power:.2g}"),
                    plane.line(steps, raw_logs, "raw"), plane.line(steps, mean_logs, "curve")])
    return _svg(_WIDTH, _HEIGHT, f"loss by step, {losses[0]:.3g} to {mean[-1]:.3g}", body)


def learning_curve(losses: Sequence[float], held_out: Mapping[int, float]) -> str:
    """The loss of every step, thin, its running mean, thick, and held-out losses as dots."""
    steps = range(1, len(losses) + 1)
    mean = smoothed(losses, window=max(1, len(losses) // 25)).tolist()
    shown = [*losses, *held_out.values()]
    plane = _Plane((0, len(losses)), (min(shown), max(shown)))
    body = "".join([plane.axes("step", lambda loss: f"{loss:.2g}"),
                    plane.line(steps, losses, "raw"), plane.line(steps, mean, "curve"),
                    plane.dots(list(held_out), list(held_out.values()), "other dot")])
    return _svg(_WIDTH, _HEIGHT, f"loss by step, {losses[0]:.3g} to {mean[-1]:.3g}", body)


def accuracy_curve(accuracy_after: Mapping[int, float]) -> str:
    """Held-out accuracy by the number of steps."""
    steps, values = list(accuracy_after), list(accuracy_after.values())
    floor = min(0.95, float(np.floor(min(values) * 20) / 20))
    plane = _Plane((0, max(steps)), (floor, 1.0))
    body = "".join([plane.axes("step", lambda value: f"{value:.0%}"),
                    plane.line(steps, values, "curve"), plane.dots(steps, values, "dot")])
    return _svg(_WIDTH, _HEIGHT, f"held-out accuracy by step, last {values[-1]:.1%}", body)


def confusion_matrix(counts: np.ndarray) -> str:
    """Rows are true labels, columns predicted ones; mistakes have their own colour."""
    cell, edge = 34, 40
    size = edge + cell * len(counts) + 4
    most_right = max(1, np.diag(counts).max())
    most_wrong = max(1, (counts - np.diag(np.diag(counts))).max())
    parts = [f'<text x="{edge}" y="12">predicted</text>',
             f'<text transform="translate(10 {edge + 30}) rotate(-90)">true</text>']
    for i, row in enumerate(counts):
        middle = edge + cell * i + cell / 2
        parts.append(f'<text x="{middle}" y="{edge - 6}" text-anchor="middle">{i}</text>'
                     f'<text x="{edge - 8}" y="{middle + 4}" text-anchor="end">{i}</text>')
        for j, count in enumerate(row):
            right = i == j
            strength = count / (most_right if right else most_wrong)
            opacity = 0.12 + 0.6 * strength if count else 0.04
            x, y = edge + cell * j, edge + cell * i
            parts.append(
                f'<rect class="{"right" if right else "wrong"}" x="{x}" y="{y}" '
                f'width="{cell - 2}" height="{cell - 2}" rx="3" fill-opacity="{opacity:.2f}">'
                f'<title>{count} x true {i}, predicted {j}</title></rect>')
            if count:
                parts.append(f'<text class="count" x="{x + cell / 2 - 1}" y="{y + cell / 2 + 4}" '
                             f'text-anchor="middle">{count}</text>')
    return _svg(size, size, "confusion matrix", "".join(parts))


def picture(image: np.ndarray, scale: int, label: str) -> str:
    """A grey image [h, w] with values in [0, 1]; 0 is white, as ink on paper."""
    height, width = image.shape
    paper = f'<rect width="{width * scale}" height="{height * scale}" fill="#fff"/>'
    ink = "".join(
        f'<rect x="{j * scale}" y="{i * scale}" width="{scale}" height="{scale}" '
        f'fill="#000" fill-opacity="{value:.2f}"/>'
        for (i, j), value in np.ndenumerate(image) if value > 0)
    return _svg(width * scale, height * scale, label, paper + ink)


def filters(kernel: np.ndarray) -> list[str]:
    """The 3 x 3 filters of a kernel [h, w, 1, out] on one scale: black least, white most."""
    low, high = float(kernel.min()), float(kernel.max())
    shades = (high - kernel[:, :, 0, :]) / ((high - low) or 1)
    return [picture(shades[:, :, k], 14, f"filter {k}") for k in range(shades.shape[-1])]
