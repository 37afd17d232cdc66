"""Every program in cvxpy: the optimum that the library finds, and its text."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias import programs
from implicit_bias.limits import solve_limit
from implicit_bias.programs import Formulation, gln_norm

RNG = np.random.default_rng(5)
N, H, C, D, K = 24, 3, 4, 5, 3
X = RNG.normal(size=(N, D)) * [1.0, 2.0, 0.5, 1.0, 3.0]
Y = np.where(X @ RNG.normal(size=D) > 0, 1.0, -1.0)
# One context more than occurs; one gate always open, so that no sample is without.
CONTEXTS = RNG.integers(0, C - 1, size=(N, H))
GATES = np.hstack([RNG.integers(0, 2, size=(N, H)), np.ones((N, 1), dtype=int)])
MIRRORED = np.abs(X) * Y[:, None]
FEATURES = RNG.normal(size=(N, 2 * D))
KERNEL = FEATURES @ FEATURES.T  # singular
LABELS = RNG.integers(0, K, size=N)
SOME_LABELS = np.where(np.arange(N) < N // 2, LABELS, -1)
TEACHER = 2 * FEATURES @ RNG.normal(size=(2 * D, K))
CHANCES = np.array([[0.5, 0.5, 0, 0], [0, 0.5, 0.25, 0.25], [0, 0, 1.0, 0], [0, 1.0, 0, 0]])
FAMILY = RNG.normal(size=(C, 1, 1, D)) + RNG.normal(size=(1, C, 1, D)) + RNG.normal(size=(C, D))

LINEAR, QUADRATIC, CONES = "linear program", "quadratic program", "second-order cone program"
EXPONENTIAL, SEMIDEFINITE = "exponential cone program", "semidefinite program"


class Case:
    """A program, its data, its optimum and multipliers as the library knows them, and its text."""

    def __init__(self, program, data: tuple, optimum: Callable[[], float], names: str, kind: str):
        self.program, self.data, self.optimum = program, data, optimum
        self.variables, self.kind = set(names.split()), kind
        self.duals: Callable[[], np.ndarray] | None = None

    @property
    def problem(self) -> cp.Problem:
        return self.program.literal(*self.data)


def margins(
    formulation: Formulation, X, gates=None, names="zeta", kind=CONES, factor=1, unique=True
) -> Case:
    """A max-margin program: its optimum is `factor` times that of its standard form."""

    def limit():
        return solve_limit(formulation, X, Y, gates).require()

    case = Case(formulation, (X, Y, gates), lambda: factor * limit().objective, names, kind)
    if unique:
        case.duals = lambda: factor * limit().dual * limit().objective / limit().dual.sum()
    return case


def exits(share: float, labels, teacher) -> Case:
    """The loss of a head; its least value is that at the weights of the limit."""

    def least() -> float:
        options = {"share": share, "temperature": 2.0, "tol": 1e-6}
        (head,) = ib.heads.solve_exit_heads([FEATURES], labels, teacher=teacher, **options)
        logits = head.require().predictor(FEATURES)
        return cross_entropies(logits, labels, teacher, share)

    return Case(
        programs.HeadLoss(temperature=2.0, share=share),
        (FEATURES, labels, teacher), least, "W", EXPONENTIAL,
    )  # fmt: skip


def cross_entropies(logits, labels, teacher, share: float) -> float:
    """share CE(labels, u) + (1 - share) tau^2 CE(softmax(t / tau), softmax(u / tau)), tau = 2."""

    def log_softmax(u):
        return u - np.log(np.exp(u).sum(axis=1, keepdims=True))

    total = 0.0
    if share > 0:
        known = np.flatnonzero(labels >= 0)
        total -= share * log_softmax(logits)[known, labels[known]].mean()
    if share < 1:
        p = np.exp(log_softmax(teacher / 2))
        total -= (1 - share) * 4 * np.sum(p * log_softmax(logits / 2), axis=1).mean()
    return float(total)


def in_support() -> float:
    """The limit of the loss of next tokens."""
    limit = ib.limits.solve_next_token(X[:4], CHANCES, START[:4]).require()
    return limit.entropy + limit.excess


def hinges() -> Case:
    """Two ReLUs next to a linear predictor."""
    w = ib.solve_linear_svm(X, Y).zeta
    network = ib.ReLU.from_weights(np.stack([w, -w]), np.array([1.0, -1.0]))
    found = ib.limits.relu_local_limit(network, X, Y).require()
    data = (X, Y, X @ found.units.T > 0)
    return Case(programs.ReLUMargin(found.signs), data, lambda: found.value, "u", CONES)


def fixed_outer() -> Case:
    """Two units of a fixed outer layer, next to the optimum from the gates of the labels."""
    a = [1.0, -2.0]
    found = ib.limits.solve_fixed_outer(X[:4], Y[:4], a, slope=0.3)
    gates = X[:4] @ found.zeta.T >= 0
    data = (X[:4], Y[:4], gates)
    return Case(programs.FixedOuterMargin(a, 0.3), data, lambda: found.value, "W", CONES)


START = np.linspace(0.2, 1.1, N)
LAYERS = [GATES[:, 2:], GATES[:, [0, 3]]]
CASES: dict[str, Case] = {
    "linear": margins(programs.HardMarginSVM(), X, names="b"),
    "L1": margins(programs.L1Margin(), X, names="b", kind=LINEAR, unique=False),
    "convolution": margins(programs.FrequencyMargin(), X, names="z"),
    "convolution, a table": margins(
        programs.FrequencyMargin(group=np.add.outer(range(D), range(D)) % D), X, names="b",
        kind="semidefinite program",
    ),
    "frelu": margins(programs.SVMFReLU(), X, GATES),
    "gln": margins(programs.SVMGLN(C), X, CONTEXTS),
    # In the printed norm of SVM-L2 the optimum is C times that of the root mean square.
    "gln-l2": margins(programs.SVML2(C), X, CONTEXTS, factor=C),
    "shallow-gln": margins(programs.ContextSVMs(), X, CONTEXTS, names="beta"),
    "constant experts": margins(
        programs.ConstantExperts(), X, RNG.integers(0, 2, size=(N, 2 * N)),
        names="v", kind=LINEAR, unique=False,
    ),
    "paths": margins(programs.PathLasso(), X, LAYERS),
    "paths of contexts": margins(
        programs.PathLasso(contexts=True), X, [CONTEXTS[:, :2], CONTEXTS[:, 2:]]
    ),
    # `gates_only` sees one pattern of its four in each class and separates nothing.
    "relu rc": margins(programs.SVMFReLU(), X, GATES),
    "relu lc": margins(programs.SVMFReLU(), X, GATES[::-1]),
    "relu hl": margins(programs.HardMarginSVM(), X**3, names="b"),
    "fixed outer layer": fixed_outer(),
    "orthosep": Case(
        programs.OrthogonallySeparable(), (MIRRORED, Y),
        lambda: ib.solve_orthosep(MIRRORED, Y).require().objective,
        "w_positive w_negative", CONES,
    ),
    "gdln": Case(
        programs.GatedLeastSquares(), (X, Y, GATES),
        lambda: ib.solve_gated_ols(X, Y, GATES).require().loss, "zeta", QUADRATIC,
    ),
    "kernel SVM": Case(
        programs.KernelSVM(), (X @ X.T, Y),
        lambda: ib.solve_kernel_svm(X @ X.T, Y).require().objective ** 2 / 2, "a", QUADRATIC,
    ),
    "kernel regression": Case(
        programs.KernelLeastSquares(), (KERNEL, Y, X[:, 0]),
        lambda: least_squares(KERNEL, X[:, 0] - Y), "c", QUADRATIC,
    ),
    "joint margin": Case(
        programs.JointMargin(), (RNG.normal(size=(N, N + 1)), LABELS),
        lambda: float(np.linalg.norm(direction().zeta)), "W", CONES,
    ),
    "tokens": Case(
        programs.TokenMargin("nuclear"), (X.reshape(-1, 4, D), X[::4, :2], X[:, 0].reshape(-1, 4)),
        lambda: ib.limits.solve_token_svm(
            X.reshape(-1, 4, D), X[::4, :2], X[:, 0].reshape(-1, 4), norm="nuclear"
        ).objective, "W", "semidefinite program",
    ),
    "hard labels": exits(1, LABELS, None),
    "soft labels": exits(0, None, TEACHER),
    "mixed labels": exits(0.3, SOME_LABELS, TEACHER),
    "next token": Case(
        programs.NextTokenSVM(), (X[:4], CHANCES),
        lambda: ib.limits.solve_next_token(X[:4], CHANCES).require().objective, "W", CONES,
    ),
    "loss in support": Case(
        programs.InSupportLoss(), (X[:4], CHANCES, START[:4]), in_support, "W t", EXPONENTIAL,
    ),
    "unit features": margins(programs.UnitFeatures(2), np.hstack([MIRRORED, X])),
    "relu": hinges(),
    "least potential": Case(
        programs.LeastPotential(), (X.T, Y[:D], START, START[::-1] / 3),
        lambda: ib.limits.solve_diagonal(X.T, Y[:D], START, START[::-1] / 3).require().objective,
        "p q", EXPONENTIAL,
    ),
    "weight decay": Case(
        programs.WeightDecay("logistic", "l1", penalty=0.01), (X, Y, GATES),
        lambda: ib.limits.solve_fit(X, Y, GATES, norm="l1", penalty=0.01).require().objective,
        "zeta", EXPONENTIAL,
    ),
    "collapse": Case(
        programs.Collapse(), ([0, 1, 2, 0, 1, 0],),
        lambda: ib.limits.solve_collapse([0, 1, 2, 0, 1, 0]).require().objective, "W", SEMIDEFINITE,
    ),
    "norm": Case(
        programs.GLNNorm(), (FAMILY,),
        lambda: float(gln_norm(FAMILY)), "zeta", CONES,
    ),
}  # fmt: skip
every_case = pytest.mark.parametrize("name", CASES)


def least_squares(K: np.ndarray, errors: np.ndarray) -> float:
    """Half the squares that stay: what the library predicts, and NumPy's least squares."""
    stay = ib.kernels.kernel_regression(KERNEL, Y, X[:, 0]).error(np.inf)
    fitted = K @ np.linalg.lstsq(K, errors, rcond=1e-10)[0]
    np.testing.assert_allclose(stay, errors - fitted, atol=1e-9)
    return float(np.sum(stay**2)) / 2


def direction():
    features, labels = CASES["joint margin"].data
    (head,) = ib.heads.solve_exit_heads([features], labels, share=1)
    return head.require()


@every_case
def test_a_program_has_the_optimum_that_the_library_finds(name) -> None:
    case = CASES[name]
    problem = case.problem
    problem.solve(solver="CLARABEL")
    assert problem.value == pytest.approx(case.optimum(), rel=2e-6)
    assert {variable.name() for variable in problem.variables()} == case.variables
    if case.duals is not None:
        multipliers = problem.constraints[0].dual_value
        np.testing.assert_allclose(multipliers, case.duals(), atol=1e-3 * multipliers.max())


def test_the_vectors_of_the_one_sided_programs_have_the_names_of_their_classes() -> None:
    problem = CASES["orthosep"].problem
    problem.solve(solver="CLARABEL")
    limit = ib.solve_orthosep(MIRRORED, Y).require()
    for name, vector in (("w_positive", limit.w_plus), ("w_negative", limit.w_minus)):
        np.testing.assert_allclose(problem.var_dict[name].value, vector, atol=1e-4)


def test_every_program_of_the_library_is_public_and_stands_here() -> None:
    folder = Path(ib.__file__).parent
    declared = {
        found
        for path in folder.rglob("*.py")
        for found in re.findall(
            r"^class (\w+)\((?:LiteralProgram\)|(?:Normed)?Formulation\[)",
            path.read_text(),
            re.MULTILINE,
        )
    }
    declared.remove("NormedFormulation")  # the base of those of any norm
    assert declared == {type(case.program).__name__ for case in CASES.values()}
    assert declared == set(programs.__all__) - {
        "Formulation",
        "ProgramText",
        "describe_program",
        "gln_norm",
        "to_cvxpy",
    }
    assert all(isinstance(case.program.name, str) for case in CASES.values())


def indices(expression: cp.Expression) -> Iterator[np.ndarray]:
    """Arrays of indices in the order in which they are read."""
    for arg in expression.args:
        yield from indices(arg)
    if type(expression).__name__ == "special_index":
        key = expression.get_data()[-1]
        yield from (part for part in (key if isinstance(key, tuple) else (key,))
                    if isinstance(part, np.ndarray))  # fmt: skip


def read_back(text: str, whole: cp.Expression | cp.Constraint, problem: cp.Problem):
    """The text as Python reads it, with the names of the problem and its indices put in."""
    named = {leaf.name(): leaf for leaf in (*problem.variables(), *problem.constants())}
    arrays = dict(enumerate(indices(whole)))
    numbers = iter(arrays)
    code = re.sub(r"<\d+ indices>", lambda _: f"INDICES[{next(numbers)}]", text)
    return eval(code, vars(cp) | {"INDICES": arrays}, named)


@every_case
def test_the_text_read_as_python_is_the_program(name) -> None:
    problem = CASES[name].problem
    told = programs.describe_program(problem)
    rng = np.random.default_rng(3)
    for variable in problem.variables():
        variable.value = rng.normal(size=variable.shape)
    sense, objective = told.objective.split(" ", 1)
    assert sense == "minimise"
    expected = problem.objective.args[0]
    assert read_back(objective, expected, problem).value == pytest.approx(expected.value, rel=1e-5)
    few = len(problem.constraints) <= 6
    kept = problem.constraints if few else problem.constraints[:: len(problem.constraints) - 1]
    shown = [text for text in told.constraints if not text.startswith("<")]
    for text, constraint in zip(shown, kept, strict=True):
        label, _, body = text.partition(": ")
        assert label == constraint.label
        again = read_back(body, constraint, problem)
        assert type(again) is type(constraint)
        np.testing.assert_allclose(again.expr.value, constraint.expr.value, rtol=1e-12)


@every_case
def test_size_and_kind_are_those_that_cvxpy_compiles(name) -> None:
    case = CASES[name]
    problem = case.problem
    told = programs.describe_program(problem)
    assert told.kind == case.kind
    assert told.variables == {v.name(): v.shape for v in problem.variables()}
    assert told.n_variables == sum(v.size for v in problem.variables())
    constraints = told.n_equalities + told.n_inequalities
    assert constraints == sum(one.size for one in problem.constraints)
    data = problem.get_problem_data("CLARABEL")[0]
    cones = data["dims"]
    assert (cones.exp > 0) == (case.kind == EXPONENTIAL)
    assert bool(cones.soc) == (case.kind == CONES)
    quadratic = data.get("P") is not None and data["P"].nnz > 0
    assert quadratic == (case.kind == QUADRATIC)
    json.dumps(told.to_dict(), allow_nan=False)
    lines = str(told).splitlines()
    assert lines[0].startswith("minimise    ")
    assert [line[:4] for line in lines[-2:] if line[0] != " "][-1] == "size"
    assert max(map(len, lines)) <= 100 and all(line == line.rstrip() for line in lines)
    cut = re.compile(r"(<[^>]*|\[[^\]]*)$")  # a bracket that another line closes
    assert not any(map(cut.search, lines))


def test_nonzeros_are_those_of_the_data() -> None:
    told = programs.describe_program(programs.SVMFReLU().literal(X, Y, GATES))
    assert told.n_nonzero == X.size + Y.size + np.count_nonzero(GATES)
    assert told.constants == {"X": X.shape, "y": Y.shape, "g": GATES.shape}


def test_long_sums_and_many_constraints_are_cut_in_the_middle() -> None:
    contexts = RNG.integers(0, 2, size=(N, 20))
    told = programs.describe_program(programs.SVMGLN(2).literal(X, Y, contexts))
    first, last = 'norm(zeta[0:2, :], "fro")', 'norm(zeta[38:40, :], "fro")'
    assert told.objective == f"minimise {first} + <18 more> + {last}"
    assert "<18 more>" in told.constraints[0] and len(str(told).splitlines()) < 12
    family = programs.describe_program(CASES["norm"].problem)
    assert family.constraints == (
        "beta[0, 0, 0]: zeta[0, :] + zeta[4, :] + zeta[8, :] == beta[0, :]",
        f"<{C**H - 2} more>",
        "beta[3, 3, 3]: zeta[3, :] + zeta[7, :] + zeta[11, :] == beta[63, :]",
    )
    assert family.n_equalities == C**H * D


def test_any_problem_of_cvxpy_is_told_with_unnamed_data_by_shape() -> None:
    x, big = cp.Variable(3, name="x"), cp.Variable((2, 2), name="S", symmetric=True)
    A, b = np.arange(6.0).reshape(2, 3), cp.Parameter(2, name="b", value=np.ones(2))
    problem = cp.Problem(
        cp.Maximize(-cp.norm(x, 1) - 0.5 * cp.max(x) - (x[0] + x[1])),
        [A @ x <= b, x[::2] >= -2, cp.sum(x) == 1],
    )
    told = programs.describe_program(problem)
    assert told.objective == "maximise -norm(x, 1) - 0.5 * max(x) - (x[0] + x[1])"
    assert told.constraints == ("<(2, 3) constant> @ x <= b", "x[::2] >= -2", "sum(x) == 1")
    assert (told.n_variables, told.n_equalities, told.n_inequalities) == (3, 1, 4)
    assert told.kind == LINEAR and told.n_nonzero == 5
    kinds = {
        "semidefinite program": (cp.lambda_max(big), [big[0, 1] >= 1]),
        "mixed-integer linear program": (cp.sum(cp.Variable(2, boolean=True)), []),
        "program that cvxpy does not know to be convex": (cp.sqrt(cp.sum(x)), []),
        CONES: (cp.norm(x), []), QUADRATIC: (cp.sum_squares(x), [x >= 0]),
    }  # fmt: skip
    for kind, (objective, constraints) in kinds.items():
        told = programs.describe_program(cp.Problem(cp.Minimize(objective), constraints))
        assert told.kind == kind


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: programs.JointMargin().literal(FEATURES, SOME_LABELS), "a class for every sample"),
        (lambda: programs.JointMargin(2).literal(FEATURES, LABELS), "from 0 to 1"),
        (lambda: programs.JointMargin().literal(X[:3], LABELS), r"shape \(24, D\)"),
        (lambda: programs.KernelSVM().literal(-KERNEL, Y), "diagonal that is not negative"),
        (lambda: programs.KernelLeastSquares().literal(KERNEL, Y[:3]), r"`y` .* shape \(24,\)"),
        (lambda: programs.GatedLeastSquares().literal(X, Y, GATES[:3]), r"shape \(24, K\)"),
        (lambda: programs.GLNNorm().literal(X[None]), "one axis of length C for each unit"),
        (lambda: programs.HeadLoss(share=0).literal(FEATURES, LABELS), "needs `teacher`"),
        (lambda: programs.OrthogonallySeparable().literal(X, Y + 1), "labels -1 and"),
    ],
)  # fmt: skip
def test_data_that_a_program_does_not_take_are_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_more_paths_than_memory_holds_are_refused_before_they_are_made() -> None:
    gates = np.ones((N, 4000))
    with pytest.raises(ValueError, match="1,000,000,000 paths in cvxpy would take"):
        programs.PathLasso((1000, 1000, 1000)).literal(X, Y, gates[:, :3000])
