"""Names of gtape.io.gfile; written by `python -m gtape._stub`."""

from gtape.files.gfile import GFile as GFile
from gtape.files.gfile import copy as copy
from gtape.files.gfile import exists as exists
from gtape.files.gfile import get_registered_schemes as get_registered_schemes
from gtape.files.gfile import glob as glob
from gtape.files.gfile import isdir as isdir
from gtape.files.gfile import join as join
from gtape.files.gfile import listdir as listdir
from gtape.files.gfile import makedirs as makedirs
from gtape.files.gfile import mkdir as mkdir
from gtape.files.gfile import remove as remove
from gtape.files.gfile import rename as rename
from gtape.files.gfile import rmtree as rmtree
from gtape.files.gfile import stat as stat
from gtape.files.gfile import walk as walk
