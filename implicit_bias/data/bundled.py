"""Tables that scikit-learn bundles, without a download."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import numpy as np

from .table import Table

TABLES: Mapping[str, str] = MappingProxyType(
    {"iris": "load_iris", "wine": "load_wine", "breast-cancer": "load_breast_cancer"}
)
# The class that is +1 by default, of three.
DEFAULT_POSITIVE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"iris": ("setosa",), "wine": ("class_0",)}
)


@cache  # scikit-learn reads text
def bundled_table(name: str) -> Table:
    """Return one of `TABLES`, with labels numbered as scikit-learn does."""
    from sklearn import datasets

    bunch = getattr(datasets, TABLES[name])()
    return Table(
        name,
        np.asarray(bunch.data, dtype=np.float64),
        np.asarray(bunch.target, dtype=np.int64),
        dict(enumerate(map(str, bunch.target_names))),
        tuple(map(str, bunch.feature_names)),
        f"scikit-learn's bundled {name}",
    )
