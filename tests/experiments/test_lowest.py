"""The lowest versions of pyproject.toml: which they are."""

from __future__ import annotations

import tomllib

import pytest

from experiments.lowest import EXTRAS, ROOT, pinned, requirements

PROJECT = {
    "name": "mine",
    "dependencies": ["one>=1.5"],
    "optional-dependencies": {
        "all": ["mine[plot,old]"],
        "plot": ["two[extra]>=2.0.post3,<4"],
        "old": ["three>=3; python_version < '3'", "four"],
    },
}


def test_requirements_are_pinned_to_their_lower_bounds_through_extras() -> None:
    assert pinned(requirements(PROJECT)) == ["one==1.5"]
    assert pinned(requirements(PROJECT, "plot"), keep=["one"]) == ["two==2.0.post3"]
    assert pinned(requirements(PROJECT, "plot"), keep=["two"]) == ["two"]
    with pytest.raises(ValueError, match="four has no lower bound"):
        pinned(requirements(PROJECT, "all"))


def test_every_requirement_of_users_has_a_lower_bound() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    names = {one.name for extra in ("", *EXTRAS) for one in requirements(project, extra)}
    assert {"numpy", "torch", "cvxpy", "matplotlib", "joblib", "distributed", "submitit"} <= names
    for extra in ("", *EXTRAS):
        assert pinned(requirements(project, extra))
