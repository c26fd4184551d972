"""How an op tells the recorders of its thread what it did.

A tape's record is the tuple (backward, result keys, code, offset, op, input keys, payload…).
Keys are ints, or tuples of ints where there are several. `backward(grads, g, record)` adds to
`grads`, which maps keys to arrays; `backward.tensors` does the same with tensors, through ops that
other tapes see. Only the inputs that the tape knows are listed, and the payload holds only what
the backward rule reads.

A tape also keeps marks, which hold no arrays: (kind, name, input keys, result keys, code, offset)
for every step that carries no gradient. `explain` reads them.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from gtape.core.sites import user_frame
from gtape.core.state import active, new_key
from gtape.core.tensor import Tensor

_getframe = sys._getframe

UNKNOWN = "unknown inputs"
CUT = "no gradient"
EXIT = "left the tape"
STATE = "assigned"
READ = "unwatched variable"


def caller(frame: FrameType) -> FrameType:
    """The user's frame, given the frame that called an op's function."""
    package = frame.f_globals.get("__package__")
    if package and package.startswith("gtape"):
        return user_frame(frame)
    return frame


def mark(tape: Any, kind: str, name: str, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
         frame: FrameType) -> None:
    """Note a step that carries no gradient on `tape`, giving keys to the tensors it touched."""
    ins, outs = [], []
    for tensor in inputs:
        if isinstance(tensor, Tensor):
            if not tensor._k:
                tensor._k = new_key()
            ins.append(tensor._k)
    for tensor in outputs:
        if not tensor._k:
            tensor._k = new_key()
        outs.append(tensor._k)
    tape._marks.append((kind, name, tuple(ins), tuple(outs), frame.f_code, frame.f_lasti))


def mark_all(kind: str, name: str, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """`mark` on every tape of this thread that is recording."""
    stack = active()
    if not stack:
        return
    frame = user_frame(_getframe(1))
    for recorder in stack:
        if recorder.is_tape:
            mark(recorder, kind, name, inputs, outputs, frame)


def _exit(tensor: Tensor, how: str) -> None:
    stack = active()
    if not stack:
        return
    frame = user_frame(_getframe(1))
    for recorder in stack:
        if recorder.is_tape and tensor._k in recorder._known:
            recorder._marks.append(
                (EXIT, how, (tensor._k,), (new_key(),), frame.f_code, frame.f_lasti))


Tensor._on_exit = staticmethod(_exit)  # type: ignore[assignment]


def record1(op: Any, stack: tuple[Any, ...], x: Any, y: Any) -> None:
    """Record `y = op(x)` for a one-input elementwise op on fast tensors; called by its function."""
    frame = caller(_getframe(2))
    key = x._k
    for recorder in stack:
        if not recorder.is_tape:
            recorder.observe(op, (x,), (y,), ())
        elif key in recorder._known:
            plan = op.plan(x._t, 1)
            if plan is None:
                mark(recorder, CUT, op.name, (x,), (y,), frame)
                continue
            if not y._k:
                y._k = new_key()
            recorder._known.add(y._k)
            recorder._records.append(
                (plan.backward, y._k, frame.f_code, frame.f_lasti, op, key,
                 x if plan.reads_x else None, y if plan.reads_y else None))
        else:
            mark(recorder, UNKNOWN, op.name, (x,), (y,), frame)


def record2(op: Any, stack: tuple[Any, ...], x: Any, y: Any, z: Any, array_type: Any) -> None:
    """Record `z = op(x, y)` on fast tensors; `x` or `y` may be a Python number."""
    frame = caller(_getframe(2))
    kx = x._k if type(x) is not float and type(x) is not int else 0
    ky = y._k if type(y) is not float and type(y) is not int else 0
    for recorder in stack:
        if not recorder.is_tape:
            recorder.observe(op, (x, y), (z,), ())
            continue
        known = recorder._known
        has_y = ky in known
        if kx in known:
            which = 3 if has_y else 1
        elif has_y:
            which = 2
        else:
            mark(recorder, UNKNOWN, op.name, (x, y), (z,), frame)
            continue
        plan = op.plan(array_type, which)
        if plan is None:
            mark(recorder, CUT, op.name, (x, y), (z,), frame)
            continue
        key = z._k
        if not key:
            z._k = key = new_key()
        known.add(key)
        recorder._records.append(
            (plan.backward, key, frame.f_code, frame.f_lasti, op,
             (kx, ky) if which == 3 else kx if which == 1 else ky,
             x._a.shape if which & 1 else None, y._a.shape if which & 2 else None,
             x if plan.reads_x else None, y if plan.reads_b else None,
             z if plan.reads_y else None))


def record_general(op: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...],
                   attrs: tuple[Any, ...]) -> None:
    """Record an application of any op with the recorders of this thread."""
    stack = active()
    if not stack:
        return
    frame = user_frame(_getframe(1))
    for recorder in stack:
        if not recorder.is_tape:
            recorder.observe(op, inputs, outputs, attrs)
            continue
        known = recorder._known
        mask = 0
        for i, tensor in enumerate(inputs):
            if isinstance(tensor, Tensor) and tensor._k in known:
                mask |= 1 << i
        if not mask:
            mark(recorder, UNKNOWN, op.name, inputs, outputs, frame)
            continue
        made = op.record(mask, inputs, outputs, attrs)
        if made is None:
            mark(recorder, CUT, op.name, inputs, outputs, frame)
            continue
        backward, in_keys, payload = made
        keys = []
        for tensor in outputs:
            if not tensor._k:
                tensor._k = new_key()
            keys.append(tensor._k)
            if tensor._t.differentiable:
                known.add(tensor._k)
        recorder._records.append(
            (backward, keys[0] if len(keys) == 1 else tuple(keys), frame.f_code, frame.f_lasti,
             op, in_keys, *payload))
