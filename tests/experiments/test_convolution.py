"""The convolutional network of section 3.4.3: what is run, and what its features are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner

from experiments import convolution, convolution_heads
from experiments.convolution import convolutional, trained, zero_and_one
from experiments.convolution_heads import head


def test_the_network_is_that_of_table_3_1_with_small_last_layers() -> None:
    network, plain = (convolutional(28, biases=biases, seed=0) for biases in (True, False))
    shapes = [tuple(p.shape) for p in network.parameters() if p.ndim > 1]
    assert shapes == [
        (32, 1, 3, 3), (32, 32, 3, 3), (32, 32, 5, 5), (64, 32, 3, 3), (64, 64, 3, 3),
        (64, 64, 5, 5), (128, 3136), (1, 128),
    ]  # fmt: skip
    assert [p.ndim for p in plain.parameters()] == [len(shape) for shape in shapes]
    # Uniform in +- 1 / sqrt(fan in), times 0.05 in the last two.
    for index, width in ((-3, 3136), (-1, 128)):
        largest = network[index].weight.abs().max().item()
        assert largest == pytest.approx(0.05 / width**0.5, rel=0.05)
    assert network[2].weight.abs().max().item() == pytest.approx(1 / 288**0.5, rel=0.05)


@pytest.mark.parametrize("biases", [True, False])
def test_the_head_without_biases_is_the_network_on_its_features(biases) -> None:
    _, held_out = zero_and_one(None, seed=0)
    network = convolutional(8, biases=biases, seed=0)
    two_layers, inside = head(network, held_out)
    with torch.no_grad():
        scores = network(torch.tensor(held_out.X).float())[:, 0].numpy()
        own = two_layers(torch.tensor(inside.X)).numpy()
    np.testing.assert_allclose(own, scores, atol=1e-6)
    assert inside.X.min() >= 0 and inside.X.shape[1] == 256 + biases
    assert set(np.unique(held_out.X * 16)) <= set(range(17))


@pytest.mark.long
def test_section_3_4_3_layer_7_features_are_not_orthogonally_separable_as_defined(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setitem(convolution.N_TRAIN, "digits", 80)
    monkeypatch.setattr(convolution, "CHECKPOINTS", (0, 20))
    monkeypatch.setattr(convolution_heads, "PHASES", 1)
    options = ["--seeds", "1", "--epochs", "20", "--out", str(tmp_path)]
    for runs in (2, 0, 1):  # the second time nothing is run again, the third what lacks rows
        if runs == 1:
            cut = tmp_path / "convolution_neurons_digits.csv"
            pd.read_csv(cut).query("biases").to_csv(cut, index=False)
        done = CliRunner().invoke(convolution.main, options, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert done.output.count("biases: ") == runs
    tables = {p.stem: pd.read_csv(p) for p in tmp_path.glob("*.csv")}
    layers, heads = tables["convolution_layers_digits"], tables["convolution_heads_digits"]
    assert (tmp_path / "convolution_digits.png").stat().st_size > 1e4
    assert (tmp_path / "convolution_products_digits.png").stat().st_size > 1e4
    assert len(layers) == 2 * 2 * 9 and not layers.duplicated(["biases", "epoch", "layer"]).any()
    end = layers[layers["epoch"] == 20].set_index(["biases", "layer"])
    last = heads[heads["epoch"] == 20].set_index(["head", "biases"])
    for biases in (True, False):
        # The network has learned, and features of layer 7 are alike within the classes and less
        # so across them, more clearly than those of layer 4: but products across are positive too.
        assert last.loc[("trained", biases), "train_error"] == 0
        seventh = end.loc[(biases, 7)]
        assert seventh["within_negative"] == 0 < seventh["cross_positive"]
        assert isinstance(seventh["worst_pair"], str) and seventh["worst_product"] > 0
        assert seventh["across_50"] < end.loc[(biases, 4), "across_50"]
        assert seventh["across_50"] < min(seventh["zeros_5"], seventh["ones_5"])
        for kind in ("trained", "refitted"):
            row = last.loc[(kind, biases)]
            assert row["status"] == "SOLVED" and max(row["gap"], row["cone_gap"]) < 1e-8
            assert row["margin_ratio"] <= 1
        # The distributions of figure 3.3 say the same of products across, up to the bin of zero.
        products = tables["convolution_products_digits"].query("biases == @biases and layer == 7")
        across = products.set_index("kind").loc["across"]
        shares = across[[f"b{k}" for k in range(1, convolution.BINS + 1)]].to_numpy(float)
        edges = np.linspace(across["least"], across["largest"], convolution.BINS + 1)
        above, reached = shares[edges[:-1] > 0].sum(), shares[edges[1:] > 0].sum()
        assert above - 1e-5 <= seventh["cross_positive"] <= reached + 1e-5
        assert shares.sum() == pytest.approx(1, abs=1e-4)
    refused = CliRunner().invoke(convolution.main, [*options[:2], "--epochs", "3", *options[4:]])
    assert refused.exit_code == 2 and "write to another folder" in refused.output


def test_training_is_the_same_twice_and_looks_at_the_checkpoints_and_at_the_end() -> None:
    train, _ = zero_and_one(None, seed=3)
    X, y = torch.tensor(train.X[:8]).float(), torch.tensor(train.y[:8]).float()
    ends = []
    for _ in range(2):
        network = convolutional(8, biases=True, seed=3)
        assert list(trained(network, X, y, epochs=2, seed=3)) == [0, 1, 2]
        ends.append(network[-3].weight.detach())
    assert torch.equal(*ends)
