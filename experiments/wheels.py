"""A wheel tried outside of the checkout, bare and with all extras, on several Pythons.

    python -m build
    python -m experiments.wheels dist --python python3.11 --python python3.12 --python python3.13

Each Python gets a virtual environment of its own, which goes away after it: the wheel alone first,
where a limit is solved, certified, saved and loaded; then its extra `all`, where the command line
compares a network with its limit. `--constraint` holds versions, of PyTorch for instance.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

# What each installation has to do; outside of the checkout, so that no file of it is found.
BARE = """
    import numpy as np
    import implicit_bias as ib

    X, y = [[2.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
    limit = ib.solve_linear_svm(X, y).require()
    assert np.allclose(limit.zeta, [0.5, -1.0])
    limit.save("limit.safetensors")
    assert ib.load("limit.safetensors") == limit
    try:
        ib.train
    except ImportError as error:
        assert "pip install" in str(error)
    else:
        raise SystemExit("PyTorch came with the bare wheel")
"""
ALL = ("-m", "implicit_bias", "compare", "--model", "gln", "--n-train", "60", "--steps", "20")


def _run(command: Sequence[str | Path], folder: Path) -> None:
    """Run a command in a folder, and end with its output if it fails."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=clean, text=True, capture_output=True, check=False
    )
    # A network that has few steps need not separate its data.
    if done.returncode not in (0, 5):
        sys.exit(f"{' '.join(map(str, command[-6:]))} failed:\n{done.stdout}{done.stderr}")


def try_wheel(wheel: Path, python: str, constraints: Sequence[Path]) -> str:
    """Install a wheel for a Python, bare and with all extras, use both; return its version."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run([python, "-m", "venv", folder / "venv"], folder)
        own = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        install: list[str | Path] = [own, "-m", "pip", "install", "--quiet"]
        for one in constraints:
            install += ["-c", one.resolve()]
        _run([*install, wheel], folder)
        _run([own, "-c", textwrap.dedent(BARE)], folder)
        _run([*install, f"{wheel}[all]"], folder)
        _run([own, *ALL], folder)
        version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True)
        return version.stdout.strip()


@click.command(help=__doc__)
@click.argument("dist", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--python", "pythons", multiple=True, default=(sys.executable,))
@click.option(
    "--constraint", "constraints", multiple=True, type=click.Path(path_type=Path, exists=True)
)
def main(dist: Path, pythons: tuple[str, ...], constraints: tuple[Path, ...]) -> None:
    """Try the one wheel of a folder with each Python."""
    wheels = sorted(dist.glob("*.whl"))
    if len(wheels) != 1:
        raise click.UsageError(f"{dist} must hold one wheel, found {len(wheels)}: build it anew")
    for python in pythons:
        version = try_wheel(wheels[0].resolve(), python, constraints)
        print(f"{wheels[0].name} works on {version}, bare and with [all]", flush=True)


if __name__ == "__main__":
    main()
