"""tf.function: calls of a Python function run the graph that it was traced to."""

from __future__ import annotations

import copy
import functools
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from gtape.compile import diary
from gtape.compile.binding import Binding
from gtape.compile.concrete import ConcreteFunction, tensor_names
from gtape.compile.executable import Executable, Inspection
from gtape.compile.identity import Identity, identity
from gtape.compile.locking import alone
from gtape.compile.signature import PLAIN, Arguments, specs_of
from gtape.compile.traced import Traced
from gtape.compile.traces import Trace, traced_once
from gtape.core.errors import EagerFunctionWarning, NotTraceableError, RetraceWarning
from gtape.core.lengths import Length, comparable
from gtape.core.placement import _scoped
from gtape.core.sites import here
from gtape.core.spec import Spec
from gtape.core.specs import TensorSpec
from gtape.core.state import active, tracer_now
from gtape.core.tape_recording import stack_level
from gtape.core.tensor import EagerTensor
from gtape.core.tracer import Tracer

_scope = _scoped.get

_LATE = ("a Variable may be created only in the first call of a tf.function, and this is a later "
         "one, or the function creates one in every call. Create it outside, or keep it: "
         "`if self.v is None: self.v = tf.Variable(...)`")


class Mode:
    """Whether functions are traced at all: `tf.config.run_functions_eagerly`."""

    eager = False


class Function:
    """What `tf.function` makes of a Python function: see there."""

    def __init__(self, python_function: Callable[..., Any], input_signature: Any = None,
                 autograph: bool = True, reduce_retracing: bool = False, *,
                 owner: Identity | None = None) -> None:
        if not callable(python_function):
            raise TypeError(f"tf.function takes a function; got {python_function!r:.80}")
        self.python_function = python_function
        self.input_signature = input_signature if input_signature is None else tuple(
            input_signature)
        self._autograph = autograph
        self._reduce_retracing = reduce_retracing
        #: Gives the object, where this is the method of one.
        self._object: Callable[[], Any] = (lambda: None) if owner is None else owner.reference
        self._owner = owner
        functools.update_wrapper(self, python_function)
        self.__name__ = self._name = str(getattr(
            python_function, "__name__", type(python_function).__name__))
        self._binding = Binding(python_function, self._name, input_signature, owner is not None)
        self._body: Callable[..., Any] | None = None
        self._lock = threading.RLock()
        self._traces: list[Trace] = []
        #: By key; None: these arguments cannot be traced, and the Python function runs.
        self._executables: dict[Any, Executable | None] = {}
        #: The same by what the fast way of a call looks at.
        self._fast: dict[Any, Executable] = {}
        #: By the id of the object.
        self._methods: dict[int, Function] = {}
        self._dead: list[Identity] = []
        self._watch = diary.Watch()
        self._called_before = False

    # ------------------------------------------------------------------ calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key = None
        if not (active() or tracer_now() or Mode.eager):
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
                    return self._called(args, kwargs)
            for item in kwargs.items():
                if type(item[1]) not in PLAIN:
                    return self._called(args, kwargs)
                add(type(item[1]))
                add(item)
            key = tuple(parts)
            found = self._fast.get(key)
            if found is not None:
                found.calls += 1
                if found.tensors_only:
                    return found.entry(*args)
                return found.entry(*[v for v in args if type(v) is EagerTensor])
        return self._called(args, kwargs, key)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any], fast: Any = None) -> Any:
        if Mode.eager:
            return self._python()(*args, **kwargs)
        arguments = Arguments(*self._binding(args, kwargs))
        found = self._found(arguments)
        if found is None:
            return self._python()(*arguments.args, **arguments.kwargs)
        found.calls += 1
        if tracer_now() is not None or active():
            return found.traced.apply(arguments.tensors)
        made = found.result(arguments.tensors)
        if fast is not None and found.lasts():
            found.tensors_only = all(type(v) is EagerTensor for v in args)
            self._fast[fast] = found
        return made

    def _python(self) -> Callable[..., Any]:
        """The Python function as it was given; a method with its object."""
        if self._owner is None:
            return self.python_function
        return functools.partial(self.python_function, self._object())

    # ------------------------------------------------------------------ traces

    def _found(self, arguments: Arguments) -> Executable | None:
        """What to run for these arguments, traced if need be; None: the Python function."""
        key = arguments.key
        missing: Any = self
        tracer = tracer_now()
        if tracer is not None:
            if any(type(n) is Length for dims in arguments.shapes for n in dims):
                return self._inlined(arguments)
            if (self, key) in tracer.inlined:
                return tracer.inlined[self, key]
        found = self._executables.get(key, missing)
        if found is None or (found is not missing and found.fits()):
            return found
        with alone(self._lock):
            found = self._executables.get(key, missing)
            if found is None or (found is not missing and found.fits()):
                return found
            return self._made(arguments, tracer)

    def _made(self, arguments: Arguments, tracer: Any) -> Executable | None:
        """Trace for these arguments, and remember it."""
        self._purge()
        trace = self._trace(arguments)
        try:
            made = trace.executable(arguments.shapes,
                                    lambda shapes: self._traced(arguments, shapes))
        except NotTraceableError as error:
            if tracer is not None:
                raise
            warnings.warn(f"{self._name} runs eagerly: {error}", EagerFunctionWarning,
                          stacklevel=stack_level())
            self._executables[arguments.key] = None
            return None
        self._add(trace)
        if tracer is not None and made.traced.captured:
            tracer.inlined[self, arguments.key] = made
        else:
            self._executables[arguments.key] = made
            for part in arguments.pattern:
                if isinstance(part, Identity):
                    part.watchers.add(self)
        return made

    def _inlined(self, arguments: Arguments) -> Executable:
        """The executable for open lengths of the trace around the call: of use only there."""
        inlined = tracer_now().inlined
        key = (self, arguments.pattern, tuple(map(comparable, arguments.shapes)))
        if key not in inlined:
            inlined[key] = Executable(self._traced(arguments, arguments.shapes))
        return inlined[key]

    def _trace(self, arguments: Arguments) -> Trace:
        """The trace that serves these arguments: one that there is, or a new one."""
        for trace in self._traces:
            if trace.accepts(arguments):
                return trace
        names = self._binding.names(len(arguments.args))
        specs = [TensorSpec(dims, t.dtype) for dims, t in zip(arguments.shapes, arguments.tensors)]
        if self.input_signature is not None:
            specs = specs_of(self.input_signature)
        elif self._reduce_retracing:
            specs = self._widened(arguments.pattern, specs)
        entry = diary.Entry(len(self._traces) + 1, diary.noted(names, arguments), *here())
        entry.compare([t.entry for t in self._traces])
        return Trace(arguments.pattern, specs, entry)

    def _widened(self, pattern: Any, specs: list[TensorSpec]) -> list[TensorSpec]:
        """The specs joined with those of every trace of the same pattern."""
        for trace in self._traces:
            if trace.pattern == pattern:
                joined = [s.most_specific_common_supertype([t])
                          for s, t in zip(specs, trace.specs)]
                specs = [s for s in joined if s is not None]
        return specs

    def _add(self, trace: Trace) -> None:
        """Keep a trace; warn where it is one of many new ones."""
        if trace in self._traces:
            return
        self._traces.append(trace)
        if len(self._traces) > 1 and self._watch.often(sum(t.calls for t in self._traces)):
            warnings.warn(diary.warning(self._name, trace.entry), RetraceWarning,
                          stacklevel=stack_level())

    def _traced(self, arguments: Arguments, shapes: Sequence[Any]) -> Traced:
        """Run the Python function on symbols. After a first time that creates Variables, again."""
        made = self._traced_once(arguments, shapes)
        if made.created and not self._called_before:
            made = self._traced_once(arguments, shapes, _LATE)
        self._called_before = True
        return made

    def _traced_once(self, arguments: Arguments, shapes: Sequence[Any],
                     no_creation: str | None = None) -> Traced:
        outer = tracer_now()
        tracer = Tracer(outer, own_cells=True)
        tracer.origin = (self, arguments.pattern, tuple(map(comparable, shapes)))
        while outer is not None:
            if outer.origin == tracer.origin:
                raise RecursionError(
                    f"{self._name} calls itself with arguments of the same shapes and dtypes, so "
                    f"tracing it would never end. Use tf.while_loop, or let a Python number say "
                    f"when to stop")
            outer = outer.outer
        tracer.no_creation = _LATE if self._called_before else no_creation
        symbols = [tracer.symbol(Spec(tuple(dims), t.dtype), getattr(t, "_t", None))
                   for dims, t in zip(shapes, arguments.tensors)]
        return traced_once(self._converted(), arguments, symbols, tracer, self._name)

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

    # ------------------------------------------------------------------ forgetting

    def forget(self, gone: Identity) -> None:
        """An object is no more: no call can mean it again."""
        self._dead.append(gone)

    def _purge(self) -> None:
        while self._dead:
            gone = self._dead.pop()
            for key in [k for k, f in list(self._methods.items()) if f._owner is gone]:
                self._methods.pop(key, None)
            for key in [k for k in list(self._executables) if gone in k[0]]:
                self._executables.pop(key, None)
            self._traces = [t for t in self._traces if gone not in t.pattern]

    # ------------------------------------------------------------------ methods

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        found = self._methods.get(id(instance))
        if found is None or found._object() is not instance:
            found = self._method(identity(instance))
        return Method(found, instance)

    def _method(self, key: Identity) -> Function:
        """The function for one object: traces of others are of no use to it."""
        with alone(self._lock):
            self._purge()
            found = self._methods.get(id(key.target))
            if found is None or found._owner is not key:
                found = Function(self.python_function, self.input_signature, self._autograph,
                                 self._reduce_retracing, owner=key)
                self._methods[id(key.target)] = found
                key.watchers.add(self)
            return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        return Function(copy.deepcopy(self.python_function, memo), self.input_signature,
                        self._autograph, self._reduce_retracing)

    # ------------------------------------------------------------------ questions

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return self._name

    def experimental_get_tracing_count(self) -> int:
        """How many traces there are."""
        return len(self._traces)

    def explain_cache(self) -> diary.Diary:
        """The traces: what each was made for, what had changed, where, and how to avoid it."""
        for trace in self._traces:
            trace.entry.calls = trace.calls
        return diary.Diary(self._name, [t.entry for t in self._traces])

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
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
        made = ConcreteFunction(self, arguments, specs, list(tensor_names(names, arguments)))
        self._prepared(arguments)
        return made

    def _prepared(self, arguments: Arguments) -> Traced | None:
        """The trace for arguments that may be specs, made before any call."""
        if all(dims is not None and None not in dims for dims in arguments.shapes):
            found = self._found(arguments)
            return None if found is None else found.traced
        with alone(self._lock):
            trace = self._trace(arguments)
            made = trace.general(lambda shapes: self._traced(arguments, shapes))
            self._add(trace)
            return made

    def traced_for(self, arguments: Arguments) -> Traced:
        """The trace for arguments that may be specs.

        Raises:
            ValueError: there is none yet, or there can be none.
        """
        found = self._prepared(arguments)
        if found is None:
            raise ValueError(f"{self._name} has no one graph for these arguments: it cannot be "
                             f"traced, or needs the lengths that are open; give full shapes")
        return found

    def inspect(self, *args: Any, **kwargs: Any) -> Inspection:
        """What a call with these arguments runs; printing it shows the graph and the program.

        Raises:
            ValueError: the function cannot be traced for them.
        """
        found = self._found(Arguments(*self._binding(args, kwargs)))
        if found is None:
            raise ValueError(f"{self._name} runs eagerly for these arguments")
        return found.inspect()

    def __repr__(self) -> str:
        return f"<tf.function {self._name}>"


class Method:
    """A traced method and its object."""

    __slots__ = ("__func__", "__self__", "__weakref__")

    def __init__(self, function: Function, instance: Any) -> None:
        self.__func__ = function
        self.__self__ = instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__func__, name)

    @property
    def python_function(self) -> Callable[..., Any]:
        """The Python function, bound to the object."""
        return functools.partial(self.__func__.python_function, self.__self__)

    def __repr__(self) -> str:
        return f"<tf.function {self.__func__.name} of {self.__self__!r:.60}>"


def function(func: Callable[..., Any] | None = None, input_signature: Any = None,
             autograph: bool = True, jit_compile: Any = None, reduce_retracing: bool = False,
             experimental_implements: Any = None, experimental_autograph_options: Any = None,
             experimental_attributes: Any = None, experimental_relax_shapes: bool | None = None,
             experimental_compile: Any = None, experimental_follow_type_hints: Any = None) -> Any:
    """Decorator: trace a Python function once for each kind of arguments, then run the trace.

    The Python code runs while tracing only. A call with tensors of other shapes or dtypes, with
    other Python values or other objects, is traced anew; Variables and tensors from outside are
    read at every call. `f.explain_cache()` lists the traces and what each was made for.

    Args:
        func: the function; without it a decorator is returned.
        input_signature: a list of `tf.TensorSpec`s, or nests of them, one for each parameter:
            arguments are converted and checked, and lengths of None share one trace.
        autograph: turn `if`, `while` and `for` on tensors into conditionals and loops.
        jit_compile: accepted and without effect; every trace is compiled.
        reduce_retracing: let lengths that change from call to call share one trace.

    The other parameters are accepted and without effect, but for experimental_relax_shapes, an
    older name of reduce_retracing.
    """
    def made(python_function: Callable[..., Any]) -> Function:
        return Function(python_function, input_signature, bool(autograph),
                        bool(reduce_retracing or experimental_relax_shapes))

    return made if func is None else made(func)
