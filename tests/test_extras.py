"""What is left when the extras are not installed, and what a user is told."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable

import pytest

from implicit_bias import MissingExtra
from tests.commands import python
from tests.long import some_of
from tests.test_package import ROOT, imports, modules

# Finds nothing itself, and ends the search for a hidden package as if it were not installed.
HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
PREDICT = """
import warnings
import numpy as np
import implicit_bias as ib

assert ib.is_separable(*(lambda d: (d.X_train, d.y_train))(ib.load_data("wine")))
data = ib.load_digits(n_train=60, n_val=40, random_state=1)
X, y = data.X_train, data.y_train
contexts = ib.HyperplaneContexts(n_units=3, n_contexts=2, random_state=1).fit(X)
gates = ib.HyperplaneGates(n_units=4, random_state=1).fit(X).transform(X)
limits = {
    "linear": ib.solve_linear_svm(X, y),
    "gln": ib.solve_gln_svm(X, y, contexts.transform(X)),
    "gln-l2": ib.solve_gln_l2_svm(X, y, contexts.transform(X)),
    "shallow": ib.solve_shallow_gln_svm(X, y, np.zeros((len(y), 1), dtype=int)),
    "frelu": ib.solve_frelu_svm(X, y, gates),
}
assert all(limit.require() is limit for limit in limits.values()), limits
limit = limits["gln"]
limit.predictor(data.X_val, contexts.transform(data.X_val))
limit.save("gln.safetensors")
assert np.array_equal(type(limit).load("gln.safetensors").zeta, limit.zeta)
program = ib.programs.SVMGLN().program(X, y, contexts.transform(X))
certificate = ib.certify(program, limit.zeta.reshape(-1, X.shape[1]), limit.dual)
assert certificate.gap < 1e-6, certificate

cone, signs = np.array([[1, 0.1], [1, 0.2], [-1, -0.1], [-1, -0.2]]), np.array([1, 1, -1, -1])
assert ib.datasets.is_orthogonally_separable(cone, signs)
assert ib.solve_orthosep(cone, signs).require()
ib.solve_gated_ols(X, y, gates)
from implicit_bias import estimators
for classifier in (estimators.LinearLimitClassifier(), estimators.GLNLimitClassifier(),
                   estimators.FReLULimitClassifier()):
    assert classifier.fit(X, y).score(X, y) == 1.0
ib.TrainingSettings(trainer="annealed")
"""
ASK = """
import numpy as np
import implicit_bias as ib
from implicit_bias.programs import HardMarginSVM, KernelSVM

X, y = np.eye(2), np.array([1.0, -1.0])
for ask in (
    lambda: ib.GLN,
    lambda: ib.run("linear"),
    lambda: ib.run("linear", save="run"),
    lambda: ib.solve_linear_svm(X, y, solver="cvxpy:ECOS"),
    lambda: ib.estimators.LinearLimitClassifier(solver="cvxpy:ECOS").fit(X, y),
    lambda: HardMarginSVM().literal(X, y),
    lambda: KernelSVM().literal(X, y),
    lambda: ib.programs.to_cvxpy(HardMarginSVM().program(X, y)),
    lambda: ib.optim.Annealed,
    lambda: ib.Trajectory.to_frame(None),
    lambda: ib.solve_linear_svm(X, y).plot(),
    lambda: ib.load_data("table.csv"),
    lambda: ib.sweeps.row_schema(),
    lambda: ib.sweeps.sweep_schema(),
    lambda: ib.sweep("linear", {"seed": [0]}, out="runs"),
):
    try:
        ask()
    except ib.MissingExtra as error:
        print(error)
"""


def requirements() -> dict[str, set[str]]:
    """The modules that pyproject.toml brings, by extra; "" for those that come with any."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # By what is installed, if not that alone.
    brought = {"scikit_learn": {"sklearn", "joblib", "threadpoolctl"}}
    required: dict[str, set[str]] = {}
    for extra, lines in {"": project["dependencies"], **project["optional-dependencies"]}.items():
        names = {re.split(r"[^\w-]", line, maxsplit=1)[0].replace("-", "_") for line in lines}
        required[extra] = set().union(*(brought.get(name, {name}) for name in names))
    return required


def optional_modules() -> set[str]:
    """The modules of other packages that the library imports and that do not come with any."""
    imported = {
        statement.module.split(".")[0]
        for path in modules("implicit_bias", "solvers")
        for statement in imports(path)
    }
    own = {"implicit_bias", "solvers"}
    return imported - sys.stdlib_module_names - own - requirements()[""]


def without(packages: Iterable[str], program: str) -> subprocess.CompletedProcess[str]:
    """Run `program` in an interpreter of its own where these packages are not to be found."""
    return python("-c", f"HIDDEN = {set(packages)!r}\n{HIDE}\n{program}")


def test_the_prediction_side_works_where_every_extra_is_hidden(tmp_path) -> None:
    done = without(optional_modules(), f"import os\nos.chdir({str(tmp_path)!r})\n{PREDICT}")
    assert done.returncode == 0, done.stderr


def test_whatever_is_asked_for_names_the_command_that_brings_it() -> None:
    done = without(optional_modules(), ASK)
    assert done.returncode == 0, done.stderr
    torch = "this needs torch, which is not installed: pip install 'implicit-bias[train]'"
    cvxpy = "this needs cvxpy, which is not installed: pip install 'implicit-bias[cvxpy]'"
    assert done.stdout.splitlines() == [
        torch,
        torch,
        "this needs filelock, jinja2, pandas and pyarrow, which are not installed: "
        "pip install 'implicit-bias[cli,sweep]'",
        *[cvxpy] * 5,
        torch,
        "this needs pandas, which is not installed: pip install 'implicit-bias[sweep]'",
        "this needs matplotlib, which is not installed: pip install 'implicit-bias[plot]'",
        "this needs pandas, which is not installed: pip install 'implicit-bias[sweep]'",
        *["this needs pyarrow, which is not installed: pip install 'implicit-bias[sweep]'"] * 2,
        "this needs pandas and pyarrow, which are not installed: "
        "pip install 'implicit-bias[sweep]'",
    ]


@pytest.mark.parametrize(
    ("packages", "arguments", "extra"),
    some_of(
        [
            ("click rich", "", "cli"),
            ("torch", "", "train"),
            ("matplotlib", "--plot run.png", "plot"),
            ("matplotlib jinja2", "--report run.html", "cli,plot"),
            ("pyarrow", "--save run", "sweep"),
            ("pandas", "--data table.csv", "sweep"),
            ("pyarrow", "--data table.parquet", "sweep"),
            ("cvxpy", "--program", "cvxpy"),
        ],
        one_in=3,
    ),
)
def test_a_command_that_lacks_a_package_says_so_and_does_nothing(
    packages, arguments, extra, tmp_path
) -> None:
    program = (
        f"import os\nos.chdir({str(tmp_path)!r})\n"
        f"sys.argv[1:] = {['--model', 'linear', *arguments.split()]!r}\n"
        "from implicit_bias.__main__ import compare_main\ncompare_main()\n"
    )
    done = without(packages.split(), program)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert re.fullmatch(
        rf"Error: this needs .*: pip install 'implicit-bias\[{extra}\]'\n", done.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_everything_imported_is_required_by_the_extra_that_the_message_names() -> None:
    required = requirements()
    for module in optional_modules() - {"typing_extensions"}:  # which type checkers bring
        extra = re.search(r"implicit-bias\[(.*)\]", str(MissingExtra(module)))
        assert extra and module in required[extra[1]]


@pytest.mark.parametrize("missing", ["no_such", "torch.no_such"])
def test_a_broken_installation_of_a_package_is_not_taken_for_a_missing_one(
    missing, tmp_path
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(f"import {missing}\n")
    program = (
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport implicit_bias as ib\nib.GLN\n"
    )
    done = python("-c", program)
    assert done.returncode == 1
    assert f"ModuleNotFoundError: No module named '{missing}'" in done.stderr.splitlines()[-1]
    assert "pip install" not in done.stderr


def test_the_message_of_a_missing_package_survives_a_pickle() -> None:
    error = MissingExtra("pandas", "torch")
    assert str(error).endswith("pip install 'implicit-bias[sweep,train]'")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
