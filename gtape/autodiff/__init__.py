"""gtape.autodiff: reverse and forward differentiation."""

from gtape._lazy import attach as _attach

# At their first use: every op imports `autodiff.backward`, and most programs no forward mode.
_TABLE = {"gtape.autodiff.forward_mode": "ForwardAccumulator",
          "gtape.autodiff.tape": "GradientTape"}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
