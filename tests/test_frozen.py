"""Dataclasses of bounds and of what they are computed from: nobody sets a field of one."""

from __future__ import annotations

import pkgutil
import re
from dataclasses import fields, is_dataclass
from importlib import import_module

import pytest

PACKAGES = [
    "solvers.certificates", "implicit_bias.limits.relu", "implicit_bias.limits.exact",
    "implicit_bias.limits.finite", "implicit_bias.limits.kernels", "implicit_bias.measures",
    "implicit_bias.networks.recognition", "implicit_bias.runs.diagnosis",
]  # fmt: skip
# Those that a search writes into as it goes.
OWN = {"Programs", "Ratio", "Bracket", "_Point"}
ARRAYS = re.compile("Floats|Flags|NDArray|Tensor")


@pytest.mark.parametrize("package", PACKAGES)
def test_dataclasses_are_frozen_and_those_that_hold_arrays_are_no_equal_values(package) -> None:
    for found in pkgutil.iter_modules(import_module(package).__path__, f"{package}."):
        for name, one in vars(import_module(found.name)).items():
            if isinstance(one, type) and is_dataclass(one) and one.__module__ == found.name:
                params, kinds = one.__dataclass_params__, " ".join(str(f.type) for f in fields(one))
                assert params.frozen is (name not in OWN), name
                assert name in OWN or not (params.eq and ARRAYS.search(kinds)), name
