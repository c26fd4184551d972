"""Draws: random arrays as functions of a position in a Philox stream.

Eagerly a position is a Philox key and an offset, and a draw is an array. In a traced function a
position is a tensor int64[4] (see `random_streams`), and a draw a node of the graph: at every call
another, because the position is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gtape.core.context import tracer_now
from gtape.core.convert import convert
from gtape.core.device import CPU, Array, ArrayModule, ArrayType
from gtape.core.dtypes import int64
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import Op, case
from gtape.core.recording import record_general
from gtape.core.spec import Spec, check_size, exhausted, outgrows
from gtape.core.symbolic_dim import require_known
from gtape.core.tensor import EagerTensor, Tensor
from gtape.numerics.distributions import categorical, permutation
from gtape.opdef.primitive import primitive
from gtape.ops.random.streams import Position, key_and_offset, mixed, sample, signed
from gtape.trace.host_steps import symbolic


class Draw(Op):
    """Random numbers of the distribution `name`.

    Inputs: the position, then arrays that the distribution depends on. Attributes: the shape, the
    type of the result, and the numbers that it depends on as (name, value) pairs.
    """

    attr_names = ("shape", "type", "parameters")
    nondifferentiable = True
    holomorphic = False

    def __init__(self, distribution: str) -> None:
        super().__init__(distribution, ("position", "arrays"), "Random numbers.")

    def run(self, inputs: Sequence[Tensor], attrs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        shape, array_type, parameters = attrs
        spec = Spec(shape, array_type.dtype)
        if symbolic(*inputs) or (tracer_now() is not None and outgrows([spec])):
            check_size(self.name, spec)
            tracer = tracer_now() or next(x._tracer for x in inputs if symbolic(x))
            y = tracer.emit(self, inputs, attrs, [spec], [array_type])
        else:
            position, *arrays = (x._array_() for x in inputs)
            key, offset = key_and_offset(position)
            y = (EagerTensor(_sampled(self.name, key, offset, shape, array_type, arrays,
                                         dict(parameters)), array_type),)
        record_general(self, tuple(inputs), y, attrs)
        return y

    def reapply(self, inputs: Sequence[Tensor], attrs: tuple[object, ...]) -> tuple[Tensor, ...]:
        return self.run(inputs, attrs)

    def record(self, mask: int, inputs: tuple[Tensor, Tensor], outputs: tuple[Tensor, ...],
               attrs: object) -> None:
        return None


@cache  # there are few distributions: no limit is needed
def op_of(distribution: str) -> Draw:
    """The op that draws from `distribution`, where it has to be a node or a record."""
    return Draw(distribution)


def drawn(distribution: str, position: Position, shape: Sequence[int], array_type: ArrayType,
          *arrays: Tensor, **parameters: object) -> Tensor:
    """Numbers of `distribution`, drawn at `position`. No gradient flows to `arrays`."""
    # A draw from numbers alone is no op: nothing can be traced or recorded of it.
    if type(position) is not tuple or arrays or (
            tracer_now() is not None and outgrows([Spec(tuple(shape), array_type.dtype)])):
        # Sorted: the order of keywords must not make other attributes.
        attrs = (require_known(tuple(shape)), array_type, tuple(sorted(parameters.items())))
        return op_of(distribution).run((as_tensor(position), *arrays), attrs)[0]
    return EagerTensor(_sampled(distribution, *position, tuple(shape), array_type, (), parameters),
                       array_type)


def as_tensor(position: Position) -> Tensor:
    """A position as int64[4]."""
    if isinstance(position, Tensor):
        return position
    key, offset = position
    return convert(np.array([*key, signed(offset), signed(offset >> 64)], np.int64), None, CPU)


def _sampled(distribution: str, key: Any, offset: int, shape: tuple[int, ...],
             array_type: ArrayType, arrays: Sequence[np.ndarray], parameters: dict[str, object],
             ) -> Any:
    """The numbers as an array. Raises InvalidArgumentError, ResourceExhaustedError: `shape` is too
    large."""
    try:
        special = _SPECIAL.get(distribution)
        if special is not None:
            return special(array_type, key, offset, shape, *arrays, **parameters)
        return sample(distribution, key, offset, shape, array_type.xp,
                      dtype=array_type.dtype.np_dtype, **parameters)
    except (MemoryError, ValueError, OverflowError) as error:
        spec = Spec(shape, array_type.dtype)
        check_size(distribution, spec)  # only now: every draw would pay for it
        if isinstance(error, MemoryError):
            raise exhausted(distribution, [spec], error) from error
        raise


# ---------------------------------------------------------------- draws of other forms
def _bernoulli(array_type: ArrayType, key: Any, offset: int, shape: tuple[int, ...], *,
               probability: float) -> Any:
    return sample("bernoulli", key, offset, shape, array_type.xp, probability=probability)


def _permutation(array_type: ArrayType, key: Any, offset: int, shape: Any) -> np.ndarray:
    return permutation(array_type.xp, key, offset, shape[0])


def _categorical(array_type: ArrayType, key: Any, offset: int, shape: Any, logits: Any,
                 ) -> np.ndarray:
    """Classes, by kernels where the logits have them."""
    classes, gpu = None, array_type.device.executor
    if gpu is not None:
        from gtape.devices.cuda.kernels import random_numbers  # of use with a GPU alone

        classes = random_numbers.categorical(gpu, key, offset, logits, shape[1])
    if classes is None:
        classes = categorical(array_type.xp, key, offset, logits, shape[1])
    return classes.astype(array_type.dtype.np_dtype)


def _of_arrays(distribution: str, *names: str, **fixed: float) -> Callable[..., Any]:
    """A draw whose parameters of these names are arrays."""
    def draw(array_type: ArrayType, key: Any, offset: int, shape: Any, *arrays: object) -> Any:
        return sample(distribution, key, offset, shape, array_type.xp,
                      dtype=array_type.dtype.np_dtype, **dict(zip(names, arrays)), **fixed)

    return draw


def _bounded_normal(array_type: ArrayType, key: tuple[int, int], offset: int,
                    shape: tuple[int, ...], *parameters: Any) -> np.ndarray:
    """Normal values between bounds, by the inverse of their distribution."""
    from gtape.numerics.special import erfc, ndtri

    xp = array_type.xp
    # float64: far out the difference of two Φ cancels, and ndtri widens what is left.
    m, s, low, high = (xp.asarray(p).astype(np.float64) for p in parameters)
    # Φ by erfc keeps digits far in the lower tail, where 1 + erf has none.
    below, above = (0.5 * erfc(xp, -(v - m) / (s * np.sqrt(2))) for v in (low, high))
    u = sample("uniform", key, offset, shape, xp, dtype=np.float64)
    y = m + s * ndtri(xp, below + u * (above - below))
    # Rounding of ndtri near its ends may step over a bound.
    return xp.clip(y, low, high).astype(array_type.dtype.np_dtype)


_SPECIAL: dict[str, Callable[..., Any]] = {
    "bernoulli": _bernoulli, "permutation": _permutation, "categorical": _categorical,
    "gamma": _of_arrays("gamma", "alpha", beta=1.0), "poisson": _of_arrays("poisson", "mean"),
    "binomial": _of_arrays("binomial", "counts", "probs"), "bounded_normal": _bounded_normal}


# ---------------------------------------------------------------- positions from seeds
def _seed(seed: Spec) -> Spec:
    if seed.shape != (2,) or not seed.dtype.is_integer:
        raise InvalidArgumentError(f"a stateless seed must be two integers, a shape of [2]; got "
                                   f"{seed}. Write seed=[1, 2]")
    return seed


@primitive(nondifferentiable=True)
def stateless_position_(xp: ArrayModule, seed: Array) -> Array:
    """The position int64[4] of two seed numbers."""
    return xp.asarray(np.array([*mixed(2, *seed.tolist()), 0, 0], np.int64))


@stateless_position_.infer
def _(seed: Spec) -> Spec:
    _seed(seed)
    return Spec((4,), int64)


stateless_position_.cases = [case(np.array([1, 2], np.int32))]


@primitive(nondifferentiable=True)
def folded_seeds_(xp: ArrayModule, seed: Array, data: Array) -> Array:
    """[n, 2]: a stateless seed for each number of `data`, of the dtype of `seed`."""
    # 3 sets these seeds apart from the keys that stateless draws make, with 2.
    wide = np.array([mixed(3, *seed.tolist(), n) for n in data.tolist()], np.uint32)
    return xp.asarray(wide.astype(np.int32).astype(seed.dtype).reshape(-1, 2))


folded_seeds_.infer(lambda seed, data: _seed(seed).reshaped((*data.shape, 2)))
folded_seeds_.cases = [case(np.array([1, 2], np.int32), np.array([0, 5, 7], np.int32))]
