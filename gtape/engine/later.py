"""What Keras imports at its start and few programs use: scikit-learn (with SciPy) and pandas."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

#: Keras' modules that are run when something in them is first asked for.
MODULES = frozenset({"keras.wrappers", "keras._tf_keras.keras.wrappers"})
#: The one that imports pandas, to ask whether something is an instance of its classes.
ASKS_FOR_PANDAS = "keras.src.trainers.data_adapters.array_slicing"


class _OfPandas(type):
    """A class of pandas by its name: nothing is an instance of it before pandas is imported."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, getattr(sys.modules.get("pandas"), cls.__name__, ()))


PANDAS = SimpleNamespace(**{name: _OfPandas(name, (), {}) for name in ("DataFrame", "Series")})
