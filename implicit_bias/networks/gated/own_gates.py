"""What deep networks share that set their gates by weights of their own."""

import math

from .dgn import DGN


class OwnGates:
    """Mixin of modules with a value network and soft gates of a steepness that may be set.

    Attributes
    ----------
    value : DGN
        The weights behind the gates.
    """

    value: DGN
    _beta: float | None

    @property
    def beta(self) -> float | None:
        """Steepness of soft gates; None for hard ones."""
        return self._beta

    @beta.setter
    def beta(self, value: float | None) -> None:
        """Set the steepness; raises ValueError if it is not positive and finite."""
        if value is not None and not 0 < value < math.inf:
            raise ValueError(
                f"`beta` must be positive and finite, got {value}: None is for hard gates"
            )
        self._beta = value

    @property
    def n_inputs(self) -> int:
        """D."""
        return self.value.n_inputs

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of the hidden layers."""
        return self.value.widths
