"""Units: which steps become one piece of text.

Steps of one shape that feed each other are a `Cluster`: large ones run block by block. Clusters of
equal text, such as an optimizer's update of many small variables, run as one on arrays laid one
after another: a `JoinedClusters`.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from gtape.compile.numpy.rematerialize import Depths, place_of
from gtape.compile.numpy.values import ArrayValue, NumpyStep, Sum, UfuncStep

#: Larger arrays are not laid one after another: copying them would cost more than calls do.
_JOINED = 1 << 14


class Unit:
    """One step, or several that run together."""

    #: Whether it runs block by block.
    large = False

    def __init__(self, steps: Sequence[NumpyStep]) -> None:
        self.steps = list(steps)

    @property
    def reads(self) -> list[ArrayValue]:
        """What it needs of others, each once."""
        made = {id(v) for s in self.steps for v in s.outputs}
        found = {id(v): v for s in self.steps for v in s.inputs if id(v) not in made}
        return list(found.values())

    @property
    def makes(self) -> list[ArrayValue]:
        return [v for s in self.steps for v in s.outputs]


class Cluster(Unit):
    """`UfuncStep`s of one shape in order, and the full sums of what a large one makes."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.steps[0].outputs[0].shape

    @property
    def size(self) -> int:
        return self.steps[0].outputs[0].size

    @property
    def large(self) -> bool:  # type: ignore[override]
        return self.steps[0].outputs[0].large


class JoinedClusters(Unit):
    """Clusters that differ in nothing but the arrays that they read and their shapes.

    Numbers that they read are the same for all. `kept`: places among a member's steps of those
    whose values others read.
    """

    def __init__(self, members: Sequence[Cluster], kept: Sequence[int]) -> None:
        super().__init__([s for m in members for s in m.steps])
        self.members = list(members)
        self.kept = list(kept)
        self.size = sum(m.size for m in members)
        self.large = self.size >= ArrayValue.LARGE


def units_of(steps: Sequence[NumpyStep], outputs: Sequence[ArrayValue]) -> list[Unit]:
    """The steps in units, each after what it reads."""
    depths = Depths(steps, outputs)
    steps = depths.steps
    clusters = _clusters(steps, depths.of)
    taken = {id(s) for c in clusters for s in c.steps}
    units: list[Unit] = [*clusters, *(Unit([s]) for s in steps if id(s) not in taken)]
    place = place_of(steps)
    units = ordered(units, place)
    for candidates in _alike(units, outputs):
        units = _grouped(units, candidates, outputs, place)
    return units


# ---------------------------------------------------------------------- clusters

def _clusters(steps: Sequence[NumpyStep], depth: dict[int, int]) -> list[Cluster]:
    """Connected `UfuncStep`s of one shape and depth."""
    owner: dict[int, list[NumpyStep]] = {}
    for step in steps:
        shape = step.outputs[0].shape if step.outputs else ()
        if not isinstance(step, UfuncStep) or not shape:
            continue
        own = owner[id(step)] = [step]
        for value in step.inputs:
            other = owner.get(id(value.step))
            if other is None or other is own or depth[id(value.step)] != depth[id(step)] or (
                    value.shape != shape):
                continue
            other += own
            for mate in own:
                owner[id(mate)] = other
            own = other
    place = place_of(steps)
    found = {id(c): c for c in owner.values()}
    clusters = [Cluster(sorted(c, key=lambda s: place[id(s)])) for c in found.values()]
    _add_sums(clusters, steps)
    return clusters


def _add_sums(clusters: Sequence[Cluster], steps: Sequence[NumpyStep]) -> None:
    """Full sums of what large clusters make are taken on the way."""
    large = {id(s): c for c in clusters if c.large for s in c.steps}
    for step in steps:
        if isinstance(step, Sum) and step.total and id(step.inputs[0].step) in large:
            large[id(step.inputs[0].step)].steps.append(step)


# ---------------------------------------------------------------------- groups

def _alike(units: Sequence[Unit], outputs: Sequence[ArrayValue]) -> list[list[Cluster]]:
    """Small clusters with the same text, two or more."""
    used = _uses(units, outputs)
    found: dict[Any, list[Cluster]] = {}
    for unit in units:
        if isinstance(unit, Cluster) and not unit.large and unit.size <= _JOINED:
            text = _text(unit, used)
            if text is not None:
                found.setdefault(text, []).append(unit)
    return [c for c in found.values() if len(c) > 1]


def _uses(units: Sequence[Unit], outputs: Sequence[ArrayValue]) -> set[int]:
    """Values that are read outside the unit that makes them."""
    return {id(v) for u in units for v in u.reads} | {id(v) for v in outputs}


def _text(cluster: Cluster, used: set[int]) -> Any:
    """What a cluster computes, apart from which arrays; None where arrays of other shapes take
    part."""
    codes: dict[int, Any] = {}
    count = 0
    lines: list[Any] = []
    for step in cluster.steps:
        args: list[Any] = []
        for value in step.inputs:
            if id(value) not in codes:
                if value.shape == cluster.shape:
                    codes[id(value)] = (count, value.dtype)
                    count += 1
                elif value.size == 1 and not value.shape:
                    codes[id(value)] = ("number", id(value))
                else:
                    return None
            args.append(codes[id(value)])
        made = step.outputs[0]
        codes[id(made)] = ("made", len(lines))
        function = step.function  # type: ignore[attr-defined]
        lines.append((function.name, id(function) if function.name != "cast" else 0, made.dtype,
                      id(made) in used, *args))
    return tuple(lines)


def _grouped(units: list[Unit], candidates: list[Cluster], outputs: Sequence[ArrayValue],
             place: dict[int, int]) -> list[Unit]:
    """`units` with those candidates that do not need each other in one group, if that pays."""
    reach = _reached(units)
    members: list[Cluster] = []
    for cluster in candidates:
        if not any(reach[id(cluster)] & reach[id(m)] & _bits(reach, cluster, m) for m in members):
            members.append(cluster)
    used = _uses(units, outputs)
    kept = [i for i, s in enumerate(members[0].steps) if id(s.outputs[0]) in used]
    if len(members) < 2 or not _pays(members, len(kept)):
        return units
    gone = set(map(id, members))
    return ordered([*(u for u in units if id(u) not in gone), JoinedClusters(members, kept)], place)


def _reached(units: Sequence[Unit]) -> dict[int, int]:
    """By unit: a bit for itself and every unit that it needs."""
    maker = {id(v): u for u in units for v in u.makes}
    found: dict[int, int] = {}
    for i, unit in enumerate(units):
        bits = 1 << i
        for value in unit.reads:
            if id(value) in maker:
                bits |= found[id(maker[id(value)])]
        found[id(unit)] = bits
    return found


def _bits(reach: dict[int, int], a: Unit, b: Unit) -> int:
    """The bits of two units themselves: the highest of what each reaches."""
    return sum({1 << reach[id(u)].bit_length() - 1 for u in (a, b)})


def _pays(members: Sequence[Cluster], kept: int) -> bool:
    """Whether laying arrays one after another costs less than the calls that it saves.

    In calls of a ufunc on a small array; a part that is copied or cut costs about half of one.
    """
    count, calls = len(members), len(members[0].steps)
    arrays = sum(1 for v in members[0].reads if v.shape)
    return calls * count > calls * 1.5 + arrays * (1.5 + count / 2) + kept * count * 0.7


# ---------------------------------------------------------------------- order

def ordered(units: Sequence[Unit], place: dict[int, int]) -> list[Unit]:
    """Units, each after what it reads, otherwise as their steps come."""
    maker = {id(v): i for i, u in enumerate(units) for v in u.makes}
    waits: list[set[int]] = [{maker[id(v)] for v in u.reads if id(v) in maker} for u in units]
    readers: list[list[int]] = [[] for _ in units]
    for i, wanted in enumerate(waits):
        for j in wanted:
            readers[j].append(i)
    keys = [min(place[id(s)] for s in u.steps) for u in units]
    ready = [(keys[i], i) for i, wanted in enumerate(waits) if not wanted]
    heapq.heapify(ready)
    found: list[Unit] = []
    while ready:
        _, i = heapq.heappop(ready)
        found.append(units[i])
        for j in readers[i]:
            waits[j].discard(i)
            if not waits[j]:
                heapq.heappush(ready, (keys[j], j))
    assert len(found) == len(units), "units wait for each other"
    return found
