"""tf.function: calls of a Python function run the graph that it was traced to."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from operator import is_
from typing import Any

from gtape.compile import subgraph_programs
from gtape.compile.frontend.closed_graph import ClosedGraph
from gtape.compile.frontend.concrete_function import ConcreteFunction, tensor_names
from gtape.compile.frontend.iterator_arguments import FED, IteratorArguments, fed
from gtape.compile.frontend.retrace_log import RetraceLog
from gtape.compile.frontend.signature import (
    CONTAINERS,
    PLAIN,
    Arguments,
    Binding,
    ObjectKey,
    object_key,
    take_apart,
)
from gtape.compile.frontend.trace_cache import Executable, TraceCache
from gtape.core.annotations import TensorLike
from gtape.core.context import active, stack_level, tracer_now
from gtape.core.device import _scoped
from gtape.core.errors import EagerFunctionWarning, UntracedBranchError
from gtape.core.formatting import shown
from gtape.core.modes import Modes
from gtape.core.tensor import EagerTensor, Tensor
from gtape.core.type_specs import TensorSpec
from gtape.trace.graph import Graph

_scope = _scoped.get


class Function:
    """What `tf.function` makes of a Python function: see there."""

    def __init__(self, python_function: Callable[..., object], input_signature: Any = None,
                 autograph: bool = True, reduce_retracing: bool = False, *,
                 owner: ObjectKey | None = None, gradual: object = None) -> None:
        if not callable(python_function):
            raise TypeError(f"tf.function takes a function; got {shown(python_function)}")
        self.python_function = python_function
        self._autograph = autograph
        self._reduce_retracing = reduce_retracing
        #: Gives the object, where this is the method of one.
        self._object: Callable[[], Any] = (lambda: None) if owner is None else owner.reference
        self._owner = owner
        functools.update_wrapper(self, python_function, updated=())
        self.__name__ = self._name = str(getattr(
            python_function, "__name__", type(python_function).__name__))
        self._binding = Binding(python_function, self._name, input_signature, owner is not None)
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._body: Callable[..., Any] | None = None
        self._cache = TraceCache(self._binding, self._converted, reduce_retracing, gradual)
        #: Executables by what the fast way of a call looks at.
        self._fast: dict[Any, Executable] = {}
        self._feeds = IteratorArguments()
        #: Whether it was said that a call runs as Python.
        self._told = False
        #: By the id of the object.
        self._methods: dict[int, Function] = {}

    # ------------------------------------------------------------------ calls

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        fast = None
        if not (active() or tracer_now() or Modes.eager_functions):
            # A steady call is this function and the program's entry, two calls of Python. So the
            # key is put together here, and is not yet that of a trace: no default is filled in, no
            # argument bound. What it does not tell apart (floats, objects, nests) goes another way.
            parts: list[Any] = [_scope()]
            add = parts.append
            for value in args:
                kind = type(value)
                if kind is EagerTensor:
                    add(value._t)
                    add(value._a.shape)
                elif kind in PLAIN:
                    add(kind)
                    add(value)
                else:
                    return (fed(self, args, kwargs) if kind in FED
                            else self._nested(args, kwargs) if kind in CONTAINERS
                            else self._called(args, kwargs))
            for item in kwargs.items():
                if type(item[1]) not in PLAIN:
                    return self._called(args, kwargs)
                add(type(item[1]))
                add(item)
            key = tuple(parts)
            executable = self._fast.get(key)
            if executable is not None:
                executable.calls += 1
                try:
                    if executable.tensors_only:
                        return executable.entry(*args)
                    return executable.entry(*[v for v in args if type(v) is EagerTensor])
                # Python runs outside of the handler: what it raises then has no other error behind
                # it.
                except UntracedBranchError as error:
                    why = str(error)
                return self._untraced(args, kwargs, why)
            fast = key, [v for v in args if type(v) is EagerTensor]
        return self._called(args, kwargs, fast)

    def _nested(self, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
        """A call with tuples, lists or dicts among its arguments."""
        parts: list[Any] = [_scope()]
        tensors: list[Any] = []
        if kwargs or not all(take_apart(value, parts, tensors) for value in args):
            return self._called(args, kwargs)
        key = tuple(parts)
        executable = self._fast.get(key)
        if executable is None:
            return self._called(args, kwargs, (key, tensors))
        executable.calls += 1
        try:
            return executable.entry(*tensors)
        except UntracedBranchError as error:
            why = str(error)
        return self._untraced(args, kwargs, why)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, object], fast: object = None) -> Any:
        if Modes.eager_functions:
            return self._python()(*args, **kwargs)
        if FED and tracer_now() is None and any(type(v) in FED for v in args):
            return fed(self, args, kwargs)
        arguments = Arguments(*self._binding(args, kwargs))
        self._refuse_specs(arguments)
        executable = self._cache.find(arguments)
        if executable is None:
            return self._python()(*arguments.args, **arguments.kwargs)
        executable.calls += 1
        if tracer_now() is not None:
            return executable.traced.apply(arguments.tensors)
        try:
            if active():
                return executable.recorded(arguments.tensors, self._name)
            result = executable.result(arguments.tensors)
        except UntracedBranchError as error:
            why = str(error)
        else:
            self._remember(executable, args, arguments, fast)
            return result
        return self._untraced(args, kwargs, why)

    def _remember(self, executable: Executable, args: tuple[Any, ...], arguments: Arguments,
                  fast: Any) -> None:
        """Let later calls like this one find the executable the fast way."""
        # Where a variable may change its shape, or a value was captured, the next call has to look
        # again.
        if fast is not None and executable.lasts():
            key, tensors = fast
            # A signature makes tensors of numbers, and defaults may be tensors: not the fast way.
            if len(tensors) == len(arguments.tensors) and all(map(is_, tensors, arguments.tensors)):
                executable.tensors_only = len(tensors) == len(args)
                self._fast[key] = executable

    def _untraced(self, args: tuple[Tensor, ...], kwargs: dict[str, object], why: str) -> Any:
        """The result of a call that takes a branch which its trace does not have."""
        if not self._told:
            self._told = True
            warnings.warn(f"{self._name} runs eagerly in a call: {why}", EagerFunctionWarning,
                          stacklevel=stack_level())
        arguments = Arguments(*self._binding(args, kwargs))
        return self._python()(*arguments.args, **arguments.kwargs)

    def _refuse_specs(self, arguments: Arguments) -> None:
        spec = next((t for t in arguments.tensors if isinstance(t, TensorSpec)), None)
        if spec is not None:
            raise TypeError(f"{self._name} takes tensors; got {spec!r}. A trace for specs is made "
                            f"by {self._name}.get_concrete_function")

    def _python(self) -> Callable[..., Any]:
        """The Python function as it was given; a method with its object."""
        if self._owner is None:
            return self.python_function
        return functools.partial(self.python_function, self._object())

    def _converted(self) -> Callable[..., Any]:
        """The Python function with `if` and `while` on tensors made conditionals and loops."""
        if self._body is None:
            self._body = self.python_function
            if self._autograph:
                from gtape.autograph import convert

                self._body = convert(self.python_function)
        if self._owner is None:
            return self._body
        return functools.partial(self._body, self._object())

    # ------------------------------------------------------------------ methods

    def __get__(self, instance: object, owner: object = None) -> Any:
        if instance is None:
            return self
        function = self._methods.get(id(instance))
        # An id is used again when its object is gone.
        if function is None or function._object() is not instance:
            function = self._method(object_key(instance))
        return Method(function, instance)

    def _method(self, key: ObjectKey) -> Function:
        """The function for one object: traces of others are of no use to it."""
        new = Function(self.python_function, self.input_signature, self._autograph,
                       self._reduce_retracing, owner=key)
        place = id(key.target)
        function = self._methods.setdefault(place, new)
        if function._owner is not key:
            # The one there is of an object that is gone and had the same id.
            function = self._methods[place] = new
        key.watchers.add(self)
        return function

    def forget(self, gone: ObjectKey) -> None:
        """An object is no more."""
        for place, function in list(self._methods.items()):
            if function._owner is gone:
                self._methods.pop(place, None)

    def __deepcopy__(self, memo: dict[int, object]) -> Function:
        # Without the traces, which hold locks, and the state of the original.
        return Function(copy.deepcopy(self.python_function, memo), self.input_signature,
                        self._autograph, self._reduce_retracing)

    # ------------------------------------------------------------------ questions

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return self._name

    def experimental_get_tracing_count(self) -> int:
        """How many traces there are."""
        return len(self._cache.traces)

    def explain_cache(self) -> RetraceLog:
        """The traces: what each was made for, what had changed, where, and how to avoid it."""
        traces = self._cache.traces
        for trace in traces:
            trace.entry.calls = trace.calls
        return RetraceLog(self._name, [t.entry for t in traces])

    def get_concrete_function(self, *args: object, **kwargs: object) -> ConcreteFunction:
        """The trace for these arguments, tensors or `tf.TensorSpec`s, as a function of tensors.

        Raises:
            TypeError: the arguments do not fit the parameters or the input_signature.
        """
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        arguments = Arguments(*self._binding(args, kwargs))
        specs = [TensorSpec(dims, t.dtype, getattr(t, "name", None))
                 for dims, t in zip(arguments.shapes, arguments.tensors)]
        names = self._binding.names(len(arguments.args))
        concrete = ConcreteFunction(self, arguments, specs, list(tensor_names(names, arguments)))
        self._cache.prepare(arguments)
        return concrete

    def traced_for(self, arguments: Arguments) -> ClosedGraph:
        """The trace for arguments that may be specs.

        Raises:
            ValueError: there is none yet, or there can be none.
        """
        closed = self._cache.prepare(arguments)
        if closed is None:
            raise ValueError(f"{self._name} has no one graph for these arguments: it cannot be "
                             f"traced, or needs the lengths that are open; give full shapes")
        return closed

    def inspect(self, *args: object, **kwargs: object) -> Inspection:
        """What a call with these arguments runs; printing it shows the nodes, the plan, the source
        and the bytes.

        Raises:
            ValueError: the function cannot be traced for them, or a length of a spec is open.
        """
        arguments = Arguments(*self._binding(args, kwargs))
        if any(dims is None or None in dims for dims in arguments.shapes):
            raise ValueError(f"{self._name} has a program for every length: inspect it with full "
                             f"shapes; got {', '.join(map(str, arguments.tensors))}")
        executable = self._cache.find(arguments)
        if executable is None:
            raise ValueError(f"{self._name} runs eagerly for these arguments: it cannot be traced")
        return Inspection(executable.traced.graph, executable.compile().inspect())

    def __repr__(self) -> str:
        return f"<tf.function {self._name}>"


class Inspection:
    """The graph that a call applies, and what its program says of itself: print it."""

    def __init__(self, graph: Graph, text: str) -> None:
        self.graph = graph
        self._text = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


class Method:
    """A traced method and its object."""

    __slots__ = ("__func__", "__self__", "__weakref__")

    def __init__(self, function: Function, instance: object) -> None:
        self.__func__ = function
        self.__self__ = instance

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        return self.__func__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        # Protocols that look for special names (copying, NumPy's) must not find the function's.
        if name.startswith("__") and name not in ("__name__", "__qualname__"):
            raise AttributeError(f"a traced method has no attribute '{name}'")
        return getattr(self.__func__, name)

    def __reduce__(self) -> Any:
        # Pickled by name: the copy of the object makes the method anew.
        return getattr, (self.__self__, self.__func__.name)

    @property
    def python_function(self) -> Callable[..., Any]:
        """The Python function, bound to the object."""
        return functools.partial(self.__func__.python_function, self.__self__)

    __wrapped__ = python_function

    def __repr__(self) -> str:
        return f"<tf.function {self.__func__.name} of {shown(self.__self__)}>"


def function(func: Callable[..., Any] | None = None, input_signature: TensorLike | None = None,
             autograph: bool = True, jit_compile: bool | None = None,
             reduce_retracing: bool = False, experimental_implements: object = None,
             experimental_autograph_options: object = None, experimental_attributes: object = None,
             experimental_relax_shapes: bool | None = None, experimental_compile: object = None,
             experimental_follow_type_hints: object = None) -> Any:
    """Decorator: trace a Python function once for each kind of arguments, then run the trace.

    The Python code runs while tracing only. A call with tensors of other shapes or dtypes, with
    other Python values or other objects, is traced anew; `f.explain_cache()` lists the traces and
    what each was made for. Variables are read at every call; a tensor from outside is the one that
    its name stood for while tracing.

    Args:
        func: the function; without it a decorator is returned.
        input_signature: a list of `tf.TensorSpec`s, or nests of them, one for each parameter but
            a method's `self`: arguments are converted and checked, and lengths of None share one
            trace.
        autograph: turn `if`, `while` and `for` on tensors into conditionals and loops.
        jit_compile: accepted and without effect; every trace is compiled.
        reduce_retracing: let lengths that change from call to call share one trace.

    The other parameters are accepted and without effect, but for experimental_relax_shapes, an
    older name of reduce_retracing.
    """
    def decorate(python_function: Callable[..., object]) -> Any:
        if isinstance(python_function, (staticmethod, classmethod)):
            return type(python_function)(decorate(python_function.__func__))
        return Function(python_function, input_signature, bool(autograph),
                        bool(reduce_retracing or experimental_relax_shapes))

    return decorate if func is None else decorate(func)


subgraph_programs.install()
