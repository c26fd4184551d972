"""Fetching: what a traced function does with iterators and datasets that are not its arguments."""

from __future__ import annotations

from typing import Any

from gtape.core import nest
from gtape.core.context import tracer_now
from gtape.core.errors import NotTraceableError
from gtape.core.placement import current_device
from gtape.core.spec import Spec
from gtape.core.type_specs import TensorSpec
from gtape.data.arranging import packer
from gtape.trace.host_callback import HostCallback


def refuse(what: str) -> None:
    """A pass over a dataset in a trace would be made once, while tracing, not at every call.

    Raises:
        NotTraceableError: a function is being traced.
    """
    if tracer_now() is not None:
        raise NotTraceableError(f"{what} is run at every call, as Python code. To have the work on "
                                f"each element compiled, put that in a tf.function of its own, or "
                                f"pass iter(dataset) as an argument and use get_next")


def fetched(iterator: Any) -> Any:
    """The next element of an iterator, at every call of the function that is being traced.

    Raises:
        NotTraceableError: the lengths of the elements are not known.
    """
    spec = iterator.element_spec
    leaves = nest.flatten(spec)
    if not all(isinstance(leaf, TensorSpec) and leaf.shape.is_fully_defined() for leaf in leaves):
        raise NotTraceableError(f"get_next of an iterator whose elements are {spec}: their lengths "
                                f"are known only when they come; pass the iterator as an argument "
                                f"of the traced function")
    types = [current_device().typed(leaf.dtype) for leaf in leaves]
    step = HostCallback("get_next", lambda: nest.flatten(iterator.get_next()),
                        [Spec(leaf.shape.dims, leaf.dtype) for leaf in leaves], types,
                        has_side_effect=True, differentiable=False)
    return packer(spec)(step())
