"""Cases that the library once got wrong, tried again by its public names.

    python -m experiments.retry --out experiments/results/retry.csv

Each row is one case: what is tried, what is to come out, what came out, and whether that is right.
What is right follows from a closed form, from cvxpy or from a file that is made here, never from an
earlier answer. Ends with exit code 1 if a case comes out wrong. `--only WORD` tries those whose
description has the word.
"""

from __future__ import annotations

import copy
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import click
import cvxpy as cp
import numpy as np
import torch
from click.testing import CliRunner
from scipy.sparse import csr_matrix
from torch import nn

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.runs.reports import KIND, Evidence, decide, read_saved, write_saved

from .tables import Kept, out_file

# Functions of arrays that are tried with lists.
AGREEMENT: Any = ib.measures.agreement
FIT_SERIES: Any = ib.measures.fit_series
solve_fit, relu_minnorm = ib.limits.solve_fit, ib.limits.solve_relu_minnorm
HUGE, MARKS = 2**40, "\x1b[2J\x07\u202e"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
Y = np.where(X @ [1.0, -0.5, 0.3] > 0, 1.0, -1.0)
OWN: dict[str, Any] = {"X": X, "y": Y, "X_val": X, "y_val": Y}
DIGITS: dict[str, Any] = {"n_train": 30, "n_val": 60}
DECOUPLED = DIGITS | {"seed": 1, "decoupled": True, "trainer": "adam"}
SHORT = ib.TrainingSettings(trainer="constant", batch_size=0, schedule=((3, 0.1),))


class Case(NamedTuple):
    """What is tried, what is to come out, the call, and whether what it returns is right."""

    tried: str
    asked: str
    call: Callable[[], Any]
    right: Callable[[Any], bool]


CASES: list[Case] = []


def case(tried: str, asked: str, right: Callable[[Any], bool] = bool) -> Callable[..., None]:
    """Return a decorator that lists the call of a case, whose answer `right` judges."""
    return lambda call: CASES.append(Case(tried, asked, call, right))


def refused(tried: str, said: str, call: Callable[[], Any]) -> None:
    """List a call that is to end in one line which says `said`."""

    def message() -> str:
        try:
            found = call()
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            return str(error)
        return f"no error: {type(found).__name__}"

    CASES.append(Case(tried, f"one line with {said!r}", message, one_line(said)))


def one_line(said: str) -> Callable[[str], bool]:
    """Return what tells whether a message is one line with these words."""
    return lambda text: said in text and "\n" not in text


def shown(found: object) -> str:
    """Return the words of a report on one line."""
    return " ".join(str(found).split())


def diagnosed(network: nn.Module, inputs: Any = X, labels: Any = Y) -> str:
    """Return what `diagnose` says of a network, on one line."""
    return shown(ib.diagnose(network, inputs, labels))


def layers(*between: nn.Module, width: int = 8, n_inputs: int = 3, seed: int = 0) -> nn.Module:
    """Return two linear layers without biases, and what stands between them, in float64."""
    torch.manual_seed(seed)
    ends = nn.Linear(n_inputs, width, bias=False), nn.Linear(width, 1, bias=False)
    return nn.Sequential(ends[0], *between, ends[1]).double()


# Verdicts and finite limits


def decayed(decay: float) -> tuple[str, float]:
    """Return the word of a run with decoupled decay, and its loss over the least one."""
    report = ib.run("linear", weight_decay=decay, steps=500, **DECOUPLED)
    return report.verdict.word, 1 + report.comparison.over_optimum


for _decay in (0.3, 0.1):

    @case(
        f"linear network, decoupled decay {_decay}: its loss is many times the least one",
        "NOT THERE YET, judged relative to the optimum",
        lambda found: found[0] == "NOT THERE YET" and found[1] > 2,
    )
    def _(decay: float = _decay) -> tuple[str, float]:
        return decayed(decay)


@case("its screen", "says that the number is in parts of the optimum")
def _() -> bool:
    report = ib.run("linear", weight_decay=0.3, steps=50, **DECOUPLED)
    return "times the optimum" in report.verdict.sentence and "/ that bound" in str(report)


@case("least logistic loss in a box, one sample", "the ball binds", lambda f: f.binds and f.status)
def _() -> Any:
    return solve_fit([[1.0]], [1.0], radius=20.0, norm="linf")


@case(
    "gated units with decoupled decay 1, signum, seeds 0 to 3",
    "all solved, gaps below 1e-8",
    lambda gaps: max(gaps) < 1e-8,
)
def _() -> list[float]:
    options: dict[str, Any] = DIGITS | {"hidden_units": 3, "trainer": "signum", "steps": 20}
    runs = [
        ib.run("gln", weight_decay=1.0, decoupled=True, seed=seed, **options) for seed in range(4)
    ]
    return [run.limit.gap if run.verdict.word != "NOT SOLVED" else math.inf for run in runs]


@case("a finite limit that misses its tolerance", "NOT SOLVED with the gap", one_line("(gap "))
def _() -> str:
    report = ib.run("linear", weight_decay=0.1, steps=20, tol=1e-15, **DECOUPLED)
    return f"{report.verdict.word}: {report.verdict.sentence}"


@case(
    "least interpolant of samples of sizes 1 and 1e-16",
    "coefficients (1, 1e7), norm 1e7",
    lambda f: f.status is ib.Status.SOLVED and math.isclose(f.objective, 1e7, rel_tol=1e-6),
)
def _() -> Any:
    return solve_fit(np.diag([1, 1e-16]), [1, 1e-9], loss="squared", norm="l2")


@case("a ratio of 1.0024 to a local optimum", "not called one", lambda word: word == "NO THEOREM")
def _() -> str:
    optimum = {"theory": "local limit", "status": ib.Status.LOCAL_OPTIMUM}
    return decide(Evidence(near={"local_ratio": 1.0024}, **optimum)).word  # type: ignore[arg-type]


@case(
    "ReLU networks on 100 digits beside what is found next to them, seeds 0 to 2",
    "no value above the network's own is called its local optimum",
    lambda ratios: all(word != "AT A LOCAL LIMIT" or r <= 1 + 1e-6 for word, r in ratios),
)
def _() -> list[tuple[str, float]]:
    options: dict[str, Any] = {"n_train": 100, "n_val": 50, "starts": 1, "hidden_units": 8}
    runs = [ib.run("relu", seed=seed, steps=300, **options) for seed in range(3)]
    return [(r.verdict.word, r.verdict.numbers.get("local_ratio", math.nan)) for r in runs]


@case(
    "L1 margin of constant experts: at its limit, and other labels",
    "says why labels differ",
    one_line("labels"),
)
def _() -> str:
    found = Evidence(near={"margin_ratio": 1.0}, beside={"agreement": 0.83})
    return decide(found).sentence


# Certificates


@case("samples at an angle of 1e-7 of other labels", "a network of margin 1", lambda s: s)
def _() -> bool:
    inputs, labels = np.array([[1.0, 0.0], [1.0, 1e-7]]), [1.0, -1.0]
    start = ib.ReLU.from_weights([[1.0, -2e7], [0.0, 2e7]], [1.0, -1.0])
    found = [relu_minnorm(inputs, labels, start=one) for one in (None, start)]
    return all(one.status is not ib.Status.NOT_SEPARABLE for one in found)


@case(
    "60 ReLU networks on samples that do not span the inputs",
    "start values are those of the networks themselves",
    lambda off: off < 1e-12,
)
def _() -> float:
    off = 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        units, signs = rng.normal(size=(4, 3)), np.array([1.0, 1.0, -1.0, -1.0])
        inputs = rng.normal(size=(5, 2)) @ rng.normal(size=(2, 3))
        scores = np.maximum(inputs @ units.T, 0) @ signs
        if not np.abs(scores).min() > 1e-9:
            continue
        network = ib.ReLU.from_weights(units, signs)
        found = ib.limits.relu_local_limit(network, inputs, np.sign(scores))
        own = np.linalg.norm(units, axis=1).sum() / np.abs(scores).min()
        off = max(off, abs(found.start_value / own - 1))
    return off


@case(
    "one sample each way on two axes and their sum, whose odd part nothing linear separates",
    "NOT_SEPARABLE, proved",
    lambda f: f.status is ib.Status.NOT_SEPARABLE,
)
def _() -> Any:
    half = np.array([[1.0, 0], [0, 1], [1, 1]])
    return relu_minnorm(np.vstack([half, -half]), [1, 1, -1, -1, -1, 1])


@case("interpolants of two scores on the identity", "solved: the identity", lambda off: off < 1e-8)
def _() -> float:
    names = ("l2", "l1", "linf", "nuclear", "spectral")
    found = [solve_fit(np.eye(2), np.eye(2), loss="squared", norm=n).require() for n in names]
    return float(max(np.abs(one.zeta - np.eye(2)).max() for one in found))


@case(
    "two scores of one sample twice, which nothing interpolates",
    "multipliers that prove it, and an infinite gap",
    lambda f: f.proof is not None and f.gap == math.inf and np.sum(np.eye(2) * f.proof) > 0,
)
def _() -> Any:
    return solve_fit([[1.0, 0.0]] * 2, np.eye(2), loss="squared", norm="l2")


@case("samples of size 1e-150", "no warning, and an optimum", lambda found: found == [])
def _() -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        status = relu_minnorm(X[:5] * 1e-150, Y[:5]).status
    return [str(one.message) for one in caught] + [status.name] * (status.severity > 0)


@case(
    "local limits of ReLU networks on two samples, 20 seeds",
    "at most 20 programs and a second each",
    lambda most: most[0] <= 20 and most[1] < 1,
)
def _() -> tuple[int, float]:
    programs, seconds = 0, 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        inputs, network = rng.normal(size=(2, 2)), ib.ReLU(2, 6, random_state=seed).double()
        begun = time.process_time()
        found = ib.limits.relu_local_limit(network, inputs, [1.0, -1.0])
        programs, seconds = (
            max(programs, found.programs), max(seconds, time.process_time() - begun),
        )  # fmt: skip
    return programs, seconds


def expression(W: cp.Variable, norm: str) -> cp.Expression:
    """State a norm in cvxpy."""
    return {
        "l1": cp.sum(cp.abs(W)), "linf": cp.max(cp.abs(W)), "l2": cp.norm(W, "fro"),
        "spectral": cp.sigma_max(W), "nuclear": cp.normNuc(W), "rows": cp.sum(cp.norm(W, axis=1)),
    }[norm]  # fmt: skip


# Name, loss, norm, penalty or ball, gates, and what is done to inputs.
FITS = [
    ("linf behind gates", "logistic", "linf", "penalty", True, ""),
    ("l1 behind gates", "logistic", "l1", "penalty", True, ""),
    *((f"softmax, {n}", "softmax", n, "penalty", False, "") for n in ("l1", "linf", "spectral")),
    *((f"ill-conditioned, {n} ball", "logistic", n, "radius", False, "ill")
      for n in ("l2", "l1", "linf")),
    *((f"columns of sizes 1e-6 to 1e6, {loss} {n} {kind}", loss, n, kind, False, "columns")
      for loss, n, kind in (("logistic", "l2", "penalty"), ("logistic", "linf", "radius"),
                            ("softmax", "l2", "penalty"), ("softmax", "l1", "penalty"))),
]  # fmt: skip


def fit_drawn(seed: int, loss: str, norm: str, kind: str, gated: bool, inputs: str) -> bool:
    """Return whether a drawn fit is solved; where Clarabel says optimal it has to be, and equal."""
    rng = np.random.default_rng(seed)
    n, D, H, K = (int(rng.integers(*ends)) for ends in ((6, 20), (3, 8), (2, 5), (2, 5)))
    A = rng.normal(size=(n, D))
    if inputs == "ill":
        U, s, V = np.linalg.svd(A, full_matrices=False)
        A = (U * np.logspace(0, -rng.uniform(2, 7), len(s))) @ V * math.sqrt(n)
    if inputs == "columns":
        A = A * np.logspace(-6, 6, D)[rng.permutation(D)]
    gates = (rng.normal(size=(n, H)) > 0).astype(float) if gated else None
    if gates is not None:
        gates[:, 0] = 1
    classes = loss == "softmax"
    y = np.eye(K)[rng.integers(K, size=n)] if classes else np.sign(rng.normal(size=n))
    own = float(10 ** (rng.uniform(-4, 0) if kind == "penalty" else rng.uniform(-1, 2)))
    found = solve_fit(A, y, gates, loss=loss, norm=norm, **{kind: own})  # type: ignore[arg-type]
    W = cp.Variable((K if classes else H if gated else 1, D))
    F = A @ W.T if gates is None else cp.sum(cp.multiply(gates, A @ W.T), axis=1, keepdims=True)
    fit = cp.sum(cp.log_sum_exp(F, axis=1)) - cp.sum(cp.multiply(y, F)) if classes else cp.sum(
        cp.logistic(-cp.multiply(y[:, None], F)))  # fmt: skip
    N = expression(W, norm)
    program = (
        cp.Problem(cp.Minimize(fit / n + own * N)) if kind == "penalty"
        else cp.Problem(cp.Minimize(fit / n), [N <= own])
    )  # fmt: skip
    try:
        program.solve(solver="CLARABEL")
    except cp.SolverError:
        return found.status is ib.Status.SOLVED
    same = math.isclose(found.objective, program.value, rel_tol=1e-5, abs_tol=1e-7)
    return program.status != "optimal" or (found.status is ib.Status.SOLVED and same)


for _name, *_own in FITS:

    @case(
        f"20 fits, {_name}",
        "solved wherever Clarabel is, to the same value",
        lambda wrong: wrong == [],
    )
    def _(own: list[Any] = _own) -> list[int]:
        return [seed for seed in range(20) if not fit_drawn(seed, *own)]


def margin_drawn(seed: int, norm: str) -> bool:
    """Return whether a drawn joint margin has the gap that rounding leaves it, where Clarabel is.

    Multipliers, each rounded once, cancel terms as large as an input times the optimum.
    """
    rng = np.random.default_rng(seed)
    n, D, K = (int(rng.integers(*ends)) for ends in ((6, 30), (2, 9), (3, 5)))
    A = rng.normal(size=(n, D))
    labels = (A @ rng.normal(size=(D, K))).argmax(axis=1)
    labels[:K] = np.arange(K)
    A *= np.logspace(-6, 6, D)[rng.permutation(D)]
    found = ib.limits.solve_multiclass_svm(A, labels, norm=norm)  # type: ignore[call-overload]
    least = 2.0**-52 * float(np.abs(A).max()) * found.objective
    W = cp.Variable((K, D))
    samples, others = np.nonzero(labels[:, None] != np.arange(K))
    pairs = np.eye(K)[labels[samples]] - np.eye(K)[others]
    apart = cp.sum(cp.multiply(pairs, A[samples] @ W.T), axis=1)
    program = cp.Problem(cp.Minimize(expression(W, norm)), [apart >= 1])
    try:
        program.solve(solver="CLARABEL")
    except cp.SolverError:
        return True
    margin = -math.inf if W.value is None else float(apart.value.min())
    if program.status != "optimal" or margin < 0.999:
        return True
    longest = 1.0001 * float(program.value) / margin
    return bool(found.gap <= max(1e-8, 20 * least) and found.objective <= longest)


for _norm in ("l2", "l1", "linf", "rows", "spectral", "nuclear"):

    @case(
        f"20 joint margins of columns of sizes 1e-6 to 1e6, {_norm}",
        "within 20 roundings of their bound wherever Clarabel is, and no longer than its own",
        lambda wrong: wrong == [],
    )
    def _(norm: str = _norm) -> list[int]:
        return [seed for seed in range(20) if not margin_drawn(seed, norm)]


# Networks


class Surrogate(torch.autograd.Function):
    """z |z|, whose backward is that of the identity."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: torch.Tensor) -> torch.Tensor:
        return z * z.abs()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return slope


class Pointwise(nn.Module):
    """A function of each number."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.function(z)


class LogPeriodic(nn.Module):
    """Scores that double with the weights, and at no other factor scale so."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -0.3, 0.2], dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.w) * (1 + 0.2 * torch.sin(2 * math.pi * torch.log2(self.w.norm())))


@case("a backward that is not the forward's", "named as the cause", one_line("surrogate"))
def _() -> str:
    return diagnosed(layers(Pointwise(Surrogate.apply)))


@case("sqrt(z^2 + 1e-16)", "a small constant under a root", one_line("constant under a root"))
def _() -> str:
    return diagnosed(layers(Pointwise(lambda z: torch.sqrt(z**2 + 1e-16))))


@case("scores that only double with their weights", "no degree", lambda d: d is None)
def _() -> int | float | None:
    return ib.check_network(LogPeriodic(), X).degree


@case("three linear layers on true and false", "degree 3", lambda degree: degree == 3)
def _() -> int | float | None:
    return ib.check_network(ib.DeepLinear(3, hidden_widths=(4, 2)), X > 0).degree


@case(
    "a full-width linear convolution of two layers",
    "Gunasekar et al. 2018 names its limit",
    one_line("Gunasekar et al. 2018"),
)
def _() -> str:
    class Convolution(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.a, self.b = (nn.Parameter(torch.randn(3).double()) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([x.roll(-d, 1) for d in range(3)], 1) @ self.a @ self.b

    network = Convolution()
    network.degree = 2  # type: ignore[assignment]
    ib.train(
        network, X, Y, settings=ib.TrainingSettings(trainer="annealed", schedule=((400, None),))
    )
    return diagnosed(network)


@case(
    "normalised descent of 65-16-1 ReLU networks on 100 digits, six seeds, 1,500 steps",
    "none stands still from step 1,000 on without saying so",
    lambda silent: silent == [],
)
def _() -> list[int]:
    data, silent = ib.load_data("digits", n_train=100, n_val=10), []
    for seed in range(6):
        network = layers(nn.ReLU(), width=16, n_inputs=data.X_train.shape[1], seed=seed)
        network.degree = 2  # type: ignore[assignment]
        settings = ib.TrainingSettings(trainer="normalised", schedule=((1500, None),))
        path = ib.train(network, data.X_train, data.y_train, settings=settings)
        late = path.log_loss[path.step >= 1000]
        if abs(math.expm1(late[0] - late[-1])) < 1e-6 and not path.stopped:
            silent.append(seed)
    return silent


@case("gates of a foreign ReLU module", "those of its first layer")
def _() -> bool:
    network = layers(nn.ReLU())
    gates = ib.gates.ReLUGates.from_network(network).fit(X).transform(X)
    first = next(network.parameters()).detach().numpy()
    return bool(np.array_equal(gates, X @ first.T >= 0))


refused(
    "gates of a module that is no ReLU network", "`network`",
    lambda: ib.gates.ReLUGates.from_network(nn.Sequential(nn.Linear(3, 1), nn.Tanh())),
)  # fmt: skip

GLN = {"contexts": np.zeros((12, 2), dtype=int), "zeta": np.tile([1.0, -0.5, 0.3], (2, 1, 1))}
DOORS: dict[str, Callable[[Any], Any]] = {
    "train": lambda A: ib.train(ib.DeepLinear(3), A, Y, settings=SHORT),
    "kkt_distance": lambda A: ib.kkt_distance(
        ib.DeepLinear.from_weights([[1.0, -0.5, 0.3]]), A, Y, None),
    "diagnose": lambda A: ib.diagnose(nn.Linear(3, 1, bias=False).double(), A, Y),
    "unit_growth": lambda A: ib.dynamics.unit_growth(
        ib.GLN.from_zeta(GLN["zeta"]), A, np.sign(np.asarray(A, float) @ [1.0, -0.5, 0.3] + 1e-9),
        GLN["contexts"]),
    "pace_of": lambda A: ib.dynamics.pace_of(
        ib.DeepLinear.from_weights([[1.0, 0.2, 0.3]]), np.abs(np.asarray(A, float)) + 1 if
        A.dtype == bool else A, np.ones(12) if A.dtype == bool else Y, trainer="normalised"),
    "run": lambda A: ib.run("linear", X=A, y=Y, X_val=A, y_val=Y, steps=3),
}  # fmt: skip
for _name, _door in DOORS.items():

    @case(f"bool and big-endian inputs in `{_name}`", "they are taken", lambda said: said == [])
    def _(name: str = _name, call: Callable[[Any], Any] = _door) -> list[str]:
        said = []
        for A in (X > -0.2, X.astype(">f8")):
            try:
                call(A)
            except ValueError as error:
                if "margin" not in str(error):  # of these inputs nothing is separated
                    said.append(str(error))
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")
        return said


refused("dates in a gating", "got dates", lambda: ib.HyperplaneContexts(2).fit(X.astype("M8[s]")))


@case("lists in `agreement` and `fit_series`", "they are taken", lambda found: found == 0.5)
def _() -> float:
    FIT_SERIES((1 / np.arange(1.0, 41.0)).tolist(), np.ones((40, 1)).tolist(), ())
    predictor = ib.limits.ContextPredictor([[[1.0, 0.0], [0.0, 1.0]]])
    assert predictor([[2.0, -5.0]], [[1]]).tolist() == [-5.0]
    return float(AGREEMENT([1.0, -1.0], [3.0, 1.0]))


# Files and values


def in_folder(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call that is made in a folder of its own."""

    def made() -> Any:
        with tempfile.TemporaryDirectory() as name, chdir(name):
            return call()

    return made


def table(text: str) -> Callable[[], Any]:
    """Return a call that reads a file of this text."""
    return in_folder(lambda: (Path("x.csv").write_text(text), ib.load_data("x.csv")))


refused("lines of one field more than their header", "4 fields",
        table("a,b,label\n1,2,3,0\n4,5,6,1\n"))  # fmt: skip
refused("a header with one name twice", "two columns 'a'", table("a,a,label\n1,2,0\n4,5,1\n"))


def with_limit(kind: str) -> Callable[[], Any]:
    """Return a call that copies a report whose limit is a link, a pipe or a device."""

    def copied() -> Any:
        ib.run("linear", steps=3, save="run", **OWN)
        path = Path("run/limit.safetensors")
        path.unlink()
        os.mkfifo(path) if kind == "pipe" else path.symlink_to(kind)
        ib.load("run").save("copy")

    return in_folder(copied)


for _kind, _said in (("/etc/passwd", "link"), ("/dev/zero", "link"), ("pipe", "no plain file")):
    refused(f"a report whose limit is {_kind}", _said, with_limit(_kind))


def nodes(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of a record."""
    if not isinstance(record, dict | list):
        return
    for key, one in record.items() if isinstance(record, dict) else enumerate(record):
        yield (*path, key)
        yield from nodes(one, (*path, key))


@case(
    "each value of a saved report in turn a number, a text, a list or nothing, checksum forged",
    "shown, or refused in one line",
    lambda raw: raw == [],
)
@in_folder
def _() -> list[str]:
    ib.run("linear", n_train=12, n_val=6, steps=3, save="run")
    path, raw = Path("run/report.safetensors"), []
    arrays, record = read_saved(path, KIND)
    wrong: tuple[Any, ...] = (5, "text", [], None)
    for at, value in product(nodes(record), wrong):
        edited = copy.deepcopy(record)
        node = edited
        for step in at[:-1]:
            node = node[step]
        node[at[-1]] = value
        write_saved(path, KIND, arrays, edited)
        try:
            report = ib.load("run")
            str(report), report.details(), report._repr_html_()
        except (ValueError, OSError) as error:
            raw += [f"{at}: {error}"] * ("\n" in str(error))
        except Exception as error:
            raw.append(f"{at} = {value!r}: {type(error).__name__}: {error}")
    return raw


@case(
    "a label of control characters and marks of direction",
    "none of them is printed",
    lambda n: n == 0,
)
@in_folder
def _() -> int:
    lines = [f"{a},{b},{'cat' if a > 0 else 'dog'}{MARKS}" for a, b in X[:, :2]]
    Path("x.csv").write_text("\n".join(["a,b,label", *lines]) + "\n")
    report = ib.run("linear", data="x.csv", n_val=4, steps=0, positive=f"cat{MARKS}")
    words = ["compare", "--model", "linear", "--data", "x.csv", "--n-val", "4", "--steps", "0"]
    line = CliRunner().invoke(cli.main, [*words, "--positive", f"cat{MARKS}", "--report", "x.html"])
    page = Path("x.html").read_text()
    texts = (str(report), report._repr_html_(), line.stdout, line.stderr, page)
    return sum(text.count(mark) for text in texts for mark in MARKS if mark not in "[2J")


SIZED: dict[str, Callable[[], Any]] = {
    "DiagonalLinear": lambda: ib.networks.DiagonalLinear(HUGE),
    "spectrum_ideal": lambda: ib.kernels.spectrum_ideal(HUGE, 0.5, 2),
    "GLN": lambda: ib.GLN(HUGE, 2, 2),
}
for _name, _call in SIZED.items():
    refused(f"2^40 numbers in `{_name}`", "GiB", _call)


@in_folder
def expanding() -> Any:
    """Read an archive whose arrays no memory holds unpacked."""
    np.savez_compressed("x.npz", X=np.zeros((300_000, 100)), y=np.zeros(300_000, int))
    return ib.load_data("x.npz")


@in_folder
def long_words() -> Any:
    """Read a Parquet file of words of a million letters."""
    import pyarrow as pa
    from pyarrow import parquet

    words = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(20_000) % 2, pa.int32()), ["a" * 10**6, "b" * 10**6]
    )
    columns = pa.table({"a": np.arange(20_000.0), "label": words})
    parquet.write_table(columns, "x.parquet", store_schema=False)
    return ib.load_data("x.parquet")


refused("an archive of 30 million zeros and one class", "one class only", expanding)
refused("labels of a million letters", "at most 1000 characters", long_words)


@case("limits, samples, reports and diagnoses, copied and unpickled", "equal their originals")
def _() -> bool:
    sample, report = ib.Sample(X, Y), ib.run("linear", steps=3, **OWN)
    values = (sample, ib.solve_linear_svm(X, Y), solve_fit(X, Y, penalty=0.1), report,
              ib.diagnose(nn.Linear(3, 1, bias=False).double(), X, Y))  # fmt: skip
    short = len(repr(ib.Sample(np.ones((300, 20)), np.ones(300)))) < 200
    same = all(
        copy.deepcopy(one) == one == pickle.loads(pickle.dumps(one)) and hash(one) is not None
        for one in values[:-1]
    )
    return same and short and str(copy.deepcopy(values[-1])) == str(values[-1])


def written_over() -> Any:
    """Write to the coefficients of a limit."""
    limit: Any = ib.solve_linear_svm(X, Y)
    limit.zeta[:] = 5.0
    return limit


refused("writing to the coefficients of a limit", "read-only", written_over)


@case("a screen in Latin-1", "printed", lambda code: code == 0)
@in_folder
def _() -> int:
    ib.run("linear", steps=3, save="run", **OWN)
    words = [sys.executable, "-m", "implicit_bias", "show", "run"]
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    latin = os.environ | {"PYTHONIOENCODING": "latin-1"}
    return subprocess.run(words, env=latin, capture_output=True, check=False).returncode


@case("`sign_layer_bounds(tol=5e-324)`, three classes", "3/4 of the margin", lambda e: e < 1e-9)
def _() -> float:
    found = ib.limits.sign_layer_bounds(np.eye(3), [0, 1, 2], width=12, tol=5e-324)
    return abs(found.upper * 12 - 0.75) + max(0.0, found.lower * 12 - 0.75)


@case("a flow of distillation at the time 1e200", "its limit", lambda off: off < 1e-9)
def _() -> float:
    given = X[:6], np.array([1.0, -0.5, 0.3]), np.full(3, 0.05)
    path = ib.distillation.distillation_flow(*given, [1e200], depth=1)
    limit = ib.distillation.distillation_limit(*given, depth=1)
    return float(np.abs(path[-1] - limit.predictor.zeta).max())


@case("the tests in a shell that ignores SIGINT", "pass", lambda code: code == 0)
def _() -> int:
    tests = "tests/once_wrong/test_files_and_values.py -k ctrl_c"
    line = f"trap '' INT; {sys.executable} -m pytest -n0 -q -p no:cacheprovider {tests}"
    root = Path(__file__).parents[1]
    return subprocess.run(line, shell=True, cwd=root, capture_output=True, check=False).returncode


# Messages


refused("a norm of matrices for one score", "is one of matrices",
        lambda: solve_fit(X, Y, norm="largest-row", penalty=0.1))  # fmt: skip
refused("labels of one class in `run`", "`y` must hold both classes",
        lambda: ib.run("linear", X=X, y=np.ones(12), X_val=X, y_val=Y, steps=0))  # fmt: skip
refused("a rate for a trainer that has none", "`learning_rate`",
        lambda: ib.run("linear", trainer="annealed", learning_rate=1e6, **DIGITS))  # fmt: skip
refused("inputs and gates of 1e100", "`X` times gates `Z`",
        lambda: ib.solve_frelu_svm(X * 1e100, Y, np.full((12, 1), 1e100)))  # fmt: skip
refused("a tolerance of 0", "`tol`: 0 is not above 0",
        lambda: ib.run("linear", tol=0, steps=0, **DIGITS))  # fmt: skip
refused("sparse inputs in `run`", "must be dense",
        lambda: ib.run("linear", X=csr_matrix(X), y=Y))  # fmt: skip
for _n in (-1, 0):
    refused(f"a bound of {_n} samples", f"`n` must be at least 1, got {_n}",
            partial(ib.distillation.risk_bound, lambda a: 1 - a, _n))  # fmt: skip
refused("agreement of no scores", "`a`", lambda: AGREEMENT([], []))
refused("a comparison without held-out samples", "no samples",
        lambda: ib.compare(ib.solve_linear_svm(X, Y), ib.DeepLinear(3), ib.Sample(X, Y),
                           ib.Sample(X[:0], Y[:0])))  # fmt: skip
refused("a run without held-out samples", "no held-out samples",
        lambda: ib.run("linear", X=X, y=Y, X_val=X[:0], y_val=Y[:0], steps=3))  # fmt: skip


@case("a learning rate of 1e308", "DIVERGED in one line with 'smaller learning rate'",
      one_line("DIVERGED: training diverged: the norm of weights or loss overflows at step 1 "
               "(learning rate 1e+308; finite at step 0): use a smaller learning rate"),
)  # fmt: skip
def _() -> str:
    run = ib.run("linear", trainer="constant", learning_rate=1e308, steps=3, **OWN)
    return f"{run.verdicts[0].word}: {run.verdicts[0].sentence}"


@case("the rate of a constant series", "0, with the error 0", lambda rate: rate == (0.0, 0.0))
def _() -> tuple[float, float]:
    rate = ib.measures.fit_rate(np.arange(1.0, 20.0), np.ones(19))
    return rate.exponent, rate.error


@case(
    "a limit beside a linear module of torch", "says why no ratio is known", one_line("unit_norms")
)
def _() -> str:
    network = nn.Sequential(nn.Linear(3, 1, bias=False).double(), nn.Flatten(0))
    found = ib.compare(ib.solve_linear_svm(X, Y), network, ib.Sample(X, Y), ib.Sample(X, Y))
    return found.held_back_by if math.isnan(found.margin_ratio) and found.held_back_by in str(
        found) else ""  # fmt: skip


@case(
    "`--constant` on the digits, which have one", "said or refused", lambda text: "constant" in text
)
def _() -> str:
    words = ["compare", "--model", "linear", "--n-train", "20", "--steps", "0", "--constant"]
    done = CliRunner().invoke(cli.main, words)
    return f"{done.stdout} {done.stderr}"


def rows(only: str) -> Iterator[dict[str, Any]]:
    """Yield what came out of every case."""
    for one in CASES:
        if only not in one.tried:
            continue
        begun = time.process_time()
        try:
            found = one.call()
            came, right = shown(getattr(getattr(found, "status", found), "name", found)), bool(
                one.right(found))  # fmt: skip
        except Exception as error:
            came, right = f"{type(error).__name__}: {shown(error)}", False
        seconds = time.process_time() - begun
        yield {"tried": one.tried, "asked": one.asked, "came": came[:300], "right": right,
               "seconds": round(seconds, 1)}  # fmt: skip


@click.command()
@click.option("--only", default="", help="Cases whose description has this word.")
@out_file(Path("runs/retry.csv"))
def main(only: str, out: Path) -> None:
    """Try all cases, and write what came out."""
    kept, found = Kept(out), []
    for row in rows(only):
        found.append(row)
        click.echo(f"{'right' if row['right'] else 'WRONG'}  {row['tried']}: {row['came']}"[:200])
        kept.replace(kept.table.from_records(found))
    wrong = sum(not row["right"] for row in found)
    click.echo(f"{len(found)} cases, {wrong} wrong")
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
