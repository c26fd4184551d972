"""Op: a named function of tensors. Rule: how a cotangent is pulled back through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gtape.core.spec import Spec

if TYPE_CHECKING:
    from gtape.core.tensor import Tensor

#: A function that a declaration gives: its parameters say what it wants.
Function: TypeAlias = Callable[..., Any]
#: The values of an op's attributes, in the order of `attr_names`.
Attrs: TypeAlias = tuple[Any, ...]

_declared: list[Op] = []


class Op:
    """What every kind of op has: a name, named tensor inputs, named results, tests and a doc.

    `tf_name` is the name under which `tf.RegisterGradient` and its LookupError know it.
    """

    params: tuple[str, ...]
    outputs: tuple[str, ...] = ("y",)
    #: The names of its attributes, in the order in which a node or a record holds them.
    attr_names: tuple[str, ...] = ()
    #: It takes any number of tensors; its rule receives them as one sequence.
    variadic = False
    #: Its rule takes an IndexedSlices cotangent as it is; others get it dense.
    sparse = False
    #: It raises for some values of its inputs, in host memory: a traced function does so even where
    #: nobody needs the result.
    refuses = False
    #: It does something besides making its results, and is never left out.
    has_side_effect = False
    #: No gradient flows through it, by declaration: floor, round.
    nondifferentiable = False
    #: False: differentiating it is a LookupError until a gradient is registered.
    has_gradient = True
    #: Its vjp holds for complex numbers, when the cotangent is conjugated before and after.
    holomorphic = True
    #: Where random inputs of its tests lie, if it says so.
    domain: tuple[float, float] | None = None

    #: What it is, written in other ops: `definition(*tensors, **attrs)`. The compiler takes it
    #: apart by this, and kernels and array functions are compared with it. None: it is no more
    #: than its array function.
    definition: Callable[..., Any] | None = None
    #: The array function goes the definition's steps: it rounds 16-bit floats where that does, and
    #: says the same of no elements. Array functions compute such floats in float32, as a rule.
    literal = False
    # What layers above attach, each when it is imported. None: it has no rule of its own.
    #: How it is applied to all elements of a batch at once; see `vmap.operand.batches`.
    batch: Callable[..., Any] | None = None
    #: How it is made of the compiler's nodes; see `compile.ir.builder.lowers`.
    lower: Callable[..., Any] | None = None
    #: What `on_cuda` was given.
    gpu_kernel: tuple[str, dict[str, Any]] | None = None

    def __init__(self, name: str, params: tuple[str, ...], doc: str = "",
                 tf_name: str | None = None) -> None:
        self.name = name
        self.params = params
        self.__name__ = name
        self.__doc__ = doc
        self.tf_name = tf_name or "".join(part.title() for part in name.split("_"))
        self.cases: list[Case] = []
        self._kernel: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def on_cuda(self, kernel: str, **fixed: object) -> None:
        """The kernels that compute all results on GPUs: the function `kernel` of `devices.cuda`,
        as "package.module.function". It is imported when an array is on a GPU.

        `function(gpu, *arrays, **attrs, **fixed)` gives an array, or a tuple where there are
        several results, or None where no kernel serves these arrays; then the op computes as it
        does elsewhere. `gpu` launches.
        """
        self.gpu_kernel = (kernel, fixed)
        # The first launch imports the module, and its function takes this one's place.
        self._kernel = self._first_on_cuda

    def _first_on_cuda(self, gpu: object, *arrays: object, **attrs: object) -> Any:
        self._kernel = self.cuda_kernel()
        return self._kernel(gpu, *arrays, **attrs)

    def cuda_kernel(self) -> Callable[..., Any]:
        """The function that `on_cuda` names."""
        assert self.gpu_kernel is not None
        kernel, fixed = self.gpu_kernel
        module, _, function = kernel.rpartition(".")
        launch = getattr(import_module(f"gtape.devices.cuda.{module}"), function)
        return partial(launch, **fixed) if fixed else launch

    def may_refuse(self, inputs: Sequence[Any]) -> bool:
        """Whether these inputs have a dtype and a place where it may raise for their values."""
        return self.refuses and all(x._t.device.is_host for x in inputs)

    def declare(self) -> None:
        """List the op for tests and docs."""
        _declared.append(self)


def declared() -> tuple[Op, ...]:
    """Every op declared by the modules imported so far."""
    return tuple(_declared)


class Case(NamedTuple):
    """Inputs on which an op is tested: shapes of drawn arrays, or fixed values, and attributes.

    A shape (tuple) draws numbers from `domain`; an `Ints` draws integers; anything else is given
    to the op as it is.
    """

    inputs: tuple[Any, ...]
    attrs: dict[str, Any] = {}  # noqa: RUF012  (never written to)
    domain: tuple[float, float] | None = None
    #: "orders": how many derivatives to check; None means two.
    orders: int = 2
    dtypes: tuple[str, ...] = ("float32", "float64")


class Ints(NamedTuple):
    """A drawn integer array of `shape` with entries in [0, below)."""

    shape: tuple[int, ...]
    below: int


class Bools(NamedTuple):
    """A drawn boolean array of `shape`."""

    shape: tuple[int, ...]


def case(*inputs: object, domain: tuple[float, float] | None = None, orders: int = 2,
         dtypes: tuple[str, ...] = ("float32", "float64"), **attrs: object) -> Case:
    """`Case` with the attributes as keywords."""
    return Case(inputs, attrs, domain, orders, dtypes)


def ints(*shape: int, below: int) -> Ints:
    """`Ints` of a shape."""
    return Ints(shape, below)


#: The flags of a code object that takes `*values`, and of one that takes `**attrs`.
VARARGS, VARKEYWORDS = 4, 8


def positional_names(fn: Callable[..., object]) -> tuple[str, ...]:
    code = fn.__code__
    return code.co_varnames[: code.co_argcount]


def keyword_names(fn: Callable[..., object]) -> tuple[str, ...]:
    code = fn.__code__
    start = code.co_argcount
    return code.co_varnames[start: start + code.co_kwonlyargcount]


def variadic_name(fn: Callable[..., object]) -> str:
    """The name of the `*values` parameter."""
    code = fn.__code__
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


class Rule:
    """A backward rule. Its parameters say what the tape keeps.

    `g` is the cotangent of the first result, `gs` those of all results (None where nothing
    arrived); the others name inputs or results of the op. Of `x` named `x_spec` only shape and
    dtype are kept. Keyword-only parameters receive the op's attributes, `**attrs` the rest of them.

    Raises:
        TypeError: at import, when a parameter names nothing the op has.
    """

    __slots__ = ("attrs", "fn", "op", "reads", "sources", "spec_only", "takes_all", "variadic",
                 "wrt")

    def __init__(self, fn: Callable[..., Any], op: Op, wrt: tuple[str, ...],
                 attr_names: tuple[str, ...]) -> None:
        # At the declaration: a misspelt name would else be found by the first gradient.
        names = positional_names(fn)
        if not names or names[0] not in ("g", "gs"):
            raise TypeError(f"the rule of {op.name}: its first parameter must be g or gs")
        self.fn, self.op, self.wrt = fn, op, wrt
        self.takes_all = names[0] == "gs"
        self.variadic = op.variadic
        self.spec_only = tuple(n.endswith("_spec") for n in names[1:])
        self.sources = tuple(n.removesuffix("_spec") for n in names[1:])
        asked = attr_names if fn.__code__.co_flags & VARKEYWORDS else keyword_names(fn)
        known = {*op.params, *op.outputs}
        unknown = ({*self.sources} - known) | ({*asked} - set(attr_names)) | (
            set(wrt) - set(op.params))
        if unknown:
            raise TypeError(f"the rule of {op.name} asks for {sorted(unknown)}; it can have g, gs, "
                            f"{', '.join((*op.params, *op.outputs, *attr_names))}")
        env = {n: i for i, n in enumerate((*op.params, *op.outputs))}
        self.reads = tuple(env[n] for n in self.sources)
        #: The attributes it asks for, with their places among the op's.
        self.attrs = tuple((n, attr_names.index(n)) for n in asked)

    def keep(self, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], specs: Sequence[Spec],
             ) -> tuple[object, ...]:
        """What the rule reads of the inputs, whose specs are `specs`, and of the results."""
        if self.op.variadic:
            return tuple(specs) if self.spec_only[0] else inputs
        count = len(inputs)
        kept = []
        for i, spec_only in zip(self.reads, self.spec_only):
            if i >= count:
                kept.append(outputs[i - count].spec if spec_only else outputs[i - count])
            else:
                kept.append(specs[i] if spec_only else inputs[i])
        return tuple(kept)
