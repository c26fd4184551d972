"""The parts of a report: an HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

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
    """Parts side by side."""
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
    """The whole page."""
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>gtape: {escape(title)}</title><style>{_STYLE}</style></head>"
            f"<body>{body}</body></html>\n")
