"""The elementwise ops that are declared: scalar ops, and functions composed of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from gtape.core.device import Array, ArrayModule, ArrayType
from gtape.core.op import Function, positional_names
from gtape.core.tensor import Tensor
from gtape.opdef.differentiate import expression_vjp, scalar_vjp
from gtape.opdef.elementwise import Elementwise, ScalarGraphOp
from gtape.opdef.scalar_graph import Expr, ScalarGraph

#: A comparison in CUDA text; shifts are none.
_COMPARISON = re.compile(r"[=!<>]=|(?<![<>])[<>](?![<>])")


class ScalarVjp:
    """A scalar op's rule for one input: `fn`'s parameters name what it reads."""

    __slots__ = ("fn", "names")

    def __init__(self, fn: Function) -> None:
        self.fn = fn
        self.names = positional_names(fn)


class ScalarOp(Elementwise):
    """A scalar function that devices spell, with its spellings and its pullbacks.

    Args:
        signature: "name(a, b)".
        numpy: the function on arrays: a ufunc name found in the array module, or a function
            `(xp, *arrays)`; the op's own name unless given.
        infix: a template of Python operators, such as "{0} * {1}", used in place of a call.
        cuda: the expression in CUDA C++, in the parameters' names; the call itself unless given;
            "" where there is none, and the array function serves GPUs too. `nearest(…)` in it is a
            number that is rounded to the dtype of two bytes, where there is one.
        integers: whether the CUDA expression is right for integers.
        types: the rule of `typing_rules` for its dtypes.
        holomorphic: for complex values the derivative is a complex number times g.
        simplify: args -> a simpler expression or None.
        domain: where test inputs are drawn from.
        jumps: the result jumps as an operand passes some number, which its spellings do not show.
        of_complex: the function of complex tensors, where it is another formula.
        pullbacks: `d_a=lambda g, b: …`; None declares that no gradient flows; absent altogether
            means that none is registered.
    """

    def __init__(self, signature: str, *, numpy: str | Function | None = None,
                 infix: str | None = None, cuda: str | None = None, integers: bool = True,
                 types: str = "float", doc: str = "", tf_name: str | None = None,
                 holomorphic: bool = True,
                 simplify: Callable[[Sequence[Expr]], Expr | None] | None = None,
                 domain: tuple[float, float] = (-2.0, 2.0), makes_bool: bool = False,
                 jumps: bool = False, of_complex: Callable[..., Tensor] | None = None,
                 **pullback_fns: Function | None) -> None:
        name, _, rest = signature.partition("(")
        params = tuple(p.strip() for p in rest.rstrip(")").split(","))
        super().__init__(name, params, types, doc, tf_name)
        self.cuda = signature if cuda is None else cuda
        self.integers = integers
        self.infix = infix
        self.holomorphic = holomorphic
        self.simplify = simplify
        self.domain = domain
        self.makes_bool = makes_bool
        self._of_complex = of_complex
        self._numpy = numpy or name
        self.ufunc = self._ufunc()
        given = {k.removeprefix("d_"): f for k, f in pullback_fns.items()}
        self.nondifferentiable = bool(given) and all(f is None for f in given.values())
        self.rules = {k: ScalarVjp(f) for k, f in given.items() if f is not None}
        self.has_gradient = bool(given)
        #: Whether a small change of an operand may make a large one of the result: it takes its
        #: operands as their dtype has them, not with more digits than that.
        self.jumps = jumps or makes_bool or self.nondifferentiable or bool(
            _COMPARISON.search(self.cuda))
        self._check_rules(set(given))

    def _ufunc(self) -> Function | None:
        if isinstance(self._numpy, str):
            return getattr(np, self._numpy)
        return getattr(self._numpy, "with_out", None)

    def _check_rules(self, named: set[str]) -> None:
        known = {"g", "y", *self.params}
        for name, rule in self.rules.items():
            unknown = set(rule.names) - known
            if unknown:
                raise TypeError(f"the rule of {self.name} for {name} asks for {sorted(unknown)}; "
                                f"it can have {', '.join(sorted(known))}")
        if named and named != set(self.params):
            raise TypeError(f"{self.name} must say of each input {list(self.params)} how it is "
                            f"pulled back, None where no gradient flows; got {sorted(named)}")

    def on(self, xp: ArrayModule) -> Function:
        """The function on `xp`'s arrays."""
        if isinstance(self._numpy, str):
            return getattr(xp, self._numpy)
        function = self._numpy
        return lambda *arrays: function(xp, *arrays)

    def expression(self, graph: ScalarGraph, args: Sequence[Expr]) -> Expr:
        return graph.node(self, args)

    def apply(self, inputs: Sequence[Tensor]) -> Tensor:
        if self._of_complex is not None and inputs[0].dtype.is_complex:
            return self._of_complex(*inputs)
        return super().apply(inputs)

    def input_cotangents(self, wrt: Sequence[int], complex_: bool) -> list[Expr | None]:
        graph = ScalarGraph()
        args = [graph.input(p) for p in self.params]
        cotangents = scalar_vjp(self, graph.input("g"), graph.input("y"), args, complex_)
        return [cotangents[i] for i in wrt]

    def compute(self, array_type: ArrayType, arrays: Sequence[Array]) -> Array:
        result = self.on(array_type.xp)(*arrays)
        if type(result) is bytes:
            # What NumPy gives of arrays of one string.
            return np.array(result, object)
        return result if result.dtype == array_type.dtype.np_dtype else result.astype(
            array_type.dtype.np_dtype)


class ScalarFunction(ScalarGraphOp):
    """A function written in scalar ops: `lambda x: x * sigmoid(x)`.

    Its backward is derived; `pullback`, (g, x) -> a formula, is given where that is shorter.
    """

    def __init__(self, fn: Function, *, types: str = "float", name: str | None = None,
                 tf_name: str | None = None, domain: tuple[float, float] = (-2.0, 2.0),
                 pullback: Callable[[Expr, Expr], Expr] | None = None) -> None:
        super().__init__(name or fn.__name__, positional_names(fn), types, fn.__doc__ or "",
                         tf_name)
        self._fn = fn
        self._pullback = pullback
        self.domain = domain

    def expression(self, graph: ScalarGraph, args: Sequence[Expr]) -> Expr:
        formula = self._fn(*args)
        return formula if isinstance(formula, Expr) else graph.constant(formula)

    def input_cotangents(self, wrt: Sequence[int], complex_: bool) -> list[Expr | None]:
        if self._pullback is not None:
            graph = ScalarGraph()
            return [self._pullback(graph.input("g"), graph.input(self.params[0]))]
        return expression_vjp(self.body(), self.params, wrt, complex_)
