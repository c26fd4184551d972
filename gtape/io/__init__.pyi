"""Names of gtape.io; written by `python -m gtape._stub`."""

from gtape.files.csv_lines import decode_csv as decode_csv
from gtape.files.example_parsing import FixedLenFeature as FixedLenFeature
from gtape.files.example_parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from gtape.files.example_parsing import RaggedFeature as RaggedFeature
from gtape.files.example_parsing import SparseFeature as SparseFeature
from gtape.files.example_parsing import VarLenFeature as VarLenFeature
from gtape.files.example_parsing import parse_example as parse_example
from gtape.files.example_parsing import parse_sequence_example as parse_sequence_example
from gtape.files.example_parsing import parse_single_example as parse_single_example
from gtape.files.example_parsing import (
    parse_single_sequence_example as parse_single_sequence_example,
)
from gtape.files.gfile import matching_files as matching_files
from gtape.files.gfile import read_file as read_file
from gtape.files.gfile import write_file as write_file
from gtape.files.images import decode_and_crop_jpeg as decode_and_crop_jpeg
from gtape.files.images import decode_bmp as decode_bmp
from gtape.files.images import decode_gif as decode_gif
from gtape.files.images import decode_image as decode_image
from gtape.files.images import decode_jpeg as decode_jpeg
from gtape.files.images import decode_png as decode_png
from gtape.files.images import encode_jpeg as encode_jpeg
from gtape.files.images import encode_png as encode_png
from gtape.files.images import extract_jpeg_shape as extract_jpeg_shape
from gtape.files.images import is_jpeg as is_jpeg
from gtape.files.records import TFRecordOptions as TFRecordOptions
from gtape.files.records import TFRecordWriter as TFRecordWriter
from gtape.files.serialized import decode_base64 as decode_base64
from gtape.files.serialized import decode_compressed as decode_compressed
from gtape.files.serialized import decode_raw as decode_raw
from gtape.files.serialized import encode_base64 as encode_base64
from gtape.files.serialized import parse_tensor as parse_tensor
from gtape.files.serialized import serialize_tensor as serialize_tensor
from gtape.io import gfile as gfile
