"""What every certified limit says of itself, whatever its program was."""

from __future__ import annotations

from typing import Any, Self

from .._shown import Shown, record_rows
from .._solve import Array, Certificate, NotCertified, Status, is_torch_array

__all__ = ["Certified", "array_place", "placed"]


class Certified(Shown):
    """Bounds, status and record of a limit that has these fields.

    Attributes
    ----------
    dual : (n,) array
    status : Status
    certificate : Certificate
    tol, iterations, seconds, solver
        The gap asked for and how the solve went.
    """

    dual: Any
    status: Status
    certificate: Certificate
    tol: float
    iterations: int
    seconds: float
    solver: str

    @property
    def objective(self) -> float:
        """Certified upper bound of the optimum: the norm at smallest margin 1."""
        return self.certificate.objective

    @property
    def dual_objective(self) -> float:
        """Certified lower bound of the optimum."""
        return self.certificate.dual_objective

    @property
    def gap(self) -> float:
        """`objective / dual_objective - 1`."""
        return self.certificate.gap

    def require(self) -> Self:
        """This limit if it is `SOLVED`; raises `NotCertified` with the advice otherwise."""
        if self.status is not Status.SOLVED:
            raise NotCertified(self)
        return self

    def __getstate__(self) -> dict[str, Any]:
        # By its name: formats without pickles (skops) make no members of an Enum.
        return self.__dict__ | {"status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"status": Status[state["status"]]})

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, ready for JSON (infinities stay floats)."""
        return {
            "status": self.status.name,
            "advice": self.status.advice,
            **self.certificate.to_dict(),
            "tol": self.tol,
            "solver": self.solver,
            "iterations": self.iterations,
            "seconds": self.seconds,
            "n_samples": len(self.dual),
        }

    def _shown_rows(self) -> list[tuple[str, str]]:
        return record_rows(self.to_dict())


def array_place(array: Array) -> str | None:
    """The device of a torch tensor by its name; None of a NumPy array."""
    return str(array.device) if is_torch_array(array) else None


def placed(array: Array, place: str | None) -> Array:
    """A NumPy array as a tensor on the device of that name; as it is where that is None.

    Raises
    ------
    ValueError
        If there is no such device here.
    """
    if place is None:
        return array
    import torch

    try:
        return torch.from_numpy(array).to(place)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"`device` {place!r} is not here ({str(error).splitlines()[0]}): load with "
            'device="cpu", or leave it out for NumPy arrays'
        ) from error
