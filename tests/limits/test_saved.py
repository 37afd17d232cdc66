"""Saved limits: what comes back is what was written, or is refused."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from implicit_bias import (
    Status,
    solve_frelu_svm,
    solve_gated_ols,
    solve_gln_l2_svm,
    solve_gln_svm,
    solve_linear_svm,
    solve_orthosep,
    solve_shallow_gln_svm,
)
from implicit_bias.distillation import distillation_limit
from implicit_bias.heads import solve_exit_heads
from implicit_bias.limits import (
    DistillationLimit,
    FReLULimit,
    GatedOLS,
    GLNL2Limit,
    GLNLimit,
    HeadLimit,
    LinearLimit,
    OrthosepLimit,
    ShallowGLNLimit,
)
from implicit_bias.runs.reports import Kind, read_saved, write_saved
from tests.commands import full_disk

RNG = np.random.default_rng(6)
N, H, C, D = 20, 2, 3, 4
X = RNG.normal(size=(N, D))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
CONTEXTS = RNG.integers(0, C, size=(N, H))
GATES = np.ones((N, H))
LIMITS = {
    LinearLimit: lambda: solve_linear_svm(X, Y),
    GLNLimit: lambda: solve_gln_svm(X, Y, CONTEXTS),
    GLNL2Limit: lambda: solve_gln_l2_svm(X, Y, CONTEXTS),
    ShallowGLNLimit: lambda: solve_shallow_gln_svm(X, Y, CONTEXTS),
    FReLULimit: lambda: solve_frelu_svm(X, Y, GATES),
    OrthosepLimit: lambda: solve_orthosep(Y[:, None] * np.abs(X), Y),
    GatedOLS: lambda: solve_gated_ols(X, Y, GATES),
    DistillationLimit: lambda: distillation_limit(X, np.ones(D), np.full(D, 0.1), depth=2),
    HeadLimit: lambda: solve_exit_heads([X], teacher=X[:, :3], share=0)[0],
}
every_limit = pytest.mark.parametrize("kind", LIMITS, ids=lambda kind: kind.__name__)


@every_limit
def test_a_saved_limit_comes_back_to_the_last_bit(kind, tmp_path) -> None:
    limit = LIMITS[kind]()
    limit.save(tmp_path / "limit.safetensors")
    again = kind.load(tmp_path / "limit.safetensors")
    for name, value in vars(limit).items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
    assert os.listdir(tmp_path) == ["limit.safetensors"]


def test_a_limit_of_tensors_and_a_proof_of_inseparability_come_back(tmp_path) -> None:
    limit = solve_gln_svm(
        torch.ones(2, 1), torch.tensor([1, -1]), torch.zeros(2, 1, dtype=torch.int64)
    )
    assert limit.status is Status.NOT_SEPARABLE
    limit.save(tmp_path / "limit")
    again = GLNLimit.load(tmp_path / "limit")
    assert again.status is Status.NOT_SEPARABLE
    assert again.objective == again.gap == np.inf
    np.testing.assert_array_equal(again.dual, limit.dual.numpy())


@every_limit
def test_a_file_of_something_else_is_refused_with_the_reason(kind, tmp_path) -> None:
    path = tmp_path / "limit"
    with pytest.raises(
        FileNotFoundError, match=rf"no file .*limit' to load a {kind.__name__} from"
    ):
        kind.load(path)
    path.write_bytes(b"not a tensor in sight")
    with pytest.raises(ValueError, match="is not a safetensors file"):
        kind.load(path)
    save_file({"zeta": np.ones(3)}, path)
    with pytest.raises(ValueError, match=f"holds no saved {kind.__name__}"):
        kind.load(path)
    other = LinearLimit if kind is not LinearLimit else GLNLimit
    LIMITS[other]().save(path)
    with pytest.raises(ValueError, match=f"holds no saved {kind.__name__}"):
        kind.load(path)
    with pytest.raises(OSError, match=r"No such file or directory: .*missing/limit"):
        LIMITS[kind]().save(tmp_path / "missing" / "limit")


def spoiled(arrays: dict, name: str, change) -> dict:
    return arrays | {name: np.ascontiguousarray(change(arrays[name]))}


@every_limit
@pytest.mark.parametrize(
    "change",
    [lambda a: a * np.nan, lambda a: -a, lambda a: a.ravel()[:-1], lambda a: a + 1e-15],
    ids=["NaN", "negated", "shortened", "nudged"],
)
def test_a_file_whose_arrays_have_changed_is_refused(kind, change, tmp_path) -> None:
    path = tmp_path / "limit.safetensors"
    LIMITS[kind]().save(path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    save_file(spoiled(load_file(path), "zeta", change), path, metadata=metadata)
    with pytest.raises(ValueError, match=f"as {kind.__name__}.save writes it.*checksum.*again"):
        kind.load(path)


@every_limit
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "junk", "metadata cannot be read"),
        (lambda text: "[]", "holds no saved"),
        (lambda text: text.replace("SOLVED", "BETTER"), "checksum"),
        (lambda text: json.dumps(json.loads(text) | {"tol": 0.5}), "checksum"),
        (lambda text: text + " ", "checksum"),
    ],
    ids=["junk", "list", "status", "tol", "blank"],
)
def test_a_file_whose_record_has_changed_is_refused(kind, change, message, tmp_path) -> None:
    path = tmp_path / "limit.safetensors"
    LIMITS[kind]().save(path)
    with safe_open(path, framework="numpy") as file:
        text = file.metadata()["implicit-bias"]
        checksum = file.metadata()["checksum"]
    metadata = {"implicit-bias": change(text), "checksum": checksum}
    save_file(load_file(path), path, metadata=metadata)
    with pytest.raises(ValueError, match=message):
        kind.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"zeta": np.full((H, C, D), np.nan)}, "`zeta` is not finite"),
        ({"zeta": np.zeros((H, C, D))}, "norms of its units"),
        ({"dual": np.ones(1)}, r"`margins` has the shape \(20,\), not \(1,\)"),
        ({"dual_norms": np.ones(3)}, r"`dual_norms` has the shape"),
        ({"margins": np.full(N, 0.5)}, "do not support"),
        ({"margins": np.zeros(N)}, "do not support"),
        ({"dual": np.full(N, 1e-9)}, "do not support"),
        ({"tol": 1e-300}, "do not support"),
    ],
)
def test_a_limit_that_contradicts_its_certificate_is_not_loaded(change, message, tmp_path) -> None:
    # Saved as it is, with a checksum that fits.
    replace(LIMITS[GLNLimit](), **change).save(tmp_path / "limit")
    with pytest.raises(ValueError, match=message):
        GLNLimit.load(tmp_path / "limit")


@every_limit
def test_a_limit_of_another_version_takes_defaults_and_says_what_it_lacks(kind, tmp_path) -> None:
    path = tmp_path / "limit"
    limit = LIMITS[kind]()
    limit.save(path)
    arrays, record = read_saved(path, Kind.of(kind))

    def written(arrays: dict, record: dict):
        write_saved(path, Kind.of(kind), arrays, record)
        return kind.load(path)

    proof = record["certificate"] | {"one_day": 1.0}
    more = written(arrays | {"later": np.ones(3)}, record | {"retired": 5, "certificate": proof})
    for name, value in vars(limit).items():
        np.testing.assert_array_equal(getattr(more, name), value, err_msg=name)
    for lacking, kept in (
        ("status", {name: entry for name, entry in record.items() if name != "status"}),
        ("tol", {name: entry for name, entry in record.items() if name != "tol"}),
        ("BETTER", record | {"status": "BETTER"}),
        (next(iter(record["certificate"])), record | {"certificate": {}}),
    ):
        with pytest.raises(
            ValueError, match=rf"by implicit-bias .* cannot read it.*{lacking}"
        ) as e:
            written(arrays, kept)
        assert "load it with the version that wrote it" in str(e.value)
        assert "damaged" not in str(e.value)
    with pytest.raises(ValueError, match=r"cannot read it: it has no .*(support|zeta)"):
        written({}, record)


def test_a_full_disk_is_an_error_with_the_path_and_the_old_file_stays(tmp_path) -> None:
    path = tmp_path / "limit.safetensors"
    limit = LIMITS[LinearLimit]()
    limit.save(path)
    with full_disk(), pytest.raises(OSError, match=r"File too large: .*limit\.safetensors'"):
        replace(limit, seconds=0.0).save(path)
    assert LinearLimit.load(path).seconds == limit.seconds
