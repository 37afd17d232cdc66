"""What a prediction does not import: torch, and scikit-learn's data sets."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits as load_bundled

from implicit_bias.data import load_digit_classes
from implicit_bias.models import MODELS
from tests.commands import ROOT, home

HEAVY = ("torch", "cvxpy", "matplotlib", "sklearn.datasets", "sklearn.linear_model")
# Those whose limit asks for no network: others draw their gates or their start with one.
PREDICTED = [name for name, model in MODELS.items() if model.run.endswith("run_separable")]


def loaded_by(code: str) -> set[str]:
    """Names of the heavy modules, and of scikit-learn, that a script leaves loaded."""
    ends = (
        f"import json, sys; print(json.dumps(sorted(set(sys.modules) & {{*{HEAVY}, 'sklearn'}})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{ends}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_scripts_that_solve_import_no_torch_and_no_scikit_learn() -> None:
    solves = """
import numpy as np, implicit_bias as ib
data = ib.load_digits(n_train=40, n_val=10)
X, y = data.X_train, data.y_train
contexts = (X[:, :3] > 0).astype(int)
assert ib.solve_gln_svm(X, y, contexts).status.name == "SOLVED"
assert ib.solve_linear_svm(X, y).status.name == ib.solve_frelu_svm(X, y, 1 - contexts).status.name
assert ib.is_separable(X, y) and ib.solve_kernel_svm(X @ X.T, y).status.name == "SOLVED"
"""
    assert loaded_by(solves) == set()


@pytest.mark.parametrize("model", PREDICTED)
def test_a_limit_alone_imports_no_torch_and_no_data_sets_of_scikit_learn(model: str) -> None:
    words = ["--model", model, "--steps", "0", "--n-train", "40", "--n-val", "10", "--quiet"]
    found = loaded_by(
        f"from implicit_bias import cli\ntry: cli.compare({words!r})\nexcept SystemExit: pass"
    )
    gated = "cutoffs" in MODELS[model].option_names  # hyperplanes are scikit-learn's transformers
    assert found == ({"sklearn"} if gated else set())


def test_training_does_import_torch() -> None:
    words = ["--model", "linear", "--steps", "2", "--n-train", "40", "--n-val", "10", "--quiet"]
    assert "torch" in loaded_by(
        f"from implicit_bias import cli\ntry: cli.compare({words!r})\nexcept SystemExit: pass"
    )


def test_digits_are_those_of_scikit_learn_with_its_file_and_without(monkeypatch) -> None:
    module, bundled = home(load_digit_classes), load_bundled()
    for file in (module._FILE, ("no", "such", "file")):
        monkeypatch.setattr(module, "_FILE", file)
        module._bundled.cache_clear()
        images, labels = module._bundled()
        np.testing.assert_array_equal(images, bundled.images)
        np.testing.assert_array_equal(labels, bundled.target)
    module._bundled.cache_clear()
