"""What every formulation owes: symmetries, proofs, arrays, messages; `test_programs` has optima."""

import json
import pickle

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from implicit_bias import Status
from implicit_bias.datasets import is_orthogonally_separable
from implicit_bias.limits import solve_limit
from implicit_bias.programs import (
    SVMGLN,
    SVML2,
    ContextSVMs,
    Formulation,
    HardMarginSVM,
    OrthogonallySeparable,
    SVMFReLU,
)

RNG = np.random.default_rng(5)
N, H, C, D = 24, 3, 4, 5
X = RNG.normal(size=(N, D)) * [1.0, 2.0, 0.5, 1.0, 3.0]
Y = np.where(X @ RNG.normal(size=D) > 0, 1.0, -1.0)
# One context more than occurs; one gate always open, so that no sample is without.
CONTEXTS = RNG.integers(0, C - 1, size=(N, H))
GATES = np.hstack([RNG.integers(0, 2, size=(N, H)), np.ones((N, 1), dtype=int)])

Case = tuple[Formulation, NDArray[np.float64], NDArray[np.int64] | None]
FORMULATIONS: dict[str, Case] = {
    "linear": (HardMarginSVM(), X, None),
    "gln": (SVMGLN(C), X, CONTEXTS),
    "gln-l2": (SVML2(C), X, CONTEXTS),
    "shallow-gln": (ContextSVMs(), X, CONTEXTS),
    "frelu": (SVMFReLU(), X, GATES),
}
# What takes inputs and labels without a formulation of its own.
UNGATED = {
    "orthosep": OrthogonallySeparable().program, "separability": is_orthogonally_separable,
}  # fmt: skip
every_formulation = pytest.mark.parametrize("name", FORMULATIONS)


def parts(name: str, kind=np.asarray) -> tuple:
    """The formulation, and inputs, labels and gates of this kind of array."""
    formulation, inputs, gates = FORMULATIONS[name]
    return formulation, kind(inputs), kind(Y), None if gates is None else kind(gates)


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        (name, f"cvxpy:{solver}")
        for name in FORMULATIONS
        for solver in ("CLARABEL", "OSQP")
        if solver == "CLARABEL" or name in {"linear", "gln-l2", "shallow-gln"}
    ],
)
def test_general_solvers_agree(name, solver) -> None:
    ours = solve_limit(*parts(name)).require()
    theirs = solve_limit(*parts(name), solver=solver, tol=1e-4).require()
    assert ours.dual_objective <= theirs.objective * (1 + 1e-12)
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-4)
    np.testing.assert_allclose(theirs.zeta, ours.zeta, atol=0.02 * abs(ours.zeta).max())


@pytest.mark.parametrize("name", ["gln", "frelu"])
def test_balanced_weights_have_the_product_and_the_least_norm(name) -> None:
    limit = solve_limit(*parts(name)).require()
    w1, w2 = limit.balanced_weights()
    first, zeta = w1.reshape(len(w1), -1), limit.zeta.reshape(len(w1), -1)
    np.testing.assert_allclose(w2[:, None] * first, zeta, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), np.abs(w2), rtol=1e-12, atol=1e-15)
    assert np.sum(w1**2) + np.sum(w2**2) == pytest.approx(2 * limit.objective, rel=1e-12)


@every_formulation
@pytest.mark.parametrize("scale", [-1e-6, -1.0, 8.0, 1e6])
def test_inputs_times_s_give_coefficients_and_multipliers_over_s(name, scale) -> None:
    formulation, inputs, y, gates = parts(name)
    limit = solve_limit(formulation, inputs, y, gates).require()
    scaled = solve_limit(formulation, scale * inputs, y, gates).require()
    flipped = solve_limit(formulation, scale * inputs, -y, gates).require()
    assert scaled.objective * abs(scale) == pytest.approx(limit.objective, rel=2e-8)
    size = abs(limit.zeta).max()
    np.testing.assert_allclose(scaled.zeta * scale, limit.zeta, atol=1e-3 * size)
    np.testing.assert_allclose(flipped.zeta * scale, -limit.zeta, atol=1e-3 * size)
    np.testing.assert_allclose(scaled.dual * abs(scale), limit.dual, atol=1e-3 * limit.dual.max())


@every_formulation
def test_a_contradiction_comes_back_with_multipliers_that_cancel(name) -> None:
    formulation, inputs, y, gates = parts(name)
    again = np.r_[np.arange(N), 7]
    inputs, gates = inputs[again], None if gates is None else gates[again]
    y = np.append(y, -y[7])
    limit = solve_limit(formulation, inputs, y, gates)
    assert limit.status is Status.NOT_SEPARABLE
    assert np.all(limit.dual >= 0) and limit.dual.sum() == pytest.approx(1)
    Z = formulation.program(inputs, y, gates).design.Z
    blocks = np.einsum("n,nj,nd->jd", limit.dual * y, Z, inputs)
    assert np.abs(blocks).max() < 1e-12 * np.abs(inputs).max() * np.abs(Z).max()


@every_formulation
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensors_give_the_same_limit_as_tensors(name, dtype) -> None:
    formulation, inputs, y, gates = parts(name, torch.tensor)
    inputs = inputs.to(dtype)
    ours = solve_limit(formulation, inputs.numpy(), Y, FORMULATIONS[name][2]).require()
    theirs = solve_limit(formulation, inputs.requires_grad_(), y.int(), gates).require()
    for field in ("zeta", "dual", "margins", "support", "unit_norms", "dual_norms"):
        array = getattr(theirs, field)
        assert isinstance(array, torch.Tensor) and not array.requires_grad
        assert array.dtype == (torch.bool if field == "support" else torch.float64)
    np.testing.assert_allclose(theirs.zeta, ours.zeta, atol=1e-5 * abs(ours.zeta).max())
    scores = theirs.predictor(inputs.detach(), gates)
    np.testing.assert_allclose(y * scores, theirs.margins, rtol=1e-9)
    json.dumps(theirs.to_dict(), allow_nan=False)
    # What comes along is of whatever kind.
    beside = solve_limit(formulation, inputs, Y, FORMULATIONS[name][2])
    assert torch.equal(beside.zeta, theirs.zeta)


@every_formulation
def test_lists_integers_and_mixed_kinds_are_taken_and_left_as_they_are(name) -> None:
    formulation, inputs, y, gates = parts(name, np.array)
    expected = solve_limit(formulation, inputs, y, gates)
    given = [part for part in (inputs, y, gates) if part is not None]
    copies = [part.copy() for part in given]
    for part in given:
        part.setflags(write=False)
    lists = [None if part is None else part.tolist() for part in (inputs, y, gates)]
    small = None if gates is None else gates.astype(np.uint8)
    mixed = (inputs, torch.tensor(Y), small if small is None else torch.tensor(small))
    for arguments in (lists, (inputs, y.astype(np.int8), small), mixed):
        limit = solve_limit(formulation, *arguments)
        assert isinstance(limit.zeta, np.ndarray) and limit.zeta.dtype == np.float64
        np.testing.assert_allclose(limit.zeta, expected.zeta, rtol=1e-12)
    for part, copy in zip(given, copies, strict=True):
        np.testing.assert_array_equal(part, copy)
    assert pickle.loads(pickle.dumps(limit)).certificate == limit.certificate


@pytest.mark.parametrize("name", [*FORMULATIONS, *UNGATED])
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, g: (X * np.nan, y, g), "`X` has entries that are NaN"),
        (lambda X, y, g: (X + np.inf, y, g), "`X` has entries that are NaN or infinite"),
        (lambda X, y, g: (X[:, 0], y, g), r"`X` must have shape \(n, D\)"),
        (lambda X, y, g: (X[0, 0], y, g), r"`X` must have shape \(n, D\)"),
        (lambda X, y, g: (X[:, :0], y, g), "`X` must have shape .* D >= 1"),
        (lambda X, y, g: (X[:0], y[:0], g[:0]), "`X` (must have shape .* n, D >= 1|has no rows)"),
        (lambda X, y, g: (X, y[:3], g), r"`y` must have shape \(24,\), got \(3,\)"),
        (lambda X, y, g: (X, y[:, None], g), r"`y` must have shape \(24,\), got \(24, 1\)"),
        (lambda X, y, g: (X, (y > 0) * 1, g), "`y` must hold labels -1 and .1 only"),
        (lambda X, y, g: (X, y * np.nan, g), "`y` has entries that are NaN or infinite"),
    ],
)
def test_malformed_data_are_one_clear_message(name, kind, change, message) -> None:
    arrays = [kind(part) for part in change(X, Y, GATES if name == "frelu" else CONTEXTS)]
    if name in UNGATED or FORMULATIONS[name][2] is None:
        del arrays[2]
    call = UNGATED[name] if name in UNGATED else FORMULATIONS[name][0].program
    with pytest.raises(ValueError, match=message) as caught:
        call(*arrays, *[None] * (name == "linear"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", list(FORMULATIONS)[1:])
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
@pytest.mark.parametrize(
    "change", [lambda g: g[:3], lambda g: g[:, 0], lambda g: g[:, :0]], ids=["rows", "flat", "none"]
)
def test_malformed_gates_are_one_clear_message(name, kind, change) -> None:
    formulation, inputs, y, gates = parts(name)
    with pytest.raises(ValueError, match=r"`(contexts|gates)` must have shape \(24, H\) .* H >= 1"):
        formulation.program(kind(inputs), kind(y), kind(change(gates)))
