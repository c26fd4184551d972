"""Reports: HTML pages that need nothing but themselves, with drawings as inline SVG, whose colours
are CSS classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np

#: The style sheet: light and dark, no external resource.
_STYLE = """
:root { color-scheme: light dark; --page: #fbfbfa; --card: #fff; --ink: #1d2125; --soft: #5b646d;
  --line: #dfe3e6; --blue: #1f6fd1; --red: #c8442f; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --card: #1c2024; --ink: #e8eaec; --soft: #9aa4ad; --line: #32383e;
    --blue: #6aa9f4; --red: #f0806c; } }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 62rem; background: var(--page);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem; }
p { margin: .25rem 0 .75rem; max-width: 46rem; color: var(--soft); }
.tiles, .row { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
.tile, figure { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.tile { padding: .75rem 1rem; min-width: 8rem; } .tile b { display: block; font-size: 1.5rem; }
.tile span, figcaption { color: var(--soft); font-size: .85rem; }
figure { margin: 0; padding: .75rem; } svg { max-width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); } svg .count { fill: var(--ink); }
.grid { stroke: var(--line); } .curve, .raw { fill: none; stroke: var(--blue); }
.curve { stroke-width: 2; } .raw { stroke-width: 1; opacity: .35; } .dot { fill: var(--blue); }
.other.dot { fill: var(--red); } pre { white-space: pre-wrap; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; padding: .75rem 1rem; }
.right { fill: var(--blue); } .wrong { fill: var(--red); }
.filters svg { border-radius: 3px; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.bar { width: 20%; min-width: 5rem; } td.bar i { display: block; height: .6rem;
  border-radius: 3px; background: var(--blue); } tfoot td { font-weight: 600; }
code { font: .85rem ui-monospace, monospace; } dl { display: grid; gap: .2rem 1rem;
  grid-template-columns: max-content 1fr; } dt { color: var(--soft); } dd { margin: 0; }
"""


def section(title: str, words: str, body: str) -> str:
    """A heading, a paragraph, and what it is about."""
    return f"<h2>{escape(title)}</h2><p>{escape(words)}</p>{body}"


def figure(drawing: str, caption: str) -> str:
    """A drawing and what it shows."""
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def row(parts: Sequence[str], css: str = "row") -> str:
    return f'<div class="{css}">{"".join(parts)}</div>'


def tiles(found: Sequence[tuple[str, str]]) -> str:
    """The most important numbers, large: (name, value)."""
    return row([f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
                for name, value in found], "tiles")


def facts(found: Sequence[tuple[str, str]]) -> str:
    """What else there is to know of the run."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in found)
    return f"<h2>The run</h2><dl>{rows}</dl>"


def document(title: str, body: str) -> str:
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>gtape: {escape(title)}</title><style>{_STYLE}</style></head>"
            f"<body>{body}</body></html>\n")


# Two drawings stand side by side on a page of 62rem.
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
    # A tick that rounding puts a little outside is one of the ends.
    first = np.ceil(low / step - 1e-9)
    last = np.floor(high / step + 1e-9)
    return [float(k * step) + 0.0 for k in np.arange(first, last + 1)]


def smoothed(values: Sequence[float], window: int) -> np.ndarray:
    """Mean of the last `window` values at every position (fewer at the start)."""
    # Differences of running sums: one pass, whatever the window.
    sums = np.cumsum(np.concatenate([[0.0], np.asarray(values, np.float64)]))
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


class _Plane:
    """Data coordinates on a drawing with axes."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
        self._x, self._y = x_range, y_range

    def x(self, value: float) -> float:
        # A run of one step has a range of no width.
        low, high = self._x
        return _LEFT + (value - low) / ((high - low) or 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self._y
        return _HEIGHT - _BOTTOM - (value - low) / ((high - low) or 1) * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self, x_title: str, y_label: Callable[[float], str]) -> str:
        rows = [f'<path class="grid" d="M{_LEFT} {self.y(tick):.1f}H{_WIDTH - _RIGHT}"/>'
                f'<text x="{_LEFT - 6}" y="{self.y(tick) + 4:.1f}" text-anchor="end">'
                f'{y_label(tick)}</text>' for tick in _ticks(*self._y)]
        columns = [f'<text x="{self.x(tick):.1f}" y="{_HEIGHT - _BOTTOM + 16}" '
                   f'text-anchor="middle">{tick:g}</text>' for tick in _ticks(*self._x)]
        return "".join([*rows, *columns, f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 4}" '
                                         f'text-anchor="end">{escape(x_title)}</text>'])

    def line(self, xs: Sequence[float], ys: Sequence[float], css: str) -> str:
        points = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))
        return f'<polyline class="{css}" points="{points}"/>'

    def dots(self, xs: Sequence[float], ys: Sequence[float], css: str) -> str:
        return "".join(f'<circle class="{css}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3"/>'
                       for x, y in zip(xs, ys, strict=True))


def loss_curve(losses: Sequence[float], held_out: Mapping[int, float] | None = None) -> str:
    """The loss of every step, thin, and its running mean, thick: on a logarithmic scale, or on a
    plain one with held-out losses as dots."""
    # A 25th of the run: short enough to follow the loss, long enough to hide the batches.
    mean = smoothed(losses, window=max(1, len(losses) // 25))
    curves = [np.asarray(losses), mean]
    dots = held_out or {}
    if held_out is None:
        # A loss that underflows to 0 has no logarithm.
        curves = [np.log10(np.maximum(curve, 1e-8)) for curve in curves]
        ends = (float(np.floor(curves[0].min())), float(np.ceil(curves[0].max())))
    else:
        shown = [*losses, *dots.values()]
        ends = (min(shown), max(shown))
    plane, steps = _Plane((0, len(losses)), ends), range(1, len(losses) + 1)
    body = "".join([plane.axes("step", lambda y: f"{10 ** y if held_out is None else y:.2g}"),
                    *(plane.line(steps, curve.tolist(), css)
                      for curve, css in zip(curves, ("raw", "curve"))),
                    plane.dots([*dots], [*dots.values()], "other dot")])
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
    # Mistakes have a scale of their own: beside the right ones they would all be pale.
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
            # Even one mistake must be seen, and a full cell must leave its number readable.
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
    # One scale for all, so that strong filters look strong.
    low, high = float(kernel.min()), float(kernel.max())
    shades = (high - kernel[:, :, 0, :]) / ((high - low) or 1)
    return [picture(shades[:, :, k], 14, f"filter {k}") for k in range(shades.shape[-1])]
