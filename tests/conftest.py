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


# Tests of what a person reads of a saved run.
OF_PAGES = ("test_cli.py", "test_keeping.py")


@pytest.fixture(autouse=True)
def _no_page_of_a_saved_run(request, monkeypatch) -> None:
    """Leave out screen and page, half of the time of a small run, where no test reads them."""
    run_model = sys.modules.get("implicit_bias.models.run_model")
    if run_model is not None and request.path.name not in OF_PAGES:
        monkeypatch.setattr(run_model, "_write_readable", lambda report, folder: None)


@pytest.fixture
def built(tmp_path) -> Path:
    """The package as it is installed: built from the checkout into a folder of its own."""
    subprocess.run(
        [sys.executable, "-c", BUILD, "--quiet", "egg_info", "--egg-base", str(tmp_path),
         "build_py", "--build-lib", str(tmp_path / "built")],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return tmp_path / "built"
