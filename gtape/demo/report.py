"""The report of a run: one HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from gtape.demo import charts
from gtape.demo.evaluation import Evaluation
from gtape.demo.page import document, facts, figure, row, section, tiles
from gtape.demo.training import HeldBytes

_MOST_MISTAKES = 12


@dataclass(frozen=True)
class Findings:
    """What a run found out, for the report to show."""

    losses: Sequence[float]
    accuracy_after: Mapping[int, float]
    evaluation: Evaluation
    bill: Sequence[HeldBytes]
    batch_size: int
    kernel: np.ndarray
    tiles: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]]


def readable_bytes(count: int) -> str:
    """'512 B', '1.5 KiB', '3.2 MiB'."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _curves(found: Findings) -> str:
    return section(
        "Training", "Cross entropy of every batch (thin), its running mean (thick); accuracy "
        "on the held-out digits, which no step ever saw, after every pass over the training set.",
        row([figure(charts.loss_curve(found.losses), "training loss, on a logarithmic scale"),
             figure(charts.accuracy_curve(found.accuracy_after), "held-out accuracy")]))


def _mistake(evaluation: Evaluation, index: int) -> str:
    truth = int(evaluation.samples.labels[index])
    guess = int(evaluation.predicted[index])
    chances = evaluation.probabilities[index]
    drawing = charts.picture(evaluation.samples.images[index, :, :, 0], 12,
                             f"a {truth} read as {guess}")
    return figure(drawing, f"{truth} read as {guess}: gave {chances[guess]:.0%} to {guess}, "
                           f"{chances[truth]:.0%} to {truth}")


def _mistakes(evaluation: Evaluation) -> str:
    wrong = evaluation.mistakes
    if not len(wrong):
        return section("Worst mistakes", "None: every held-out digit was read right.", "")
    shown = [_mistake(evaluation, int(i)) for i in wrong[:_MOST_MISTAKES]]
    return section(
        "Worst mistakes", f"{len(wrong)} of {len(evaluation.samples)} held-out digits were "
        f"misread. The ones whose true label got the least probability come first.",
        row(shown))


def _bill_row(held: HeldBytes, largest: int) -> str:
    width = 100 * held.bytes / (largest or 1)
    return (f"<tr><td><code>{escape(held.op)}</code></td>"
            f"<td><code>{escape(held.source)}</code></td>"
            f"<td>{escape(held.place)}</td><td class=\"n\">{readable_bytes(held.bytes)}</td>"
            f'<td class="bar"><i style="width:{width:.1f}%"></i></td></tr>')


def _bill(rows: Sequence[HeldBytes], batch_size: int) -> str:
    largest = max((row.bytes for row in rows), default=0)
    total = sum(row.bytes for row in rows)
    body = "".join(_bill_row(row, largest) for row in rows)
    table = (f'<div class="scroll"><table><thead><tr><th>operation</th><th>source</th>'
             f'<th>line</th><th class="n">kept</th><th></th></tr></thead><tbody>{body}</tbody>'
             f'<tfoot><tr><td colspan="3">{len(rows)} operations</td>'
             f'<td class="n">{readable_bytes(total)}</td><td></td></tr></tfoot></table></div>')
    return section(
        "The tape of one step", f"What GradientTape recorded for one batch of {batch_size} "
        f"images, in order, and the bytes each operation keeps for its gradient.", table)


def page(found: Findings) -> str:
    """The whole report as HTML text."""
    body = "".join([
        "<h1>Handwritten digits</h1>",
        "<p>A small convolutional network, trained by a written-out GradientTape loop.</p>",
        tiles(found.tiles),
        _curves(found),
        section("Confusion", "How often each digit was read as each other one.",
                row([figure(charts.confusion_matrix(found.evaluation.confusion),
                            "held-out digits")])),
        _mistakes(found.evaluation),
        section("First layer", "The 3 x 3 filters that the first convolution learned.",
                row(charts.filters(found.kernel), "row filters")),
        _bill(found.bill, found.batch_size),
        facts(found.facts)])
    return document("handwritten digits", body)
