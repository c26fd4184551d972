"""Names of gtape.train; written by `python -m gtape._stub`."""

from gtape.files.messages import BytesList as BytesList
from gtape.files.messages import Example as Example
from gtape.files.messages import Feature as Feature
from gtape.files.messages import FeatureList as FeatureList
from gtape.files.messages import FeatureLists as FeatureLists
from gtape.files.messages import Features as Features
from gtape.files.messages import FloatList as FloatList
from gtape.files.messages import Int64List as Int64List
from gtape.files.messages import SequenceExample as SequenceExample
from gtape.train import experimental as experimental
from gtape.train.checkpoint import Checkpoint as Checkpoint
from gtape.train.manager import CheckpointManager as CheckpointManager
from gtape.train.manager import latest_checkpoint as latest_checkpoint
from gtape.train.python_states import RandomStreams as RandomStreams
from gtape.train.restoring import RestoreStatus as RestoreStatus
