"""A trained ReLU network beside the four max-margin machines that stand in for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._extras import naming_extras
from ..._shown import Shown
from ..._solve import to_numpy
from ...data.sample import Sample
from ...limits.limit import Limit
from ...measures.scalars import agreement, cosine, error_rate, margin_ratio, scores, unit_norms
from ...quantities.formatting import DASH, aligned, number, share
from .machines import RELU_SVMS, ReLULimits, ReLUView

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from .frozen_comparison import FrozenComparison

__all__ = [
    "MachineComparison",
    "ReLUComparison",
    "compare_machine",
    "compare_relu",
    "view_relu",
]

SEES: Mapping[str, str] = MappingProxyType(
    {
        "rc": "random gates",
        "lc": "learned gates",
        "hl": "hidden activations",
        "gates_only": "gate pattern alone",
    }
)
"""What each machine is given of the network, in words."""

# Lines of the table about each machine: label, field, format.
_LINES = (
    ("least norm at margin 1", "optimum", ".6g"),
    ("duality gap", "gap", ".1e"),
    ("support vectors", "n_support", "d"),
    ("margin ratio (1 at the limit)", "margin_ratio", ".4f"),
    ("cosine of held-out scores (1)", "score_cosine", ".4f"),
    ("agreement on held-out labels", "agreement", ".2%"),
    ("  if errors were independent", "agreement_independent", ".2%"),
    ("held-out error", "error", ".2%"),
)


@dataclass(frozen=True, repr=False)
class MachineComparison(Shown):
    """One machine beside the network; what needs scores is NaN where the machine has none.

    Attributes
    ----------
    status : str
        Name of the solver's status: `NOT_SEPARABLE` is proved, not assumed.
    optimum, gap : float
        Least norm at margin 1 and the certified relative gap; infinite where not separable.
    n_support : int
        Support vectors; 0 where not separable.
    margin_ratio : float
        Normalised margin of the network times the optimum, at most 1. Defined where the network
        is itself a candidate of the program: SVM-LC (norm of zeta, two-layer networks) and SVM-HL
        (norm of the last layer); NaN elsewhere.
    error : float
        Share of held-out samples on the wrong side.
    agreement : float
        Share of held-out samples to which machine and network give the same label.
    agreement_independent : float
        What two classifiers with these error rates would agree on if errors were independent.
    score_cosine : float
        Cosine between the scores on held-out data.
    """

    status: str
    optimum: float
    gap: float
    n_support: int
    margin_ratio: float
    error: float
    agreement: float
    agreement_independent: float
    score_cosine: float


@dataclass(frozen=True, repr=False)
class ReLUComparison(Shown):
    """The four machines beside one network, on the same held-out data.

    Attributes
    ----------
    error_network : float
        Share of held-out samples on the wrong side.
    rc, lc, hl, gates_only : MachineComparison
    """

    error_network: float
    rc: MachineComparison
    lc: MachineComparison
    hl: MachineComparison
    gates_only: MachineComparison

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values, nested."""
        return asdict(self)

    @naming_extras()
    def to_frame(self) -> pd.DataFrame:
        """One row a machine."""
        import pandas as pd

        records = [
            {"machine": name, **asdict(getattr(self, key)), "error_network": self.error_network}
            for key, name in RELU_SVMS.items()
        ]
        return pd.DataFrame(records)

    def rows(self, frozen: FrozenComparison | None = None) -> list[tuple[str, ...]]:
        """Lines of a printed table: a label and one value a machine, names first.

        A value that a machine does not have is a dash. With `frozen` there is one more column,
        and a line that says which network each machine stands beside.
        """
        names = list(RELU_SVMS.values())
        sees = [SEES[key] for key in RELU_SVMS]
        machines = [getattr(self, key) for key in RELU_SVMS]
        errors, beside, cosines = [self.error_network] * len(machines), [], []
        if frozen is not None:
            beside = [
                ("beside the network", *["ReLU"] * len(machines), f"frozen at {frozen.freeze_at}")
            ]
            cosines = [
                ("cosine of zeta (1)", *[DASH] * len(machines), number(frozen.zeta_cosine, ".4f"))
            ]
            names.append("SVM-FReLU")
            sees.append(f"gates of step {frozen.freeze_at}")
            machines.append(frozen.machine)
            errors.append(frozen.error_network)
        return [
            ("", *names),
            ("sees", *sees),
            *beside,
            ("status", *(machine.status for machine in machines)),
            *(
                (label, *(number(getattr(machine, name), style) for machine in machines))
                for label, name, style in _LINES
            ),
            ("held-out error, network", *map(share, errors)),
            *cosines,
        ]

    def _shown_rows(self) -> list[tuple[str, ...]]:
        return self.rows()

    def __str__(self) -> str:
        return aligned(self.rows())


def view_relu(network: torch.nn.Module, X: ArrayLike, y: ArrayLike, gating: Any) -> ReLUView:
    """Samples as the four machines see them, by the network's gates and activations of now.

    Parameters
    ----------
    network : Module
        With `gates(X)` and `features(X)`: `networks.ReLU` or `networks.DeepReLU`.
    X : (n, D) array
    y : (n,) array
        Labels in {-1, +1}.
    gating : fitted transformer
        Random gates, such as `HyperplaneGates`: `gating.transform(X)` is (n, R) in {0, 1}.

    Examples
    --------
    `solve_relu_svms(view_relu(network, X, y, gating))` gives all four limits.
    """
    X = np.asarray(X, dtype=np.float64)
    return ReLUView(
        X=X,
        y=np.asarray(y, dtype=np.float64),
        random_gates=gating.transform(X),
        learned_gates=to_numpy(network.gates(X)),  # type: ignore[operator]
        features=to_numpy(network.features(X)),  # type: ignore[operator]
    )


def compare_relu(
    limits: ReLULimits, network: torch.nn.Module, train: ReLUView, held_out: ReLUView
) -> ReLUComparison:
    """Compare a trained ReLU network with the four machines solved for it.

    Parameters
    ----------
    limits : ReLULimits
        `solve_relu_svms(train)`.
    network : Module
        The network that both views were taken from.
    train, held_out : ReLUView
        Data by the same random gating.

    Raises
    ------
    ValueError
        If there are no held-out samples or widths do not fit.
    """
    if len(held_out.y) == 0:
        raise ValueError("`held_out` has no samples: scores and labels need some to compare")
    trained = scores(network, Sample(held_out.X, held_out.y, None))
    predicted = limits.scores(held_out)
    ratios = _margin_ratios(limits, network, train)
    machines = {
        key: compare_machine(
            getattr(limits, key), predicted.get(key), trained, held_out.y, ratios.get(key, math.nan)
        )
        for key in RELU_SVMS
    }
    return ReLUComparison(error_network=error_rate(held_out.y, trained), **machines)


def compare_machine(
    limit: Limit,
    predicted: NDArray[np.float64] | None,
    trained: NDArray[np.float64],
    y: NDArray[np.float64],
    margin_ratio: float,
) -> MachineComparison:
    """A machine with scores (m,) on held-out data of labels `y`, or none, beside a network's."""
    separates = predicted is not None
    predicted = np.full_like(y, np.nan) if predicted is None else predicted
    p, q = error_rate(y, predicted) if separates else math.nan, error_rate(y, trained)
    return MachineComparison(
        status=limit.status.name,
        optimum=limit.objective,
        gap=limit.gap,
        n_support=int(limit.support.sum()) if separates else 0,
        margin_ratio=margin_ratio if separates else math.nan,
        error=p,
        agreement=agreement(predicted, trained) if separates else math.nan,
        agreement_independent=p * q + (1 - p) * (1 - q),
        score_cosine=cosine(predicted, trained) if separates else math.nan,
    )


def _margin_ratios(
    limits: ReLULimits, network: torch.nn.Module, train: ReLUView
) -> dict[str, float]:
    # By its own gates on the training data the network is a point of the programs LC and HL, with
    # the norms sum_h ||zeta_h|| and ||last layer||.
    smallest = float((train.y * scores(network, Sample(train.X, train.y, None))).min())
    norms = {"hl": float(network.head().detach().norm())}  # type: ignore[operator]
    of_units = unit_norms(network)
    if len(of_units):
        norms["lc"] = float(of_units.sum())
    return {key: margin_ratio(smallest, norm, getattr(limits, key)) for key, norm in norms.items()}
