"""The lowest versions that pyproject.toml promises, tried in a virtual environment of their own.

    python -m experiments.lowest FOLDER
    python -m experiments.lowest FOLDER --keep torch

Every requirement of the package, its extras and its tests is pinned to its lower bound, what these
need in turn is left to pip, and some tests of each extra are run. `--keep` leaves a package to pip
too: the lowest PyTorch has no small build on the public index.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from collections.abc import Collection, Iterator
from pathlib import Path

import click
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
# Beside the extras for users: what runs the tests.
EXTRAS = ("all", "dask", "slurm")
RUNNERS = ("hypothesis", "pytest")
TESTS = (
    "tests/data/test_files.py", "tests/drawing/test_results.py", "tests/gates/test_gates.py",
    "tests/estimators/test_scikit_learn.py", "tests/limits/test_certify.py",
    "tests/limits/test_formulations.py", "tests/reports/test_loading.py",
    "tests/sweeps/test_engines.py", "tests/sweeps/test_store.py",
)  # fmt: skip


def requirements(project: dict[str, object], extra: str = "") -> Iterator[Requirement]:
    """Yield what the package needs, or an extra of it, those that it names itself included."""
    optional = project["optional-dependencies"]
    assert isinstance(optional, dict)
    needed = optional[extra] if extra else project["dependencies"]
    assert isinstance(needed, list)
    for one in map(Requirement, needed):
        if one.name == project["name"]:
            for named in sorted(one.extras):
                yield from requirements(project, named)
        elif one.marker is None or one.marker.evaluate():
            yield one


def pinned(needed: Iterator[Requirement], keep: Collection[str] = ()) -> list[str]:
    """Return the requirements with their lower bounds as the only versions, sorted.

    Raises
    ------
    ValueError
        If one has no lower bound.
    """
    found = set()
    for one in needed:
        bounds = [bound.version for bound in one.specifier if bound.operator == ">="]
        if not bounds:
            raise ValueError(f"{one} has no lower bound")
        found.add(one.name if one.name in keep else f"{one.name}=={bounds[0]}")
    return sorted(found)


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--keep", multiple=True, metavar="PACKAGE", help="Leave a package to pip.")
def main(folder: Path, keep: tuple[str, ...]) -> None:
    """Make the environment, install the lowest versions, and run the tests in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [one for extra in ("", *EXTRAS) for one in requirements(project, extra)]
    needed += [one for one in requirements(project, "test") if one.name in RUNNERS]
    pins = pinned(iter(needed), keep)
    print("\n".join(pins), flush=True)
    venv.create(folder, clear=True, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", *pins], check=False)
    if installed.returncode:
        sys.exit(installed.returncode)
    how = ["-p", "no:xdist", "-o", "addopts=--import-mode=importlib", "-q", "--tb=short"]
    sys.exit(
        subprocess.run([python, "-m", "pytest", *how, *TESTS], cwd=ROOT, check=False).returncode
    )


if __name__ == "__main__":
    main()
