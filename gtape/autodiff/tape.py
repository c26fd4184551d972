"""GradientTape: records what is computed from watched tensors, and pulls gradients back."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from gtape.autodiff import gradient_request
from gtape.autodiff.backward import backward_freeing, keys_depending_on, walk
from gtape.autodiff.gradient_request import UnconnectedGradients, on_none_now
from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import (
    Recorder,
    active,
    inside,
    new_key,
    push,
    push_outside,
    remove,
    stack_level,
    user_frame,
)
from gtape.core.device import add_arrays, ignore, restore
from gtape.core.errors import (
    GradientNoneError,
    GradientNoneWarning,
    NonFloatWarning,
    TapeUseWarning,
)
from gtape.core.formatting import say
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.installed import installed
from gtape.core.recording import READ, mark
from gtape.core.tensor import EagerTensor, Tensor, wrap
from gtape.core.variable import is_variable

if TYPE_CHECKING:
    from gtape.autodiff.explain import Explanation
    from gtape.autodiff.tape_memory import MemoryBill
from gtape.autodiff.gradient_request import GradientRequest
from gtape.core.annotations import TensorLike
from gtape.core.variable import Variable

SPENT = ("A non-persistent GradientTape can only be used to compute one set of gradients (or "
         "jacobians). Make it with GradientTape(persistent=True) to ask again.")
_NOT_RECORDING = "the tape is not recording: call this inside its `with` block"
_NONE = UnconnectedGradients.NONE
_NOTHING: set[int] = set()


class GradientTape(Recorder):
    """Records operations for automatic differentiation.

    Inside its `with` block every operation on a watched tensor is recorded. Trainable variables
    are watched when they are read, other tensors with `watch`. After the block, or inside it,
    `gradient(target, sources)` gives d(sum of target)/d(source) for every source by walking the
    records backwards: reverse mode, as surveyed by Baydin et al. 2018, arXiv:1502.05767.

    Args:
        persistent: allow more than one gradient; what was saved stays until the tape is deleted.
        watch_accessed_variables: watch trainable variables when they are read.
    """

    is_tape = True
    __slots__ = (
        "__weakref__",
        "_auto",
        "_entered",
        "_known",
        "_leaves",
        "_marks",
        "_persistent",
        "_reads",
        "_recording",
        "_records",
        "_spent",
        "_variables",
    )

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._auto = watch_accessed_variables
        self._entered = self._recording = False
        self._clear()

    #: In the order of execution; their places are those of `core.recording`.
    _records: list[Any]
    _marks: list[Any]
    #: The keys of all that depends on a leaf, which is what an op asks before it writes a record.
    _known: set[int]
    #: The keys that were watched.
    _leaves: set[int]
    _variables: dict[int, Any]
    #: By the key of a variable: the keys of its values that were read.
    _reads: dict[int, list[int]]

    def _clear(self) -> None:
        self._records = []
        self._marks = []
        self._known = set()
        self._leaves = set()
        self._variables = {}
        self._reads = {}
        self._spent = False

    # ------------------------------------------------------------------ recording

    def __enter__(self) -> Self:
        if self._recording:
            raise ValueError("the tape is still recording; a tape cannot be entered again before "
                             "its block ends")
        if self._spent:
            self._clear()
        self._entered = self._recording = True
        push(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            self._stop()

    def _stop(self) -> None:
        self._recording = False
        remove(self)

    def watch(self, tensor: object) -> None:
        """Record what is computed from `tensor`, a Tensor, a Variable or a nest of them.

        Raises:
            ValueError: a leaf is neither.
            RuntimeError: the tape was never entered, or is spent.
        """
        if not self._entered:
            raise RuntimeError("the tape was never entered; write `with tf.GradientTape() as "
                               "tape:` and call tape.watch inside it")
        if self._spent:
            raise RuntimeError(SPENT)
        if type(tensor) is EagerTensor and tensor._t.differentiable:
            key = tensor._k
            if not key:
                tensor._k = key = new_key()
            if key not in self._known:
                self._known.add(key)
                self._leaves.add(key)
            return
        for leaf in nest.flatten(tensor):
            self._watch_leaf(leaf)

    def _watch_leaf(self, leaf: Any) -> None:
        if isinstance(leaf, Tensor):
            if not leaf._k:
                leaf._k = new_key()
            if leaf._k not in self._known:
                self._known.add(leaf._k)
                self._leaves.add(leaf._k)
        elif is_variable(leaf):
            state = leaf._resource_()
            self._variables[state._k] = state
            self._note_value(state, state._value)
        elif isinstance(leaf, CompositeTensor):
            for part in leaf._parts_():
                if part._t.differentiable:
                    self._watch_leaf(part)
            return
        else:
            raise ValueError(
                f"tape.watch takes Tensors, Variables and nests of them; got an object of type "
                f"'{type(leaf).__name__}'. Make a tensor first: x = tf.convert_to_tensor(value)")
        if not leaf._t.differentiable:
            warnings.warn(
                f"The dtype of the watched tensor must be floating (e.g. tf.float32), got "
                f"{leaf.dtype!r}", NonFloatWarning, stacklevel=stack_level())

    def _note_value(self, state: Any, value: Tensor) -> None:
        if not value._k:
            value._k = new_key()
        # A value that was computed under this tape is known, and becomes a leaf all the same.
        if value._k not in self._known or value._k not in self._leaves:
            self._known.add(value._k)
            self._leaves.add(value._k)
            self._reads.setdefault(state._k, []).append(value._k)

    def _on_read(self, state: Any, value: Tensor) -> None:
        """A variable was read while this tape records: watch it, if that is asked for. (What was
        assigned to one is watched when it is read, not before.)"""
        # Mostly it was read before, and nothing has changed since.
        if value._k and value._k in self._leaves:
            return
        if state._k in self._variables or (self._auto and state.trainable):
            self._variables[state._k] = state
            self._note_value(state, value)
        else:
            mark(self, READ, state.name, (), (value,), user_frame(sys._getframe(1)))

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Nothing is recorded on this tape inside the block; other tapes go on.

        Raises:
            RuntimeError: the tape was never entered, or gave its gradient already.
            ValueError: the tape was entered but is not recording now.
        """
        if not self._entered or self._spent:
            raise RuntimeError(_NOT_RECORDING)
        if not self._recording:
            raise ValueError(_NOT_RECORDING)
        # Where it stood among the recorders, so that it takes the same place again: recorders see
        # what those inside of them do.
        inner = inside(self)
        if inner is None:
            yield  # it records in another thread or task, and nothing of this one
            return
        self._stop()
        try:
            yield
        finally:
            self._recording = True
            push_outside(self, inner)

    def reset(self) -> None:
        """Forget everything recorded and watched; the tape goes on recording.

        Raises:
            ValueError: the tape is not recording.
        """
        if not self._recording:
            raise ValueError(_NOT_RECORDING)
        self._clear()

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables watched so far, in the order in which they were created."""
        return tuple(self._variables[k] for k in sorted(self._variables))

    # ------------------------------------------------------------------ gradients

    def gradient(self, target: object, sources: object, output_gradients: TensorLike | None = None,
                 unconnected_gradients: object = UnconnectedGradients.NONE, *,
                 on_none: str | None = None) -> Any:
        """d(sum of target) / d(source), for each source.

        Args:
            target: Tensor, Variable or nest of them; several targets are added.
            sources: Tensor, Variable or nest; the result has the same structure.
            output_gradients: the cotangent of each target, of its shape and dtype; None is ones.
            unconnected_gradients: 'none' answers None where nothing connects, 'zero' zeros.
            on_none: "ignore", "warn" or "raise" (with the reason) when an answer is None; by
                default "ignore", or what `tf.explain_none` says.

        Returns:
            A tensor of each source's shape and dtype (an IndexedSlices for gathered sources), or
            None where target and source are not connected: `explain` then says why.

        Raises:
            RuntimeError: the tape is spent, or never was entered.
            TypeError: a target or source is not a Tensor or Variable.
            ValueError: output_gradients do not match the targets.
            LookupError: an op between target and source has no gradient.
        """
        if (type(target) is EagerTensor is type(sources) and output_gradients is None
                and unconnected_gradients is _NONE and on_none is None):
            answer = self._single(target, sources)
            if answer is not self:
                return answer
        ask = gradient_request.GradientRequest.of(target, sources, output_gradients,
                                                  unconnected_gradients)
        if self._spent or not self._entered:
            self._check_usable()
        if on_none is None:
            on_none = gradient_request.on_none_now.get()
        else:
            gradient_request.check_on_none(on_none)
        ask.warn_non_float()
        reasons = None
        if on_none != "ignore":
            # A copy, as the walk takes the records off the tape.
            reasons = (list(self._records), list(self._marks))
        answers = self._pull(ask) if ask.targets else [None] * len(ask.sources)
        if reasons is not None:
            self._report(ask, answers, on_none, reasons)
        return ask.packed(answers)

    def _single(self, target: EagerTensor, source: EagerTensor,
                ) -> GradientTape | IndexedSlices | Tensor | None:
        """`gradient` of one tensor by one tensor on a tape used once, when nothing else records.

        The general way costs 6 us, a quarter of a small program. Gives `self` where it must be
        asked instead.
        """
        if (self._persistent or self._spent or not self._entered or not target._t.fast
                or source._t is not target._t or on_none_now.get() != "ignore"):
            return self
        stack = active()
        if self._recording:
            if len(stack) != 1 or stack[0] is not self:
                return self
            self._stop()
        elif stack:
            return self
        key = source._k
        # With other leaves the walk would compute gradients that nobody asks for.
        if not target._k or key not in self._leaves or len(self._leaves) != 1:
            return self
        grads: dict[int, Any] = {target._k: gradient_request.ones_array(target)}
        records = self._records
        # Before the walk, as in `_pull`: where that fails, the records are gone.
        self._spend()
        state = ignore()
        try:
            backward_freeing(records, grads, _NOTHING)
        finally:
            restore(state)
        gradient = grads.get(key)
        if gradient is None or type(gradient) is IndexedSlices:
            return gradient
        return EagerTensor(gradient, source._t)

    def _check_usable(self) -> None:
        if not self._entered:
            raise RuntimeError("the tape recorded nothing: it was never entered. " + SPENT)
        if self._spent:
            raise RuntimeError(SPENT)

    def _pull(self, ask: GradientRequest) -> list[IndexedSlices | Tensor | None]:
        if self._recording:
            if self._persistent:
                self._warn_inside()
            else:
                self._stop()
        tensors = bool(active()) or ask.symbolic
        groups = [self._keys_of(source) for source in ask.sources]
        wanted = {key for group in groups for key in group}
        # A record is written only where an operand depends on a leaf. With every leaf among the
        # sources, as in training, each record leads to a source, and nothing has to be searched.
        useful = None if self._leaves <= wanted else keys_depending_on(self._records, wanted)
        grads = self._seed(ask, tensors)
        records = self._records
        if not self._persistent:
            self._spend()
        # No record has a leaf for its result, so nothing takes a leaf's gradient out of the
        # answers.
        inner = wanted - self._leaves if useful is None else wanted
        walk(records, grads, inner, useful, not self._persistent, tensors)
        return [self._answer(grads, group, tensors) for group in groups]

    def _spend(self) -> None:
        self._spent = True
        self._records = []
        self._marks = []

    def _warn_inside(self) -> None:
        warnings.warn(
            "Calling gradient on a persistent tape inside its context records the backward pass "
            "too, which costs time and memory. Call it outside the block, or inside "
            "tape.stop_recording(), unless higher derivatives are wanted.", TapeUseWarning,
            stacklevel=stack_level())

    def _keys_of(self, source: Any) -> tuple[int, ...]:
        key = source._k
        if not key:
            source._k = key = new_key()
        # A variable has the key of its state, and a key for each value that was read: the gradient
        # is their sum, since each is the variable at its time.
        reads = self._reads.get(key)
        return (key,) if reads is None else (key, *reads)

    def _seed(self, ask: GradientRequest, tensors: bool) -> dict[int, object]:
        grads: dict[int, Any] = {}
        for leaf, seed in zip(ask.targets, ask.seeds()):
            if seed is None:
                continue
            key = self._target_key(leaf)
            part = seed if tensors else seed._array_()
            grads[key] = part if key not in grads else add_arrays(grads[key], part)
        return grads

    def _target_key(self, leaf: Any) -> int:
        if not isinstance(leaf, Tensor) and leaf._value._k in self._reads.get(leaf._k, ()):
            return leaf._value._k
        if not leaf._k:
            leaf._k = new_key()
        return leaf._k

    @staticmethod
    def _answer(grads: dict[int, object], keys: tuple[int, ...], tensors: bool) -> Any:
        total = grads.get(keys[0])
        for key in keys[1:]:
            part = grads.get(key)
            if part is not None:
                total = part if total is None else add_arrays(total, part)
        if total is None or tensors or isinstance(total, (IndexedSlices, Tensor)):
            return total
        return wrap(total)

    # ------------------------------------------------------------------ jacobians

    def jacobian(self, target: TensorLike, sources: object,
                 unconnected_gradients: object = UnconnectedGradients.NONE,
                 parallel_iterations: int | None = None,
                 experimental_use_pfor: bool = True) -> Any:
        """The matrix of all d target[i] / d source[j], shaped target.shape + source.shape.

        Args:
            target: one Tensor or Variable.
            sources: Tensor, Variable or nest; the result has the same structure, always dense.
            unconnected_gradients: as in `gradient`.
            parallel_iterations: accepted and without effect.
            experimental_use_pfor: False needs a persistent tape.

        Raises:
            TypeError: `target` is not one Tensor.
            RuntimeError: the tape is spent, or not persistent where it must be.
        """
        return installed.jacobians().jacobian(
            self, target, sources, unconnected_gradients, experimental_use_pfor)

    def batch_jacobian(self, target: TensorLike, source: TensorLike,
                       unconnected_gradients: object = UnconnectedGradients.NONE,
                       parallel_iterations: int | None = None,
                       experimental_use_pfor: bool = True) -> Tensor:
        """Per-example jacobians: result[b] = d target[b] / d source[b], [b, y…, x…].

        Rows are taken to be independent; what other rows contribute is added in. Unconnected
        gives zeros.

        Raises:
            ValueError: a rank below 2, or first axes that differ.
            TypeError: target or source is not one Tensor.
            RuntimeError: as `jacobian`.
        """
        return installed.jacobians().batch_jacobian(
            self, target, source, unconnected_gradients, experimental_use_pfor)

    # ------------------------------------------------------------------ questions

    def explain(self, target: TensorLike, source: TensorLike, *, show: bool = True) -> Explanation:
        """Why the gradient of `target` with respect to `source` is None (or zero).

        Prints the reason, with file and line of the broken link, and returns it as an
        `Explanation` (`.cause`, `.text`, `.steps`, `.to_dict()`). It never spends the tape.
        """
        from gtape.autodiff.explain import explain

        explanation = explain(self, target, source)
        if show:
            say(str(explanation))
        return explanation

    def memory(self) -> MemoryBill:
        """What the tape keeps for the backward pass: rows of (op, site, bytes), and the total."""
        from gtape.autodiff.tape_memory import memory

        return memory(self)

    def _report(self, ask: Any, answers: list[Any], on_none: str, kept: Any) -> None:
        missing = [s for s, a in zip(ask.sources, answers) if a is None]
        if not missing:
            return
        from gtape.autodiff.explain import explain_lists

        text = "\n".join(
            explain_lists(self, ask.targets, source, *kept).text for source in missing)
        if on_none == "raise":
            raise GradientNoneError(text)
        warnings.warn(text, GradientNoneWarning, stacklevel=stack_level())
