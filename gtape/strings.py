"""gtape.strings: functions of string tensors, which are bytes. They run on the host."""

from __future__ import annotations

from typing import Any

from gtape.ops.text.bucketing import (
    to_hash_bucket,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
)
from gtape.ops.text.numerals import as_string, format, to_number
from gtape.ops.text.patterns import regex_full_match, regex_replace
from gtape.ops.text.pieces import (
    join,
    length,
    lower,
    reduce_join,
    strip,
    substr,
    unsorted_segment_join,
    upper,
)
from gtape.ops.text.splitting import (
    bytes_split,
    ngrams,
    split,
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_split,
    unicode_split_with_offsets,
)
from gtape.ops.text.unicode import unicode_encode, unicode_transcode

__all__ = [
    "as_string", "bytes_split", "format", "join", "length", "lower", "ngrams", "reduce_join",
    "regex_full_match", "regex_replace", "split", "strip", "substr", "to_hash_bucket",
    "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number", "unicode_decode",
    "unicode_decode_with_offsets", "unicode_encode", "unicode_split",
    "unicode_split_with_offsets", "unicode_transcode", "unsorted_segment_join", "upper"]


def __getattr__(name: str) -> Any:
    from gtape._names import missing

    raise AttributeError(missing("gtape.strings", name, __all__))
