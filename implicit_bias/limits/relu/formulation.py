"""The convex program of a ReLU network's margin on fixed gates of helping pairs, for cvxpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..._support.doors import door, parameters
from ..._support.solve import require_fraction, require_real, require_shape, to_numpy
from ...data.arrays import Floats
from ..literal import LiteralProgram, constant, cvxpy_module, labelled
from .problem import ReLUProblem

if TYPE_CHECKING:
    import cvxpy


@parameters()
@dataclass(frozen=True, eq=False)
class ReLUMargin(LiteralProgram):
    """The margin program of a two-layer ReLU network whose helping pairs have fixed gates.

        minimise  sum_h ||u[h]||
        s.t.  sum_{h helps n} g[n, h] <u[h], x[n]> - sum_{h opposes n} max(<u[h], x[n]>, 0) >= 1

    Unit h helps sample n if `signs[h]` is the sample's label, and opposes it otherwise. Every point
    that the program allows is a ReLU network of at least its margins. A leaky activation adds its
    slope to both.

    Parameters
    ----------
    signs : (H,) array
        Signs of the output weights, -1 and +1.
    slope : float
        Slope of the activation left of its kink, in [0, 1).

    Raises
    ------
    TypeError, ValueError
        If signs are not -1 and +1, or the slope is out of range.

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> problem = ib.programs.ReLUMargin(signs=[1, -1]).literal(X, y, np.eye(2))
    >>> round(float(problem.solve(solver="CLARABEL")), 6)
    1.5
    """

    name: ClassVar[str] = "ReLU margin on helping gates"

    signs: Floats
    slope: float = 0.0

    def __post_init__(self) -> None:
        require_real("signs", self.signs)
        signs = np.array(to_numpy(self.signs), dtype=np.float64)
        if signs.ndim != 1 or not np.all(np.abs(signs) == 1):
            raise ValueError("`signs` must be one axis of -1 and +1, one a unit")
        require_fraction("slope", self.slope)
        signs.flags.writeable = False
        object.__setattr__(self, "signs", signs)

    @door()
    def literal(self, X: ArrayLike, y: ArrayLike, gates: ArrayLike) -> cvxpy.Problem:
        """State the program in cvxpy.

        Parameters
        ----------
        X : (n, D) array
        y : (n,) array
            Labels in {-1, +1}.
        gates : (n, H) array
            0 or 1; those of opposing pairs are not read.

        Returns
        -------
        cvxpy.Problem
            In the variable "u" (H, D), with one constraint, "margins".

        Raises
        ------
        MissingExtra
            Without cvxpy.
        TypeError, ValueError
            If an array is malformed.
        """
        problem = ReLUProblem.checked(X, y, self.slope)
        require_real("gates", gates)
        g = np.asarray(to_numpy(gates), dtype=np.float64)
        require_shape("gates", g, (len(problem.y), len(self.signs)), "one gate a sample and unit")
        if not np.all((g == 0) | (g == 1)):
            raise ValueError("`gates` must be exactly 0 (closed) or 1 (open)")
        cp = cvxpy_module()
        helping = problem.helping(self.signs)
        u = cp.Variable((len(self.signs), problem.inputs.shape[1]), name="u")
        z = constant(problem.inputs, "X") @ u.T
        rising = np.where(helping, self.slope + (1 - self.slope) * g, -self.slope)
        hinged = np.where(helping, 0.0, 1 - self.slope)
        terms = cp.multiply(constant(rising, "g"), z)
        terms -= cp.multiply(constant(hinged, "opposing"), cp.pos(z))
        margins = labelled(cp.sum(terms, axis=1) >= 1, "margins")
        return cp.Problem(cp.Minimize(cp.sum(cp.norm(u, 2, axis=1))), [margins])
