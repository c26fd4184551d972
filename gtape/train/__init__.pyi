"""Names of gtape.train; written by `python -m gtape._stub`."""

from gtape.files.examples import BytesList as BytesList
from gtape.files.examples import Example as Example
from gtape.files.examples import Feature as Feature
from gtape.files.examples import FeatureList as FeatureList
from gtape.files.examples import FeatureLists as FeatureLists
from gtape.files.examples import Features as Features
from gtape.files.examples import FloatList as FloatList
from gtape.files.examples import Int64List as Int64List
from gtape.files.examples import SequenceExample as SequenceExample
from gtape.train import experimental as experimental
from gtape.train.checkpoint import Checkpoint as Checkpoint
from gtape.train.manager import CheckpointManager as CheckpointManager
from gtape.train.manager import latest_checkpoint as latest_checkpoint
from gtape.train.python_states import RandomStreams as RandomStreams
from gtape.train.restoring import RestoreStatus as RestoreStatus
