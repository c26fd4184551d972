"""gtape.io: files, records, and what stands in them, as tensors."""

from __future__ import annotations

from gtape._names import lacking as _lacking
from gtape.files.csv_lines import decode_csv
from gtape.files.example_parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from gtape.files.images import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from gtape.files.raw import decode_base64, decode_compressed, decode_raw, encode_base64
from gtape.files.records import TFRecordOptions, TFRecordWriter
from gtape.files.tensor_protos import parse_tensor, serialize_tensor
from gtape.files.whole import matching_files, read_file, write_file
from gtape.io import gfile

__all__ = [
    "FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "SparseFeature",
    "TFRecordOptions", "TFRecordWriter", "VarLenFeature", "decode_and_crop_jpeg", "decode_base64",
    "decode_bmp", "decode_compressed", "decode_csv", "decode_gif", "decode_image", "decode_jpeg",
    "decode_png", "decode_raw", "encode_base64", "encode_jpeg", "encode_png", "extract_jpeg_shape",
    "gfile", "is_jpeg", "matching_files", "parse_example", "parse_sequence_example",
    "parse_single_example", "parse_single_sequence_example", "parse_tensor", "read_file",
    "serialize_tensor", "write_file",
]

__getattr__ = _lacking("gtape.io", __all__)
