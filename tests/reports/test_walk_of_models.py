"""The number that a verdict rests on, of every model, by own arithmetic from the files of its run.

Models whose words are walked one by one are in test_walk.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import implicit_bias as ib
from implicit_bias.models import MODELS
from tests.long import some_of

Floats = np.ndarray
Files = Mapping[str, Mapping[str, Floats]]
Own = Callable[[Files], float]
RNG = np.random.default_rng(0)
X, X_VAL = RNG.normal(size=(12, 3)), RNG.normal(size=(20, 3))
Y, Y_VAL = (np.where(x @ [1.0, -0.5, 0.3] > 0, 1.0, -1.0) for x in (X, X_VAL))
OWN: dict[str, Any] = {"X": X, "y": Y, "X_val": X_VAL, "y_val": Y_VAL}
TOKENS, OTHERS = RNG.normal(size=(6, 3, 2)), RNG.normal(size=(4, 2, 4))
SIDES = np.array([1.0, 1, 1, -1, -1, -1])
# Samples of one label at acute angles, of two at obtuse ones.
ORTHANTS = np.vstack([np.eye(3) + 0.1, -np.eye(3) - 0.2])
length = np.linalg.norm


def margin_ratio(
    features: Floats, lam: Floats, w: Floats, norm: Callable[..., Any], dual: Callable[..., Any]
) -> float:
    """Margin per norm of coefficients w on labelled features (n, m), over what lam proves."""
    lam = np.maximum(lam, 0)
    proved = lam.sum() / dual(lam @ features)
    return float((features @ np.ravel(w)).min() / norm(w) * proved)


def off(w: Floats, limit: Floats) -> float:
    return float(length(w - limit) / length(limit))


def contexts(gating: Mapping[str, Floats]) -> Floats:
    """Bits (n, H) of the samples in half-spaces."""
    return (np.einsum("hbd,nd->nhb", gating["normals"], X) >= gating["cutoffs"])[..., 0]


def behind(gates: Floats) -> Floats:
    """Labelled features (n, H D) of units behind gates (n, H)."""
    return (Y[:, None, None] * gates[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def units(zeta: Floats) -> float:
    return float(length(zeta, axis=1).sum())


def largest_unit(V: Floats) -> float:
    return float(length(V.reshape(-1, 3), axis=1).max())


def deep_linear(found: Files) -> float:
    own = found["network"]
    w = (own["layers.2"] @ own["layers.1"] @ own["layers.0"])[0]
    return margin_ratio(Y[:, None] * X, found["limit"]["dual"], w, length, length)


def convolution(found: Files) -> float:
    u, v = found["network"]["kernels.0"], found["network"]["kernels.1"]
    w = np.array([sum(u[k] * v[(j - k) % 3] for k in range(3)) for j in range(3)])
    F = np.fft.fft(np.eye(3)) / np.sqrt(3)
    return margin_ratio(
        Y[:, None] * X, found["limit"]["dual"], w,
        lambda w: np.abs(F @ w).sum(), lambda V: np.abs(F @ V).max(),
    )  # fmt: skip


def gdln(found: Files) -> float:
    path = found["gated-network"]["weights"]
    rows = ((X @ path[0].T >= 0)[:, :, None] * X[:, None, :]).reshape(len(X), -1)
    # Scores are means over two units, and these six weights are determined.
    least = np.linalg.lstsq(rows / 2, (Y + 1) / 2, rcond=None)[0].reshape(2, 3)
    np.testing.assert_allclose(found["limit"]["zeta"], least / 2, rtol=1e-9)
    return off(path[-1], least)


def frelu(found: Files) -> float:
    own, bits = found["network"], contexts(found["gating"])
    zeta = own["w1"] * own["upper.0"][0][:, None]
    open_ = behind(np.c_[bits, np.ones(len(X))])  # the last unit is open everywhere
    return margin_ratio(open_, found["limit"]["dual"], zeta, units, largest_unit)


def shallow(found: Files) -> float:
    bits, own = contexts(found["gating"]), found["network"]
    its_own = (bits[:, None, :] == own["global_contexts"][None]).all(axis=-1)
    return margin_ratio(behind(its_own), found["limit"]["dual"], own["weight"], length, length)


def constant_experts(found: Files) -> float:
    own, gates = found["network"], X @ found["gating"]["weights"].reshape(-1, 3).T >= 0
    first, outer = own["layers.0"], own["layers.1"][0]
    # Inputs are ones: weights off them, or layers of unequal size, cost norm and change no score.
    norm = np.sqrt(3) * (length(first) ** 2 + length(outer) ** 2) / 2
    return margin_ratio(
        Y[:, None] * gates, found["limit"]["dual"], outer * first.sum(axis=1),
        lambda a: norm, lambda V: np.abs(V).max(),
    )  # fmt: skip


def relu_value(W: Floats, a: Floats, x: Floats = X, y: Floats = Y) -> float:
    scores = np.maximum(x @ W.T, 0) @ a
    return float((length(W, axis=1) * np.abs(a)).sum() / (y * scores).min())


def relu(found: Files) -> float:
    own, best = found["network"], found["local-limit"]
    value = relu_value(own["layers.0"], own["layers.1"][0])
    return relu_value(best["units"], best["signs"].astype(float)) / value


def orthosep(found: Files) -> float:
    own, lam = found["network"], found["limit"]["dual"]
    proved = lam.sum() / max(length((lam * (y == SIDES)) @ ORTHANTS) for y in (1, -1))
    return proved / relu_value(own["W"], own["a"], ORTHANTS, SIDES)


def fixed_outer(found: Files) -> float:
    def value(W: Floats, outer: Floats) -> float:
        z = X @ W.T
        return float(length(W) / (Y * (np.where(z > 0, z, z / 2) @ outer)).min())

    own, best = found["network"], found["limit"]
    return value(best["zeta"], best["outer"]) / value(own["W"], own["outer"])


def attention(x: Floats) -> Own:
    """The margin ratio of attention on token sequences x (n, T, D) whose last one asks."""

    def ratio(found: Files) -> float:
        tokens, lam, W = found["limit"]["tokens"], found["limit"]["dual"], found["network"]["W"]
        queries, others = x[:, -1], np.arange(x.shape[1]) != tokens[:, None]
        apart = x[np.arange(len(x)), tokens][:, None] - x  # of a selected token from each
        logits = np.einsum("ntd,de,ne->nt", apart, W, queries)
        proved = lam.sum() / length(np.einsum("nt,ntd,ne->de", lam, apart, queries))
        return float(logits[others].min() / length(W) * proved)

    return ratio


def collapse(found: Files) -> float:
    H, W = found["network"]["layers.0"], found["network"]["layers.1"]
    lam, labels = found["limit"]["dual"], np.repeat(np.arange(3), 4)
    scores = W @ H
    margins = [scores[y, i] - scores[k, i] for i, y in enumerate(labels) for k in {0, 1, 2} - {y}]
    # Spectral norm of the multipliers' matrix, of the classes by the samples.
    each = np.diag(lam.sum(axis=1)) - lam.T
    proved = 4 * lam.sum() / length(each[:, labels], 2)
    return float(min(margins) / length(scores, "nuc") * proved)


# Options of all runs of a model, the number of its verdicts, and options by which they get a word.
WALKED: dict[str, tuple[dict[str, Any], str, Own, dict[str, dict[str, Any]]]] = {
    "deep-linear": (
        OWN | {"hidden_units": 2}, "margin_ratio", deep_linear,
        {"AT ITS LIMIT": {"steps": 60}, "NOT THERE YET": {"steps": 10},
         "NOT SEPARATED": {"steps": 4}},
    ),
    "convolution": (
        OWN, "margin_ratio", convolution,
        {"NOT THERE YET": {"steps": 20}, "AT ITS LIMIT": {"trainer": "annealed", "steps": 100}},
    ),
    "heads": (
        {"n_train": 30, "n_val": 10, "depth": 1, "hidden_units": 8, "trunk": "random",
         "exits": (1,)},
        "limit_error", lambda f: off(f["network"]["heads.0.weight"], f["limit-exit1"]["zeta"]),
        {"AT ITS LIMIT": {"steps": 60}, "NOT THERE YET": {"steps": 2}},
    ),
    "diagonal": (
        OWN, "limit_error",
        lambda f: off(f["network"]["u"] * f["network"]["v"], f["limit"]["zeta"]),
        {"NOT THERE YET": {"steps": 20}, "AT ITS LIMIT": {"steps": 6000}},
    ),
    "distillation": (
        OWN, "limit_error",
        lambda f: off((f["network"]["layers.1"] @ f["network"]["layers.0"])[0],
                      f["limit"]["zeta"]),
        {"NOT THERE YET": {"steps": 20}, "AT ITS LIMIT": {"steps": 2000}},
    ),
    "gdln": (
        {"X": X, "y": (Y + 1) / 2, "hidden_units": 2}, "limit_error", gdln,
        {"NOT THERE YET": {"steps": 20}, "AT ITS LIMIT": {"steps": 1000}},
    ),
    "frelu": (
        OWN | {"hidden_units": 2}, "margin_ratio", frelu,
        {"NOT THERE YET": {"trainer": "momentum", "steps": 40},
         "AT ITS LIMIT": {"trainer": "annealed", "steps": 100}},
    ),
    "shallow-gln": (
        OWN | {"hidden_units": 2}, "margin_ratio", shallow,
        {"NOT THERE YET": {"steps": 40}, "AT ITS LIMIT": {"trainer": "annealed", "steps": 100}},
    ),
    "dlgn": (
        OWN | {"hidden_units": 6, "experts": "constant", "gate_steps": 20}, "margin_ratio",
        constant_experts, {"AT ITS LIMIT": {"steps": 60}, "NOT THERE YET": {"steps": 4}},
    ),
    "relu": (
        OWN | {"hidden_units": 8, "starts": 1}, "local_ratio", relu,
        {"AT A LOCAL LIMIT": {"steps": 120}, "NOT THERE YET": {"steps": 30}},
    ),
    "orthosep": (
        {"X": ORTHANTS, "y": SIDES, "X_val": ORTHANTS, "y_val": SIDES, "hidden_units": 8,
         "starts": 1},
        "margin_ratio", orthosep, {"AT ITS LIMIT": {"steps": 100}, "NOT THERE YET": {"steps": 5}},
    ),
    "fixed-outer": (
        OWN | {"hidden_units": 2}, "local_ratio", fixed_outer,
        {"NOT THERE YET": {"steps": 30}, "AT A LOCAL LIMIT": {"steps": 600}},
    ),
    "attention": (
        {"X": TOKENS, "y": SIDES}, "margin_ratio", attention(TOKENS), {"NO THEOREM": {"steps": 60}},
    ),
    "attention, two tokens": (
        {"X": OTHERS, "y": SIDES[1:5]}, "margin_ratio", attention(OTHERS),
        {"NOT THERE YET": {"steps": 60}, "AT ITS LIMIT": {"steps": 300}},
    ),
    "collapse": (
        {"class_sizes": (4, 4, 4)}, "margin_ratio", collapse,
        {"AT ITS LIMIT": {"steps": 60}, "NOT THERE YET": {"steps": 6}},
    ),
}  # fmt: skip
CELLS = [(name, word) for name, (*_, words) in WALKED.items() for word in words]


@pytest.mark.parametrize(("name", "word"), some_of(CELLS, one_in=5))
def test_the_number_of_a_verdict_follows_from_the_files(name, word, tmp_path: Path) -> None:
    options, number, own, words = WALKED[name]
    ib.run(name.partition(",")[0], **options, **words[word]).save(tmp_path / "run")
    files = {
        one.stem: load_file(one)
        for one in (tmp_path / "run").glob("*.safetensors") if one.stem != "report"
    }  # fmt: skip
    verdict = json.loads((tmp_path / "run" / "results.json").read_text())["verdicts"][0]
    found = own({k: {n: a.astype(float) if a.dtype.kind == "f" else a for n, a in v.items()}
                 for k, v in files.items()})  # fmt: skip
    assert verdict["numbers"][number] == pytest.approx(found, rel=1e-6, abs=1e-12)
    assert verdict["word"] == word
    far = found if number == "limit_error" else abs(1 - found)
    if word != "NO THEOREM":
        assert (far <= 0.01) == word.startswith("AT")
    assert (found <= 0) == (word == "NOT SEPARATED")


def test_every_model_is_walked() -> None:
    by_words = {"linear", "gln", "gln-l2", "dgn"}
    # Its decoders are compared with an independent solution: tests/models/test_next_token.py.
    assert {n.partition(",")[0] for n in WALKED} | by_words | {"next-token"} == set(MODELS)
