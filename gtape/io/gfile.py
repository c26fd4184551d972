"""gtape.io.gfile: the files and folders of this machine, with TensorFlow's names and errors."""

from gtape._lazy import attach as _attach

_TABLE = {
    "gtape.files.gfile": """
        GFile copy exists get_registered_schemes glob isdir join listdir makedirs mkdir remove
        rename rmtree stat walk""",
}

__getattr__, __dir__, __all__ = _attach(__name__, _TABLE)
