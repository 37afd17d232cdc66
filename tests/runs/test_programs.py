"""`compare --program`: the program of every model on its data, its size, and nothing else."""

import json
from pkgutil import resolve_name

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.models import MODELS
from implicit_bias.models.run_model import resolve
from tests.commands import entry_point, home, run

D = 65  # inputs of the digits, the constant among them
SOCP, LP, QP = "second-order cone program", "linear program", "quadratic program"
SDP, EXP = "semidefinite program", "exponential cone program"
SMALL = ("--n-train", 40)
CONTEXTS = ("--hidden-units", 3, "--contexts", 4)

# Command line, then name, kind, variables and constraints of every program.
CASES = {
    "linear": (("linear", *SMALL), [("hard-margin SVM", SOCP, D, 40)]),
    "deep-linear": (("deep-linear", *SMALL), [("hard-margin SVM", SOCP, D, 40)]),
    "convolution": (("convolution", *SMALL), [("Fourier margin", SOCP, 64, 40)]),
    "convolution, deep": (
        ("convolution", *SMALL, "--depth", 3), [("Fourier margin", SOCP, 64, 40)],
    ),
    "gln": (("gln", *SMALL, *CONTEXTS), [("SVM-GLN", SOCP, 12 * D, 40)]),
    "gln-l2": (("gln-l2", *SMALL, *CONTEXTS), [("SVM-L2", SOCP, 12 * D, 40)]),
    # Each of two hyperplanes through the mean has samples on both sides.
    # Of each trainer in a norm of its own, once; what descends the gradient is the limit's.
    "linear, trainers": (
        ("linear", *SMALL, "--trainer", "sign,spectral,adam,momentum"),
        [("hard-margin SVM", SOCP, D, 40), ("hard-margin SVM, linf norm", LP, D, 40)],
    ),
    "shallow-gln, trainers": (
        ("shallow-gln", "--n-train", 60, "--trainer", "sign,coordinate,signum"),
        [("one SVM per context", SOCP, 4 * D, 60),
         ("one SVM per context, linf norm", LP, 4 * D, 60),
         ("one SVM per context, l1 norm", LP, 4 * D, 60)],
    ),
    "shallow-gln": (("shallow-gln", "--n-train", 60), [("one SVM per context", SOCP, 4 * D, 60)]),
    "gln, all classes": (
        ("gln", *SMALL, *CONTEXTS, "--classes", "all"), [("SVM-GLN", SOCP, 12 * D, 40)],
    ),
    "fixed-outer": (
        ("fixed-outer", "--hidden-units", 3), [("fixed outer layer", SOCP, 3 * 200, 20)],
    ),
    "frelu": (("frelu", *SMALL, "--hidden-units", 6), [("SVM-FReLU", SOCP, 7 * D, 40)]),
    "relu": (
        ("relu", *SMALL, "--hidden-units", 5, "--freeze-at", 7),
        [
            ("SVM-RC", SOCP, 6 * D, 40), ("SVM-LC", SOCP, 5 * D, 40), ("SVM-HL", SOCP, 5, 40),
            ("gates-only", SOCP, 5, 40), ("SVM-FReLU on the gates of step 7", SOCP, 5 * D, 40),
        ],
    ),
    "relu, deep": (
        ("relu", *SMALL, "--hidden-units", 5, "--depth", 3, "--freeze-at", 7),
        [
            ("SVM-RC", SOCP, 11 * D, 40), ("SVM-LC", SOCP, 10 * D, 40), ("SVM-HL", SOCP, 5, 40),
            ("gates-only", SOCP, 10, 40), ("path lasso on the gates of step 7", SOCP, 25 * D, 40),
        ],
    ),
    "dgn": (
        ("dgn", *SMALL, "--depth", 4, "--hidden-units", 3),
        [("path lasso (bound)", SOCP, 27 * D, 40)],
    ),
    "dgn, learned": (
        ("dgn", *SMALL, "--gating", "learned", "--hidden-units", 4),
        [("path lasso (bound)", SOCP, 16 * D, 40)],
    ),
    "dgn, contexts": (
        ("dgn", *SMALL, "--gating", "contexts", "--hidden-units", 3, "--contexts", 4),
        [("path lasso (bound)", SOCP, 9 * 16 * D, 40)],
    ),
    "dgn, lazy": (
        ("dgn", *SMALL, "--regime", "lazy"),
        [("kernel regression (NTK)", QP, 40, 0), ("hard-margin SVM of a kernel (NTK)", QP, 40, 40)],
    ),
    "dlgn": (("dlgn", *SMALL, "--hidden-units", 5), [("group lasso", SOCP, 5 * D, 40)]),
    "dlgn, constant": (
        ("dlgn", *SMALL, "--hidden-units", 5, "--experts", "constant"),
        [("L1 margin of gates", LP, 5, 40)],
    ),
    "dlgn, deep": (
        ("dlgn", *SMALL, "--hidden-units", 5, "--depth", 3, "--upper-units", 2),
        [("path lasso (bound)", SOCP, 10 * D, 40)],
    ),
    "gdln": (("gdln", "--n-train", 100), [("gated least squares", QP, 8 * 40, 0)]),
    "orthosep": (("orthosep", *SMALL), [("one-sided SVMs", SOCP, 40, 40)]),
    "heads": (
        ("heads", "--n-train", 50, "--hidden-units", 8),
        [(f"cross-entropy of a head, exit {k}", EXP, 80, 0) for k in (1, 2, 3)],
    ),
    "heads, hard": (
        ("heads", "--n-train", 50, "--hidden-units", 8, "--share", 1, "--exits", 2,
         "--n-labelled", 45),
        [("multi-class hard margin, exit 2", SOCP, 80, 45 * 9)],
    ),
    "distillation": (("distillation",), []),
    # A column a sample; every sample against every other class.
    "collapse": (
        ("collapse", "--class-sizes", "3,2,1"), [("unconstrained features", SDP, 3 * 6, 6 * 2)],
    ),
    "collapse, decay": (
        ("collapse", "--class-sizes", "3,2,1", "--weight-decay", 0.01),
        [("unconstrained features", SDP, 3 * 6, 0)],
    ),
    "next-token": (
        ("next-token", "--dimension", 9),
        [("next-token margin", SOCP, 21 * 9, 21 * 20), ("loss in support", EXP, 21 * 10, 21)],
    ),
    "attention": (
        ("attention", "--n-train", 10, "--tokens", 4, "--inputs", 3),
        [("attention SVM", SOCP, 9, 30)],
    ),
    "diagonal": (("diagonal",), [("least potential", EXP, 2 * D, 20)]),
}  # fmt: skip


@pytest.fixture
def idle(monkeypatch) -> None:
    """Whoever solves a program or takes a gradient fails."""

    def refuse(*args, **kwargs):
        raise AssertionError("a program was solved or a network trained")

    monkeypatch.setattr(home(ib.limits.solve_limit), "solve", refuse)
    monkeypatch.setattr("cvxpy.Problem.solve", refuse)
    monkeypatch.setattr(torch.Tensor, "backward", refuse)
    monkeypatch.setattr(torch.optim.Optimizer, "step", refuse)


def told(*arguments: object) -> dict:
    """The JSON object of `compare --program`, which ends well."""
    done = run("--model", *arguments, "--program", "--json", "--quiet")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", CASES)
def test_every_model_states_its_programs_with_the_sizes_of_its_data_and_gates(name, idle) -> None:
    arguments, expected = CASES[name]
    record = told(*arguments)
    model = MODELS[arguments[0]]
    assert (record["model"], record["program"]) == (model.name, model.program)
    assert sizes(record) == expected


def sizes(record: dict) -> list[tuple]:
    """Name, kind, variables and constraints of every program."""
    return [
        (one["name"], one["kind"], one["n_variables"], one["n_equalities"] + one["n_inequalities"])
        for one in record["programs"]
    ]


def test_programs_of_all_classes_at_once_are_stated_in_the_norm_of_each_trainer(idle) -> None:
    joint = (*SMALL, "--classes", "joint")
    linear = told("linear", *joint, "--trainer", "sign,dual,spectral,signum")
    assert sizes(linear) == [
        ("multi-class SVM", SOCP, 10 * D, 360), ("multi-class SVM, linf norm", LP, 10 * D, 360),
        ("multi-class SVM, spectral norm", SDP, 10 * D, 360),
    ]  # fmt: skip
    assert [one["note"] for one in linear["programs"]] == [
        f"the program of {names}" for names in ("dual", "sign and signum", "spectral")
    ]
    gated = told("gln", *joint, *CONTEXTS)
    assert sizes(gated) == [("sum of nuclear norms", SDP, 120 * D, 360)]
    assert "min sum_h ||Z_h||_*" in gated["program"] and not gated["programs"][0]["note"]
    deep = told("deep-linear", *joint, "--trainer", "momentum,sign")
    assert "lower bound" in deep["programs"][1]["note"]


@pytest.mark.parametrize("name", ["gln", "shallow-gln"])
def test_programs_of_other_norms_have_the_optimum_that_a_run_finds(name) -> None:
    """Of a formulation that knows the norm, and of one whose objective it takes the place of."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 4))
    y, gating = np.sign(X[:, 0]), ib.HyperplaneContexts(2, 2, random_state=0).fit(X)
    report = ib.run(
        name, X=X, y=y, X_val=X[:4], y_val=y[:4], gating=gating, trainer="sign", steps=(2,)
    )
    parts = resolve_name(MODELS[name].parts)(resolve(name, {"trainer": "sign"}).options)
    sample = ib.Sample(X, y, gating.transform(X))
    own = parts.induced_by("sign")
    assert (own.norm, own.exact, parts.induced_by("momentum").norm) == ("linf", True, None)
    for norm, optimum in (
        (None, report.limit.objective),
        (own.norm, report.results["norms"]["objective"]),
    ):
        found = parts.literal(sample, norm).solve(solver="CLARABEL")
        assert found == pytest.approx(optimum, rel=1e-6)


def test_no_model_is_left_out() -> None:
    assert {arguments[0] for arguments, _ in CASES.values()} == set(MODELS)


@pytest.mark.parametrize("name", ["linear", "gln", "shallow-gln", "frelu", "orthosep", "gdln"])
def test_the_program_is_that_of_the_limit_that_a_run_reports(name) -> None:
    arguments, _ = CASES[name]
    options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    given = {key.removeprefix("--").replace("-", "_"): value for key, value in options.items()}
    limit = ib.run(name, steps=0, **given).limit
    (program,) = told(*arguments)["programs"]
    assert program["n_variables"] == limit.zeta.size
    if name != "gdln":  # which has no constraints
        assert program["n_inequalities"] == len(limit.dual)


def test_gates_of_the_run_are_those_of_its_program() -> None:
    results = ib.run("frelu", steps=0, n_train=40, hidden_units=6).results
    seeds, cutoffs = results["seeds"], results["options"]["cutoffs"]
    data = ib.load_data("digits", n_train=40, random_state=seeds["data"])
    gating = ib.HyperplaneGates(6, cutoffs=cutoffs, random_state=seeds["gating"])
    gates = gating.fit(data.X_train).transform(data.X_train)
    (program,) = told("frelu", *SMALL, "--hidden-units", 6)["programs"]
    dense = [data.X_train, data.y_train, gates]
    assert program["n_nonzero"] == sum(int((array != 0).sum()) for array in dense)
    assert program["constants"]["g"] == list(gates.shape)


def test_text_is_in_100_columns_and_goes_to_stderr_beside_json() -> None:
    plain = run("--model", "relu", *SMALL, "--program")
    both = run("--model", "relu", *SMALL, "--program", "--json")
    assert plain.exit_code == both.exit_code == 0
    assert "minimise    sum(norm(zeta, 2, axis=1))" in plain.stdout
    assert max(map(len, plain.stdout.splitlines())) <= 100
    assert plain.stdout in both.stderr
    assert json.loads(both.stdout)["programs"][0]["name"] == "SVM-RC"
    assert "gates are those of the network as it starts" in plain.stdout


def test_a_closed_form_is_printed_where_there_is_no_program() -> None:
    done = run("--model", "distillation", "--program")
    assert done.exit_code == 0
    assert "program: w(inf) = P w_* + c q / ||q||" in done.stdout
    assert "no convex program is solved" in done.stdout


@pytest.mark.parametrize("other", [("--plot", "a.png"), ("--save", "a"), ("--report", "a.html")])
def test_files_of_a_run_are_refused_since_there_is_none(other, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("--model", "linear", "--program", *other)
    assert done.exit_code == 2
    assert "runs nothing" in done.stderr and list(tmp_path.iterdir()) == []


def test_more_paths_than_memory_holds_are_one_message() -> None:
    done = run("--model", "dgn", *SMALL, "--depth", 6, "--hidden-units", 60, "--program")
    assert done.exit_code == cli.BAD_INPUT
    assert "777,600,000 paths in cvxpy would take" in done.stderr


def test_a_closed_form_needs_no_cvxpy(monkeypatch) -> None:
    monkeypatch.setattr(home(ib.MissingExtra), "is_installed", lambda module: module != "cvxpy")
    assert run("--model", "distillation", "--program").exit_code == 0


def test_a_wrong_option_is_refused_as_in_a_run() -> None:
    done = run("--model", "dlgn", "--program", "--upper-units", 3)
    assert done.exit_code == 2
    assert "two hidden layers or more" in done.stderr


def test_the_command_itself_prints_it() -> None:
    done = entry_point("--model", "linear", "--program", code=0)
    assert "subject to  margins: multiply(y, X @ b) >= 1" in done.stdout
    assert done.stderr.splitlines() == ["stating hard-margin SVM on 60 samples ..."]
