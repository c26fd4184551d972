"""ForwardAccumulator: Jacobian-vector products, computed with the forward pass.

The product of an op is derived from its backward rule. The rule u -> vjp(u) is linear, so its own
gradient with respect to u, applied to the tangents, is J t: the transpose of the transpose.
"""

from __future__ import annotations

import warnings
from typing import Any

from gtape.autodiff import gradient_request
from gtape.autodiff.tape import GradientTape
from gtape.core import nest
from gtape.core.annotations import TensorLike
from gtape.core.context import Recorder, active, new_key, push, recorders, remove, stack_level
from gtape.core.convert import convert
from gtape.core.errors import NonFloatWarning
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.op import Op
from gtape.core.tensor import Readable, Tensor


class ForwardAccumulator(Recorder):
    """Computes J(outputs, primals) · tangents while the outputs are computed.

    Args:
        primals: Tensor, Variable or nest of them.
        tangents: the same structure; each of its primal's shape and dtype.

    Raises:
        ValueError: structures, shapes or dtypes differ, or a primal is named twice.
    """

    __slots__ = ("_recording", "_tangents")

    def __init__(self, primals: object, tangents: Any) -> None:
        try:
            nest.assert_same_structure(primals, tangents, check_types=False)
        except TypeError as error:
            raise ValueError(str(error)) from None
        self._recording = False
        self._tangents: dict[int, Any] = {}
        flat = nest.flatten(primals)
        for i, (primal, tangent) in enumerate(zip(flat, nest.flatten(tangents))):
            self._watch(gradient_request.leaf_state(primal, "primals", i, len(flat)), tangent, i)

    def _watch(self, primal: Any, tangent: Tensor, position: int) -> None:
        if not primal.dtype.is_differentiable:
            warnings.warn(
                f"The dtype of the watched primal must be floating (e.g. tf.float32), got "
                f"{primal.dtype!r}", NonFloatWarning, stacklevel=stack_level())
        if not primal._k:
            primal._k = new_key()
        if primal._k in self._tangents:
            raise ValueError(f"primal {position} is given twice; add its tangents instead")
        self._tangents[primal._k] = _fitting(primal, tangent, position)

    def __enter__(self) -> ForwardAccumulator:
        if self._recording:
            raise ValueError("the accumulator is already recording")
        self._recording = True
        push(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            self._recording = False
            remove(self)

    def jvp(self, primals: TensorLike, unconnected_gradients: str | None = None) -> Any:
        """The product for each of `primals`, in their structure; None (or zeros) if unconnected.

        Raises:
            TypeError: a leaf is neither Tensor nor Variable.
            ValueError: an unknown `unconnected_gradients`.
        """
        zero = (unconnected_gradients is not None
                and gradient_request.unconnected(unconnected_gradients))
        flat = nest.flatten(primals)
        leaves = [gradient_request.leaf_state(leaf, "primals", i, len(flat))
                  for i, leaf in enumerate(flat)]
        tangents = [self._of(leaf, zero) for leaf in leaves]
        return nest.pack_sequence_as(primals, tangents)

    def _of(self, leaf: Any, zero: bool) -> Tensor | None:
        tangent = self._tangents.get(leaf._k) if leaf._k else None
        if tangent is None and zero:
            return gradient_request.value_of(leaf)._filled_(0)
        return tangent

    # ------------------------------------------------------------------ recorder

    def _on_read(self, state: Any, value: Tensor) -> None:
        # The tangent was given for the variable; ops see its value, under another key.
        tangent = self._tangents.get(state._k)
        if tangent is not None:
            # Keys are what tangents are found by, and tensors get theirs when somebody needs one.
            if not value._k:
                value._k = new_key()
            self._tangents[value._k] = tangent

    def observe(self, op: Op, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...],
                context: tuple[Any, ...]) -> None:
        """Propagate tangents through one application, seen by the recorders outside this one."""
        mask = 0
        for i, tensor in enumerate(inputs):
            if isinstance(tensor, Tensor) and tensor._k in self._tangents:
                mask |= 1 << i
        if not mask:
            return
        stack = active()
        # Recorders outside differentiate the product too, which gives higher orders; those inside
        # do not see it, as in TensorFlow.
        outer = stack[: next(i for i, r in enumerate(stack) if r is self)]
        token = recorders.set(outer)
        try:
            products = self._products(op, mask, inputs, outputs, context)
        finally:
            recorders.reset(token)
        for tensor, product in zip(outputs, products):
            if product is not None:
                if not tensor._k:
                    tensor._k = new_key()
                self._tangents[tensor._k] = product

    def _products(self, op: Any, mask: int, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...],
                  attrs: tuple[Any, ...]) -> list[Tensor | None]:
        recorded = op.record(mask, inputs, outputs, attrs)
        if recorded is None:
            return [None] * len(outputs)
        backward, keys, payload = recorded
        # A record that no tape has: what it was made by, and where, nobody asks.
        record = (backward, None, None, None, op, keys, *payload)
        with GradientTape() as tape:
            # The rule is linear in u, so its derivative does not depend on where it is taken.
            seeds = [y._filled_(0) if y._t.differentiable else None for y in outputs]
            tape.watch([s for s in seeds if s is not None])
            grads: dict[int, Any] = {}
            backward.tensors(grads, seeds if len(outputs) > 1 else seeds[0], record)
            pairs = [(_dense(part), self._tangents[key]) for key, part in grads.items()
                     if key in self._tangents]
        if not pairs:
            return [None] * len(outputs)
        watched = [s for s in seeds if s is not None]
        products = iter(tape.gradient([p for p, _ in pairs], watched, [t for _, t in pairs]))
        return [None if s is None else next(products) for s in seeds]


def _dense(part: Any) -> Tensor:
    return part.to_dense() if isinstance(part, IndexedSlices) else part


def _fitting(primal: Any, tangent: Tensor, position: int) -> Tensor:
    """The tangent as a tensor of the primal's shape and dtype."""
    value = gradient_request.value_of(primal)
    tensor = convert(tangent, None if isinstance(tangent, (Tensor, Readable))
                     else value.dtype)
    if tensor.dtype is not value.dtype or tensor.spec.shape != value.spec.shape:
        raise ValueError(f"tangent {position} must have the shape and dtype of its primal, "
                         f"{value.spec}; got {tensor.spec}")
    return tensor
