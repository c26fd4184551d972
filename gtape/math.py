"""gtape.math: mathematical functions."""
from gtape.ops.scalars import *  # noqa
from gtape.ops.scalars import real_part as real, imag_part as imag, conj
