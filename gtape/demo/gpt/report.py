"""The report of a run of the GPT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from gtape.demo import charts
from gtape.demo.page import document, facts, figure, row, section, tiles


def page(losses: Sequence[float], held_out: Mapping[int, float], sample: str,
         numbers: Sequence[tuple[str, str]], details: Sequence[tuple[str, str]]) -> str:
    """The whole report as HTML text."""
    return document("a GPT on Python's documentation", "".join([
        "<h1>A GPT on Python's own documentation</h1>",
        "<p>A transformer that reads characters, trained by a written-out GradientTape loop.</p>",
        tiles(numbers),
        section("Training", "Cross entropy of the next character in nats: every batch (thin), the "
                "running mean (thick), and text that no step ever saw (dots).",
                row([figure(charts.learning_curve(losses, held_out), "loss by step")])),
        section("What it writes", "One character after another, drawn from its probabilities.",
                f"<pre>{escape(sample)}</pre>"),
        facts(details)]))
