"""Training of attention, and what it has come to beside the program of the tokens it selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ...limits.exact.tokens import TokenLimit
from ...networks.attention import Attention
from ...quantities.premises import FEASIBLE, KEY_QUERY, LOCAL
from ...runs.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.trained import Trained, held_back
from ...runs.reports.verdict import Evidence
from ...runs.setup import torch_dtype
from ...runs.stages import Found
from .comparison import AttentionComparison, compare_attention
from .figure import map_row, ratio_panels
from .run import NAME, AttentionSetup

NEARER = "it comes nearer as its margins grow: give more `--steps`"


def train(setup: AttentionSetup, found: Found) -> Iterator[Finding]:
    """Train attention, and find the program of the tokens that it selects."""
    data, options, best = setup.data, setup.options, found["limit"]
    d, q = data.X.shape[2], data.queries.shape[1]
    pair = options.parameters == KEY_QUERY[1]
    network = Attention(
        d,
        q,
        width=(options.width or min(d, q)) if pair else None,
        init_scale=options.init_scale,
        random_state=setup.seeds.weights,
        dtype=torch_dtype(options.dtype),
        device=options.device,
    )
    trajectory = fit(
        setup,
        network,
        data.X,
        data.scores,
        data.queries,
        settings=setup.settings,
        observer=_zeta,
    )
    W = trajectory.observed["zeta"]
    yield Finding("network", {"network": Trained(network, trajectory, margins=False)})
    setup.progress.stage("solving for the attention SVM of the selected tokens")
    compared, limit = compare_attention(data, W[-1], best, setup.solve)
    separates = {"SOLVED": True, "INACCURATE": True, "NOT_SEPARABLE": False}.get(limit.status.name)
    assumptions = (FEASIBLE.found(holds=separates), LOCAL.found(margin=limit.better_margin))
    steps = trajectory.step
    panels = (map_row(data, limit, steps, W), *ratio_panels(data, (limit, best), steps, W))
    yield Finding("limit", {"limit": limit}, NAME, assumptions=assumptions)
    if limit is not best:
        yield Finding("best", {"best_limit": best}, f"{NAME}, best tokens").but(row={})
    yield Finding("comparison", {"comparison": compared}, panels=panels)
    yield Finding("verdict", evidence=(_evidence(limit, compared, held_back(trajectory, NEARER)),))


def _zeta(network: torch.nn.Module) -> Mapping[str, Any]:
    """Observe W (d, q)."""
    return {"zeta": network.zeta().detach().double().cpu().numpy()}  # type: ignore[operator]


def _evidence(limit: TokenLimit, compared: AttentionComparison, reason: str) -> Evidence:
    """Return what decides: the ratio, where the tokens are self-consistent."""
    margin = f"a better token has a margin of {limit.better_margin:.3g} there, not above 1"
    return Evidence(
        theory="limit" if limit.is_local else "none",
        status=limit.status,
        near={"margin_ratio": compared.margin_ratio},
        beside={"best_share": compared.best_share},
        reason=reason
        if limit.is_local
        else f"the selected tokens are not self-consistent: {margin}, and no program predicts "
        "where attention goes: give more `--steps` or another `--seed`",
    )
