"""What a function gives, found by traces that are thrown away: `tf.inspect.specs`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gtape.autograph.convert import callee
from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import init_scope, paused, tracer_now
from gtape.core.introspection import is_tensor
from gtape.core.spec import Spec
from gtape.core.symbolic_dim import ConcreteDimNeeded, ShapeEnv
from gtape.core.type_specs import TensorSpec, TypeSpec
from gtape.ops.shape.creation import zeros
from gtape.ops.sparse.tensor import SparseTensor, SparseTensorSpec
from gtape.trace.tracer import Tracer

#: What stands in for an open length, and for how many values a sparse tensor has: larger than most
#: kernels and windows.
_STAND_INS = (257, 263)
#: The same where something is computed.
_SMALL = (2, 3)


def specs(fn: Callable[..., object], *args: object, **kwargs: object) -> Any:
    """The specs of what `fn(*args, **kwargs)` gives, without computing it.

        tf.inspect.specs(tf.matmul, tf.TensorSpec([None, 3]), tf.TensorSpec([3, 4]))
        # TensorSpec(shape=(None, 4), dtype=tf.float32, name=None)

    `fn` runs as in the trace of a `tf.function`, on tensors without numbers; what it assigns to
    Variables is forgotten. Lengths of None are large, and all the same; the lengths of results that
    depend on them are None. Where code needs a number, `fn` runs twice, with two of them, and what
    then differs is None.

    Args:
        fn: a function of tensors.
        args, kwargs: nests with a TensorSpec or SparseTensorSpec in the place of every tensor that
            is not there; all else is given to `fn` as it is.

    Returns:
        What `fn` returns, with a spec in the place of every tensor.

    Raises:
        ValueError: a spec without a rank, or of another kind.
        NotTraceableError: shapes depend on the numbers in tensors.
        whatever `fn` raises.
    """
    fn, env = callee(fn), ShapeEnv()

    def traced_specs(length: Callable[[int], object]) -> Any:
        tracer = Tracer(tracer_now())

        def run() -> Any:
            given, named = nest.map_structure(
                lambda x: _symbolic(tracer, x, length) if isinstance(x, TypeSpec) else x,
                (args, kwargs))
            return specs_of(fn(*given, **named))

        with paused():
            return tracer.run(run)

    # First with lengths left open, which says how results depend on them; code that needs a number
    # gets two of them instead.
    with suppress(ConcreteDimNeeded):
        result = traced_specs(lambda i: env.length(i, _STAND_INS[i]))
        if not env.needed:
            return result
    return common(*(traced_specs(n.__getitem__) for n in (_STAND_INS, _STAND_INS[::-1])))


def computed(fn: Callable[..., object], args: object, kwargs: object) -> Any:
    """`specs` where shapes depend on numbers: those of what `fn` computes of zeros. It runs twice,
    with small lengths in the place of open ones, and what then differs is None."""
    def of_zeros(length: int) -> Any:
        given, named = nest.map_structure(lambda x: _zeros(x, length), (args, kwargs))
        with paused(), init_scope():
            return specs_of(fn(*given, **named))

    return common(*map(of_zeros, _SMALL))


def _zeros(spec: object, length: int) -> Any:
    """Zeros that fit a spec; of a sparse tensor a single one."""
    if not isinstance(spec, (TensorSpec, SparseTensorSpec)):
        return spec
    shape = [length if n is None else n for n in spec.shape]
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor([[0] * len(shape)], zeros([1], spec.dtype), shape)
    return zeros(shape, spec.dtype)


def _symbolic(tracer: Tracer, spec: TypeSpec, length: Callable[[int], Any]) -> Any:
    """Symbols that fit a spec."""
    if not isinstance(spec, (TensorSpec, SparseTensorSpec)) or spec.shape.rank is None:
        raise ValueError(f"tf.inspect.specs takes TensorSpecs and SparseTensorSpecs of known rank; "
                         f"got {spec!r}")
    lengths = tuple([length(0) if n is None else n for n in spec.shape])
    if isinstance(spec, SparseTensorSpec):
        indices, values = (
            tracer.symbol(Spec((length(1), *part.shape[1:]), part.dtype))
            for part in spec._part_specs_())
        return SparseTensor._of_(lengths, (indices, values))
    symbol = tracer.symbol(Spec(lengths, spec.dtype))
    symbol._shown = spec.shape
    return symbol


def specs_of(result: object) -> Any:
    """`result` with a spec in the place of every tensor."""
    def described(x: Any) -> Any:
        if isinstance(x, CompositeTensor):
            return x._type_spec
        return TensorSpec(x.shape, x.dtype) if is_tensor(x) else x

    return nest.map_structure(described, result)


def common(first: TypeSpec | tuple[TypeSpec, TypeSpec, TypeSpec, TypeSpec],
           second: TypeSpec | tuple[TypeSpec, TypeSpec, TypeSpec, TypeSpec]) -> Any:
    """What two results of `specs_of` have in common: lengths that differ are None."""
    return nest.map_structure(
        lambda a, b: a.most_specific_common_supertype([b]) if isinstance(a, TypeSpec) else a,
        first, second)
