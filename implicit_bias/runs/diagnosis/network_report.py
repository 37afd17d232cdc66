"""The diagnosis of a network of the user's own, trained anywhere."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from ..._support import __version__
from ..._support.doors import door
from ..._support.kinds import anything, positive
from ..._support.words import MarginLoss, check_word
from ...data.dataset import digest
from ...networks.recognition.attention import recognise_attention
from ...networks.recognition.intake import held_out as place_held_out
from ...networks.recognition.intake import take_subject
from ...networks.recognition.structure import Structure, recognise
from ...networks.recognition.subject import Subject
from ...training.trajectory import Trajectory
from ..progress import Progress, ProgressCallback, progress_of
from ..prospects import farther_in_words
from ..reports.finding import Finding
from ..reports.heading import Heading
from ..reports.report import Report
from .attention import select_tokens
from .decayed import RIDGE, finite_finding
from .findings import course_finding, form_finding, limit_finding, network_finding, units_finding
from .judgement import verdict_finding
from .local import SECONDS, find_local
from .method import Batches, Method, read_method
from .optimum import Optimum, find_optimum, unseparated_twins
from .problem import Problem, find_problem, homogenised_findings, problem_finding, theory_of
from .splitting import split_finding, split_in_words
from .state import MeasuredNetwork, measure_own
from .theory import Theory, form_in_words

if TYPE_CHECKING:
    from ...networks.placed_data import Inputs

TrainedLoss = Literal[MarginLoss, "cross-entropy"]
"""Losses that a network may have been trained with; of K outputs "logistic" is cross-entropy."""

# Of the smallest margins of a network and of the end of a trajectory that is said to be its own.
CLOSE = 1e-2


@door(
    y=anything,
    y_val=anything,
    optimizer=anything,
    earlier=anything,
    progress=anything,
    max_seconds=positive,
)
def diagnose(
    network: torch.nn.Module,
    X: Inputs,
    y: Any,
    *,
    X_val: Inputs | None = None,
    y_val: Any = None,
    gates: Any = None,
    gates_val: Inputs | None = None,
    optimizer: Any = None,
    loss: TrainedLoss = "logistic",
    batches: Batches | None = None,
    earlier: torch.nn.Module | Mapping[str, torch.Tensor] | None = None,
    trajectory: Trajectory | None = None,
    max_weights: int = 2000,
    max_seconds: float = SECONDS,
    progress: bool | ProgressCallback | Progress = False,
) -> Report:
    """Diagnose any torch module, trained anywhere: what it is, where it is heading, how near it is.

    The module is recognised by its values, not by its class: of which degree its scores are
    homogeneous and in which parameters they are not, which parameters move its gates, and which
    program its limit is of. That is measured. Optima and bounds are certified.

    Parameters
    ----------
    network : Module
        Takes ``forward(X)`` or ``forward(X, gates)`` and gives one score a sample, or one for each
        of K classes, alone or with others in a tuple, mapping or dataclass. Statistics over batches
        are those of `X` in training mode, and those that it kept in evaluation mode. It is not
        changed.
    X : (n, D) or (n, ...) array
        The inputs that it was trained on, as it takes them; token ids as whole numbers.
    y : (n,), (n, 1) or (n, K) array
        Their labels: numbers, booleans or strings, of two classes the lesser for negative scores,
        of K the numbers of the outputs or names in their order; or a one in every row.
    X_val, y_val : arrays, optional
        Held-out data, both or neither.
    gates : (n, ...) array or fitted gating, optional
        Gates or contexts of `X`, or what gives them by ``transform(X)``.
    gates_val : (m, ...) array, optional
        Those of `X_val`, where `gates` is an array.
    optimizer : str, Optimizer or list of Optimizer, optional
        What trained it: an optimiser of torch or of `ib.optim` with its parameters, several where
        they are shared out, or the name of a trainer, "gd", "sign", "adam", "muon". It says in
        which norm margins are maximised, what stays as it is, and whether weights decay. By default
        gradient descent.
    loss : {"logistic", "cross-entropy", "exponential"}
        The loss that it was trained with; of K outputs "logistic" is cross-entropy.
    batches : {"full", "mini"}, optional
        Whether every step took all samples.
    earlier : Module or mapping of str to Tensor, optional
        The network, or its weights by name (`state_dict`), at an earlier time of the same training:
        the direction of what was added since is a residual of its own.
    trajectory : Trajectory, optional
        Its training by `train`, up to these weights, by descent ("constant", "normalised",
        "momentum", "dual"): says where the margin ratio is heading.
    max_weights : int
        Networks of more weights are given no local limit: with 200 the search takes a second or
        two, with 2000 some ten.
    max_seconds : float
        After so many no further convex program of a local limit begins.
    progress : bool or callable
        True for a bar on stderr, or a function of (stage, done, of).

    Returns
    -------
    Report
        Like that of `run`: it prints, draws and saves itself, and has a `verdict`. Its `objects`
        are `limit`, `comparison` (the measured network), `homogeneity`, `local_limit`.

    Raises
    ------
    TypeError
        If `network` is no module, or an array is of another kind.
    ValueError
        If the module cannot be called on the data, has not one finite score a sample or class,
        random ones, or weights that are not finite; if data are malformed.

    References
    ----------
    Theorems that name a limit: D. Soudry et al., "The implicit bias of gradient descent on
    separable data"; Z. Ji, M. Telgarsky, "Gradient descent aligns the layers of deep linear
    networks"; S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on
    generalized gated linear networks". For all other homogeneous networks: K. Lyu, J. Li,
    "Gradient descent maximizes the margin of homogeneous neural networks".

    Examples
    --------
    >>> import torch
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> network = torch.nn.Linear(2, 1, bias=False).double()
    >>> with torch.no_grad():
    ...     _ = network.weight.copy_(torch.tensor([[1.0, -2.0]]))
    >>> report = ib.diagnose(network, X, y)
    >>> report.verdict.word, round(report.limit.objective, 6)
    ('AT ITS LIMIT', 1.118034)
    >>> biased = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> ib.diagnose(biased, X, y).objects["homogeneity"].mixed
    ('2.bias',)
    """
    check_word("loss", loss, TrainedLoss)
    if batches is not None:
        check_word("batches", batches, Batches)
    method = read_method(optimizer, network, batches)
    if (X_val is None) != (y_val is None):
        given, lacking = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
        raise ValueError(f"`{given}` was given without `{lacking}`: give both, or neither")
    with progress_of(progress) as shown:
        shown.stage("calling the network")
        subject = take_subject(network, X, y, _gates_of(gates, X))
        subject = subject.frozen(method.still) if method.still else subject
        before = _earlier(earlier, subject, method)
        subject = subject.over(method.scales) if method.rates else subject
        place = partial(_held_out, X_val=X_val, y_val=y_val, gates=gates, gates_val=gates_val)
        attends = recognise_attention(subject)
        selected = None if attends is None else select_tokens(subject, attends, method)
        if selected is not None and attends is not None:
            shown.stage("solving the program of the tokens that it selects")
            theory, found_of_tokens = selected
            own = Finding.said("own", objects={"network": network})
            told = f"{loss} loss, {method.in_words}"
            heading = _heading(subject, attends.in_words, theory, place(subject), told)
            call = "implicit_bias.diagnose(network, X, y)"
            return Report(heading, (*found_of_tokens, own), call=call)
        shown.stage("measuring what it is")
        structure = recognise(subject)
        held_out = place(structure.subject)
        kind: MarginLoss = "exponential" if loss == "exponential" else "logistic"
        form = form_in_words(structure)
        shown.stage(f"{form}: solving the program of its form")
        found = measure_own(structure, _optimum(structure, method), held_out, before)
        if trajectory is not None:
            _require_own(trajectory, found)
        finite = finite_finding(found, method, kind)
        shown.stage("measuring how its weights grow")
        problem = None
        if finite is None:
            nearness = "{}: measuring how near it is to a KKT point".format
            problem = find_problem(found, method, kind, before, lambda s: shown.stage(nearness(s)))
        shown.stage("looking for its local limit")
        search = partial(find_local, max_weights=max_weights, max_seconds=max_seconds)
        findings: tuple[Finding, ...]
        if finite is not None:
            theory = RIDGE
            network_alone = replace(network_finding(found, kind), assumptions=(method.of_batches,))
            findings = (finite, form_finding(structure, assumes=False), network_alone)
        else:
            theory = problem.theory if problem is not None else theory_of(found, method)
            findings = tuple(_find(found, problem, method, kind, trajectory, search))
        own = Finding.said("own", objects={"network": network})
        told = f"{loss} loss, {method.in_words}"
        heading = _heading(structure.subject, form, theory, held_out, told)
        return Report(heading, (*findings, own), call="implicit_bias.diagnose(network, X, y)")


def _held_out(
    subject: Subject, *, X_val: Inputs | None, y_val: Any, gates: Any, gates_val: Inputs | None
) -> Subject | None:
    """Return the same module on held-out data; None where there are none."""
    if X_val is None:
        return None
    if gates_val is None and gates is not None and not hasattr(gates, "transform"):
        raise ValueError(
            "`gates` are those of `X` alone: give `gates_val` for `X_val`, or a fitted gating as "
            "`gates`"
        )
    beside = _gates_of(gates, X_val) if gates_val is None else gates_val
    return place_held_out(subject, X_val, y_val, beside)


def _optimum(structure: Structure, method: Method) -> Optimum:
    """Return the optimum of the form, which is of gradient descent without decay."""
    optimum = find_optimum(structure, structure.subject.data.y.numpy())
    return optimum if method.is_descent or optimum.bound == math.inf else Optimum()


def _find(
    found: MeasuredNetwork,
    problem: Problem | None,
    method: Method,
    loss: MarginLoss,
    trajectory: Trajectory | None,
    search: Callable[[MeasuredNetwork], Finding],
) -> Iterator[Finding]:
    """Yield the findings in the order of a reader."""
    twins = unseparated_twins(found.structure.subject)
    course = None if trajectory is None else course_finding(trajectory, found)
    split = split_finding(found) if method.is_descent and loss == "logistic" else None
    local = search(found) if problem is None else None
    if local is None or not local.evidence:
        predicted = "" if course is None else farther_in_words(course)
        known = "" if split is None else split_in_words(split)
        yield verdict_finding(found, twins, problem, predicted, known)
    yield form_finding(found.structure, assumes=problem is None)
    yield limit_finding(found)
    if split is not None:
        yield split
    yield network_finding(found, loss, None if problem is not None else method)
    if problem is not None:
        yield problem_finding(found, problem)
        yield from homogenised_findings(found, problem, search)
    if local is not None:
        yield local
        yield units_finding(found)
    if course is not None:
        yield course


def _earlier(given: Any, subject: Subject, method: Method) -> dict[str, torch.Tensor] | None:
    """Return the weights of an earlier checkpoint: a module, or what `state_dict` returned.

    Increments of other methods than gradient descent are no sums of gradients.
    """
    if given is None:
        return None
    if isinstance(given, torch.nn.Module):
        given = dict(given.named_parameters())
    if not isinstance(given, Mapping):
        raise TypeError(
            f"`earlier` must be a torch.nn.Module or its `state_dict()`, got {type(given).__name__}"
        )
    for name, p in subject.weights.items():
        if name not in given or tuple(given[name].shape) != tuple(p.shape):
            raise ValueError(
                f"`earlier` lacks weights {name!r} of shape {tuple(p.shape)}, which `network` has: "
                "give the `state_dict()` of this network at an earlier time"
            )
    if not method.is_descent:
        raise ValueError(
            f"`earlier` is of no use under {method.name}, whose steps are no sums of gradients: "
            "`ib.dynamics.GradientSum` goes along in its training loop"
        )
    scales = dict.fromkeys(subject.weights, 1.0) | method.scales
    return {name: given[name].detach().cpu().double() / scales[name] for name in subject.weights}


def _gates_of(gates: Any, X: Any) -> Any:
    """Return the gates of inputs: those that were given, or what a gating gives."""
    return gates.transform(X) if hasattr(gates, "transform") else gates


def _require_own(trajectory: Trajectory, found: MeasuredNetwork) -> None:
    last, own = float(trajectory.smallest_margin[-1]), found.state.smallest_margin
    if not math.isclose(last, own, rel_tol=CLOSE, abs_tol=1e-12):
        raise ValueError(
            f"`trajectory` ends at a smallest margin of {last:.6g}, and `network` has {own:.6g} on "
            "these data: give the trajectory of its own training, to its end"
        )


def _heading(
    subject: Subject, form: str, theory: Theory, held_out: Subject | None, trained: str
) -> Heading:
    data, *others = [subject.data] + ([] if held_out is None else [held_out.data])
    arrays = [array.numpy() for part in (data, *others) for array in (part.X, part.y)]
    n_val = sum(len(part.y) for part in others)
    shape = " x ".join(map(str, data.X.shape[1:]))
    description = f"{len(data.y)} training sample{'s' * (len(data.y) != 1)} of {shape} inputs"
    description += f", {n_val} held out" if n_val else ", none held out"
    if subject.n_outputs > 1:
        description += f", {subject.n_outputs} classes"
    name = subject.name
    setup = (
        description,
        f"{subject.n_weights:,} trained weights",
        trained,
        *subject.remarks,
    )
    return Heading(
        model=name,
        theorem=f"{form}. {theory.theorem[:1].upper()}{theory.theorem[1:]}",
        program=theory.program,
        setup="; ".join(setup),
        title=form,
        source=theory.source,
        more="report.details(): all measures   report.plot()   report.save(DIR)",
        record={
            "model": "own network",
            "theorem": theory.theorem,
            "version": __version__,
            "python": platform.python_version(),
            "packages": {"torch": str(torch.__version__), "numpy": np.__version__},
            "options": {"trained": trained},
            "data": {
                "description": description,
                "n_train": len(data.y),
                "n_val": n_val,
                "n_inputs": int(np.prod(data.X.shape[1:])),
                "sha256": digest(*arrays),
            },
        },
    )
