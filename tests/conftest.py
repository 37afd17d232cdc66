"""One thread a process, before anything loads: tests run side by side, one process a core.

And Ctrl-C raises, also where they run in the background of a shell, which ignores it.
"""

import gc
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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer all tests, those too that a change waits for only before a release."""
    parser.addoption("--long", action="store_true", help="run the tests marked `long` as well")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark of tests that `--long` runs."""
    config.addinivalue_line("markers", "long: run by `pytest --long`; see CONTRIBUTING.md")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `long`, unless it is asked for."""
    if not config.getoption("--long"):
        kept = [item for item in items if item.get_closest_marker("long") is None]
        config.hook.pytest_deselected(
            items=[item for item in items if item.get_closest_marker("long")]
        )
        items[:] = kept


def pytest_collection_finish() -> None:
    """Leave all that stands by now out of later collections, which took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture
def pages() -> None:
    """Asked for by tests that read what a run saves for a person: its screen and its page."""


@pytest.fixture(autouse=True)
def _no_page_of_a_saved_run(request, monkeypatch) -> None:
    """Leave out screen and page, half of the time of a small run, where no test reads them."""
    run_model = sys.modules.get("implicit_bias.models.run_model")
    if run_model is not None and "pages" not in request.fixturenames:
        monkeypatch.setattr(run_model, "_write_readable", lambda report, folder: None)


@pytest.fixture(autouse=True)
def _no_layout_of_pictures(request, monkeypatch) -> None:
    """Leave out the layout of pictures, half of the time they take, but in the tests of drawing."""
    engine = sys.modules.get("matplotlib.layout_engine")
    if engine is not None and request.path.parent.name != "drawing":
        monkeypatch.setattr(engine.ConstrainedLayoutEngine, "execute", lambda self, figure: None)


@pytest.fixture
def built(tmp_path) -> Path:
    """The package as it is installed: built from the checkout into a folder of its own."""
    subprocess.run(
        [sys.executable, "-c", BUILD, "--quiet", "egg_info", "--egg-base", str(tmp_path),
         "build_py", "--build-lib", str(tmp_path / "built")],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return tmp_path / "built"
