"""Answers at every scale of the data: the same from 1e-150 to 1e150, and "rescale" beyond."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.models import MODELS
from solvers import GatedDesign, MaxMarginProgram, solve, solve_nested, solve_one_vs_rest
from tests.long import some_of

RNG = np.random.default_rng(0)
N, D, H = 24, 5, 4
X = RNG.normal(size=(N, D))
Y = np.sign(X @ RNG.normal(size=D))
CONTEXTS = (X @ RNG.normal(size=(D, H)) > 0).astype(int)
GATES = np.hstack([np.ones((N, 1)), CONTEXTS[:, 1:]])
MIRRORED = np.abs(X) * Y[:, None]
LABELS = np.argmax(X[:, :3], axis=1)
WIDE, TEACHER = RNG.normal(size=(8, 12)), RNG.normal(size=(8, 3))
UNIT = np.eye(N)
NEXT = (np.eye(4)[[0, 1, 2, 3, 0, 1]] + np.eye(4)[[1, 2, 3, 0, 0, 1]]) / 2

# Every public function that solves a program, at inputs times s; what it returns has coefficients
# that scale as 1 / s, or as said. Kernels are products of two inputs.
SOLVES: dict[str, Callable[[float], object]] = {
    "solve_linear_svm": lambda s: ib.solve_linear_svm(s * X, Y),
    "solve_gln_svm": lambda s: ib.solve_gln_svm(s * X, Y, CONTEXTS),
    "solve_gln_l2_svm": lambda s: ib.solve_gln_l2_svm(s * X, Y, CONTEXTS),
    "solve_shallow_gln_svm": lambda s: ib.solve_shallow_gln_svm(s * X, Y, CONTEXTS),
    "solve_frelu_svm": lambda s: ib.solve_frelu_svm(s * X, Y, GATES),
    "solve_dlgn_svm": lambda s: ib.limits.solve_dlgn_svm(s * X, Y, GATES),
    "solve_path_lasso": lambda s: ib.solve_path_lasso(s * X, Y, [GATES, GATES]),
    "solve_l1_svm": lambda s: ib.limits.solve_l1_svm(s * X, Y),
    "solve_multiclass_svm": lambda s: ib.limits.solve_multiclass_svm(s * X, LABELS, norm="linf"),
    "solve_next_token": lambda s: ib.limits.solve_next_token(s * X[:6], NEXT),
    "solve_token_svm": lambda s: ib.limits.solve_token_svm(
        s * X[:16].reshape(4, 4, D), X[:4], X[:16, :1].reshape(4, 4)
    ),
    "solve_orthosep": lambda s: ib.solve_orthosep(s * MIRRORED, Y),
    "solve_convolution": lambda s: ib.limits.solve_convolution(s * X, Y),
    "solve_fixed_outer": lambda s: ib.limits.solve_fixed_outer(
        s * MIRRORED[:8], Y[:8], [1.0, -1.0], slope=0.3
    ),
    "solve_relu_minnorm": lambda s: ib.limits.solve_relu_minnorm(s * X[:8, :2], Y[:8]),
    "solve_cone_pair": lambda s: ib.limits.solve_cone_pair(s * MIRRORED, Y),
    "solve_gated_ols": lambda s: ib.solve_gated_ols(s * X, Y, GATES),
    "solve_exit_heads": lambda s: ib.heads.solve_exit_heads([s * WIDE], teacher=TEACHER, share=0)[
        0
    ],
    # The start is that of coefficients that scale as 1 / s.
    "solve_diagonal": lambda s: ib.limits.solve_diagonal(s * X[:4], Y[:4], s**-0.5 * np.ones(D)),
    # What is penalised scales as 1 / s, as the barrier's decay and resolution do.
    "solve_fit": lambda s: ib.limits.solve_fit(s * X, Y, GATES, penalty=0.01 * s),
    "solve_fit_path": lambda s: ib.limits.solve_fit_path(s * X, Y, GATES, penalties=[0.1 * s])[0],
    "solve_adamw": lambda s: ib.limits.solve_adamw(s * X, Y, weight_decay=2 * s, eps=0.01 * s),
    "solve_kernel_svm": lambda s: ib.solve_kernel_svm(s**2 * (X @ X.T + UNIT / 10), Y),
    "solve_limit": lambda s: ib.limits.solve_limit(ib.programs.HardMarginSVM(), s * X, Y),
    "solve_path": lambda s: ib.limits.solve_path(
        ib.programs.HardMarginSVM(), s * X, Y, sizes=[10, N]
    )[1],
}
OTHERS: dict[str, Callable[[float], object]] = {
    "heads of labels": lambda s: ib.heads.solve_exit_heads([s * X], LABELS, share=1)[0],
    "kernel regression": lambda s: ib.kernels.kernel_regression(s**2 * (X @ X.T + UNIT), Y),
    "several convolutions": lambda s: ib.limits.solve_convolution(s * X, Y, 3),
    "distillation": lambda s: ib.distillation.distillation_limit(s * WIDE, np.ones(12)),
    "highs": lambda s: ib.limits.solve_l1_svm(s * X, Y, solver="highs"),
    "Clarabel": lambda s: ib.solve_frelu_svm(s * X, Y, GATES, solver="cvxpy:CLARABEL"),
}
# Powers of the scale that the coefficients have.
POWERS = {"solve_kernel_svm": 2, "kernel regression": 2, "distillation": 0}
ALL = SOLVES | OTHERS
PROVED = ("SOLVED", "GLOBAL_OPTIMUM", "LOCAL_OPTIMUM")


def public_solves() -> set[str]:
    """Names of all `solve_` functions of the public stubs."""
    root = Path(inspect.getfile(ib)).parent
    stubs = [*root.glob("*.pyi"), root / "limits/__init__.pyi", root / "kernels.pyi"]
    return {
        alias.name
        for stub in stubs
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.startswith("solve_")
    }


def coefficients(result: object) -> np.ndarray:
    found = next(n for n in ("zeta", "coefficients", "w_plus", "value") if hasattr(result, n))
    return np.asarray(getattr(result, found))


def test_every_public_solve_is_in_the_table() -> None:
    # Unconstrained features have class sizes, and no inputs.
    assert public_solves() == set(SOLVES) | {"solve_collapse"}


@pytest.mark.parametrize("name", ALL)
def test_answers_scale_exactly_with_powers_of_two(name: str) -> None:
    plain = ALL[name](1.0)
    for exponent in (-490, 490):
        s = 2.0**exponent
        scaled = ALL[name](s)
        assert scaled.status is plain.status and plain.status.name in PROVED
        back = coefficients(scaled) * s ** POWERS.get(name, 1)
        # Orthogonal factorisations round by the scale they choose; active sets do not.
        np.testing.assert_allclose(back, coefficients(plain), rtol=1e-9)


@pytest.mark.parametrize("s", [1e-150, 1e150])
@pytest.mark.parametrize("name", ALL)
def test_programs_are_solved_from_one_end_to_the_other(name: str, s: float) -> None:
    assert ALL[name](s).status.name in PROVED


@pytest.mark.parametrize("s", [1e-200, 1e-153, 1e153, 1e200])
@pytest.mark.parametrize("name", ALL)
def test_beyond_it_the_message_says_rescale(name: str, s: float) -> None:
    power = POWERS.get(name, 1)
    s = s ** min(1, 153 / abs(np.log10(s))) if power == 2 else s  # neither infinite nor zero
    with pytest.raises(ValueError, match=r"`(X|K|features.*|contexts)` has .* rescale it"):
        ALL[name](s)


def design(s: float, gates: float = 1.0) -> GatedDesign:
    return GatedDesign(s * X, np.full((N, 1), gates), np.zeros(1, dtype=np.int64))


@pytest.mark.parametrize(
    "call",
    [
        lambda d: solve(MaxMarginProgram(d, Y)),
        lambda d: solve_nested(MaxMarginProgram(d, Y), [10, N]),
        lambda d: solve_one_vs_rest(d, LABELS),
    ],
)
def test_the_solvers_say_it_of_inputs_gates_and_their_products(call) -> None:
    call(design(1e100, 1e-100))
    both = "X` times gates `Z"
    for s, gates, name in ((1e200, 1.0, "X"), (1.0, 1e-200, "Z"), (1e-100, 1e-100, both)):
        with pytest.raises(ValueError, match=f"`{name}` has .* rescale it"):
            call(design(s, gates))


def test_zeros_have_every_scale() -> None:
    assert ib.is_separable(0 * X, Y).separable is False


@pytest.mark.parametrize("gates", [None, GATES])
def test_separability_is_decided_at_every_scale(gates) -> None:
    for s in (1e-150, 1e150):
        assert ib.is_separable(s * X, Y, gates).separable is True
        assert ib.is_separable(s * X, -np.abs(Y) * LABELS % 2 * 2 - 1).separable is not None
    with pytest.raises(ValueError, match=r"`X` has .* rescale it"):
        ib.is_separable(1e200 * X, Y, gates)


CLASSIFIERS = {
    # Largest entries are separable jointly, and not each against the rest: a fit with weight decay
    # depends on the scale, as networks with weight decay do.
    "linear": ib.estimators.LinearLimitClassifier(add_constant=False, multi_class="joint"),
    "gln": ib.estimators.GLNLimitClassifier(
        ib.HyperplaneContexts(n_units=3, random_state=0), add_constant=False
    ),
    "frelu": ib.estimators.FReLULimitClassifier(
        ib.HyperplaneGates(n_units=3, random_state=0), add_constant=False
    ),
}


@pytest.mark.parametrize("classifier", CLASSIFIERS.values(), ids=CLASSIFIERS)
@pytest.mark.parametrize("y", [Y, LABELS], ids=["two", "three"])
@pytest.mark.filterwarnings("ignore::implicit_bias.estimators.InseparableWarning")
def test_estimators_predict_the_same_at_every_scale(classifier, y) -> None:
    predicted = classifier.fit(X, y).predict(X)
    for s in (1e-150, 2.0**-490, 2.0**490, 1e150):
        np.testing.assert_array_equal(classifier.fit(s * X, y).predict(s * X), predicted)
    for s in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"`X` has .* rescale it"):
            classifier.fit(s * X, y)


def near_its_limit(s: float = 1.0) -> ib.FReLU:
    return ib.FReLU.from_zeta(ib.solve_frelu_svm(s * X, Y, GATES).zeta)


@pytest.mark.parametrize("s", [1e-150, 1e150])
def test_networks_are_measured_at_every_scale(s: float) -> None:
    network = near_its_limit()
    plain, scaled = (ib.kkt_distance(network, t * X, Y, GATES) for t in (1.0, s))
    assert scaled.residual == pytest.approx(plain.residual, rel=1e-3, abs=1e-9) and (
        scaled.residual < 1e-4
    )
    grown = ib.dynamics.unit_growth(network, s * X, Y, GATES)
    np.testing.assert_allclose(grown.dual_norms, scaled.dual_norms)
    np.testing.assert_allclose(grown.dual_norms.max(), 1, rtol=1e-4)
    assert ib.local_limit(network, s * X, Y, GATES).status.name == "LOCAL_OPTIMUM"


@pytest.mark.parametrize("s", [1e-200, 1e200])
@pytest.mark.parametrize(
    "measure", [ib.kkt_distance, ib.dynamics.unit_growth, ib.local_limit, ib.train]
)
def test_networks_on_data_beyond_say_rescale(measure, s: float) -> None:
    with pytest.raises(ValueError, match=r"`X` has .* rescale it"):
        measure(near_its_limit(), s * X, Y, GATES)


@pytest.mark.parametrize("s", [1e-60, 1e-18, 1e18, 1e60])
def test_inputs_that_single_precision_does_not_hold_are_no_zeros_and_no_infinities(s) -> None:
    network = near_its_limit().float()
    with pytest.raises(ValueError, match=r"rescale it .* in torch\.float32"):
        ib.train(network, s * X, Y, GATES)


# Models whose gates do not depend on how large the weights come out of training.
FIXED = {"linear", "deep-linear", "gln", "gln-l2", "shallow-gln", "frelu", "orthosep"}


SCALED = [name for name, one in MODELS.items() if not one.refusal("data") and name != "collapse"]
# Every model at one of two scales, small and large by turns; the other waits.
TURNS = [
    (name, s) for k, name in enumerate(SCALED)
    for s in ((1e150, 1e-150) if k % 2 else (1e-150, 1e150))
]  # fmt: skip


@pytest.mark.parametrize(("name", "s"), some_of(TURNS, one_in=2))
def test_runs_predict_the_same_at_every_scale(name: str, s: float) -> None:
    own = {"hidden_units": 4, "steps": 20, "n_train": 18, "n_val": 6}
    whole = name in ("attention", "gdln", "next-token")  # which hold no samples out
    taken = {key for key in MODELS[name].option_names if key != "n_train" or not whole}
    options = {key: value for key, value in own.items() if key in taken}
    inputs = {"orthosep": MIRRORED, "attention": np.stack([X, X + 1], axis=1)}.get(name, X)
    labels = (Y + 1) / 2 if whole and name != "attention" else Y
    if name in FIXED:
        plain, scaled = (ib.run(name, X=t * inputs, y=Y, **options) for t in (1.0, s))
        assert scaled.finished and scaled.status is plain.status
        assert scaled.limit.objective * s == pytest.approx(plain.limit.objective, rel=1e-8)
    with pytest.raises(ValueError, match="rescale it"):
        ib.run(name, X=s**1.3 * inputs, y=labels, **options)


@pytest.mark.parametrize("s", [1e-250, 1e-150, 1e150, 1e250])
def test_standardised_inputs_have_no_scale(s: float, tmp_path: Path) -> None:
    inputs, found = np.column_stack([Y * (2 + np.abs(X[:, 0])), X[:, 1]]), []
    for factor in (1.0, s):
        rows = [
            f"{a!r},{b!r},{y:g}" for (a, b), y in zip((factor * inputs).tolist(), Y, strict=True)
        ]
        path = tmp_path / "own.csv"
        path.write_text("\n".join(["a,b,label", *rows]))
        words = ["--model", "linear", "--data", str(path), "--standardize", "--steps", "0"]
        done = CliRunner().invoke(cli.compare, [*words, "--json", "--quiet"])
        assert done.exit_code == 0, done.output
        found.append(json.loads(done.stdout)["limit"]["objective"])
    assert found[1] == pytest.approx(found[0], rel=1e-9)
