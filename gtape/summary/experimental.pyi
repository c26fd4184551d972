"""Names of gtape.summary.experimental; written by `python -m gtape._stub`."""

from gtape.summary.recording import get_step as get_step
from gtape.summary.recording import set_step as set_step
from gtape.summary.recording import summary_scope as summary_scope
from gtape.summary.recording import write_raw_pb as write_raw_pb
