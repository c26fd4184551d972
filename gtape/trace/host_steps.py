"""Steps of a traced function that are Python code, run at every call.

A loop whose length depends on values, a user's NumPy function, a printed line: they have no array
function that could be compiled. The code is written in eager gtape operations, so its derivative
is had by running it again under a tape, at every order. Functions of host arrays have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gtape.autodiff.backward import Grads, add_to
from gtape.autodiff.tape import GradientTape
from gtape.core.annotations import TensorLike
from gtape.core.context import here, resolve, tracer_now
from gtape.core.convert import convert
from gtape.core.device import ArrayType, Device, current_device
from gtape.core.dtypes import DType
from gtape.core.errors import NotTraceableError
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.installed import installed
from gtape.core.op import Op
from gtape.core.recording import OP, PAYLOAD, record_general
from gtape.core.spec import Spec
from gtape.core.tensor import EagerTensor, Tensor, note_origin
from gtape.trace.symbolic_tensor import SymbolicTensor

if TYPE_CHECKING:
    from gtape.trace.graph import Graph


#: Of tensors, or in `step` of arrays.
Run = Callable[..., Sequence[Any]]


class HostPayload(NamedTuple):
    """What a record of a callback keeps: which inputs are wanted, their keys, and all inputs."""

    wanted: list[int]
    keys: tuple[int, ...]
    inputs: tuple[Tensor, ...]


class HostCallback(Op):
    """`run(*tensors)` gives the results as eager tensors.

    Args:
        specs, types: of the results.
        has_side_effect: it does something besides making its results, and is never left out.
        refuses: it raises for some values, and is never left out either.
        differentiable: False for a step that no gradient flows through.
        parts: graphs that `run` applies, for whoever shows or compiles them.
        rows: `run` for many at once, along a first axis of all arguments and results.
    """

    holomorphic = False  # the tape that runs it again conjugates where its own ops need it

    def __init__(self, name: str, run: Run, specs: Sequence[Spec], types: Sequence[ArrayType], *,
                 has_side_effect: bool = False, refuses: bool = False, differentiable: bool = True,
                 parts: Sequence[Graph] = (), rows: Run | None = None) -> None:
        super().__init__(name, ("args",), "A step that is Python code.", name)
        self.run = run
        self.specs, self.types = tuple(specs), tuple(types)
        self.has_side_effect = has_side_effect
        self.refuses = refuses
        self.nondifferentiable = not differentiable
        self.parts = tuple(parts)
        self.rows = rows

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The results: symbols while a function is traced."""
        tracer = tracer_now()
        if tracer is None:
            return tuple(self.run(*inputs))
        outputs = tracer.emit(self, inputs, (), self.specs, self.types)
        record_general(self, tuple(inputs), outputs, ())
        return outputs

    def reapply(self, inputs: Sequence[Tensor], attrs: tuple[object, ...]) -> tuple[Tensor, ...]:
        return self(*inputs)

    def record(self, mask: int, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...],
               attrs: tuple[object, ...]) -> Any:
        """The (backward, input keys, payload) of a record; None when no gradient flows."""
        if self.nondifferentiable or not any(o._t.differentiable for o in outputs):
            return None
        wanted = [i for i, x in enumerate(inputs) if mask >> i & 1 and x._t.differentiable]
        if not wanted:
            return None
        keys = tuple(inputs[i]._k for i in wanted)
        return _pull, keys[0] if len(keys) == 1 else keys, HostPayload(wanted, keys, inputs)

    def gradient(self, wanted: Sequence[int], inputs: Sequence[Tensor],
                 given: Sequence[int]) -> HostCallback:
        """The op (*inputs, *cotangents of the results in `given`) -> cotangents of the inputs in
        `wanted`."""
        count = len(inputs)

        def run(*values: Tensor) -> list[Tensor]:
            with GradientTape() as tape:
                # New tensors, as one that is given twice has one key: each place has a gradient of
                # its own.
                sources = [installed.identity(values[i]) for i in wanted]
                tape.watch(sources)
                primals = list(values[:count])
                for i, source in zip(wanted, sources):
                    primals[i] = source
                results = self.run(*primals)
            cotangents = tape.gradient([results[i] for i in given], sources, list(values[count:]),
                                       # The node has a result for every source.
                                       unconnected_gradients="zero")
            return [g.to_dense() if isinstance(g, IndexedSlices) else g for g in cotangents]

        return HostCallback(f"gradient of {self.name}", run, [inputs[i].spec for i in wanted],
                            [inputs[i]._t for i in wanted], parts=self.parts)


def _pull(grads: Grads, g: TensorLike, record: object) -> None:
    raise AssertionError("a host callback is recorded only while it is traced")


def _tensors(grads: Grads, g: TensorLike, record: Any) -> None:
    op, kept = record[OP], HostPayload(*record[PAYLOAD:])
    gs = g if type(g) is list else [g]
    given = [i for i, part in enumerate(gs) if part is not None]
    cotangents = op.gradient(kept.wanted, kept.inputs, given)(*kept.inputs, *[gs[i] for i in given])
    for key, part in zip(kept.keys, cotangents):
        add_to(grads, key, part)


_pull.tensors = _tensors  # type: ignore[attr-defined]


def symbolic(*values: Tensor) -> bool:
    """Whether a value among these is known only when the traced function runs."""
    return any(type(v) is SymbolicTensor for v in values)


def step(name: str, run: Run, inputs: Sequence[TensorLike],
         results: Sequence[Spec | DType], home: Device | None = None, *,
         has_side_effect: bool = False, rows: Run | None = None) -> tuple[Tensor, ...]:
    """The arrays that `run(*arrays of the inputs)` gives, as tensors.

    Args:
        results: the spec of each; its dtype where the shape is known only after `run`.
        home: where numbers go; to where new tensors go unless given. Strings stay on the host.
        has_side_effect: it reads or writes something besides its inputs: a traced function does it
            at every call.
        rows: `run` for many at once: for arrays with an axis more, the first, arrays with one more.

    Raises:
        NotTraceableError: it would be a step of a traced function, and a shape is not known.
    """
    device = home or current_device()
    tensors = [convert(x) for x in inputs]
    dtypes = [r if isinstance(r, DType) else r.dtype for r in results]

    def called(run: Run) -> Callable[..., list[Tensor]]:
        def call(*values: Any) -> list[Tensor]:
            arrays = run(*[x._peek() for x in values])
            return [_placed(array, device, dtype) for array, dtype in zip(arrays, dtypes)]

        return call

    if not (symbolic(*tensors) or (has_side_effect and tracer_now() is not None)):
        return tuple(called(run)(*tensors))
    specs = [r for r in results if isinstance(r, Spec)]
    # A node needs the shapes of its results before it runs.
    if len(specs) < len(results):
        raise untraceable(name)
    # `refuses`, for nobody knows for which values Python code raises.
    return HostCallback(name, called(run), specs, [device.typed(d) for d in dtypes], refuses=True,
                        has_side_effect=has_side_effect, differentiable=False,
                        rows=None if rows is None else called(rows))(*tensors)


def _placed(array: TensorLike, device: Device, dtype: DType) -> EagerTensor:
    array_type = device.typed(dtype)
    array = np.require(array, dtype.np_dtype, ["C", "A", "W"])  # C++ gets a bare pointer
    home = array_type.device  # strings stay on the host, whatever the device
    return note_origin(EagerTensor(array if home.is_host else home.upload(array), array_type))


def untraceable(name: str) -> NotTraceableError:
    """The error where the shape of a result depends on values, and a function is being traced: it
    then runs as Python."""
    return NotTraceableError(f"{resolve(*here())}: the shape of what {name} gives depends on "
                             f"values that are known only when the function runs, so it runs as "
                             f"Python")
