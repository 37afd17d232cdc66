"""What a prediction does not import: torch, and scikit-learn's data sets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits as load_bundled

from implicit_bias.data import load_digit_classes
from implicit_bias.models import MODELS
from tests.commands import ROOT, home
from tests.test_extras import HIDE

HEAVY = ("torch", "cvxpy", "matplotlib", "sklearn.datasets", "sklearn.linear_model")
# Their gates, trunk or start are those of a network of torch, which draws them; docs/speed.md names
# them. `relu` has no limit without training.
WITH_TORCH = {"dgn", "dlgn", "heads"}
PREDICTED = sorted(set(MODELS) - {"relu"})


def said_by(code: str) -> Any:
    """What a script without torch prints last, read from JSON."""
    script = f"import json\nHIDDEN = {{'torch'}}\n{HIDE}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_scripts_that_solve_import_no_torch_and_no_scikit_learn() -> None:
    solves = f"""
import numpy as np, implicit_bias as ib
data = ib.load_digits(n_train=40, n_val=10)
X, y = data.X_train, data.y_train
contexts = (X[:, :3] > 0).astype(int)
assert ib.solve_gln_svm(X, y, contexts).status.name == "SOLVED"
assert ib.solve_linear_svm(X, y).status.name == ib.solve_frelu_svm(X, y, 1 - contexts).status.name
assert ib.is_separable(X, y) and ib.solve_kernel_svm(X @ X.T, y).status.name == "SOLVED"
print(json.dumps([name for name in {(*HEAVY, "sklearn")} if sys.modules.get(name)]))
"""
    assert said_by(solves) == []


@pytest.fixture(scope="module")
def alone() -> dict[str, list[Any]]:
    """Of every model the exit code of its limit alone, the heavy modules then, and what it said."""
    runs = {
        model: ["--model", model, "--steps", "0", "--quiet", *SIZES.get(model, USUAL)]
        for model in [*PREDICTED, "linear, trained"]
    }
    runs["linear, trained"][1:4] = ["linear", "--steps", "2"]
    return said_by(f"""
import contextlib, io
from implicit_bias import cli
found = {{}}
for name, words in {runs!r}.items():
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try: cli.compare(words)
        except SystemExit as end: code = end.code
        except ImportError as error: code = str(error)
    heavy = [module for module in {HEAVY!r} if sys.modules.get(module)]
    found[name] = [code, heavy, said.getvalue()]
print(json.dumps(found))
""")


USUAL = ["--n-train", "40", "--n-val", "10"]
SIZES = {
    "attention": ["--n-train", "20"],
    "collapse": [],
    "distillation": [],
    "gdln": ["--n-train", "200"],
    "next-token": [],
}


@pytest.mark.parametrize("model", [*PREDICTED, "linear, trained"])
def test_a_limit_alone_needs_torch_only_where_a_network_draws_what_it_depends_on(
    model, alone
) -> None:
    code, heavy, said = alone[model]
    assert heavy == []
    if model in WITH_TORCH | {"linear, trained"}:
        assert code.startswith("this needs torch, which is not installed")
    else:
        assert (code, said) == (0, "")


def test_the_page_about_speed_names_the_models_that_need_torch() -> None:
    page = " ".join((ROOT / "docs" / "speed.md").read_text().split())
    (told,) = re.findall(r"predicted without torch by (.*?); (.*?) load it", page)
    without, needing = (set(re.findall(r"`([a-z0-9-]+)`", part)) for part in told)
    assert without == set(PREDICTED) - WITH_TORCH
    assert needing == WITH_TORCH | {"relu"}


def test_digits_are_those_of_scikit_learn_with_its_file_and_without(monkeypatch) -> None:
    module, bundled = home(load_digit_classes), load_bundled()
    for file in (module._FILE, ("no", "such", "file")):
        monkeypatch.setattr(module, "_FILE", file)
        module._bundled.cache_clear()
        images, labels = module._bundled()
        np.testing.assert_array_equal(images, bundled.images)
        np.testing.assert_array_equal(labels, bundled.target)
    module._bundled.cache_clear()
