"""Every word of a verdict, by own arithmetic from the files of a run that comes to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

import implicit_bias as ib
from implicit_bias.runs.reports import WORDS

RNG = np.random.default_rng(0)
X, X_VAL = RNG.normal(size=(12, 3)), RNG.normal(size=(20, 3))
Y, Y_VAL = (np.where(x @ [1.0, -0.5, 0.3] > 0, 1.0, -1.0) for x in (X, X_VAL))
UNITS = 4  # of each of two gated layers
OWN = {"X": X, "y": Y, "X_val": X_VAL, "y_val": Y_VAL}


class Saved(NamedTuple):
    """The files of a run."""

    folder: Path

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        found = load_file(self.folder / f"{name}.safetensors")
        return {k: v.astype(float) if v.dtype.kind == "f" else v for k, v in found.items()}

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        return list(json.loads((self.folder / "results.json").read_text())["verdicts"])

    def zeta(self, name: str = "network") -> np.ndarray:
        """Coefficients (D,) of a linear network, or (H, C, D) of a gated one of two layers."""
        parts = self.arrays(name)
        if "layers.0" in parts:
            return parts["layers.0"][0]
        return parts["w1"] * parts["upper.0"][0][:, None, None] if "w1" in parts else parts["zeta"]

    def scores(self, zeta: np.ndarray, x: np.ndarray) -> np.ndarray:
        if zeta.ndim == 1:
            return x @ zeta
        gating = self.arrays("gating")
        contexts = (np.einsum("hbd,nd->nhb", gating["normals"], x) >= gating["cutoffs"])[..., 0]
        own = zeta[np.arange(len(zeta)), contexts.astype(int)]
        return np.einsum("nhd,nd->n", own, x)

    def duals(self) -> float:
        """A lower bound of the least norm, from the multipliers of the file alone."""
        lam = np.maximum(self.arrays("limit")["dual"], 0)
        blocks = (lam * Y)[:, None] * X
        if "gating.safetensors" in {one.name for one in self.folder.iterdir()}:
            gating = self.arrays("gating")
            bits = np.einsum("hbd,nd->nhb", gating["normals"], X) >= gating["cutoffs"]
            each = np.stack([bits[..., 0] == c for c in (0, 1)], axis=-1)  # (n, H, C)
            parts = np.einsum("nhc,nd->hcd", each, blocks)
            size = np.sqrt((parts**2).sum(axis=(1, 2))).max()
        else:
            size = np.linalg.norm(blocks.sum(axis=0))
        return float(lam.sum() / size)

    def same_labels(self) -> float:
        limit, network = (self.scores(self.zeta(one), X_VAL) for one in ("limit", "network"))
        return float(np.mean((limit > 0) == (network > 0)))

    def margin_ratio(self) -> float:
        zeta = self.zeta()
        norm = np.linalg.norm(zeta)
        if zeta.ndim > 1:
            norm = np.sqrt((zeta**2).sum(axis=(1, 2))).sum()
        return float((Y * self.scores(zeta, X)).min() / norm * self.duals())


RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("linear", {"trainer": "dual", "steps": 300}),
    "linear early": ("linear", {"trainer": "dual", "steps": 40}),
    "gln": ("gln", {"hidden_units": 2, "trainer": "annealed", "steps": 150}),
    "gln early": ("gln", {"hidden_units": 2, "trainer": "momentum", "steps": 15}),
    "control": ("gln-l2", {"hidden_units": 2, "trainer": "annealed", "steps": 60}),
    "l1": ("gln", {"hidden_units": 2, "trainer": "coordinate", "steps": 100}),
    "wrong": ("linear", {"y": -Y, "trainer": "constant", "steps": 1, "learning_rate": 1e-6}),
    "diverged": ("linear", {"trainer": "constant", "learning_rate": 1e4, "steps": 1}),
    "predicted": ("linear", {"steps": 0}),
    "inseparable": ("linear", {"X": np.ones((12, 3)), "steps": 1}),
    "unsolved": (
        "linear",
        {"weight_decay": 0.1, "decoupled": True, "trainer": "adam", "steps": 20, "tol": 1e-15},
    ),
    "decayed": ("linear", {"weight_decay": 0.1, "steps": 200}),
    "paths": ("dgn", {"hidden_units": UNITS, "starts": 1, "trainer": "annealed", "steps": 100}),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Callable[[str], Saved]:
    """The files of a run by its name, which is made once."""
    folder, done = tmp_path_factory.mktemp("runs"), {}

    def make(name: str) -> Saved:
        if name not in done:
            model, options = RUNS[name]
            ib.run(model, **OWN | options).save(folder / name)
            done[name] = Saved(folder / name)
        return done[name]

    return make


# What each of them is to say.
SAID: dict[str, tuple[str, ...]] = {
    "linear": ("AT ITS LIMIT",),
    "linear early": ("NOT THERE YET",),
    "gln": ("AT ITS LIMIT",),
    "gln early": ("NOT THERE YET",),
    "control": ("NOT THIS LIMIT",),
    "l1": ("NO THEOREM",),
    "wrong": ("NOT SEPARATED",),
    "diverged": ("DIVERGED",),
    "predicted": ("PREDICTED",),
    "inseparable": ("NOT SEPARABLE",),
    "unsolved": ("NOT SOLVED",),
    "decayed": ("AT ITS LIMIT",),
    "paths": (
        "AT A LOCAL LIMIT",
        "BOUND",
    ),
}


def the(found: Saved, word: str) -> dict[str, Any]:
    """The verdict with this word, beside the others of its run."""
    verdicts = {one["word"]: one for one in found.verdicts}
    assert word in verdicts and set(verdicts) == set(SAID[found.folder.name]), verdicts
    return verdicts[word]


@pytest.mark.parametrize(
    ("name", "word"),
    [(name, SAID[name][0]) for name in ("linear", "gln", "linear early", "gln early")],
)
def test_margin_ratios_and_their_words_follow_from_multipliers_and_weights(
    saved, name, word
) -> None:
    found = saved(name)
    ratio, same = found.margin_ratio(), found.same_labels()
    verdict = the(found, word)
    assert (ratio >= 0.99) == (word == "AT ITS LIMIT")
    assert 0 < ratio <= 1 + 1e-6
    assert verdict["numbers"]["margin_ratio"] == pytest.approx(ratio, rel=1e-6)
    assert f"margin ratio {ratio:.4f}, same label on {same:.2%} held out" in verdict["sentence"]


def test_a_network_with_a_sample_on_the_wrong_side_is_not_separated(saved) -> None:
    found = saved("wrong")
    assert (-Y * found.scores(found.zeta(), X)).min() <= 0
    smallest = (-Y * found.scores(found.zeta(), X)).min()
    assert f"smallest margin {smallest:.3g}" in the(found, "NOT SEPARATED")["sentence"]


def test_a_loss_ten_times_that_of_the_start_on_the_wrong_side_has_diverged(saved) -> None:
    found = saved("diverged")
    path = pd.read_parquet(found.folder / "trajectory.parquet")
    margins = Y * found.scores(found.zeta(), X)
    with np.errstate(over="ignore"):
        loss = np.logaddexp(0, -margins).mean()
    assert margins.min() <= 0 and loss > 10 * path.loss.iloc[0]
    rose = path.step[(path.loss <= path.loss.iloc[0]).to_numpy().nonzero()[0][-1] + 1]
    assert f"from step {int(rose)} on" in the(found, "DIVERGED")["sentence"]


def test_a_run_of_no_steps_is_predicted_and_its_program_solved(saved) -> None:
    found = saved("predicted")
    assert not (found.folder / "network.safetensors").exists()
    zeta = found.zeta("limit")
    assert (Y * (X @ zeta)).min() >= 1 - 1e-12
    assert np.linalg.norm(zeta) == pytest.approx(found.duals(), rel=1e-8)
    assert "nothing was trained" in the(found, "PREDICTED")["sentence"]


def test_multipliers_that_cancel_all_samples_prove_that_none_is_separable(saved) -> None:
    found = saved("inseparable")
    lam = found.arrays("limit")["dual"]
    assert (lam >= 0).all() and lam.sum() > 0
    assert np.abs((lam * Y) @ np.ones((12, 3))).max() <= 1e-12 * lam.sum()
    assert "these 12 samples" in the(found, "NOT SEPARABLE")["sentence"]


def test_a_gap_above_its_tolerance_is_not_solved(saved) -> None:
    found = saved("unsolved")
    zeta = found.zeta("limit")
    margins = Y * (X @ zeta)
    value, slopes = np.logaddexp(0, -margins).mean(), -Y / (1 + np.exp(margins)) / len(Y)
    # No coefficients of the box are below the tangent.
    bound = value - slopes @ (X @ zeta) - 10 * np.abs(X.T @ slopes).sum()
    sentence = the(found, "NOT SOLVED")["sentence"]
    assert "tolerance 1e-15" in sentence
    gap = float(sentence.partition("(gap ")[2].partition(",")[0])
    assert gap > 1e-15 and (value - bound) / value <= max(2 * gap, 1e-13)


def test_the_value_over_the_least_of_a_decayed_loss_follows_from_both_weights(saved) -> None:
    found = saved("decayed")

    def value(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -Y * (X @ w)).mean() + 0.05 * w @ w)

    w, least = found.zeta(), value(found.zeta("limit"))
    margins = Y * (X @ w)
    slopes = -Y / (1 + np.exp(margins)) / len(Y)
    # By Fenchel's inequality no coefficients are below this, whatever w is.
    V = X.T @ slopes
    bound = np.logaddexp(0, -margins).mean() - slopes @ (X @ w) - V @ V / 0.2
    gap = (value(w) - bound) / value(w)
    assert bound <= least <= value(w)
    verdict = the(found, "AT ITS LIMIT")
    (name,) = set(verdict["numbers"]) - {"agreement"}
    assert verdict["numbers"][name] == pytest.approx(gap, rel=1e-4) and gap <= 0.01


def test_a_control_is_another_networks_limit_however_near_it_is(saved) -> None:
    found = saved("control")
    # Its coefficients and those of the network are of one form, and separate both.
    for zeta in (found.zeta("limit"), found.zeta()):
        assert (Y * found.scores(zeta, X)).min() > 0
    sentence = the(found, "NOT THIS LIMIT")["sentence"]
    assert f"same label on {found.same_labels():.2%}" in sentence and "a control" in sentence


def test_separating_in_a_norm_that_no_theorem_has_for_two_layers_is_no_theorem(saved) -> None:
    found = saved("l1")
    assert (Y * found.scores(found.zeta(), X)).min() > 0
    assert "no theorem names its limit" in the(found, "NO THEOREM")["sentence"]


def test_local_limits_and_bounds_of_deep_gated_networks_follow_from_gates_and_weights(
    saved,
) -> None:
    found = saved("paths")
    gating, limit = found.arrays("gating"), found.arrays("limit")
    first, second = np.split(gating["weights"], [UNITS * 3])
    q1 = X @ first.reshape(UNITS, 3).T
    q2 = np.maximum(q1, 0) @ second.reshape(UNITS, UNITS).T
    open_ = (q1 >= 0, q2 >= 0)

    def value(layers: list[np.ndarray]) -> float:
        h = X
        for layer, gates in zip(layers[:-1], open_, strict=True):
            h = (h @ layer.T) * gates
        margins = Y * (h @ layers[-1].T)[:, 0]
        squares = sum((layer**2).sum() for layer in layers)
        return float((squares / 3) ** 1.5 / margins.min())

    network = found.arrays("network")
    own = value([network[f"layers.{i}"] for i in range(3)])
    report = ib.load(found.folder)
    local = value([np.asarray(w) for w in report.objects["local_limit"].weights.values()])
    verdict = the(found, "AT A LOCAL LIMIT")
    assert (
        f"value {own:.5g}, local optimum {local:.5g}, ratio {local / own:.4f}"
        in (verdict["sentence"])
    )
    assert 0.99 <= local / own <= 1 + 1e-6
    # Of all paths, by their multipliers.
    lam = np.maximum(limit["dual"], 0)
    sizes = [
        np.linalg.norm((lam * Y * open_[0][:, i] * open_[1][:, j]) @ X)
        for i in range(UNITS)
        for j in range(UNITS)
    ]
    bound = lam.sum() / max(sizes)
    said = the(found, "BOUND")
    assert said["numbers"]["lower_bound"] == pytest.approx(bound, rel=1e-6)
    assert bound <= local * (1 + 1e-8) and f"below {bound:.5g} (proved)" in said["sentence"]


def test_every_word_is_that_of_a_run() -> None:
    # Of networks of one's own alone: tests/diagnosis/test_any_network.py.
    diagnosed = {"PROBLEM NAMED", "ANOTHER REGIME"}
    assert {word for said in SAID.values() for word in said} | diagnosed == set(WORDS)
    assert set(SAID) == set(RUNS)
