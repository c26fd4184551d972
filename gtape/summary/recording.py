"""Recording: when a summary is written, with which step, and how a traced function does it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, SupportsIndex

import numpy as np

from gtape.core import dtypes
from gtape.core.annotations import TensorLike
from gtape.core.context import tracer_now
from gtape.core.convert import convert
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.spec import Spec
from gtape.core.tensor import Readable, Tensor
from gtape.core.variable import Variable, name_scope, scope_prefix
from gtape.ops.arguments import as_int
from gtape.summary.writers import Setting, Summary, SummaryMetadata, setting, state, summary_of
from gtape.trace.host_steps import step as host_step

#: (the host arrays of a summary's inputs) -> a Summary.
Make = Callable[..., Summary]

_NO_STEP = ("No step set. Please specify one either through the `step` argument or through "
            "tf.summary.experimental.set_step()")


def set_step(step: TensorLike) -> None:
    """Summaries without a step of their own are of this one, a number, a tensor or a Variable,
    whose value counts when a summary is made."""
    state.step = setting(step)


def get_step() -> int | Variable:
    """What `set_step`, or the default writer, says; None where neither does."""
    return state.step.value


@contextmanager
def record_if(condition: TensorLike) -> Iterator[None]:
    """Summaries within the block are written only if `condition` is true: a bool, a bool tensor, or
    a function that gives one, asked for every summary."""
    before = state.condition
    state.condition = setting(condition)
    try:
        yield
    finally:
        state.condition = before


def should_record_summaries() -> Tensor:
    """Whether a summary would be written now: there is a default writer, and `record_if` lets it
    be. In a traced function, at the moment of the call."""
    inputs, fixed = _settings(None)

    def run(*arrays: object) -> list[Any]:
        writer, _, records = fixed(arrays)
        return [np.bool_(writer is not None and records)]

    return host_step("should_record_summaries", run, inputs, [Spec((), dtypes.bool_)],
                     has_side_effect=True)[0]


@contextmanager
def summary_scope(name: str, default_name: str = "summary", values: TensorLike | None = None,
                  ) -> Iterator[tuple[str, str]]:
    """(tag, scope): the tag of a summary of this name below the name scopes around it, and the name
    scope of the block."""
    name = name or default_name
    tag = scope_prefix.get() + name
    # The letters that TensorFlow allows in the name of a scope; a tag may have any.
    cleaned = re.sub(r"[^A-Za-z0-9_.\-/]", "", name).lstrip("/-.") or default_name
    with name_scope(cleaned) as scope:
        yield tag, scope


def _settings(step: object,
              ) -> tuple[list[Tensor], Callable[[Sequence[Any]], tuple[Any, Any, bool]]]:
    """What is in force, as (tensors, function): from the tensors' arrays the function finds the
    writer, the step, and whether summaries are written. What came into force in this trace holds
    for it; the rest is found when a summary is made."""
    # What was set outside of this trace is looked up at each call, as a writer that is opened for
    # every epoch asks for; what the function itself sets is part of it.
    tracer = tracer_now()
    inputs: list[Tensor] = []

    def hold(given: Setting) -> Callable[[Sequence[Any]], Any] | None:
        """How to find a setting from the arrays; None where the call's own counts."""
        if tracer is not None and given.tracer is not tracer:
            return None
        value = given.value() if callable(given.value) else given.value
        if not isinstance(value, (Tensor, Readable)):
            return lambda arrays: value
        # Its value at the call, not at the trace: a step is a Variable that counts.
        inputs.append(convert(value))
        place = len(inputs) - 1
        return lambda arrays: arrays[place]

    writer = hold(state.writer)
    of_step = hold(state.step if step is None else Setting(step, tracer))
    condition = hold(state.condition)

    def fixed(arrays: Sequence[TensorLike]) -> tuple[object, object, bool]:
        return (state.writer.value if writer is None else writer(arrays),
                _now(state.step.value) if of_step is None else of_step(arrays),
                bool(_now(state.condition.value) if condition is None else condition(arrays)))

    return inputs, fixed


def _now(value: int) -> int:
    value = value() if callable(value) else value
    return value.numpy() if hasattr(value, "numpy") else value


def record(name: str, data: Sequence[TensorLike], make: Make, step: object) -> Tensor:
    """Write the summary that `make` makes of the arrays of `data`; whether one was written. In a
    traced function that is a step of its own, at every call. Raises ValueError: there is a writer,
    but no step. RuntimeError: the writer is closed."""
    settings, fixed = _settings(step)
    count = len(settings)

    def run(*arrays: object) -> list[Any]:
        writer, when, records = fixed(arrays[:count])
        if writer is None or not records:
            return [np.bool_(False)]
        writer._check()
        if when is None:
            raise ValueError(_NO_STEP)
        writer._put(as_int(when, "the step of a summary"), summary=make(*arrays[count:]))
        return [np.bool_(True)]

    # Outside of traces data is brought to the host only if it is written.
    if tracer_now() is None:
        arrays = [v.numpy() for v in settings]
        writer, _, records = fixed(arrays)
        if writer is None or not records:
            return convert(False)
        return convert(run(*arrays, *[convert(d).numpy() for d in data])[0])
    return host_step(name, run, [*settings, *data], [Spec((), dtypes.bool_)],
                     has_side_effect=True)[0]


def write(tag: str, tensor: Any, step: SupportsIndex | None = None,
          metadata: bytes | SummaryMetadata | None = None, name: str | None = None) -> Tensor:
    """Write a tensor under a tag; True if it was written. Raises ValueError: there is a writer, but
    no step.

    Args:
        tensor: the tensor, or a function that makes it, called only if it is written.
        step: of the summary; by default `tf.summary.experimental.get_step()`.
        metadata: a SummaryMetadata, which says what shows it; its bytes do as well.
    """
    about = _checked(metadata)
    if callable(tensor):
        if tracer_now() is None:
            def make() -> Summary:
                value = convert(tensor())
                return summary_of(tag, value.numpy(), value.dtype, about)

            return record(name or "write_summary", [], make, step)
        # A trace is made once, and whether it writes is known only at its calls.
        tensor = tensor()
    value = convert(tensor)
    return record(name or "write_summary", [value],
                  lambda array: summary_of(tag, array, value.dtype, about), step)


def _checked(metadata: Any) -> SummaryMetadata | None:
    """The SummaryMetadata in bytes, or of another package. Raises InvalidArgumentError: they are
    none."""
    if metadata is None:
        return None
    # TensorBoard's own plugins give messages of the protobuf package.
    content = metadata
    if hasattr(type(metadata), "SerializeToString"):
        content = metadata.SerializeToString()
    if not isinstance(content, bytes):
        raise InvalidArgumentError(f"the metadata of a summary must be a SummaryMetadata, or its "
                                   f"bytes; got {shown(metadata)}")
    return SummaryMetadata.FromString(content)


def write_raw_pb(tensor: TensorLike, step: int | None = None, name: str | None = None) -> Tensor:
    """Write a Summary message, a scalar of strings with its bytes; True if it was written. Raises
    InvalidArgumentError: the bytes are none; ValueError: there is a writer, but no step."""
    return record(name or "write_raw_pb", [tensor], Summary.FromString, step)
