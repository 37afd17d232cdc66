"""What a plain installation leaves out, and the command that brings it.

The prediction side needs NumPy, SciPy, scikit-learn, safetensors and array-api-compat. All else is
imported where it is used, and a module that is not there is told in one message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import MappingProxyType

__all__ = ["EXTRAS", "MissingExtra", "naming_extras", "require"]

# By the module that is imported, the extra of pyproject.toml that a user is told to install.
EXTRAS = MappingProxyType(
    {
        "click": "cli",
        "cvxpy": "cvxpy",
        "distributed": "dask",
        "filelock": "cli",
        "jinja2": "cli",
        "matplotlib": "plot",
        "pandas": "sweep",
        "pyarrow": "sweep",
        "rich": "cli",
        "submitit": "slurm",
        "torch": "train",
    }
)


class MissingExtra(ImportError):
    """Something asked for needs packages that are not installed; the message names the command.

    Parameters
    ----------
    *modules : str
        Keys of `EXTRAS`.
    """

    def __init__(self, *modules: str) -> None:
        extras = sorted({EXTRAS[module] for module in modules})
        *some, last = modules
        named = f"{', '.join(some)} and {last}, which are" if some else f"{last}, which is"
        super().__init__(
            f"this needs {named} not installed: pip install 'implicit-bias[{','.join(extras)}]'",
            name=modules[0],
        )
        self.modules = modules

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, ...]]:
        return type(self), self.modules  # between processes, from the modules and not the message


def require(*modules: str) -> None:
    """Refuse before any work what would end for want of a package, without loading any.

    Raises
    ------
    MissingExtra
        If some of `modules`, keys of `EXTRAS`, are not installed.
    """
    missing = [module for module in modules if not _is_installed(module)]
    if missing:
        raise MissingExtra(*missing)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # hidden by a finder, as some freezers and tests do
        return False


@contextmanager
def naming_extras() -> Iterator[None]:
    """Around imports, or a decorator: a missing package of an extra becomes `MissingExtra`.

    Any other missing module stays what it is: a part missing from an installed package is a broken
    installation, which no extra mends.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name not in EXTRAS:
            raise
        raise MissingExtra(error.name) from None
