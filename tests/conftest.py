"""One thread a process, before anything loads: tests run side by side, one process a core.

And Ctrl-C raises, also where they run in the background of a shell, which ignores it.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = Path(__file__).parents[1]
BUILD = "import setuptools; setuptools.setup()"


@pytest.fixture
def built(tmp_path) -> Path:
    """The package as it is installed: built from the checkout into a folder of its own."""
    subprocess.run(
        [sys.executable, "-c", BUILD, "--quiet", "egg_info", "--egg-base", str(tmp_path),
         "build_py", "--build-lib", str(tmp_path / "built")],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return tmp_path / "built"
