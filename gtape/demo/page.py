"""The parts of a report: an HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gtape.demo.report_style import STYLE


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
            f"<title>gtape: {escape(title)}</title><style>{STYLE}</style></head>"
            f"<body>{body}</body></html>\n")
