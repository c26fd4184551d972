"""Names of gtape.summary; written by `python -m gtape._stub`."""

from gtape.summary import experimental as experimental
from gtape.summary.recording import record_if as record_if
from gtape.summary.recording import should_record_summaries as should_record_summaries
from gtape.summary.recording import write as write
from gtape.summary.values import audio as audio
from gtape.summary.values import graph as graph
from gtape.summary.values import histogram as histogram
from gtape.summary.values import image as image
from gtape.summary.values import scalar as scalar
from gtape.summary.values import text as text
from gtape.summary.values import trace_export as trace_export
from gtape.summary.values import trace_off as trace_off
from gtape.summary.values import trace_on as trace_on
from gtape.summary.writers import SummaryWriter as SummaryWriter
from gtape.summary.writers import create_file_writer as create_file_writer
from gtape.summary.writers import create_noop_writer as create_noop_writer
from gtape.summary.writers import flush as flush
