"""The circle: what its table and pictures are made of, at the sizes of the experiment."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments import circle
from experiments.circle import HALF, REACHED, WIDTHS


@pytest.fixture(scope="module")
def trained():
    """The DLGN-PWC of seed 3, as in the table, with tangent kernels of ten points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(circle, "EVERY", 40)
        return circle.run("constant", "trained", 3, steps=90)


def test_moments_are_the_first_steps_with_their_loss(trained) -> None:
    row, losses, moments = trained
    assert list(moments) == ["start", "half", "end"] and moments["start"].step == 0
    for name, bound in (("half", HALF), ("end", REACHED)):
        one = moments[name]
        assert losses[one.step] == one.loss <= bound < losses[one.step - 1]
    assert row["steps_to_loss"] == moments["end"].step < 90
    y = circle.points()[1]
    assert np.mean((moments["end"].outputs - y) ** 2) / 2 == pytest.approx(moments["end"].loss)
    assert moments["half"].gates.shape == (circle.POINTS, sum(WIDTHS))


def test_paths_and_half_planes_are_those_of_the_moment(trained) -> None:
    row, _, moments = trained
    X, _ = circle.points()
    for name, one in moments.items():
        np.testing.assert_array_equal(one.gates == 1, X @ one.normals.T >= 0)
        paths = np.prod([part.sum(axis=1) for part in np.split(one.gates, 5, axis=1)], axis=0)
        above = X[:, 1] > 0
        expected = np.log2(paths[above].mean() / paths[~above].mean())
        assert row[f"log2_easy_hard_{name}"] == pytest.approx(expected)
        diagonal = np.diag(one.kernel)  # of ten points, those above first
        halves = diagonal[:5].sum() / diagonal[5:].sum()
        assert row[f"log2_kernel_{name}"] == pytest.approx(np.log2(halves))
        # Three quarters of the easy half: the share of it that a unit of the last layer has.
        share = one.gates[above][:, -WIDTHS[-1] :].mean(axis=0)
        assert row[f"facing_up_{name}"] == pytest.approx(np.mean(share >= 0.75), abs=1 / 16 + 1e-9)


def test_losses_of_halves_and_artefacts_are_those_of_the_moment(trained) -> None:
    row, _, moments = trained
    for name, one in moments.items():
        easy, hard = row[f"easy_at_{name}"], row[f"hard_at_{name}"]
        assert (easy + hard) / 2 == pytest.approx(one.loss)
        assert 0 < row[f"artefact_at_{name}"] <= np.sqrt(2 * easy)
    assert row["easy_at_half"] < row["hard_at_half"]


def test_an_artefact_is_what_is_fast_and_on_the_easy_half() -> None:
    X, y = circle.points()
    angle, above = np.arctan2(X[:, 1], X[:, 0]), X[:, 1] > 0
    for periods, expected in ((4, 0.0), (5, 0.3 / np.sqrt(2))):
        wave = 0.3 * np.sin(2 * periods * angle)
        assert circle.artefact(y + above * wave) == pytest.approx(expected, abs=1e-12)
    assert circle.artefact(y + ~above * wave) == pytest.approx(0, abs=1e-12)
    assert circle.half_losses(y + above) == pytest.approx((0.5, 0.0), abs=1e-12)


@pytest.mark.parametrize(("experts", "gates"), circle.ARMS)
def test_tangent_kernels_are_those_of_the_weights_that_are_trained(experts, gates) -> None:
    network, X = circle.made(experts, gates, 1), circle.points()[0][::80]
    weights = [p for p in network.parameters() if p.requires_grad]
    rows = [
        torch.cat([part.ravel() for part in torch.autograd.grad(score, weights, retain_graph=True)])
        for score in network(torch.tensor(X))
    ]
    jacobian = torch.stack(rows).numpy()
    found = circle.tangent_kernel(network, X)
    np.testing.assert_allclose(found, jacobian @ jacobian.T, rtol=1e-8)


def test_a_half_plane_is_shaded_on_the_side_of_its_normal() -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    circle.shade(ax, np.array([0.0, -2.0]), "k")
    wedge = ax.patches[0]
    path, to_data = wedge.get_path(), wedge.get_patch_transform()
    below, above = np.array([[0.0, -0.5], [0.0, 0.5]])
    assert path.contains_point(below, to_data) and not path.contains_point(above, to_data)
