"""Why a gradient is None: the first broken link between a source and a target, with its line.

The tape's records are the links that carry a gradient, its marks the steps that do not. The
explanation is the path from the target back to the source with the fewest broken links.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtape.autodiff import gradient_request
from gtape.autodiff.backward import keys_depending_on, walk
from gtape.core import nest, recording
from gtape.core.context import SourceLocation, paused, resolve
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.recording import Record
from gtape.core.tensor import ComputedFrom, EagerTensor, Tensor
from gtape.core.variable import Variable

NOT_WATCHED = "NOT_WATCHED"
NOT_TRAINABLE = "NOT_TRAINABLE"
WATCHED_TOO_LATE = "WATCHED_TOO_LATE"
INTEGER_DTYPE = "INTEGER_DTYPE"
STOP_GRADIENT = "STOP_GRADIENT"
NON_DIFFERENTIABLE_OP = "NON_DIFFERENTIABLE_OP"
LEFT_TO_HOST = "LEFT_TO_HOST"
VARIABLE_REBOUND = "VARIABLE_REBOUND"
STATE_ASSIGN = "STATE_ASSIGN"
USED_OUTSIDE_TAPE = "USED_OUTSIDE_TAPE"
NOT_USED = "NOT_USED"
TAPE_CONSUMED = "TAPE_CONSUMED"
CONNECTED_BUT_ZERO = "CONNECTED_BUT_ZERO"
CONNECTED = "CONNECTED"
STRUCTURAL = "STRUCTURAL"


@dataclass(frozen=True)
class PathStep:
    """One link of the path, from source to target."""

    op: str
    site: SourceLocation | None
    broken: bool


@dataclass(frozen=True)
class Explanation:
    """The answer of `GradientTape.explain`."""

    cause: str
    text: str
    steps: tuple[PathStep, ...] = ()
    site: SourceLocation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for logs."""
        return {"cause": self.cause, "text": self.text,
                "file": self.site.file if self.site else None,
                "line": self.site.line if self.site else None,
                "steps": [{"op": s.op, "site": str(s.site) if s.site else None,
                           "broken": s.broken} for s in self.steps]}

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Link:
    """An edge from a result back to an input; cost 0 carries a gradient."""

    op: Any
    name: str
    kind: str
    site: tuple[Any, int]
    source: int
    cost: int


def explain(tape: Any, target: Any, source: Any) -> Explanation:
    """Why d target / d source is what it is on `tape`."""
    if isinstance(source, (list, tuple, dict)):
        raise TypeError(f"explain takes one source, a Tensor or Variable; got a "
                        f"{type(source).__name__} of {len(source)}. Ask for each of them")
    leaves = [gradient_request.leaf_state(t, "target", i, 1)
              for i, t in enumerate(nest.flatten(target))]
    origin = gradient_request.leaf_state(source, "source", 0, 1)
    if tape._spent:
        return Explanation(TAPE_CONSUMED, (
            "The tape is spent: a non-persistent tape forgets its records at the first gradient. "
            "Ask explain before gradient, use GradientTape(persistent=True), or "
            "gradient(..., on_none=\"warn\")."))
    return explain_lists(tape, leaves, origin, tape._records, tape._marks)


def explain_lists(tape: Any, targets: list[Any], source: Tensor | Variable, records: list[Any],
                  marks: list[Any]) -> Explanation:
    """`explain` on lists of records and marks, for a tape that may have dropped them."""
    return _Search(tape, targets, source, records, marks).answer()


def _name(leaf: Any) -> str:
    return f"Variable '{leaf.name}'" if not isinstance(leaf, Tensor) else f"tensor {leaf.spec}"


def _at(site: SourceLocation | None) -> str:
    if site is None:
        return ""
    return f" at {site}" + (f"\n    {site.text}" if site.text else "")


class _Search:
    def __init__(self, tape: Any, targets: list[Any], source: Any, records: list[Any],
                 marks: list[Any]) -> None:
        self.tape, self.targets, self.source = tape, targets, source
        self.walked, self.marks = records, marks
        self.records = list(map(Record.of, records))
        self.known = set(tape._known)
        for record in self.records:
            self.known.update(record.outputs)
        self.source_keys = set(tape._keys_of(source))
        if not isinstance(source, Tensor) and source._value._k:
            self.source_keys.add(source._value._k)
        self.links = self._links()

    # ------------------------------------------------------------------ the graph

    def _links(self) -> dict[int, list[_Link]]:
        by_key: dict[int, list[_Link]] = {}
        for r in self.records:
            for out in r.outputs:
                by_key.setdefault(out, []).extend(
                    _Link(r.op, r.op.name.rstrip("_"), "", (r.code, r.offset), k, 0)
                    for k in r.inputs)
        exits = [m for m in self.marks if m[0] == recording.EXIT]
        for kind, name, ins, outs, code, lasti in self.marks:
            if kind == recording.EXIT:
                continue
            for out in outs:
                links = by_key.setdefault(out, [])
                links.extend(_Link(None, name.rstrip("_"), kind, (code, lasti), k, 1) for k in ins)
                links.extend(self._from_host(out, exits) if not self._inside(ins) else [])
        return by_key

    def _inside(self, keys: tuple[int, ...]) -> bool:
        return any(k in self.known for k in keys)

    @staticmethod
    def _from_host(out: int, exits: list[Any]) -> list[_Link]:
        """A value computed from unknown inputs may come from one that left the tape before."""
        return [_Link(None, name, recording.EXIT, (code, lasti), ins[0], 3)
                for _, name, ins, outs, code, lasti in exits if not outs or outs[0] < out]

    def _path(self) -> list[_Link] | None:
        """The cheapest path from a target to the source, in the order source to target."""
        starts = []
        for leaf in self.targets:
            starts += [k for k in (leaf._k, *self.tape._reads.get(leaf._k, ())) if k]
            if not isinstance(leaf, Tensor) and leaf._value._k:
                starts.append(leaf._value._k)
        # Shortest paths with few different costs: a deque does what Dijkstra's heap would.
        best: dict[int, int] = dict.fromkeys(starts, 0)
        via: dict[int, tuple[int, _Link]] = {}
        queue = deque(starts)
        while queue:
            key = queue.popleft()
            for link in self.links.get(key, ()):
                cost = best[key] + link.cost
                if cost < best.get(link.source, 1 << 30):
                    best[link.source], via[link.source] = cost, (key, link)
                    # Links of cost 0 go first, so that few keys are met again by a cheaper path:
                    # what follows them is then walked once more.
                    (queue.append if link.cost else queue.appendleft)(link.source)
        reached = [k for k in self.source_keys if k in best]
        if not reached:
            return None
        key, path = min(reached, key=lambda k: best[k]), []
        while key in via:
            key, link = via[key]
            path.append(link)
        return path

    # ------------------------------------------------------------------ the answer

    def answer(self) -> Explanation:
        path = self._path()
        if path is None:
            return self._no_path()
        steps = tuple(PathStep(link.name, resolve(*link.site), link.cost > 0) for link in path)
        broken = [link for link in path if link.cost]
        if broken:
            return self._broken(broken[0], path, steps)
        if not path and not self._watched() and not self._is_target():
            return self._unused(steps)
        return self._connected(steps)

    def _is_target(self) -> bool:
        return any(leaf is self.source for leaf in self.targets)

    def _watched(self) -> bool:
        return bool(self.source_keys & self.known)

    def _broken(self, link: _Link, path: list[_Link], steps: tuple[PathStep, ...]) -> Explanation:
        site = resolve(*link.site)
        where = _at(site)
        if not self.source.dtype.is_differentiable:
            return self._integer(steps)
        if link.kind == recording.UNKNOWN:
            # An op ran on inputs that the tape did not know: the source itself, or what came of it.
            return (self._not_watched(steps, site) if link.source in self.source_keys
                    else self._cut(link, steps, site))
        if link.kind == recording.EXIT:
            return Explanation(LEFT_TO_HOST, (
                f"The path leaves the tape through {link.name}{where}\n  The result is a NumPy or "
                f"Python value, and what is computed from it has no gradient. Use gtape functions "
                f"(tf.reduce_mean for np.mean …) inside the tape's block."), steps, site)
        if link.kind == recording.OUTSIDE:
            return Explanation(USED_OUTSIDE_TAPE, (
                f"A value that the target uses was computed from the {_name(self.source)} outside "
                f"the tape{where}\n  Only what is computed inside the tape's block is recorded. "
                f"Move that line into the block."), steps, site)
        if link.kind == recording.STATE:
            return Explanation(STATE_ASSIGN, (
                f"The value was assigned to the Variable '{link.name}'{where}\n  State stops "
                f"gradients: a Variable remembers its value, not how it was computed. Use the "
                f"tensor itself instead of assigning it."), steps, site)
        return self._cut(link, steps, site)

    def _cut(self, link: _Link, steps: tuple[PathStep, ...], site: SourceLocation) -> Explanation:
        where = _at(site)
        if link.name == "stop_gradient":
            return Explanation(STOP_GRADIENT, f"tf.stop_gradient cuts the path{where}", steps, site)
        if link.name == "cast":
            return Explanation(INTEGER_DTYPE, (
                f"The path goes through an integer or bool dtype: cast{where}\n  Keep the values "
                f"floating (tf.float32)."), steps, site)
        return Explanation(NON_DIFFERENTIABLE_OP, (
            f"{link.name} is not differentiable{where}\n  Its result is constant almost everywhere,"
            f" or not a floating number. Use a smooth function, or tf.grad_pass_through for a "
            f"straight-through estimate."), steps, site)

    def _integer(self, steps: tuple[PathStep, ...]) -> Explanation:
        site = steps[0].site if steps else None
        return Explanation(INTEGER_DTYPE, (
            f"The source, {_name(self.source)}, has dtype {self.source.dtype.name}; only floating "
            f"and complex values have gradients{_at(site)}\n  Make it floating: "
            f"tf.Variable(30.0), or dtype=tf.float32."), steps, site)

    def _not_watched(self, steps: tuple[PathStep, ...], site: SourceLocation | None) -> Explanation:
        where = _at(site)
        if not isinstance(self.source, Tensor):
            if not self.source.trainable:
                return Explanation(NOT_TRAINABLE, (
                    f"The {_name(self.source)} has trainable=False, so it is not watched "
                    f"when it is read{where}\n  Call tape.watch(variable) first, or make it "
                    f"trainable."), steps, site)
            return Explanation(NOT_WATCHED, (
                f"The {_name(self.source)} is not watched: the tape was made with "
                f"watch_accessed_variables=False, and tape.watch(variable) was not called before "
                f"it was used{where}"), steps, site)
        origin = getattr(self.source, "_origin", None)
        if type(origin) is ComputedFrom:
            line = resolve(origin.code, origin.offset)
            return Explanation(VARIABLE_REBOUND, (
                f"The source is a Tensor, computed from the Variable "
                f"'{origin.variable.name}' outside the "
                f"tape{_at(line)}\n  Rebinding the name (x = x + 1) replaced the Variable by a "
                f"Tensor, which is not watched. Use x.assign_add(1) to change the Variable."),
                steps, line)
        late = self._watched()
        return Explanation(WATCHED_TOO_LATE if late else NOT_WATCHED, (
            f"The source, a {_name(self.source)}, was used before it was watched{where}\n  Call "
            f"tape.watch(x) before the first use." if late else
            f"The source, a {_name(self.source)}, is not watched{where}\n  Tensors are watched "
            f"only when asked: call tape.watch(x) inside the block before it is used. Variables "
            f"are watched by themselves."), steps, site)

    def _no_path(self) -> Explanation:
        if not self.source.dtype.is_differentiable:
            return self._integer(())
        for leaf in self.targets:
            if not leaf.dtype.is_differentiable:
                return Explanation(INTEGER_DTYPE, (
                    f"The target, {_name(leaf)}, has dtype {leaf.dtype.name}; only floating and "
                    f"complex values have gradients."), (), None)
        if not any(leaf._k and (leaf._k in self.links or leaf._k in self.known)
                   for leaf in self.targets):
            return self._outside()
        return self._unused(())

    def _outside(self) -> Explanation:
        exits = self._exits_of_source()
        if exits:
            return exits
        return Explanation(USED_OUTSIDE_TAPE, (
            "The target was not computed while this tape was recording: it was made before or "
            "after the tape's `with` block, under stop_recording, on another tape or in another "
            "thread. Compute the target inside the block (slicing and summing too)."), (), None)

    def _exits_of_source(self) -> Explanation | None:
        """Where a value that depends on the source went to NumPy or Python."""
        reach = set(self.source_keys)
        # Later values have larger keys, so one pass in their order follows every path.
        for key in sorted(self.links):
            if any(link.source in reach for link in self.links[key]):
                reach.add(key)
        for kind, name, ins, _outs, code, lasti in self.marks:
            if kind == recording.EXIT and ins[0] in reach and name not in ("bool()",):
                site = resolve(code, lasti)
                return Explanation(LEFT_TO_HOST, (
                    f"A value computed from the source left the tape through {name}{_at(site)}\n"
                    f"  What is computed from the NumPy or Python result has no gradient. Use "
                    f"gtape functions inside the tape's block."), (), site)
        return None

    def _unused(self, steps: tuple[PathStep, ...]) -> Explanation:
        used = [m for m in self.marks if self.source_keys & set(m[2])] or [
            r for r in self.records if self.source_keys & set(r.inputs)]
        origin = getattr(self.source, "_origin", None)
        if type(origin) is ComputedFrom and not self._watched():
            return self._not_watched(steps, None)
        left = self._exits_of_source()
        if left is not None:
            return left
        unwatched = self._unwatched_use(steps)
        if unwatched is not None:
            return unwatched
        if not used:
            late = isinstance(self.source, Tensor)
            return Explanation(NOT_USED, (
                f"The source, {_name(self.source)}, was not used "
                f"{'after it was watched' if late else 'while the tape recorded'}: the target "
                f"does not depend on it. Is it another object than the one the model uses, "
                f"{'was it used before tape.watch, ' if late else ''}or was another branch of an "
                f"`if` taken?"), steps, None)
        return Explanation(NOT_USED, (
            f"The source, {_name(self.source)}, was used, but nothing computed from it leads to "
            f"the target: another branch or another output was used, or the target is the "
            f"derivative of something linear."), steps, None)

    def _unwatched_use(self, steps: tuple[PathStep, ...]) -> Explanation | None:
        """A record lists watched inputs only, so an unwatched source beside one leaves no path."""
        if self._watched():
            return None
        marks = [m for m in self.marks if self.source_keys & {*m[2], *m[3]}]
        if not marks and not isinstance(self.source, Tensor):
            return None
        return self._not_watched(steps, resolve(*marks[0][4:]) if marks else None)

    # ------------------------------------------------------------------ connected

    def _connected(self, steps: tuple[PathStep, ...]) -> Explanation:
        if not self.source.dtype.is_differentiable:
            return self._integer(steps)
        value = self._gradient()
        if value is None:
            return Explanation(STRUCTURAL, (
                "Target and source are connected, but the derivative does not depend on the "
                "source: every path goes through an input that an op has no slope in."), steps,
                None)
        if not bool(np.any(value)):
            return self._dead(steps)
        return Explanation(CONNECTED, "Target and source are connected; the gradient is not None.",
                         steps, None)

    def _gradient(self) -> Any:
        if any(not isinstance(leaf, EagerTensor) and isinstance(leaf, Tensor)
               for leaf in self.targets):
            return np.ones(1)
        grads: dict[int, Any] = {}
        for leaf in self.targets:
            seed = gradient_request.ones(leaf)
            if seed is not None:
                grads[self.tape._target_key(leaf)] = seed._array_()
        with paused():
            walk(list(self.walked), grads, self.source_keys,
                 keys_depending_on(self.walked, self.source_keys), False, False)
        gradient = self.tape._answer(grads, tuple(self.source_keys), False)
        if gradient is None:
            return None
        dense = gradient.to_dense() if isinstance(gradient, IndexedSlices) else gradient
        return dense._peek()

    def _dead(self, steps: tuple[PathStep, ...]) -> Explanation:
        # Ops whose derivative is 0 in some places or for some operands.
        masks = {"relu", "relu6", "where", "maximum", "minimum", "clip", "sign", "multiply",
                 "reduce_max", "reduce_min", "max_pool"}
        at = next((s for s in steps if s.op in masks), None)
        what = f"{at.op}{_at(at.site)}" if at else "a factor of zero on the path"
        return Explanation(CONNECTED_BUT_ZERO, (
            f"Target and source are connected, and the gradient is zero everywhere: masked by "
            f"{what}\n  A dead relu, an unused branch of tf.where, or a factor of 0 gives exact "
            f"zeros."), steps, at.site if at else None)
