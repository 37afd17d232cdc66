"""Comparison of a trained ReLU network with four machines, and of its copy with frozen gates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.extras import naming_extras
from ..._support.solve import Status, to_numpy
from ...data.arrays import Floats
from ...data.sample import Sample
from ...limits.exact.frelu import FReLULimit
from ...limits.limit import Limit
from ...measures.classifiers import ClassifierComparison, classifier_rows, compare_classifier
from ...measures.distances import Distances
from ...measures.scalars import (
    agreement_independent,
    error_rate,
    margin_ratio,
    scores,
    unit_norms,
)
from ...quantities.measured import Measured, part, quantity
from ...quantities.said import Table
from ...quantities.table import MEASURED
from ...runs.reports.verdict import Evidence, Theory, Word, decide
from .machines import RELU_SVMS, ReLULimits, ReLUView

if TYPE_CHECKING:
    import pandas as pd
    import torch

INPUT_OF: Mapping[str, str] = MappingProxyType(
    {
        "rc": "random gates",
        "lc": "learned gates",
        "hl": "activations",
        "gates_only": "gate pattern alone",
    }
)
"""Input of each machine, in words."""

LIMIT_OF: Mapping[str, str] = MappingProxyType(
    {"rc": "none", "lc": "gates kept", "hl": "units kept", "gates_only": "none"}
)
"""The network that each machine is the limit of: this one, what is named of it kept as it is."""

COLUMNS = frozenset(one.name for one in MEASURED)
KKT = ("kkt_cosine", "kkt_residual", "kkt_complementarity")
# Lines of a table about machines.
LINES = (
    "status", "optimum", "certificate", "n_support", "margin_ratio", "score_cosine", "agreement",
    "agreement_independent", "error",
)  # fmt: skip


class MachineComparison(ClassifierComparison):
    """A max-margin machine compared with a network; NaN where a quantity is not defined."""

    optimum: float = quantity(
        column="objective", format=".6g", doc="Least norm at margin 1, infinite if not separable."
    )
    n_support: int = quantity(doc="Support vectors; 0 where the data are not separable.")
    margin_ratio: float = quantity(
        doc="Margin of the network per unit of norm times the lower bound of the optimum, at most "
        "1. Defined where the network is itself a candidate of the program: SVM-LC (norm of zeta, "
        "two-layer networks) and SVM-HL (norm of the last layer)."
    )
    agreement_independent: float = quantity()

    @property
    def verdict(self) -> Word:
        """The word on it beside the network: of those that go on training, it is the limit of none.

        Where the network is a candidate of the program, it bounds its margin; others are controls.
        """
        theory: Theory = "control" if math.isnan(self.margin_ratio) else "bound"
        return decide(Evidence(theory=theory, status=Status[self.status])).word


class ReLUComparison(Measured):
    """The four machines compared with one network, on the same held-out data."""

    error_network: float = quantity()
    rc: MachineComparison = part("SVM on random gates.")
    lc: MachineComparison = part("SVM on the gates that the network has learned.")
    hl: MachineComparison = part("SVM on its hidden activations.")
    gates_only: MachineComparison = part("SVM on the pattern of its gates.")

    @property
    def machines(self) -> dict[str, MachineComparison]:
        """The four, by the names that they have in the literature."""
        return {name: getattr(self, key) for key, name in RELU_SVMS.items()}

    @naming_extras()
    def to_frame(self) -> pd.DataFrame:
        """One row a machine."""
        import pandas as pd

        records = [
            {"machine": name, **one.to_dict(), "error_network": self.error_network}
            for name, one in self.machines.items()
        ]
        return pd.DataFrame(records)

    def cells(self) -> dict[str, Any]:
        """Return the values of the run's row: SVM-LC's, like the exit code, and of each machine."""
        columns = ("margin_ratio", "score_cosine", "agreement", "agreement_independent")
        found = {name: getattr(self.lc, name) for name in columns} | {"error_limit": self.lc.error}
        for key in RELU_SVMS:
            machine: MachineComparison = getattr(self, key)
            own = machine.to_dict() | {"gap": machine.certificate}
            found |= {f"{key}_{name}": cell for name, cell in own.items()}
        known = {name: cell for name, cell in found.items() if name in COLUMNS}
        return known | {"error_network": self.error_network}

    def tables(self, name: str = "") -> tuple[Table, ...]:
        """Return the table of all machines."""
        names, *rows = self.rows()
        return (Table("machines beside the network", names, tuple(rows)),)

    def rows(self) -> list[tuple[str, ...]]:
        """Lines of a table: a label and one value a machine, names first."""
        return [
            ("", *self.machines),
            ("sees", *(INPUT_OF[key] for key in RELU_SVMS)),
            ("is the limit of it with", *(self._limit_of(key) for key in RELU_SVMS)),
            ("verdict", *(one.verdict for one in self.machines.values())),
            *classifier_rows(self.machines, self.error_network, *LINES),
        ]

    def _limit_of(self, key: str) -> str:
        # Of several hidden layers, or where it separates nothing, a machine is no limit.
        machine: MachineComparison = getattr(self, key)
        return LIMIT_OF["rc"] if math.isnan(machine.margin_ratio) else LIMIT_OF[key]


class FrozenComparison(Measured):
    """A network whose gates were frozen during training, compared with SVM-FReLU on these gates.

    Unlike the four machines this one is the limit of the network that it is compared with: the
    copy that went on with the gates of step `freeze_at`, not the ReLU network.
    """

    freeze_at: int = part("Step at which the gates were frozen.")
    machine: MachineComparison = part("The limit on these gates.")
    error_network: float = quantity(shown=False)
    zeta_cosine: float = quantity()
    kkt_cosine: float = quantity()
    kkt_residual: float = quantity()
    kkt_complementarity: float = quantity()

    def rows(self) -> list[tuple[str, ...]]:
        """Lines of a table: label and value."""
        return [
            ("sees", f"gates of step {self.freeze_at}"),
            ("beside the network", f"frozen at {self.freeze_at}"),
            *classifier_rows({self.machine.name: self.machine}, self.error_network, *LINES),
            *super().rows(),
        ]


def view_relu(network: torch.nn.Module, X: ArrayLike, y: ArrayLike, gating: Any) -> ReLUView:
    """Return samples as the four machines see them, by the network's present gates and activations.

    Parameters
    ----------
    network : Module
        With `gates(X)` and `features(X)`: `networks.ReLU` or `networks.DeepReLU`.
    X : (n, D) array
    y : (n,) array
        Labels in {-1, +1}.
    gating : fitted transformer
        Random gates, such as `HyperplaneGates`: `gating.transform(X)` is (n, R) in {0, 1},
        or in {slope, 1}.

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
    ratios = _margin_ratios(limits, network, train)
    machines = {
        key: _compare_machine(
            RELU_SVMS[key], getattr(limits, key), seen, trained, held_out.y,
            ratios.get(key, math.nan),
        )
        for key, (_, *seen) in held_out.machines().items()
    }  # fmt: skip
    return ReLUComparison(error_network=error_rate(held_out.y, trained), **machines)


def compare_frozen(
    limit: FReLULimit,
    network: torch.nn.Module,
    train: Sample,
    held_out: Sample,
    *,
    freeze_at: int,
) -> FrozenComparison:
    """Compare a network that went on with frozen gates with the limit on these gates.

    Parameters
    ----------
    limit : FReLULimit
        Solved on `train`.
    network : Module
        The one with frozen gates, as it ended.
    train, held_out : Sample
        Data with the gates as they were frozen.
    freeze_at : int
        Step at which the gates were frozen, for the record.

    Raises
    ------
    ValueError
        If there are no held-out samples or widths do not fit.
    """
    separates = limit.certificate.proves_separability()
    found = Distances(limit if separates else None, train, held_out)(network)
    return FrozenComparison(
        freeze_at=freeze_at,
        machine=_compare_machine(
            "SVM-FReLU",
            limit,
            (held_out.X, held_out.gates),
            scores(network, held_out),
            held_out.y,
            found.get("margin_ratio", math.nan),
        ),
        error_network=found["error_network"],
        zeta_cosine=found.get("zeta_cosine", math.nan),
        **{name: found[name] for name in KKT},
    )


def _compare_machine(
    name: str, limit: Limit, seen: Any, trained: Floats, y: Floats, ratio: float
) -> MachineComparison:
    """Compare a machine with the scores of a network, on the inputs and gates that it sees."""
    one = compare_classifier(name, limit, tuple(seen), trained, y)
    separates = limit.certificate.proves_separability()
    return MachineComparison(
        **vars(one),
        optimum=limit.objective,
        n_support=int(limit.support.sum()) if separates else 0,
        margin_ratio=ratio if separates else math.nan,
        agreement_independent=agreement_independent(one.error, error_rate(y, trained)),
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
