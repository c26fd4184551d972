"""gtape.strings: functions of string tensors, which are bytes. They run on the host."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.ops.text.hashes": "to_hash_bucket to_hash_bucket_fast to_hash_bucket_strong",
    "gtape.ops.text.numerals": "as_string format to_number",
    "gtape.ops.text.patterns": "regex_full_match regex_replace",
    "gtape.ops.text.pieces": """
        join length lower reduce_join strip substr unsorted_segment_join upper""",
    "gtape.ops.text.splitting": """
        bytes_split ngrams split unicode_decode unicode_decode_with_offsets unicode_encode
        unicode_split unicode_split_with_offsets unicode_transcode""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
