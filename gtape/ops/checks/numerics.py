"""Checks that numbers are finite: of one tensor, or after every op."""

from __future__ import annotations

import logging

from gtape.core.annotations import TensorLike
from gtape.core.context import Recorder, active, here, push, remove, resolve
from gtape.core.convert import convert
from gtape.core.device import Array, ArrayModule
from gtape.core.errors import InvalidArgumentError
from gtape.core.op import Op, case
from gtape.core.tensor import EagerTensor, Tensor
from gtape.opdef.primitive import primitive
from gtape.ops.arguments import taken


def _faults(xp: ArrayModule, array: Array) -> str:
    """What is wrong with an array: 'NaN', 'Inf', both, or nothing."""
    # One pass where all is well; which fault it is takes two more.
    if bool(xp.isfinite(array).all()):
        return ""
    kinds = [name for name, test in (("Inf", xp.isinf), ("NaN", xp.isnan))
             if bool(test(array).any())]
    return " and ".join(kinds)


@primitive(linear="x", tf_name="CheckNumerics")
def check_numerics_(xp: ArrayModule, x: Array, *, message: str) -> Array:
    """y = x, where every element is finite."""
    faults = _faults(xp, x)
    if faults:
        # TensorFlow's words, which programs look for.
        raise InvalidArgumentError(f"{message} : Tensor had {faults} values "
                                   f"(shape {list(x.shape)}, {x.dtype})")
    return x


check_numerics_.infer(lambda x, **_: taken("check_numerics", "floating tensors", x))
check_numerics_.vjp(x=lambda g, *, message:
                    check_numerics_(g, message=f"not finite in the gradient. {message}"))
#: A traced function checks even if nobody needs the result.
check_numerics_.has_side_effect = True
check_numerics_.cases = [case((2, 3), message="x")]


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """`tensor`, where every element is finite; its gradient is checked too.

    Raises:
        InvalidArgumentError: there is a nan or an infinity, now or in the gradient.
    """
    return check_numerics_(convert(tensor), message=str(message))


def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """`check_numerics`."""
    return check_numerics(x, message)


class _FiniteCheck(Recorder):
    def observe(self, op: Op, inputs: tuple[object, ...], outputs: tuple[Tensor, ...],
                context: object) -> None:
        for tensor in outputs:
            # A trace has no numbers yet; integers are always finite.
            if not isinstance(tensor, EagerTensor) or not tensor._t.differentiable:
                continue
            with tensor._t.device.scope():  # CuPy computes on the current GPU
                faults = _faults(tensor._t.xp, tensor._a)
            if faults:
                described = ", ".join(str(x.spec) if isinstance(x, Tensor) else repr(x)
                                      for x in inputs)
                raise InvalidArgumentError(
                    f"check_numerics: {op.name}({described}) made {faults} values in its result "
                    f"{tensor.spec} at {resolve(*here())}")


class _PlacementLog(Recorder):
    def observe(self, op: Op, inputs: tuple[object, ...], outputs: tuple[Tensor, ...],
                context: object) -> None:
        for tensor in outputs[:1]:  # one line for an op, however many results it has
            # A warning: below that level logging shows nothing unless it is set up.
            logging.getLogger("gtape").warning("%s runs on %s", op.name, tensor.device)


_finite_check = _FiniteCheck()  # one for all threads: each finds it on its stack by identity
_placement_log = _PlacementLog()


def _is_on(recorder: Recorder) -> bool:
    return any(each is recorder for each in active())


def _turn(recorder: Recorder, on: bool) -> None:
    if on and not _is_on(recorder):  # turned on twice, it must not check twice
        push(recorder)
    elif not on:
        remove(recorder)


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """From now on every op of this thread, backward passes included, checks that its results are
    finite: the first nan or infinity raises InvalidArgumentError that names the op and the line.

    Slow: every result is read once more. `disable_check_numerics` ends it.
    """
    _turn(_finite_check, True)


def disable_check_numerics() -> None:
    """End what `enable_check_numerics` began."""
    _turn(_finite_check, False)


def set_log_device_placement(enabled: bool) -> None:
    """Whether the logger 'gtape' notes for every op of this thread where it runs."""
    _turn(_placement_log, bool(enabled))


def get_log_device_placement() -> bool:
    """Whether `set_log_device_placement(True)` is in effect in this thread."""
    return _is_on(_placement_log)


def is_traceback_filtering_enabled() -> bool:
    """False: tracebacks always show every frame."""
    return False


def enable_traceback_filtering() -> None:
    """Nothing: tracebacks always show every frame."""


def disable_traceback_filtering() -> None:
    """Nothing: tracebacks always show every frame."""
