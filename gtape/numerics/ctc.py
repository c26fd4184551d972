"""Connectionist temporal classification (Graves et al. 2006): sums over all alignments, in logs.

A label of n classes becomes 2n + 1 states: its classes with a blank before, between and after them.
An alignment stays in a state or goes on to the next at each frame; past a blank it may jump, unless
the classes on both sides are one. Every quantity may carry a tangent, its derivative along a
direction in the logits: a pair (value, tangent).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .scatter import segment_sum

#: The loss where no alignment fits into the frames: -log 1e-307, as in TensorFlow (whose own are
#: a few units larger).
NO_PATH = 706.893623549172


class Frames(NamedTuple):
    """What the recursions read: log probabilities [T, B, S] of the states, and the moves."""

    states: Array
    known: Array
    emitted: Array
    tangent: Array | None
    jumps: Array
    present: Array
    final: Array


def log_softmax(xp: ModuleType, logits: Array, direction: Array | None,
                ) -> tuple[Array, Array | None]:
    """Log probabilities of the classes, float64, and their derivative along a direction."""
    # A path adds one for each frame: what float32 would round off of so large a logarithm is a
    # relative error of the path's probability.
    z = logits.astype(np.float64)
    z = z - z.max(axis=-1, keepdims=True)
    z = z - xp.log(xp.exp(z).sum(axis=-1, keepdims=True))
    if direction is None:
        return z, None
    along = direction.astype(np.float64)
    return z, along - (xp.exp(z) * along).sum(axis=-1, keepdims=True)


def frames(xp: ModuleType, logp: Array, tangent: Array | None, labels: Array, label_length: Array,
           logit_length: Array, blank: int) -> Frames:
    """The lattice of each label [B, L] over the frames of logp [T, B, C]. What is no class is not
    `known`: any frame emits it at no cost."""
    times, batch, classes = logp.shape
    place = xp.arange(2 * labels.shape[1] + 1)
    states = xp.full((batch, len(place)), blank, np.int64)
    states[:, 1::2] = labels
    before = xp.concatenate([states[:, :2], states[:, :-2]], 1)[:, :len(place)]
    jumps = (place % 2 == 1) & (place > 1) & (states != before)
    known = (states >= 0) & (states < classes)
    states = xp.where(known, states, 0)
    rows = xp.arange(batch)[:, None]
    last = 2 * label_length[:, None]
    final = (place == last) | ((place == last - 1) & (last > 0))
    present = xp.arange(times)[:, None] < logit_length
    emitted = xp.where(known, logp[:, rows, states], 0)
    along = None if tangent is None else xp.where(known, tangent[:, rows, states], 0)
    return Frames(states, known, emitted, along, jumps, present, final)


def _moved(xp: ModuleType, a: Array, steps: int, fill: float) -> Array:
    """`a` [B, S] `steps` states on (back where negative), with `fill` where nothing comes."""
    shifted = xp.full_like(a, fill)
    width = a.shape[1]
    if steps > 0:
        shifted[:, steps:] = a[:, :max(width - steps, 0)]
    else:
        shifted[:, :steps] = a[:, -steps:]
    return shifted


def _added(xp: ModuleType, terms: list[Array], tangents: list[Array] | None) -> tuple[Any, Any]:
    """log Σ e^term, and Σ tangent e^term / Σ e^term; terms of 0 probability are -inf."""
    stacked = xp.stack(terms)
    # Shifted by the largest term, no exponential overflows, and one of them is 1.
    top = stacked.max(axis=0)
    # Where all terms are -inf, -inf - -inf would be nan.
    top = xp.where(xp.isfinite(top), top, 0)
    shares = xp.exp(stacked - top)
    total = shares.sum(axis=0)
    value = xp.where(total > 0, xp.log(xp.where(total > 0, total, 1)) + top, -np.inf)
    if tangents is None:
        return value, None
    weighted = (shares * xp.stack(tangents)).sum(axis=0)
    return value, weighted / xp.where(total > 0, total, 1)


def _step(xp: Any, at: tuple[Any, Any], jumps: Array, sign: int) -> tuple[Any, Any]:
    """Over the three moves into each state (sign 1), or out of each (sign -1)."""
    value, tangent = at
    barred = xp.where(jumps, value, -np.inf) if sign < 0 else value
    second = _moved(xp, barred, 2 * sign, -np.inf)
    if sign > 0:
        second = xp.where(jumps, second, -np.inf)
    terms = [value, _moved(xp, value, sign, -np.inf), second]
    if tangent is None:
        return _added(xp, terms, None)
    return _added(xp, terms, [tangent, _moved(xp, tangent, sign, 0.0),
                              _moved(xp, tangent, 2 * sign, 0.0)])


def _emitting(f: Frames, t: int, at: tuple[object, object]) -> tuple[Array, Array | None]:
    value, tangent = at
    return value + f.emitted[t], None if f.tangent is None else tangent + f.tangent[t]


def _chosen(xp: ModuleType, condition: Array, new: tuple[object, object],
            old: tuple[object, object]) -> tuple[Any, Any]:
    return tuple(None if a is None else xp.where(condition, a, b)  # type: ignore[return-value]
                 for a, b in zip(new, old))


def _blank_pair(xp: ModuleType, f: Frames, where: Array) -> tuple[Any, Any]:
    value = xp.where(where, 0.0, -np.inf)
    return value, None if f.tangent is None else xp.zeros_like(value)


def forward(xp: Any, f: Frames) -> list[tuple[object, object]]:
    """For 0, 1, … T frames: log probabilities of what was emitted, by the state reached."""
    width = f.states.shape[1]
    start = xp.broadcast_to(xp.arange(width) == 0, f.states.shape)
    reached = [_blank_pair(xp, f, start)]
    for t in range(len(f.emitted)):
        new = _emitting(f, t, _step(xp, reached[-1], f.jumps, 1))
        reached.append(_chosen(xp, f.present[t][:, None], new, reached[-1]))
    return reached


def loss(xp: ModuleType, f: Frames, last: tuple[Any, Any]) -> tuple[Any, Any]:
    """-log of the probability of each label, inf where it has none, and its tangent."""
    value = xp.where(f.final, last[0], -np.inf)
    columns = list(value.T)
    total, along = _added(xp, columns, None if last[1] is None else list(last[1].T))
    return -total, None if along is None else -along


def slope(xp: Any, logits: Array, direction: Array | None, labels: Array, label_length: Array,
          logit_length: Array, blank: int) -> Array:
    """d loss / d logits [T, B, C]: the probabilities of the classes, less those given the label.
    Along a direction, its derivative instead. 0 beyond a sequence's frames, and where no alignment
    fits."""
    logp, tangent = log_softmax(xp, logits, direction)
    f = frames(xp, logp, tangent, labels, label_length, logit_length, blank)
    reached = forward(xp, f)
    losses, bent = loss(xp, f, reached[-1])
    fits = xp.isfinite(losses)
    ahead = _blank_pair(xp, f, f.final)
    shares = []
    for t in reversed(range(len(logp))):
        value = xp.exp(reached[t + 1][0] + ahead[0] + xp.where(fits, losses, 0)[:, None])
        if direction is not None:
            value = value * (reached[t + 1][1] + ahead[1] + bent[:, None])
        shares.append(value)
        new = _step(xp, _emitting(f, t, ahead), f.jumps, -1)
        ahead = _chosen(xp, f.present[t][:, None], new, ahead)
    prior = xp.exp(logp) if tangent is None else xp.exp(logp) * tangent
    kept = (f.present & fits)[:, :, None]
    gradient = prior
    if shares:
        known = xp.where(f.known, xp.stack(shares[::-1]), 0)
        gradient = prior - _by_class(xp, known, f.states, logp.shape[2])
    return xp.where(kept, gradient, 0).astype(logits.dtype)


def _by_class(xp: ModuleType, shares: Array, states: Array, classes: int) -> Array:
    """Shares [T, B, S] of states added up by the class of each: [T, B, C]."""
    times, batch, width = shares.shape
    ids = (xp.arange(batch)[:, None] * classes + states).reshape(-1)
    rows = shares.transpose(1, 2, 0).reshape(batch * width, times)
    sums = segment_sum(xp, rows, ids, batch * classes)
    return sums.reshape(batch, classes, times).transpose(2, 0, 1)
