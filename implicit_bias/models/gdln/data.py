"""Translation-invariant inputs on a ring, in two classes that differ by their length scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from ..._support.doors import door
from ..._support.shown import Shown
from ..._support.solve import require_count, require_positive, require_sizes
from ...data.dataset import digest

SAMPLES = 8000
Floats = NDArray[np.float64]

# Share of the variance that may be cut off as negative: beyond, exp(-d^2 / xi^2) on the ring is
# too far from any covariance. Inputs of 40 points stay below it up to a length scale of 10.
_NEGATIVE_SHARE = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class RingData(Shown):
    """Inputs on a ring of D points, with targets 1 (length scale xi_1) and 0 (length scale xi_0).

    Attributes
    ----------
    X : (n, D) read-only float64 array
        Coordinate d sits at angle `2 pi d / D`. No constant column: the networks have no bias.
    y : (n,) read-only float64 array
        In {0, 1}.
    description : str
        One line that names the distribution and its parameters.

    Raises
    ------
    ValueError
        If shapes disagree, an input is not finite or a target is neither 0 nor 1.
    """

    X: Floats
    y: Floats
    description: str

    def digest(self) -> str:
        """Return the SHA-256 of inputs and targets, equal on every machine."""
        return digest(self.X, self.y)

    def __post_init__(self) -> None:
        X, y = np.array(self.X, dtype=np.float64), np.array(self.y, dtype=np.float64)
        if X.ndim != 2 or len(X) == 0 or not np.isfinite(X).all():
            raise ValueError(f"`X` must be finite, of shape (n, D), n >= 1, got shape {X.shape}")
        if y.shape != (len(X),) or not np.isin(y, (0.0, 1.0)).all():
            raise ValueError(f"`y` must hold {len(X)} targets in {{0, 1}}, got shape {y.shape}")
        for name, array in (("X", X), ("y", y)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)


def make_ring(
    name: str,
    n_samples: int | None,
    length_scales: tuple[float, ...] | None,
    *,
    random_state: int,
) -> RingData:
    """Draw the data set called "ring" or "pulse"; None stands for its default sizes.

    Raises
    ------
    ValueError
        If there are not two length scales, or those of pulses are not whole numbers.
    """
    scales: dict[str, Any] = {}
    if length_scales is not None:
        if len(length_scales) != 2:
            raise ValueError(
                "`--length-scales` must be two numbers, of the classes y = 1 and y = 0, such as "
                f"1,5, got {len(length_scales)}"
            )
        scales = dict(zip(("xi_1", "xi_0"), length_scales, strict=True))
    n_samples = n_samples or SAMPLES
    if name != "pulse":
        return make_nlgp(n_samples, random_state=random_state, **scales)
    if not all(scale.is_integer() for scale in scales.values()):
        raise ValueError(
            "`--length-scales` of pulses must be whole numbers, as many ones as a pulse has, got "
            + ",".join(f"{scale:g}" for scale in scales.values())
        )
    scales = {key: int(scale) for key, scale in scales.items()}
    return make_single_pulse(n_samples, random_state=random_state, **scales)


def ring_kernel(n_inputs: int, xi: float) -> Floats:
    """Return covariances `exp(-dist(0, j)^2 / xi^2)` (D,) of a Gaussian process on D ring points.

    `dist` is the shorter way around the ring. For xi not small against D this is not positive
    semidefinite (the distance has a kink opposite to every point): negative Fourier components are
    then set to zero and the rest rescaled to unit variance.

    Raises
    ------
    ValueError
        If a size is not positive, or more than 1 % of the variance would have to be cut off.
    """
    kernel: Floats = np.fft.irfft(_spectrum(n_inputs, xi), n=n_inputs)
    return kernel


@door()
def make_nlgp(
    n_samples: int,
    *,
    n_inputs: int = 40,
    xi_1: float = 5.0,
    xi_0: float = 1.0,
    gain: float = 3.0,
    random_state: int | np.random.Generator = 0,
) -> RingData:
    """Draw a nonlinear Gaussian process: one on the ring, passed through an error function.

        x = erf(gain z / sqrt 2) / Z,   z ~ N(0, Sigma),   Sigma_ij = exp(-dist(i, j)^2 / xi^2),
        Z^2 = 2 / pi arcsin(gain^2 / (1 + gain^2)),

    so that every coordinate has mean 0 and variance 1. Small gain gives the Gaussian process
    itself, large gain its signs.

    Parameters
    ----------
    n_samples : int
        Half of each class, one more of class 1 if odd, in random order.
    n_inputs : int
        D, points on the ring.
    xi_1, xi_0 : float
        Length scales of the classes y = 1 and y = 0, in grid points.
    gain : float
        Slope of the error function, positive.
    random_state : int or numpy Generator
        The Gaussian draws depend neither on the gain nor on the length scales.

    Returns
    -------
    RingData

    Raises
    ------
    ValueError
        If a size is not positive or a length scale is too large for the ring.

    References
    ----------
    A. Ingrosso, S. Goldt, "Data-driven emergence of convolutional structure in neural networks".

    Examples
    --------
    >>> data = ib.datasets.make_nlgp(6, n_inputs=10, xi_1=2.0)
    >>> data.X.shape, sorted(data.y.tolist())
    ((6, 10), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    """
    require_positive("gain", gain)
    s = gain * gain / (1 + gain * gain)
    rng = np.random.default_rng(random_state)
    y = _balanced_targets(n_samples, n_inputs, rng)
    filters = np.sqrt([_spectrum(n_inputs, xi) for xi in (xi_0, xi_1)])
    noise = np.fft.rfft(rng.standard_normal((n_samples, n_inputs)), axis=1)
    z = np.fft.irfft(noise * filters[y.astype(int)], n=n_inputs, axis=1)
    return RingData(
        X=erf(gain * z / math.sqrt(2.0)) / math.sqrt(2.0 / math.pi * math.asin(s)),
        y=y,
        description=(
            f"nonlinear Gaussian process on a ring of {n_inputs}, gain {gain:g}, length scale "
            f"{xi_1:g} (y = 1) against {xi_0:g} (y = 0)"
        ),
    )


@door()
def make_single_pulse(
    n_samples: int,
    *,
    n_inputs: int = 40,
    xi_1: int = 10,
    xi_0: int = 5,
    random_state: int | np.random.Generator = 0,
) -> RingData:
    """Draw single pulses: consecutive ones on a ring of zeros, starting anywhere at equal chance.

    Parameters
    ----------
    n_samples : int
        Half of each class, one more of class 1 if odd, in random order.
    n_inputs : int
        D, points on the ring.
    xi_1, xi_0 : int
        Lengths of the pulses of the classes y = 1 and y = 0, in 1 .. D.
    random_state : int or numpy Generator
        Seed of the order of classes and of the positions.

    Returns
    -------
    RingData

    Raises
    ------
    ValueError
        If a size is not positive or a length is not in 1 .. D.

    Examples
    --------
    >>> data = ib.datasets.make_single_pulse(4, n_inputs=8, xi_1=3, xi_0=1)
    >>> data.X.sum(axis=1).tolist() == np.where(data.y == 1, 3.0, 1.0).tolist()
    True
    """
    rng = np.random.default_rng(random_state)
    if not all(1 <= length <= n_inputs for length in (xi_1, xi_0)):
        raise ValueError(
            f"pulse lengths `xi_1`, `xi_0` must lie in 1 .. {n_inputs} = n_inputs, got "
            f"{(xi_1, xi_0)}"
        )
    y = _balanced_targets(n_samples, n_inputs, rng)
    start = rng.integers(n_inputs, size=n_samples)
    offset = (np.arange(n_inputs)[None, :] - start[:, None]) % n_inputs
    return RingData(
        X=(offset < np.where(y == 1, xi_1, xi_0)[:, None]).astype(np.float64),
        y=y,
        description=(
            f"single pulses on a ring of {n_inputs}, length {xi_1} (y = 1) against {xi_0} (y = 0)"
        ),
    )


def _spectrum(n_inputs: int, xi: float) -> Floats:
    require_count("n_inputs", n_inputs)
    if not 0 < xi < math.inf:
        raise ValueError(f"length scales must be positive and finite, got {xi}")
    index = np.arange(n_inputs)
    row = np.exp(-((np.minimum(index, n_inputs - index) / xi) ** 2))
    # The full transform's eigenvalues, of which each but the ends of the half one counts twice.
    eigenvalues = np.fft.fft(row).real
    if -eigenvalues[eigenvalues < 0].sum() > _NEGATIVE_SHARE * n_inputs:
        raise ValueError(
            f"length scale {xi:g} is too large for a ring of {n_inputs} points: "
            "exp(-dist^2 / xi^2) is no covariance there. Use a shorter scale or more inputs"
        )
    clipped = np.clip(eigenvalues, 0.0, None)
    half: Floats = (clipped * (n_inputs / clipped.sum()))[: n_inputs // 2 + 1]
    return half


def _balanced_targets(n_samples: int, n_inputs: int, rng: np.random.Generator) -> Floats:
    if n_samples < 2:
        raise ValueError(f"`n_samples` must be at least 2, one per class, got {n_samples}")
    sizes = {"n_samples": n_samples, "n_inputs": n_inputs}
    require_sizes("samples", sizes, (n_samples, n_inputs), (n_samples, n_inputs))
    targets: Floats = rng.permutation((np.arange(n_samples) % 2 == 0).astype(np.float64))
    return targets
