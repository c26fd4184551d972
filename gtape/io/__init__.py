"""gtape.io: files, records, and what stands in them, as tensors."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.files.csv_lines": "decode_csv",
    "gtape.files.example_parsing": """
        FixedLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature VarLenFeature
        parse_example parse_sequence_example parse_single_example parse_single_sequence_example""",
    "gtape.files.gfile": "matching_files read_file write_file",
    "gtape.files.images": """
        decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png
        encode_jpeg encode_png extract_jpeg_shape is_jpeg""",
    "gtape.files.records": "TFRecordOptions TFRecordWriter",
    "gtape.files.serialized": """
        decode_base64 decode_compressed decode_raw encode_base64 parse_tensor serialize_tensor""",
    "gtape.io": "gfile",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
