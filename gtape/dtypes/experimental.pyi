"""Names of gtape.dtypes.experimental; written by `python -m gtape._stub`."""

from gtape.core.dtypes import float8_e4m3fn as float8_e4m3fn
from gtape.core.dtypes import float8_e5m2 as float8_e5m2
