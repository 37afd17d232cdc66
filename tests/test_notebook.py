"""The notebook of the documentation runs from first to last, and shows what it says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_tour_runs_and_its_last_lines_show_tables_and_pictures(tmp_path, monkeypatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(ROOT / "docs" / "tour.ipynb", as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = {
        cell.id: {kind for output in cell.outputs for kind in output.get("data", {})}
        for cell in notebook.cells
        if cell.cell_type == "code"
    }
    assert {name for name, kinds in shown.items() if "text/html" in kinds} == {
        "run", "show-limit", "certificate", "show-trajectory", "comparison"
    }  # fmt: skip
    assert {name for name, kinds in shown.items() if "image/png" in kinds} == {
        "plot", "margins", "ratio", "load"
    }  # fmt: skip
