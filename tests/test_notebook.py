"""The notebooks of the documentation run from first to last, and show what they say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def shown(cells: list[Any]) -> dict[str, dict[str, str]]:
    """What the cells of a notebook show, by their ids."""
    cells = [cell for cell in cells if cell.cell_type == "code"]
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


def with_kind(shown: dict[str, dict[str, str]], kind: str) -> set[str]:
    return {name for name, kinds in shown.items() if kind in kinds}


def test_notebooks_run_from_first_to_last_and_show_what_they_say(tmp_path, monkeypatch) -> None:
    """In one kernel, which loads the libraries once and forgets the names of the first."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    tour, own = (
        nbformat.read(ROOT / "docs" / name, as_version=4)
        for name in ("tour.ipynb", "your-network.ipynb")
    )
    whole = nbformat.v4.new_notebook(metadata=tour.metadata)
    whole.cells = [*tour.cells, nbformat.v4.new_code_cell("%reset -f"), *own.cells]
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(whole, timeout=120, resources=resources).execute()

    found = shown(tour.cells)
    assert with_kind(found, "text/html") == {
        "run", "show-limit", "certificate", "show-trajectory", "comparison"
    }  # fmt: skip
    assert with_kind(found, "image/png") == {"plot", "margins", "ratio", "load"}

    # A network of one's own is told where training goes.
    found = shown(own.cells)
    assert "too early" in found["early"]["text/plain"]
    assert "PROBLEM NAMED" in found["report"]["text/plain"]
    assert "2 ('2.bias',)" in found["rates"]["stream"]
    assert "LIVE_OPTIMUM" in found["limit"]["text/plain"]
    assert with_kind(found, "image/png") == {"plot"}
