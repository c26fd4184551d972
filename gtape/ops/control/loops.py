"""map_fn, scan, folds and while_loop: Python loops over tensors, recorded op by op.

In a traced function they become one step each, where their length is known only at a call or is
large; otherwise they are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gtape.core import nest
from gtape.core.composite_tensor import CompositeTensor
from gtape.core.context import paused, tracer_now
from gtape.core.convert import convert
from gtape.core.dtypes import DType, as_dtype
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.indexed_slices import IndexedSlices
from gtape.core.tensor import Tensor
from gtape.ops.arguments import as_function, as_int, as_items, named
from gtape.ops.control.traced_loops import traced_scan, traced_while
from gtape.ops.shape.creation import zeros
from gtape.ops.shape.identity import stop_gradient
from gtape.ops.shape.packing import stack_, unstack_
from gtape.trace.subgraph import depends
from gtape.trace.symbolic_tensor import SymbolicTensor

if TYPE_CHECKING:
    from gtape.ops.ragged.ragged_tensor import RaggedTensor
from gtape.core.annotations import DTypeLike, TensorLike
from gtape.core.type_specs import TypeSpec

#: Longer loops over elements are one step in a traced function.
_UNROLLED = 32


def _length(name: str, elems: object, broadcast: bool = False) -> tuple[list[Any], int]:
    """The leaves of `elems`, composites as lists of their rows, and the one length of their first
    axes."""
    leaves: list[Any] = [
        leaf._rows_() if isinstance(leaf, CompositeTensor) else convert(leaf)
        for leaf in nest.flatten(elems)]
    if not leaves or any(type(leaf) is not list and not leaf.ndim for leaf in leaves):
        raise ValueError(f"{name}: elems must be tensors of rank 1 or more; got "
                         f"{[str(leaf.spec) for leaf in leaves]}")
    counts = {len(leaf) if type(leaf) is list else leaf.spec.shape[0] for leaf in leaves}
    if broadcast and len(counts) > 1:
        counts.discard(1)  # a first axis of 1 is the same row at every turn
    if len(counts) > 1:
        raise ValueError(f"{name}: the first axes of elems must have one length; got "
                         f"{sorted(counts)}")
    return leaves, counts.pop()


def _elements(name: str, elems: object, broadcast: bool = False) -> list[object]:
    """`elems` cut along the first axis of every leaf: one structure for each element."""
    leaves, count = _length(name, elems, broadcast)
    parts = [leaf if type(leaf) is list else unstack_(leaf, axis=0) for leaf in leaves]
    return [nest.pack_sequence_as(elems, [p[i] if len(p) > 1 or count == 1 else p[0]
                                          for p in parts]) for i in range(count)]


def _scanned(name: str, fn: Callable[[Any, Any], tuple[Any, Any]], start: TensorLike, elems: Any,
             broadcast: bool = False, backwards: bool = False) -> tuple[Any, Any] | None:
    """What `traced_scan` gives; None where the loop is to be unrolled, as also one is whose
    accumulator changes its dtype or shape."""
    # Eagerly a loop of Python is what a step would run too, and each op is on the tape.
    if tracer_now() is None or any(
            isinstance(leaf, CompositeTensor) for leaf in nest.flatten(elems)):
        return None
    _, count = _length(name, elems, broadcast)
    # Unrolled, the ops of all turns are fused and planned together.
    if count <= _UNROLLED:
        return None
    try:
        return traced_scan(name, fn, start, elems, count, backwards)
    # An accumulator whose shape grows is allowed here, as in TensorFlow's eager loop.
    except ValueError:
        return None


def _joined(name: str, results: list[object], ragged: Sequence[int] | None = None) -> Any:
    """Structures of tensors as one structure of stacks.

    Args:
        ragged: of each leaf, how many ragged axes its stack has; none unless given.
    """
    for other in results[1:]:
        nest.assert_same_structure(results[0], other)
    parts: list[Any] = []
    for i, column in enumerate(zip(*[nest.flatten(r) for r in results])):
        wanted = ragged[i] if ragged else 0
        composite = next((v for v in column if isinstance(v, CompositeTensor)
                          and not isinstance(v, IndexedSlices)), None)
        if wanted or composite is not None:
            parts.append(_stacked(column, composite, wanted))
            continue
        tensors = [convert(v) for v in column]
        # Before the stack, whose error would not name the loop.
        if any(t.spec != tensors[0].spec for t in tensors):
            raise InvalidArgumentError(f"{name}: every result must have one shape and dtype; got "
                                       f"{', '.join(sorted({str(t.spec) for t in tensors}))}")
        parts.append(stack_(*tensors, axis=0))
    return nest.pack_sequence_as(results[0], parts)


def _stacked(column: Sequence[Any], composite: object, ragged_rank: int) -> Any:
    """Results of which some are no tensors, or which may have different lengths, side by side."""
    from gtape.ops.ragged import conversions, joining  # ragged tensors stand above loops
    from gtape.ops.sparse import layout

    if hasattr(composite, "dense_shape"):
        return layout.concat(0, [layout.expand_dims(v, 0) for v in column])
    return conversions.of_dense(joining.stack(list(column)), ragged_rank)


def _ragged_ranks(signature: object, elems: object,
                  results: Sequence[Tensor | RaggedTensor | tuple[Tensor, Tensor]]) -> list[int]:
    """How many ragged axes each result has: as the signature says; without one as many as the
    elements, where the results are of different lengths."""
    if signature is not None:
        return [leaf.ragged_rank + 1 if hasattr(leaf, "ragged_rank") else 0
                for leaf in nest.flatten(signature)]
    count = max((getattr(leaf, "ragged_rank", 0) for leaf in nest.flatten(elems)), default=0)
    columns = zip(*[nest.flatten(r) for r in results])
    return [count if all(len(getattr(v, "shape", ())) for v in column) else 0
            for column in columns]


def _detached(value: TensorLike | CompositeTensor, back_prop: bool) -> Any:
    if back_prop:
        return value
    return nest.map_structure(stop_gradient, value)


def _typed(value: object, signature: object) -> Any:
    """The results as tensors of the dtypes in `signature`."""
    def one(leaf: object, wanted: object) -> Any:
        if isinstance(leaf, CompositeTensor):
            if leaf.dtype is not wanted.dtype:  # type: ignore[attr-defined]
                raise InvalidArgumentError(f"map_fn: fn_output_signature says {wanted!r}, fn gave "
                                           f"{leaf!r}")
            return leaf
        dtype: DType = as_dtype(getattr(wanted, "dtype", wanted))
        x = convert(leaf, None if isinstance(leaf, Tensor) else dtype)
        if x.dtype is not dtype:
            raise InvalidArgumentError(f"map_fn: fn_output_signature says {dtype!r}, fn gave "
                                       f"{x.spec}; write tf.cast(result, tf.{dtype.name})")
        return x

    return nest.map_structure(one, value, signature, check_types=False)


def map_fn(fn: Callable[[Any], Any], elems: Any, dtype: DTypeLike | None = None,
           parallel_iterations: int | None = None, back_prop: bool = True,
           swap_memory: bool = False, infer_shape: bool = True, name: str | None = None,
           fn_output_signature: DType | TypeSpec | tuple[DType, DType] | None = None) -> Any:
    """fn(elems[i]) for every i along the first axis, the results stacked.

    Args:
        elems: a tensor, or a nested structure of tensors whose first axes have one length; `fn`
            receives the same structure.
        dtype, fn_output_signature: the dtypes of the results, checked when given.

    Raises:
        ValueError: scalars, or lengths that differ.
        InvalidArgumentError: results of different shapes or dtypes, or none because elems are
            empty and `fn` cannot be applied to zeros.
    """
    as_function(fn, "map_fn: fn")
    signature = fn_output_signature if fn_output_signature is not None else dtype

    def typed(result: TensorLike) -> Any:
        return result if signature is None else _typed(result, signature)

    scanned = _scanned("map_fn", lambda a, x: (a, typed(fn(x))), (), elems)
    if scanned is not None:
        return _detached(scanned[1], back_prop)
    elements = _elements("map_fn", elems)
    if not elements:
        return _empty("map_fn", fn, elems)
    results = [typed(fn(e)) for e in elements]
    ranks = _ragged_ranks(signature, elems, results)
    return _detached(_joined("map_fn", results, ranks), back_prop)


def _empty(name: str, fn: Callable[[Any], Any], elems: Tensor) -> Any:
    """The result for no elements: its shape is that of `fn` applied to zeros."""
    blank = nest.map_structure(lambda x: zeros(x.shape[1:], x.dtype),
                               nest.map_structure(convert, elems))
    with paused():
        try:
            result = fn(blank)
        except Exception as error:
            raise InvalidArgumentError(f"{name}: elems are empty, and fn fails on zeros, so the "
                                       f"shape of the result is unknown ({error})") from error
    return nest.map_structure(lambda y: zeros((0, *convert(y).spec.shape), convert(y).dtype),
                              result)


def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True,
                   warn: bool = True) -> Any:
    """`map_fn` by operations on all elements at once; a first axis of length 1 goes with any other.

    `fn` runs once, on values that stand for those of every element. Where it needs their numbers,
    draws random ones or changes a Variable, it is applied to one element after another.

    Args:
        fallback_to_while_loop: False raises instead.
        warn: accepted and without effect.

    Raises:
        ValueError, InvalidArgumentError: as `map_fn`.
        NotTraceableError: `fn` must see the elements one by one, and may not.
    """
    from gtape.vmap.batch_trace import NEEDS_ELEMENTS, batch_of

    as_function(fn, "vectorized_map: fn")
    leaves, count = _length("vectorized_map", elems, broadcast=True)
    if count == 0:
        return _empty("vectorized_map", fn, elems)
    try:
        batch, flat, structure = batch_of(fn, elems, leaves, count)
    # Only what a function says that must see elements: its own errors come through as they are.
    except NEEDS_ELEMENTS:
        if not fallback_to_while_loop:
            raise
    else:
        return nest.pack_sequence_as(structure, batch.results(flat))
    scanned = _scanned("vectorized_map", lambda a, x: (a, fn(x)), (), elems, broadcast=True)
    if scanned is not None:
        return scanned[1]
    elements = _elements("vectorized_map", elems, broadcast=True)
    return _joined("vectorized_map", [fn(e) for e in elements])


def _started(name: str, elems: Tensor, initializer: TensorLike | None, backwards: bool,
             ) -> tuple[object, list[object]]:
    """The first accumulator and the elements still to come."""
    elements = _elements(name, elems)
    if backwards:
        elements.reverse()
    if initializer is not None:
        return initializer, elements
    if not elements:
        raise InvalidArgumentError(f"{name}: elems are empty; give an initializer")
    return elements[0], elements[1:]


def scan(fn: Callable[[Any, Any], Any], elems: Tensor, initializer: TensorLike | None = None,
         parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False,
         infer_shape: bool = True, reverse: bool = False, name: str | None = None) -> Any:
    """aᵢ = fn(aᵢ₋₁, elems[i]) along the first axis; all aᵢ stacked.

    Without an `initializer` a₀ is the first element. `reverse` begins at the end; result i still
    belongs to element i.

    Raises:
        ValueError: scalars, lengths that differ, or a structure that changes.
        InvalidArgumentError: no elements and no initializer; shapes or dtypes that change.
    """
    as_function(fn, "scan: fn")
    if initializer is not None:
        # One function gives the accumulator and the output: traced_scan keeps the two apart.
        def step(total: Tensor, element: Tensor) -> tuple[Any, Any]:
            result = fn(total, element)
            return result, result

        scanned = _scanned("scan", step, initializer, elems, backwards=reverse)
        if scanned is not None:
            return _detached(scanned[1], back_prop)
    total, rest = _started("scan", elems, initializer, reverse)
    total = nest.map_structure(convert, total)
    results = [] if initializer is not None else [total]
    for element in rest:
        total = fn(total, element)
        results.append(total)
    if not results:
        return nest.map_structure(lambda a: zeros((0, *a.shape), a.dtype), total)
    return _detached(_joined("scan", results[::-1] if reverse else results), back_prop)


def _folding(public: str, backwards: bool, doc: str) -> Callable[..., Any]:
    """foldl or foldr: `scan` without its results on the way."""
    def function(fn: Callable[[Any, Any], Any], elems: Tensor, initializer: Any = None,
                 parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False,
                 name: str | None = None) -> Any:
        as_function(fn, f"{public}: fn")
        if initializer is not None:
            scanned = _scanned(public, lambda total, x: (fn(total, x), None), initializer, elems,
                               backwards=backwards)
            if scanned is not None:
                return _detached(scanned[0], back_prop)
        total, rest = _started(public, elems, initializer, backwards)
        for element in rest:
            total = fn(total, element)
        return _detached(nest.map_structure(convert, total), back_prop)

    return named(function, public, doc)


foldl = _folding("foldl", False, """\
fn(… fn(fn(initializer, elems[0]), elems[1]) …): `scan`, of which the last result is kept.

    Raises:
        InvalidArgumentError: no elements and no initializer.
    """)
foldr = _folding("foldr", True, "`foldl` from the last element to the first.")


def _finished(value: TensorLike) -> Any:
    """Loop variables as tensors; tensor arrays stay as they are."""
    return nest.map_structure(lambda v: v if hasattr(v, "gather") else convert(v), value)


def _check_dtypes(before: TensorLike, after: TensorLike) -> None:
    """Refuse in an unrolled loop what one that is not unrolled cannot do. Raises
    InvalidArgumentError: a loop variable changes its dtype."""
    for i, (old, new) in enumerate(zip(nest.flatten(before), nest.flatten(after))):
        if isinstance(new, Tensor) and not hasattr(old, "gather"):
            dtype = old.dtype if isinstance(old, Tensor) else convert(old).dtype
            if new.dtype is not dtype:
                raise InvalidArgumentError(
                    f"while_loop: loop variable {i} must keep its dtype in a traced function: it "
                    f"enters as {dtype.name}, and body makes it {new.dtype.name}. Use tf.cast")


def while_loop(cond: Callable[..., object], body: Callable[..., object], loop_vars: TensorLike,
               shape_invariants: object = None, parallel_iterations: int = 10,
               back_prop: bool = True, swap_memory: bool = False,
               maximum_iterations: TensorLike | None = None, name: str | None = None) -> Any:
    """loop_vars = body(*loop_vars) while cond(*loop_vars) holds, and at most so many times.

    In a traced function the loop becomes one step where the condition is known only at a call; its
    variables keep their dtypes and shapes then. Otherwise it is unrolled.

    Args:
        loop_vars: a list or tuple; `body` returns one of the same structure.

    Returns:
        The last loop variables, as tensors.

    Raises:
        TypeError: `cond` or `body` is not callable, or `body` returns no list or tuple.
        ValueError: no loop variables, or `body` changes their structure; in a traced function
            also their dtype or shape.
    """
    if not callable(cond) or not callable(body):
        raise TypeError(f"while_loop: cond and body must be callable; got {shown(cond)} and "
                        f"{shown(body)}")
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError("while_loop: loop_vars must be a list or tuple of one or more values")
    if type(maximum_iterations) is SymbolicTensor:
        return _detached(traced_while(cond, body, loop_vars, maximum_iterations,
                                      shape_invariants), back_prop)
    limit = None if maximum_iterations is None else as_int(maximum_iterations,
                                                           "while_loop: maximum_iterations")
    values, turn = loop_vars, 0
    while limit is None or turn < limit:
        # Asked at every turn: a condition may begin to depend on traced values later.
        if depends(cond, values):
            left = None if limit is None else limit - turn
            return _detached(traced_while(cond, body, values, left, shape_invariants), back_prop)
        if not cond(*values):
            break
        result = body(*values)
        if not isinstance(result, (list, tuple)):
            result = (result,)
        nest.assert_same_structure(list(values), list(result))
        if tracer_now() is not None:
            _check_dtypes(values, result)
        # A named tuple takes its fields one by one, and stays what `body` returned.
        values = type(loop_vars)(result) if type(loop_vars) in (list, tuple) else result
        turn += 1
    return _detached(_finished(values), back_prop)


def nondifferentiable_batch_function(
        num_batch_threads: int, max_batch_size: int, batch_timeout_micros: int,
        allowed_batch_sizes: object = None, max_enqueued_batches: int = 10, autograph: bool = True,
        enable_large_batch_splitting: bool = True) -> Callable[..., Any]:
    """Decorator for a function of batches through which no gradient flows.

    Every call is a batch of its own: eager calls do not wait for each other.

    Raises:
        InvalidArgumentError: when called with more rows than the largest batch size, if large
            batches are not to be split.
    """
    sizes = as_items(() if allowed_batch_sizes is None else allowed_batch_sizes,
                     "nondifferentiable_batch_function: allowed_batch_sizes")
    largest = max(as_int(n, "a batch size") for n in (sizes or [max_batch_size]))

    def decorated(fn: Callable[..., object]) -> Callable[..., Any]:
        def batched(*args: Tensor) -> Any:
            inputs = [convert(a) for a in args]
            rows = inputs[0].spec.shape[0] if inputs and inputs[0].ndim else 0
            if rows > largest and not enable_large_batch_splitting:
                raise InvalidArgumentError(f"a batch must have at most {largest} rows; got {rows}")
            with paused():
                return fn(*inputs)

        return batched

    return decorated
