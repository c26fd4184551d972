"""einsum and tensordot: sums of products over named axes."""

from __future__ import annotations

import re
import string
from functools import lru_cache

from gtape.core.annotations import TensorLike
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.dtypes import float32
from gtape.core.errors import InvalidArgumentError
from gtape.core.formatting import shown
from gtape.core.op import case
from gtape.core.spec import Spec, broadcast_shapes, normal_axes
from gtape.core.tensor import Tensor
from gtape.numerics.contraction import contract, sizes_of
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import as_int, as_ints, as_tensors, host_value, one_dtype
from gtape.ops.linalg.products import pair
from gtape.ops.shape.layout import broadcast_to_, reshape_

_FORM = re.compile(r"(?:[a-zA-Z]*(?:\.\.\.)?[a-zA-Z]*,)*[a-zA-Z]*(?:\.\.\.)?[a-zA-Z]*"
                   r"(?:->[a-zA-Z]*(?:\.\.\.)?[a-zA-Z]*)?")


@primitive(tf_name="Einsum")
def einsum_(xp: ArrayModule, *values: object, equation: str) -> Array:
    """y = Σ over the letters not in the result of the product of `values`; no ellipsis."""
    terms, _, result = equation.partition("->")
    return contract(xp, list(values), tuple(terms.split(",")), result)


@einsum_.infer
def _(*values: Spec, equation: str) -> Spec:
    dtype = one_dtype("einsum", values)
    if not (dtype.is_differentiable or dtype.is_integer):
        raise InvalidArgumentError(f"einsum takes numbers; got {', '.join(map(str, values))}")
    terms, _, result = equation.partition("->")
    try:
        sizes = sizes_of(tuple(terms.split(",")), tuple(v.shape for v in values))
    except ValueError as error:
        raise InvalidArgumentError(
            f"einsum '{equation}': {error}; the tensors are {', '.join(map(str, values))}"
        ) from None
    return Spec(tuple(sizes[x] for x in result), dtype)


einsum_.on_cuda("gemm.contractions.einsum")
# A sequence that computes its items: a tape that wants one cotangent of several pays for one.
einsum_.vjp(values=lambda g, values, *, equation: _Parts(g, values, equation))


class _Parts:
    """The cotangents of an einsum's operands, each computed when it is asked for."""

    def __init__(self, g: Tensor, values: tuple[Tensor, ...], equation: str) -> None:
        self.g, self.values = g, values
        terms, _, self.result = equation.partition("->")
        self.terms = terms.split(",")

    def __getitem__(self, i: int) -> Tensor:
        """Σ g Π others with the axes of the term: letters nobody else has are broadcast, and a
        repeated letter puts the cotangent on the diagonal."""
        term, spec = self.terms[i], self.values[i].spec
        others = [v for j, v in enumerate(self.values) if j != i]
        names = [self.result, *[t for j, t in enumerate(self.terms) if j != i]]
        distinct = "".join(dict.fromkeys(term))
        kept = "".join(x for x in distinct if any(x in other for other in names))
        y = einsum_(self.g, *others, equation=f"{','.join(names)}->{kept}")
        lengths = dict(zip(term, spec.shape))
        # A letter that only this term has was summed over: its cotangent is the same all along.
        if kept != distinct:
            y = reshape_(y, shape=tuple(lengths[x] if x in kept else 1 for x in distinct))
            y = broadcast_to_(y, shape=tuple(lengths[x] for x in distinct))
        return y if distinct == term else _on_diagonals(y, distinct, term, spec)


def _on_diagonals(y: Tensor, distinct: str, term: str, spec: Spec) -> Tensor:
    """`y` placed where all axes of a repeated letter have one index."""
    # A second axis of a letter gets a letter of its own, tied to the first by an identity matrix.
    spare = (x for x in string.ascii_letters if x not in term)
    target, names, eyes = "", [distinct], [y]
    xp = y._t.xp
    for letter, length in zip(term, spec.shape):
        if letter not in target:
            target += letter
            continue
        fresh = next(spare)
        target += fresh
        names.append(letter + fresh)
        eyes.append(convert(xp.eye(length, dtype=spec.dtype.np_dtype), spec.dtype, y._t.device))
    return einsum_(*eyes, equation=f"{','.join(names)}->{target}")


einsum_.cases = [
    case((2, 3), (3, 4), equation="ij,jk->ik"), case((3, 3), equation="ii->i"),
    case((3, 3), equation="ii->"), case((2, 3), equation="ij->j"),
    case((2, 3, 4), (2, 4, 3), equation="bij,bji->b"), case((3,), (2,), equation="i,j->ji"),
    case((2,), (2, 3), (3, 2), equation="i,ij,jk->k"), case((2, 3), (4,), equation="ij,k->"),
    case((2, 3, 2), (2, 2), equation="iji,ik->jk"), case((), (2,), equation=",i->i"),
    case((2, 3), (3,), equation="ij,j->i", dtypes=("complex128",))]


def einsum(equation: str, *inputs: object, **kwargs: object) -> Tensor:
    """Sums of products over named axes: 'ij,jk->ik' is a matrix product.

    A letter names an axis; a letter that is missing in the result is summed; a letter that a term
    repeats takes the diagonal; '...' stands for the axes not named, which broadcast. Without
    '->' the result has the letters that occur once, in alphabetic order, after '...'.

    Args:
        equation: the terms, one for each tensor, and the result.
        inputs: tensors of one dtype.
        optimize: accepted; the order is always chosen to keep intermediate results small.

    Raises ValueError: the equation is malformed, or its terms differ in number from the tensors;
    InvalidArgumentError: it does not fit the shapes, or dtypes differ."""
    unknown = set(kwargs) - {"optimize", "name"}
    if unknown:
        raise TypeError(f"einsum takes the keywords optimize and name; got {sorted(unknown)}")
    if not isinstance(equation, str):
        raise TypeError(f"einsum: the equation must be a string such as 'ij,jk->ik'; got "
                        f"{shown(equation)}")
    tensors = as_tensors(list(inputs), "einsum")
    # `einsum_` never sees '...': its rules and kernels know letters only, and the text is parsed
    # once for each equation and shapes.
    canonical, shapes = _resolved(equation, tuple(x.spec.shape for x in tensors))
    if shapes:
        tensors = [x if s is None else reshape_(x, shape=s) for x, s in zip(tensors, shapes)]
    return einsum_(*tensors, equation=canonical)


# One entry for each equation and shapes that a program meets: a string and a few tuples.
@lru_cache(4096)
def _resolved(equation: str, shapes: tuple[tuple[int, ...], ...],
              ) -> tuple[str, list[tuple[int, ...] | None]]:
    """The equation without '...', and the shape each tensor takes (None: its own)."""
    terms, result = _parsed(equation, len(shapes))
    if "..." not in equation:
        return f"{','.join(terms)}->{result}", []
    ranks = [len(s) - len(t.replace("...", "")) if "..." in t else 0
             for t, s in zip(terms, shapes)]
    if min(ranks) < 0:
        at = ranks.index(min(ranks))
        raise InvalidArgumentError(f"einsum '{equation}': the term '{terms[at]}' names more axes "
                                   f"than the shape {list(shapes[at])} has")
    spare = [x for x in string.ascii_letters if x not in equation]
    names = "".join(spare[:max(ranks)])
    if names and "..." not in result:
        raise InvalidArgumentError(f"einsum '{equation}': '...' stands for {len(names)} axes, so "
                                   f"the result must name it")
    # Axes that '...' stands for are counted from the last, so that shorter ones line up behind.
    whole = _broadcast(equation, terms, shapes, ranks)
    filled = [_filled(term, shape, names[len(names) - rank:], whole[len(whole) - rank:])
              for term, shape, rank in zip(terms, shapes, ranks)]
    reshaped = [None if kept == shape else kept for (_, kept), shape in zip(filled, shapes)]
    return f"{','.join(term for term, _ in filled)}->{result.replace('...', names)}", reshaped


def _parsed(equation: str, count: int) -> tuple[list[str], str]:
    # TensorFlow takes spaces anywhere.
    text = equation.replace(" ", "")
    if not _FORM.fullmatch(text):
        raise ValueError(f"einsum: the equation must look like 'ij,jk->ik', with letters and at "
                         f"most one '...' in a term; got '{equation}'")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if len(terms) != count:
        raise ValueError(f"einsum '{equation}': {len(terms)} terms need {len(terms)} tensors; got "
                         f"{count}")
    letters = left.replace(",", "").replace(".", "")
    if not arrow:
        # NumPy's rule for an equation without '->'.
        once = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
        result = ("..." if "..." in left else "") + once
    named = result.replace("...", "")
    for letter in named:
        if letter not in letters:
            raise ValueError(f"einsum '{equation}': the result names '{letter}', which no term has")
        if named.count(letter) > 1:
            raise ValueError(f"einsum '{equation}': the result names '{letter}' more than once")
    return terms, result


def _broadcast(equation: str, terms: list[str], shapes: tuple[tuple[int, ...], ...],
               ranks: list[int]) -> tuple[int, ...]:
    """The common shape of the axes that '...' stands for."""
    starts = [max(term.find("..."), 0) for term in terms]
    parts = [Spec(shape[at:at + rank], float32)
             for at, shape, rank in zip(starts, shapes, ranks)]
    return broadcast_shapes(f"einsum '{equation}' (the axes of '...')", *parts)


def _filled(term: str, shape: tuple[int, ...], names: str, whole: tuple[int, ...],
            ) -> tuple[str, tuple[int, ...]]:
    """The term with letters for '...', and the shape without the axes that broadcast."""
    if "..." not in term:
        return term, shape
    at = term.index("...")
    part = shape[at:at + len(names)]
    # An axis of length 1 that another tensor stretches is dropped from the term: a letter has one
    # length, and summing over it is the gradient that broadcasting needs.
    used = [i for i, n in enumerate(part) if n == whole[i]]
    letters = "".join(names[i] for i in used)
    kept = (*shape[:at], *[part[i] for i in used], *shape[at + len(names):])
    return term.replace("...", letters), kept


def tensordot(a: TensorLike, b: TensorLike, axes: TensorLike, name: str | None = None) -> Tensor:
    """Σ over pairs of axes of a and b; the result has the other axes of a, then those of b.

    Args:
        axes: an integer N, for the last N axes of a with the first N of b; or two integers or
            two lists, the axes of a and those of b.

    Raises ValueError: the axes do not fit;
    InvalidArgumentError: lengths or dtypes differ."""
    x, y = pair("tensordot", a, b)
    left, right = _axes_pair(axes, x.ndim, y.ndim)
    # One einsum: its products know how to bring any axes together in one multiplication.
    first = list(string.ascii_letters[:x.ndim])
    second = list(string.ascii_letters[x.ndim:x.ndim + y.ndim])
    for i, j in zip(left, right):
        if x.spec.shape[i] != y.spec.shape[j]:
            raise InvalidArgumentError(f"tensordot: axis {i} of {x.spec} and axis {j} of {y.spec} "
                                       f"must have one length")
        second[j] = first[i]
    result = [c for i, c in enumerate(first) if i not in left]
    result += [c for j, c in enumerate(second) if j not in right]
    return einsum_(x, y, equation=f"{''.join(first)},{''.join(second)}->{''.join(result)}")


def _axes_pair(axes: TensorLike, rank_a: int, rank_b: int,
               ) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not isinstance(axes, (list, tuple)):
        array = host_value(axes, "tensordot: axes")
        if not array.ndim:
            count = as_int(axes, "tensordot: axes")
            if not 0 <= count <= min(rank_a, rank_b):
                raise ValueError(f"tensordot: axes={count} must lie between 0 and the smaller "
                                 f"rank, {min(rank_a, rank_b)}")
            return tuple(range(rank_a - count, rank_a)), tuple(range(count))
        axes = list(array)
    if len(axes) != 2:
        raise ValueError(f"tensordot: axes must be an integer or two lists; got {shown(axes)}")
    left = _normal(as_ints(axes[0], "tensordot: axes"), rank_a)
    right = _normal(as_ints(axes[1], "tensordot: axes"), rank_b)
    if len(left) != len(right):
        raise ValueError(f"tensordot: as many axes of a as of b are needed; got {len(left)} and "
                         f"{len(right)}")
    return left, right


def _normal(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    normal_axes("tensordot", axes, rank)
    # In the order given, in which they meet those of the other tensor.
    return tuple([a % rank for a in axes])
