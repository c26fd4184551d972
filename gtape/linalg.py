"""gtape.linalg: linear algebra."""
from gtape.ops.contraction import *  # noqa
from gtape.ops.norms import *  # noqa
from gtape.ops.solving import *  # noqa
from gtape.ops.eigen import *  # noqa
from gtape.ops.determinants import *  # noqa
from gtape.ops.diagonals import *  # noqa
from gtape.ops.products import *  # noqa
