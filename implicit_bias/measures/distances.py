"""Distances of a network from its limit, at every checkpoint of a run."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door
from .._support.solve import to_numpy
from .._support.words import MarginLoss
from ..data.sample import Sample
from ..networks.adapted import with_gates
from ..networks.losses.margins import loss_margins
from ..networks.losses.objectives import get_logarithm, log_mean_loss
from ..networks.placed_data import GatedData, place_data
from ..networks.protocols import HasGates, HasImbalance
from .kkt import KKTDistance
from .own_norm import OwnNorm
from .scalars import (
    above_one,
    agreement,
    dead_units,
    error_rate,
    every_margin,
    kkt_where_separated,
    margin_ratio,
    network_norm,
    network_zeta,
    placed_scores,
    sample_margins,
    score_cosine,
    unit_norms,
    wrongly_small,
    zeta_cosine,
)

if TYPE_CHECKING:
    import torch

    from ..limits.exact.multiclass import MarginLimit, MulticlassLimit
    from ..limits.limit import Limit

Array = NDArray[np.float64]
Values = dict[str, Any]  # floats and arrays


class Distances:
    r"""An observer for `train`: called with a network, it measures the network as it is now.

    Parameters
    ----------
    limit : Limit, MulticlassLimit or None
        A solved limit. None where no theorem names one (a ReLU network on general data): what
        compares with it is left out, what the network alone decides is measured.
    train, val : Sample
        Data with the gates that limit and network use.
    loss : {"logistic", "exponential"}
        Loss that defines the smoothed margin; of K classes "logistic" is softmax's cross-entropy.
    kkt : bool
        Fit multipliers at every call. Everything else costs little more than a forward pass; the
        fit grows like the cube of the number of samples: milliseconds for hundreds of them,
        seconds for thousands. Without it its values are NaN.
    direction : bool
        Keep the network's coefficients, at unit length, for `extrapolate_direction`.
    own : OwnNorm, optional
        The program in the norm that the network's optimiser induces. Where it is not the limit's,
        margin ratios and norms are those of this program, and what compares with the coefficients
        or the scores of the limit is NaN.

    Raises
    ------
    ValueError
        If the held-out sample is empty, the limit does not separate its training data, the loss is
        unknown, or (when called) shapes do not fit.
    FloatingPointError
        When called, if a score of the network is NaN.

    Notes
    -----
    A call returns floats, and one array (H,), under these keys; NaN means not defined now.

    ==================== ==========================================================================
    margin_ratio         smallest margin per unit of the limit's norm, times the certified lower
                         bound of the optimum: at most 1
                         (of K classes margins are relative, f_y - f_k)
    smooth_margin_ratio  the same of :math:`-\log \sum_n \ell(m_n)`, which lies below the smallest
                         margin (for the logistic loss once margins are above 1 or so)
    network_norm         norm of the coefficients in the limit's norm
    certified_ratio      with `own`: smallest margin per unit of norm over the least of all upper
                         bounds so far, which the weights of the loss prove without a solver
    zeta_cosine          between the coefficients of network and limit
    score_cosine         between their scores on held-out data
    agreement            share of held-out samples with equal labels
    error_network        error rate on held-out data
    kkt_cosine           stationarity, relative residual and complementarity of `kkt_distance`;
    kkt_residual         NaN while the network does not separate the training data. ReLU networks
    kkt_complementarity  are measured with the gates that they have now
    kkt_margin_bound     margin ratio that the network reaches at least, proved by all of these
    dual_norms           (H,) of that fit, in units in which live units have 1
    n_dead               units with a norm of at most a thousandth of the largest
    n_wrongly_dead       those among them with a dual norm above 1: not optimal, however stationary
    n_wrongly_small      these, and units with a dual norm above 1.01 that hold less than half of
                         the share of the norm that the limit gives them
    balancedness         largest :math:`|\,\|\text{in}\|^2 - \|\text{out}\|^2\,|` of the weights of
                         a hidden unit, over :math:`\|w\|^2`; 0 for balanced weights
    balancedness_drift   the same of its change since the first call; gradient flow conserves it,
                         steps do not
    gate_changes         share of training gates that differ from those at the first call
    gate_flips           share that differ from those at the call before
    direction            (P,) coefficients zeta at unit length, if they are asked for
    ==================== ==========================================================================

    Balancedness is there for networks with a hidden layer, gate changes for those that set their
    own gates. `dual_norms` and the dead units are absent for a network without units.

    One observer belongs to one run: the first call fixes what later ones are compared with.
    `state_dict` and `load_state_dict` carry that through a resumed run.

    Examples
    --------
    >>> sample = ib.Sample(np.array([[3.0, 4.0]]), np.ones(1), np.ones((1, 1)))
    >>> limit = ib.solve_frelu_svm(*sample)
    >>> network = ib.FReLU.from_zeta(np.array([[6.0, 8.0]]))
    >>> observer = ib.measures.Distances(limit, sample, sample)
    >>> round(observer(network)["margin_ratio"], 6)
    1.0
    """

    @door()
    def __init__(
        self,
        limit: Limit | MulticlassLimit | None,
        train: Sample[Any],
        val: Sample[Any],
        *,
        loss: MarginLoss = "logistic",
        kkt: bool = True,
        direction: bool = False,
        own: OwnNorm | None = None,
    ) -> None:
        if len(val.y) == 0:
            raise ValueError("`val` has no samples: scores and labels need some to compare")
        get_logarithm(loss)
        self._limit, self._loss, self._fit, self._keep = limit, loss, kkt, direction
        self._samples = train, val
        self._predicted = None if limit is None else _predict(limit, val)
        self._placed_for: tuple[weakref.ref[torch.nn.Module], Any, Any] | None = None
        self._placed: tuple[GatedData, GatedData] | None = None
        self._first: dict[str, Array] = {}
        self._last_gates: Array | None = None
        self._own, self._largest_margin = own, math.inf

    @door()
    def __call__(self, network: torch.nn.Module, *, kkt: KKTDistance | None = None) -> Values:
        """Measure `network`; `kkt` is its KKT distance if that is known already."""
        train, val = self._place(network)
        network = with_gates(network)
        known = placed_scores(network, train)
        margins = sample_margins(to_numpy(train.y.double()), known)
        if kkt is None and self._fit:
            kkt = kkt_where_separated(network, train, margins)
        values: Values = {}
        if self._limit is not None:
            smallest, log_sum = float(margins.min()), self._log_sum(train.y, known)
            values |= self._beside_the_limit(self._limit, network, smallest, log_sum)
        if self._own is not None:
            values |= self._in_own_norm(self._own, network, train.y, known)
        trained = placed_scores(network, val)
        if self._predicted is not None:
            # Limits in other norms need not be unique: their margins compare, their scores do not.
            alike = self._own is None or self._own.limit
            cosine = score_cosine(self._predicted, trained) if alike else math.nan
            values["score_cosine"] = cosine
            values["agreement"] = agreement(self._predicted, trained) if alike else math.nan
        values["error_network"] = error_rate(to_numpy(val.y.double()), trained)
        for name in ("cosine", "residual", "complementarity", "margin_bound"):
            values[f"kkt_{name}"] = math.nan if kkt is None else getattr(kkt, name)
        values |= _units(unit_norms(network), kkt, self._limit)
        if self._keep:
            values["direction"] = _direction(network)
        return values | self._balance(network) | self._gates(network, train)

    def predicted_scores(self) -> Array:
        """Scores (m,) of the limit on the held-out data.

        Raises
        ------
        ValueError
            If there is no limit.
        """
        if self._predicted is None:
            raise ValueError("there is no limit to predict scores: give one to `Distances`")
        return self._predicted

    def state_dict(self) -> dict[str, Array]:
        """Return the results of the first and the last call, for a resumed run."""
        last = {} if self._last_gates is None else {"last_gates": self._last_gates}
        own = {} if self._own is None else {"largest_margin": np.array(self._largest_margin)}
        return {f"first_{name}": array for name, array in self._first.items()} | last | own

    @door()
    def load_state_dict(self, state: dict[str, Array]) -> None:
        """Take up what `state_dict` gave."""
        first = {name for name in state if name.startswith("first_")}
        self._first = {name.removeprefix("first_"): np.asarray(state[name]) for name in first}
        self._last_gates = state.get("last_gates")
        self._largest_margin = float(state.get("largest_margin", math.inf))

    def _place(self, network: torch.nn.Module) -> tuple[GatedData, GatedData]:
        # Once a network: checking and copying the data would cost more than the forward passes.
        weight = next(network.parameters())
        known = self._placed_for
        if known is None or (known[0](), *known[1:]) != (network, weight.dtype, weight.device):
            train, val = self._samples
            self._placed = place_data(network, *train), place_data(network, *val)
            self._placed_for = weakref.ref(network), weight.dtype, weight.device
        assert self._placed is not None
        return self._placed

    def _log_sum(self, y: torch.Tensor, known: Array) -> float:
        """Return the logarithm of the sum of the losses of all samples."""
        import torch

        of_loss = loss_margins(torch.tensor(known), y.double().cpu())
        return float(log_mean_loss(of_loss, self._loss)) + math.log(len(of_loss))

    def _beside_the_limit(
        self, limit: MarginLimit, network: torch.nn.Module, smallest: float, log_sum: float
    ) -> Values:
        norm = network_norm(limit, network)
        return {
            "margin_ratio": margin_ratio(smallest, norm, limit),
            "smooth_margin_ratio": margin_ratio(-log_sum, norm, limit),
            "network_norm": norm,
            "zeta_cosine": zeta_cosine(limit, network),
        }

    def _in_own_norm(
        self, own: OwnNorm, network: torch.nn.Module, y: torch.Tensor, known: Array
    ) -> Values:
        margins = every_margin(to_numpy(y.double()), known)
        self._largest_margin = min(self._largest_margin, own.largest_margin(margins))
        smallest, size = float(margins.min()), own.value(network)
        certified = smallest / size / self._largest_margin if size > 0 else math.nan
        if own.limit:
            return {"certified_ratio": certified}
        lower = max(own.lower, 1 / self._largest_margin)
        return {
            "certified_ratio": certified,
            "margin_ratio": own.ratio(smallest, network, lower),
            "smooth_margin_ratio": own.ratio(-self._log_sum(y, known), network, lower),
            "network_norm": size,
            "zeta_cosine": math.nan,
        }

    def _balance(self, network: torch.nn.Module) -> Values:
        if not isinstance(network, HasImbalance):
            return {}
        now = to_numpy(network.imbalance().double())
        if len(now) == 0:
            return {}
        first = self._first.setdefault("imbalance", now.copy())
        size = sum(float(p.detach().double().square().sum()) for p in network.parameters())
        return {
            "balancedness": float(np.abs(now).max()) / size if size > 0 else math.nan,
            "balancedness_drift": float(np.abs(now - first).max()) / size if size > 0 else math.nan,
        }

    def _gates(self, network: torch.nn.Module, train: GatedData) -> Values:
        if not isinstance(network, HasGates):
            return {}
        from ..gates.changes import gate_changes

        now = to_numpy(network.gates(train.X))
        first = self._first.setdefault("gates", now)
        last = now if self._last_gates is None else self._last_gates
        self._last_gates = now
        return {
            "gate_changes": float(gate_changes(first, now).mean()),
            "gate_flips": float(gate_changes(last, now).mean()),
        }


def _direction(network: torch.nn.Module) -> Array:
    zeta = network_zeta(network)
    if zeta is None:
        raise ValueError(
            f"{type(network).__name__} has no coefficients zeta to keep: leave out `direction`"
        )
    unit: Array = zeta.ravel() / (np.abs(zeta).max() or 1.0)
    return unit / (float(np.linalg.norm(unit)) or 1.0)


def _predict(limit: MarginLimit, sample: Sample[Any]) -> Array:
    if not limit.certificate.proves_separability():
        raise ValueError(
            f"the limit is {limit.status.name} and has no coefficients to compare a network with: "
            f"{limit.advice}"
        )
    # Limits take inputs row by row, images of a network as well.
    rows = sample.X if np.ndim(sample.X) == 2 else sample.X.reshape(len(sample.X), -1)
    predicted: Array = to_numpy(limit.predictor(rows, sample.gates))
    if np.isnan(predicted).any():
        raise ValueError("the limit's scores on `held_out` are NaN: look for NaN in its `zeta`")
    return predicted


def _units(norms: Array, kkt: KKTDistance | None, limit: MarginLimit | None) -> Values:
    if len(norms) == 0:
        return {}
    dual_norms = np.full(len(norms), math.nan)
    if kkt is not None and kkt.dual_norms is not None:
        dual_norms = np.array(kkt.dual_norms)
    dead, known = dead_units(norms), not np.isnan(dual_norms).any()
    return {
        "dual_norms": dual_norms,
        "n_dead": float(len(dead)),
        "n_wrongly_dead": float(above_one(dual_norms[dead]).sum()) if known else math.nan,
        "n_wrongly_small": float(len(wrongly_small(norms, dual_norms, limit)))
        if known
        else math.nan,
    }
