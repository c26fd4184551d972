"""Names of gtape.strings; written by `python -m gtape._stub`."""

from gtape.ops.text.hashes import to_hash_bucket as to_hash_bucket
from gtape.ops.text.hashes import to_hash_bucket_fast as to_hash_bucket_fast
from gtape.ops.text.hashes import to_hash_bucket_strong as to_hash_bucket_strong
from gtape.ops.text.numerals import as_string as as_string
from gtape.ops.text.numerals import format as format
from gtape.ops.text.numerals import to_number as to_number
from gtape.ops.text.patterns import regex_full_match as regex_full_match
from gtape.ops.text.patterns import regex_replace as regex_replace
from gtape.ops.text.pieces import join as join
from gtape.ops.text.pieces import length as length
from gtape.ops.text.pieces import lower as lower
from gtape.ops.text.pieces import reduce_join as reduce_join
from gtape.ops.text.pieces import strip as strip
from gtape.ops.text.pieces import substr as substr
from gtape.ops.text.pieces import unsorted_segment_join as unsorted_segment_join
from gtape.ops.text.pieces import upper as upper
from gtape.ops.text.splitting import bytes_split as bytes_split
from gtape.ops.text.splitting import ngrams as ngrams
from gtape.ops.text.splitting import split as split
from gtape.ops.text.splitting import unicode_decode as unicode_decode
from gtape.ops.text.splitting import unicode_decode_with_offsets as unicode_decode_with_offsets
from gtape.ops.text.splitting import unicode_encode as unicode_encode
from gtape.ops.text.splitting import unicode_split as unicode_split
from gtape.ops.text.splitting import unicode_split_with_offsets as unicode_split_with_offsets
from gtape.ops.text.splitting import unicode_transcode as unicode_transcode
