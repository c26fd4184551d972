"""Names of gtape.autodiff; written by `python -m gtape._stub`."""

from gtape.autodiff.forward_mode import ForwardAccumulator as ForwardAccumulator
from gtape.autodiff.tape import GradientTape as GradientTape
