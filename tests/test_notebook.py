"""The notebook of the documentation runs from first to last, and shows what it says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """A function that runs a notebook, and returns what its cells show, by their ids."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))

    def run(name: str) -> dict[str, dict[str, str]]:
        notebook = nbformat.read(ROOT / "docs" / name, as_version=4)
        resources = {"metadata": {"path": str(tmp_path)}}
        nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
        cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
        pictures = {
            cell.id for cell in cells if any("image/png" in x.get("data", {}) for x in cell.outputs)
        }
        described = {
            cell.id for cell in cells if cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
        }
        assert described == pictures  # a picture is told to those who do not see it
        return {
            cell.id: {
                kind: str(text)
                for one in cell.outputs
                for kind, text in one.get("data", {one.output_type: one.get("text", "")}).items()
            }
            for cell in cells
        }

    return run


def with_kind(shown: dict[str, dict[str, str]], kind: str) -> set[str]:
    return {name for name, kinds in shown.items() if kind in kinds}


def test_the_tour_runs_and_its_last_lines_show_tables_and_pictures(shown) -> None:
    found = shown("tour.ipynb")
    assert with_kind(found, "text/html") == {
        "run", "show-limit", "certificate", "show-trajectory", "comparison"
    }  # fmt: skip
    assert with_kind(found, "image/png") == {"plot", "margins", "ratio", "load"}


def test_a_network_of_ones_own_is_told_where_training_goes(shown) -> None:
    found = shown("your-network.ipynb")
    assert "too early" in found["early"]["text/plain"]
    assert "PROBLEM NAMED" in found["report"]["text/plain"]
    assert "2 ('2.bias',)" in found["rates"]["stream"]
    assert "LIVE_OPTIMUM" in found["limit"]["text/plain"]
    assert with_kind(found, "image/png") == {"plot"}
