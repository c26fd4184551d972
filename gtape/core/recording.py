"""What becomes of an applied op: a node of a trace, and records of the tapes of its thread.

A tape's record is the tuple (backward, result keys, code, offset, op, input keys, payload…), bare
because ops that run in a microsecond write it; `Record` gives its parts names. Keys are ints, or
tuples of ints where there are several. `backward(grads, g, record)` adds to `grads`, which maps
keys to arrays, or returns the part of its one input; `backward.tensors` adds tensors, through ops
that other tapes see. Only the inputs that the tape knows are listed, and the payload holds only
what the backward rule reads.

A tape also keeps marks, which hold no arrays: (kind, name, input keys, result keys, code, offset)
for every step that carries no gradient. `explain` reads them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gtape.core.context import active, is_library, new_key, resolve, tracer_now, user_frame, walking
from gtape.core.device import ArrayType
from gtape.core.errors import InvalidArgumentError
from gtape.core.spec import Spec
from gtape.core.tensor import ComputedFrom, EagerTensor, Tensor

if TYPE_CHECKING:
    from gtape.core.annotations import TensorLike
    from gtape.core.op import Op

_getframe = sys._getframe

#: `backward(grads, g, record)`, with the attribute `tensors`.
Backward: TypeAlias = Callable[..., Any]
#: What an op gives for a record: the backward, input keys, payload.
Recorded: TypeAlias = tuple[Backward, Any, Sequence[Any]]
RecordTuple: TypeAlias = tuple[Any, ...]
#: Places in a record, for those who read one at every step.
OP, INPUT_KEYS, PAYLOAD = 4, 5, 6

# The kinds of marks.
UNKNOWN = "unknown inputs"
CUT = "no gradient"
EXIT = "left the tape"
STATE = "assigned"
OUTSIDE = "computed outside"
READ = "unwatched variable"


class Record(NamedTuple):
    """What a tape noted of one op, for readers that have the time for names."""

    backward: Callable[..., Any]
    outputs: tuple[int, ...]
    code: CodeType
    offset: int
    op: Any
    inputs: tuple[int, ...]
    payload: tuple[Any, ...]

    @staticmethod
    def of(record: tuple[Any, ...]) -> Record:
        backward, outputs, code, offset, op, inputs, *payload = record
        return Record(backward, keys_of(outputs), code, offset, op, keys_of(inputs),
                      tuple(payload))


def keys_of(keys: int | tuple[int, ...]) -> tuple[int, ...]:
    """The keys of a record, as a tuple where there is one too."""
    return keys if type(keys) is tuple else (keys,)  # type: ignore[return-value]


_current = walking.get
# The namespace of the module that called an op last and is no library's. One in a list that the
# printed functions of ops share: mostly it calls again, and `is` then spares them `is_library`.
_seen_globals: list[Any] = [None]


def user_of(frame: FrameType) -> FrameType:
    """The user's frame, given the frame that called an op's function."""
    space = frame.f_globals
    if space is _seen_globals[0]:
        return frame
    if is_library(space):
        return _current() or user_frame(frame)
    _seen_globals[0] = space
    return frame


def mark(tape: Any, kind: str, name: str, inputs: tuple[TensorLike, ...],
         outputs: tuple[Tensor, ...], frame: FrameType) -> None:
    """Note a step that carries no gradient on `tape`, giving keys to the tensors it touched."""
    ins, outs = [], []
    for tensor in inputs:
        if isinstance(tensor, Tensor):
            if not tensor._k:
                tensor._k = new_key()
            ins.append(tensor._k)
            origin = getattr(tensor, "_origin", None)
            if type(origin) is ComputedFrom:
                tape._marks.append((OUTSIDE, "", (origin.variable._k,), (tensor._k,),
                                    origin.code, origin.offset))
    for tensor in outputs:
        if not tensor._k:
            tensor._k = new_key()
        outs.append(tensor._k)
    tape._marks.append((kind, name, tuple(ins), tuple(outs), frame.f_code, frame.f_lasti))


def mark_all(kind: str, name: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
    """`mark` on every tape of this thread that is recording."""
    stack = active()
    if not stack:
        return
    frame = user_frame(_getframe(1))
    for recorder in stack:
        if recorder.is_tape:
            mark(recorder, kind, name, inputs, outputs, frame)


def mark_exit(tensor: Tensor, how: str) -> None:
    """Note on every tape that knows `tensor` that its numbers were read outside of ops."""
    stack = active()
    if not stack:
        return
    frame = user_frame(_getframe(1))
    for recorder in stack:
        if recorder.is_tape and tensor._k in recorder._known:
            recorder._marks.append(
                # Numbers outside have no key; a new one keeps the exits apart.
                (EXIT, how, (tensor._k,), (new_key(),), frame.f_code, frame.f_lasti))


def record_general(op: Any, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
                   context: object) -> None:
    """Record an application of any op with the recorders of this thread.

    `context` is what the op wants to know again in its `record`.
    """
    stack = active()
    if not stack:
        return
    # During a backward walk the line is that which asked for the gradient.
    frame = _current() or user_frame(_getframe(1))
    for recorder in stack:
        if not recorder.is_tape:
            recorder.observe(op, inputs, outputs, context)
            continue
        known = recorder._known
        mask = 0
        for i, tensor in enumerate(inputs):
            if isinstance(tensor, Tensor) and tensor._k in known:
                mask |= 1 << i
        if not mask:
            mark(recorder, UNKNOWN, op.name, inputs, outputs, frame)
            continue
        recorded = op.record(mask, inputs, outputs, context)
        if recorded is None:
            mark(recorder, CUT, op.name, inputs, outputs, frame)
            continue
        backward, in_keys, payload = recorded
        keys = []
        for tensor in outputs:
            if not tensor._k:
                tensor._k = new_key()
            keys.append(tensor._k)
            # An integer result gets a key, as a place in the record, and no tape follows it.
            if tensor._t.differentiable:
                known.add(tensor._k)
        recorder._records.append(
            (backward, keys[0] if len(keys) == 1 else tuple(keys), frame.f_code, frame.f_lasti,
             op, in_keys, *payload))


def trace_or_none(op: Op, inputs: Sequence[Tensor], attrs: tuple[object, ...],
                  specs: Callable[[], list[Spec]], types: Sequence[ArrayType] | None = None,
                  ) -> tuple[Tensor, ...] | None:
    """The symbols of a new graph node when an input is a symbol; None when all is eager.

    `types` are those of the results, where they do not live with the inputs.

    Raises:
        TypeError: a symbol is used after its trace has ended.
    """
    for tensor in inputs:
        if type(tensor) is not EagerTensor and isinstance(tensor, Tensor):
            # Its own where none is active: then that one is finished, which is said below.
            tracer = tracer_now() or tensor._tracer
            if tracer.finished:
                raise TypeError(f"{tensor!r} is out of scope: the function that it belongs to was "
                                f"traced already, and outside of it the tensor has no value. "
                                f"Return it from the function, or keep it in a tf.Variable")
            return tracer.emit(op, inputs, attrs, specs(), types)
    return None


def _made_at(tensor: Tensor) -> str:
    """Where a tensor was made, if that was noted: by itself, or by a tape now recording."""
    origin = getattr(tensor, "_origin", None)
    site = origin[-2:] if origin else _recorded(tensor._k)
    return f" made at {resolve(*site)}" if site else ""


def _recorded(key: int) -> Any:
    """The (code, offset) of the step that made the value, from the tapes now recording."""
    for tape in active():
        if key and tape.is_tape:
            steps = [(r.outputs, (r.code, r.offset)) for r in map(Record.of, tape._records)]
            steps += [(outputs, site) for _, _, _, outputs, *site in tape._marks]
            for keys, site in steps:
                if key in keys:
                    return site
    return None


def same_device(name: str, tensors: Sequence[Tensor]) -> None:
    """Raises InvalidArgumentError when tensors live on different devices."""
    first = tensors[0]
    for other in tensors[1:]:
        if other._t.device is not first._t.device:
            described = "; ".join(f"{t.spec} on {t.device}{_made_at(t)}" for t in (first, other))
            raise InvalidArgumentError(
                f"{name}: the inputs must live on one device; got {described}. Nothing is copied "
                f"between devices in silence: move one with x.gpu() or x.cpu()")
