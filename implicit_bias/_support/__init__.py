"""What every room stands on and no reader asks for: doors, names, files, lazy imports."""

import copyreg
from types import MappingProxyType
from typing import Any

# A build reads it without importing anything.
__version__ = "0.2.0"


def read_only(entries: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """Return a mapping that nobody can write to; pickles name this function."""
    return MappingProxyType(entries)


# Results hold read-only mappings, which Python neither pickles nor copies by itself.
copyreg.pickle(MappingProxyType, lambda mapping: (read_only, (dict(mapping),)))
