"""Optional packages: the extras that bring them, and the error where they are missing.

The prediction side needs NumPy, SciPy, scikit-learn, safetensors, array-api-compat and DAQP. All
else is imported where it is used, and one error names the command that installs a missing package.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import MappingProxyType

# Module that is imported: extra of pyproject.toml that installs it.
EXTRAS = MappingProxyType(
    {
        "click": "cli",
        "cvxpy": "cvxpy",
        "distributed": "dask",
        "filelock": "cli",
        "jinja2": "cli",
        "markupsafe": "cli",
        "matplotlib": "plot",
        "pandas": "sweep",
        "pyarrow": "sweep",
        "rich": "cli",
        "submitit": "slurm",
        "torch": "train",
    }
)


class MissingExtra(ImportError):
    """Error where packages are not installed; its message names the command that installs them.

    Parameters
    ----------
    *modules : str
        Names of the missing packages, keys of `EXTRAS`.

    Attributes
    ----------
    modules : tuple of str

    Examples
    --------
    >>> print(ib.MissingExtra("cvxpy"))
    this needs cvxpy, which is not installed: pip install 'implicit-bias[cvxpy]'
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
    """Check, before any work, that packages are installed, without loading them.

    Raises
    ------
    MissingExtra
        If some of `modules`, keys of `EXTRAS`, are not installed.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        raise MissingExtra(*missing)


def is_installed(module: str) -> bool:
    """Return True if a package is there, without loading it."""
    try:
        return find_spec(module) is not None
    except ImportError:  # hidden by a finder, as some freezers and tests do
        return False


@contextmanager
def naming_extras() -> Iterator[None]:
    """Turn the error of a missing package into `MissingExtra`; a context, or a decorator.

    That of any other missing module is not changed: a missing part of an installed package is a
    broken installation, which no extra mends.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name not in EXTRAS:
            raise
        raise MissingExtra(error.name) from None
