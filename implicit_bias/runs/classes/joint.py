"""The run of all classes at once: its gates, and labels of the limit beside the network's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..._support.solve import to_numpy
from ...data.labelled import ClassDataset
from ...quantities.said import Table
from ..parts import JointParts
from ..reports.finding import Finding
from ..setup import SampleSetup

if TYPE_CHECKING:
    import torch

    from ...limits.exact.multiclass import MarginLimit


def gated(setup: SampleSetup, parts: JointParts) -> SampleSetup:
    """Return the setup with gates as the program and the network take them."""
    if parts.gates is None:
        return setup
    columns = parts.gates(setup.gates[0])
    return replace(setup, gates=(columns(setup.gates[0]), columns(setup.gates[1])))


def joint_labels(setup: SampleSetup, limit: MarginLimit, network: torch.nn.Module) -> Finding:
    """Return the finding of held-out labels by the limit and by the network, class by class."""
    from ...measures.labels import COLUMNS, compare_argmax
    from ...measures.scalars import sample_margins, scores  # with torch
    from ..drawing.classes import joint_row

    data = setup.dataset
    assert isinstance(data, ClassDataset)
    predicted = [to_numpy(limit.predictor(one.X, one.gates)) for one in setup.samples]
    trained = [scores(network, one) for one in setup.samples]
    smallest = float(sample_margins(setup.train.y, trained[0]).min())
    found = compare_argmax(
        data.classes, data.labels_val, predicted[1], trained[1],
        np.full(len(data.classes), smallest),
    )  # fmt: skip
    known = [predicted[0], trained[0] / smallest] if smallest > 0 else [predicted[0]]
    pairs = [class_margins(one, setup.train.y) for one in known]
    return Finding.said(
        "labels",
        record={"multiclass": found.to_dict()},
        tables=(Table("held-out labels", COLUMNS[:3], tuple(r[:3] for r in found.rows())),),
        panels=(joint_row(found, pairs),),
        objects={"labels": found},
    )


def class_margins(scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the least margins (K, K) of samples of one class (row) over another (column)."""
    own = (scores * rows).sum(axis=1, keepdims=True)
    margins = own - scores
    found = np.full((rows.shape[1],) * 2, np.nan)
    for k, members in enumerate(rows.T > 0):
        if members.any():
            found[k] = margins[members].min(axis=0)
    np.fill_diagonal(found, np.nan)
    return found
