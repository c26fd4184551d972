"""What all ways of running programs must agree on, and how much rounding may make of it.

Two checks. A line whose operands and result are all returned is computed again, eagerly, from the
operands that the way itself returned: nothing has added up, so ops without rounding must agree bit
for bit, and a value has one version. Then results, gradients and Variables are compared with those
of the eager program. Where they differ by more than rounding usually does, the eager program runs
again with noise of some units in the last place in all numbers and after every line: what moves as
far by itself is no defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import gtape as tf

from . import values
from .elaborate import Elaborated, Written
from .program import Given, Loop, walk
from .running import MODES, WIDER, Group, Outcome, Setting

#: Units in the last place of the largest number that results may differ by at once.
_USUAL = {2: 6.0, 4: 40.0, 8: 40.0}
#: How often noise is drawn, and its largest size in units in the last place: a first look, and a
#: second one before something is called a defect.
_LOOKS = ((8, 4.0), (40, 16.0))
#: How much further than by noise a result may move.
_BEYOND = 16.0


class Finding(NamedTuple):
    """A disagreement: what `kind` it is, in which way of running, and for people what was seen."""

    kind: str
    mode: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.mode}): {self.detail}"


class Noise:
    """Passes tensors through with numbers moved by up to `ulps` units in the last place.

    short: small multiples of 1/256 stay, because nothing rounds them where it runs.
    """

    def __init__(self, seed: int, ulps: float, short: bool) -> None:
        self.seed, self.ulps, self._short = seed, ulps, short
        self._rng = np.random.default_rng(seed)

    def __call__(self, tensor: Any) -> Any:
        size = values.epsilon(tensor.dtype.name) * self.ulps
        if not size:
            return tensor
        array = np.asarray(tensor)
        wide = array if array.dtype.kind == "c" else array.astype(np.float64)
        factor = 1.0 + size * self._rng.uniform(-1, 1, array.shape)
        if self._short:
            factor = np.where(values.is_short(wide.real) & values.is_short(wide.imag), 1.0, factor)
        return tensor * tf.constant(factor.astype(array.dtype))


# ------------------------------------------------------------------ one array beside another


def differing(got: np.ndarray, wanted: np.ndarray, ulps: float) -> np.ndarray:
    """Where two arrays of one shape differ by more than `ulps` units in the last place."""
    if wanted.dtype.kind not in "fcV" and not values.epsilon(wanted.dtype.name):
        return np.asarray(got != wanted)
    a, b = (_wide(x) for x in (got, wanted))
    with np.errstate(all="ignore"):
        finite = np.isfinite(a) & np.isfinite(b)
        largest = np.max(np.abs(b), where=np.isfinite(b), initial=0.0)
        allowed = ulps * values.epsilon(wanted.dtype.name) * (np.abs(b) + 0.05 * largest)
        allowed = allowed + _smallest(wanted.dtype.name)
        same = np.where(finite, np.abs(a - b) <= allowed, (a == b) | (np.isnan(a) & np.isnan(b)))
    return np.asarray(~same)


def _smallest(dtype: str) -> float:
    """Some of the smallest normal numbers of a dtype: below, digits are lost."""
    if dtype == "float16":
        return 4 * 2.0 ** -24
    return 2.0 ** -124 if dtype in ("bfloat16", "float32", "complex64") else 2.0 ** -1020


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _moved(runs: Sequence[np.ndarray], base: np.ndarray) -> np.ndarray:
    """How far each number moved at most; infinite where it became finite, or ceased to be."""
    with np.errstate(all="ignore"):
        moved = np.zeros(base.shape)
        for run in runs:
            one = np.abs(_wide(run) - _wide(base))
            alike = np.isfinite(_wide(run)) == np.isfinite(_wide(base))
            both = ~np.isfinite(_wide(run)) & ~np.isfinite(_wide(base))
            moved = np.maximum(moved, np.where(both, 0.0, np.where(alike, one, np.inf)))
    return moved


def beyond_noise(got: np.ndarray, wanted: np.ndarray, again: Callable[[Noise], np.ndarray | None],
                 short: bool = False) -> np.ndarray:
    """Where `got` differs from `wanted` by more than noise explains; `again` computes `wanted` with
    noise, which leaves `short` numbers alone where all lines do."""
    usual = _USUAL[min(8, max(2, wanted.dtype.itemsize // (1 + (wanted.dtype.kind == "c"))))]
    bad = differing(got, wanted, usual) & ~_overflown(got, wanted)
    for count, ulps in _LOOKS:
        if not bad.any():
            break
        noises = (Noise(seed, ulps, short) for seed in range(count))
        runs = [run for run in map(again, noises) if run is not None]
        if any(r.shape != wanted.shape or r.dtype != wanted.dtype for r in runs):
            return np.zeros_like(bad)
        if values.epsilon(wanted.dtype.name):
            with np.errstate(all="ignore"):
                distance = np.abs(_wide(got) - _wide(wanted))
            moved = _moved(runs, wanted) * _BEYOND
            bad = bad & ~((distance <= moved) | np.isinf(moved))
        else:
            bad = bad & ~np.any([r != wanted for r in runs], axis=0) if runs else bad
    return bad


def _overflown(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where one is infinite and the other nan. inf - 1e15 * 1e30 in float32 is either: the product
    overflows where it is rounded, and does not in a product fused with its sum, as in BLAS."""
    return (np.isnan(got) & np.isinf(wanted)) | (np.isinf(got) & np.isnan(wanted))


def shown(bad: np.ndarray, got: np.ndarray, wanted: np.ndarray) -> str:
    at = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
    return (f"{int(bad.sum())} of {bad.size} differ, first at {at}: {got[at]!r}, eagerly "
            f"{wanted[at]!r} ({wanted.dtype})")


# ------------------------------------------------------------------ one outcome beside another


def compare(made: Elaborated, mode: str, call: int, got: Outcome, wanted: Outcome,
            ) -> Finding | None:
    """What is wrong with an outcome of a way; `wanted` is the eager one."""
    if got.error != wanted.error:
        return Finding("error", mode, f"{got.error or 'no error'}, eagerly "
                       f"{wanted.error or 'no error'}")
    if set(got.results) != set(wanted.results):
        return Finding("results", mode, f"{sorted(got.results)}, eagerly {sorted(wanted.results)}")
    return (_kinds(made, mode, got, wanted) or (None if wanted.error else
            _again(made, mode, call, got) or _beside(made, mode, call, got, wanted)))


def _kinds(made: Elaborated, mode: str, got: Outcome, wanted: Outcome) -> Finding | None:
    for name, array in wanted.results.items():
        result = got.results[name]
        a, b = (None if x is None else (x.dtype, x.shape) for x in (result, array))
        if b is None and result is not None and made.nested and _nothing(result):
            continue  # a branch that was not taken gives no gradient eagerly, and 0 in a graph
        if a != b:
            return Finding("kind", mode, f"{name} is {a}, eagerly {b}")
    return None


def _nothing(gradient: np.ndarray) -> bool:
    """Whether it is a cotangent of 0 that went on; beside nan it becomes nan."""
    return not gradient[np.isfinite(gradient)].any()


def _again(made: Elaborated, mode: str, call: int, got: Outcome) -> Finding | None:
    """Lines computed again from what the way returned."""
    setting = Setting(made)
    space = dict(setting.space)
    arguments = [g.name for g in made.given if g.role == "argument"]
    space |= dict(zip(arguments, setting.arguments(call)))
    for given in made.given:
        if given.role == "literal":
            space[given.name] = tf.constant(setting.array(given))
        elif given.role == "variable":
            del space[given.name]  # which of its values a line saw is not known
    for name in made.program.returned:
        space[name] = None
        if name in got.results:
            space[name] = tf.constant(got.results[name])
    for line in made.written:
        if line.name in got.results and "generator" not in line.inputs and all(
                space.get(n) is not None for n in line.inputs):
            bad = _line_again(line, space, mode, got)
            if bad:
                return Finding("line", mode, f"{line.name} = {line.steps[-1][1]}: {bad}")
    return None


def _line_again(line: Written, space: dict[str, Any], mode: str, got: Outcome) -> str:
    """What is wrong with the result of one line; empty where nothing is."""
    def computed(noise: Callable[[Any], Any] | None) -> np.ndarray:
        return np.asarray(line.compute(space, noise))

    result, wanted = got.results[line.name], computed(None)
    assert result is not None
    if line.exact:
        bad = differing(result, wanted, 0.0)
        if line.signed and wanted.dtype.name in values.FLOATS:
            bad |= (wanted == 0) & (np.signbit(result) != np.signbit(wanted))
    else:
        bad = beyond_noise(result, wanted, computed)
        if mode in WIDER and wanted.dtype.name in values.HALVES:
            bad &= np.isfinite(_wide(wanted))  # the line may be a chain itself
    return shown(bad, result, wanted) if bad.any() else ""


def _beside(made: Elaborated, mode: str, call: int, got: Outcome, wanted: Outcome,
            ) -> Finding | None:
    """All results beside the eager ones."""
    runs: dict[Any, Outcome] = {}

    def computed(name: str, noise: Noise, key: Any) -> np.ndarray | None:
        if key not in runs:
            runs[key] = Group([made], "eager", jitter=noise).calls(call + 1)[call][0]
        return runs[key].results.get(name)

    for name, array in wanted.results.items():
        result = got.results[name]
        if array is None or result is None:
            continue
        bad = beyond_noise(result, array, lambda noise, name=name: computed(
            name, noise, (noise.seed, noise.ulps)), made.short)
        if made.nested and name.startswith("d"):
            # eagerly nothing comes from a branch that was not taken, in a graph 0: times infinity
            bad &= np.isfinite(_wide(result)) & np.isfinite(_wide(array))
        if bad.any():
            bad &= _further_off(made, call, name, result, array)
        if bad.any() and not (mode in WIDER and _left_range(made, runs)):
            return Finding("value", mode, f"{name} of call {call}: {shown(bad, result, array)}")
    return None


def _further_off(made: Elaborated, call: int, name: str, got: np.ndarray, wanted: np.ndarray,
                 ) -> np.ndarray:
    """Where a result is further from the one in float64 than the eager one is: close to where a
    function saturates, its own rounding decides, which noise around it does not show."""
    outcome = Group([made], "eager", wide=True).calls(call + 1)[call][0]
    right = outcome.results.get(name)
    if right is None or right.shape != got.shape or values.epsilon(wanted.dtype.name) < 1e-12:
        return np.ones(got.shape, bool)
    with np.errstate(all="ignore"):
        ours, eager = (np.abs(_wide(x) - _wide(right)) for x in (got, wanted))
        largest = np.max(eager, where=np.isfinite(eager), initial=0.0)
        return np.asarray(~(ours <= 4 * eager + largest))


def _left_range(made: Elaborated, runs: dict[Any, Outcome]) -> bool:
    """Whether a program with 16-bit arithmetic left its range: a compiled chain may stay within
    that of float32."""
    return made.halves and any(
        array is not None and values.epsilon(array.dtype.name) and not np.isfinite(
            _wide(array)).all() for run in runs.values() for array in run.results.values())


# ------------------------------------------------------------------ programs


def findings(members: Sequence[Elaborated], modes: Sequence[str] = tuple(MODES),
             ) -> list[tuple[int, Finding]]:
    """What is wrong with programs, which are compiled together: the member, and the finding.

    Those that raise eagerly are run alone, because an error ends the call for all.
    """
    wanted = [Group([m], "eager").calls() for m in members]
    good = [i for i, calls in enumerate(wanted) if not any(c[0].error for c in calls)]
    found: dict[int, Finding] = {}
    for numbers in [good, *([i] for i in range(len(members)) if i not in good)]:
        for mode in modes:
            places = [i for i in numbers if _applies(mode, members[i])]
            chosen = [members[i] for i in places]
            if chosen:
                group = Group(chosen, mode)
                for i, finding in _calls(group, [wanted[i] for i in places], chosen):
                    found.setdefault(places[i], finding)
                for i, finding in _bad_calls(group, chosen) if numbers is good else ():
                    found.setdefault(places[i], finding)
    return sorted(found.items())


def _applies(mode: str, made: Elaborated) -> bool:
    """Whether a way of running differs from others for a program."""
    return (mode != "recorded" or made.program.order > 0) and (mode != "rounded" or made.halves)


def _calls(group: Group, wanted: Sequence[list[list[Outcome]]], members: Sequence[Elaborated],
           ) -> Iterator[tuple[int, Finding]]:
    for call, outcomes in enumerate(group.calls()):
        for i, (made, got) in enumerate(zip(members, outcomes)):
            bad = compare(made, group.mode, call, got, wanted[i][call][0])
            if bad:
                yield i, bad


def _bad_calls(group: Group, members: Sequence[Elaborated]) -> Iterator[tuple[int, Finding]]:
    for i, made in enumerate(members):
        given = bad_index(made)
        wanted = None if given is None else Group([made], "eager").bad_call(0, given)
        if given is not None and wanted is not None and wanted.error:
            got = group.bad_call(i, given)
            if got.error != wanted.error:
                yield i, Finding("range", group.mode, f"{given.name}: {got.error or 'no error'}, "
                                 f"eagerly {wanted.error}")


def bad_index(made: Elaborated) -> Given | None:
    """An argument of a program that holds indices, not how often a loop runs."""
    counts = [line.name for line in walk(made.program.lines) if isinstance(line, Loop)]
    return next((g for g in made.given if g.limit and g.role == "argument"
                 and g.name[:-1] not in counts), None)
