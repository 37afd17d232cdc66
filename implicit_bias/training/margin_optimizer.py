"""What the trainers as optimisers of torch share: closures of margins, one group, states."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from .closures import ClosureRun
from .descent import Stepper
from .settings import TrainingSettings
from .state import digest_of
from .trainers import make_stepper

__all__ = ["MarginOptimizer", "whole"]

# Beside what the method itself keeps: a digest of the weights that it left.
WEIGHTS = "weights"


class MarginOptimizer(torch.optim.Optimizer):
    """What the optimisers share: `step(closure)`, whose closure returns margins and no loss.

    They are the methods of `train`, step for step; see the subclasses. The closure returns the
    margins y f(x), y in {-1, +1}, of all samples, always the same ones, as a tensor (n_samples,)
    with its graph. It may be called several times a step, leaves `grad` alone, and has to be
    deterministic. The weights belong to the optimiser as long as it steps: between two steps
    nothing else may change them.

    Attributes
    ----------
    trainer : str
        The method's name in `TrainingSettings`.
    """

    trainer: ClassVar[str]

    def __init__(
        self,
        params: Iterable[Any],
        *,
        n_samples: int,
        degree: int | None,
        loss: str,
        lr: float | None = None,
        momentum: float = 0.0,
    ) -> None:
        self._settings = TrainingSettings(
            trainer=self.trainer, loss=loss, batch_size=0, schedule=((1, lr),), momentum=momentum
        )
        self._degree = None if degree is None else whole("degree", degree)
        self._n_samples = whole("n_samples", n_samples)
        self._run: ClosureRun | None = None
        self._stepper: Stepper | None = None
        self._left: list[Tensor] = []  # the weights after the last step
        self._places: dict[str, torch.device] = {}  # of what the method keeps
        self._expected = ""  # the digest that a loaded state names
        super().__init__(params, {} if lr is None else {"lr": lr})
        _check_weights(self._trained())

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take the one group that there is, as the constructor does.

        Raises
        ------
        ValueError
            If it is not the first, or has options of its own.
        """
        own = sorted(set(param_group) - {"params", "param_names", *self.defaults})
        if self.param_groups or own:
            what = f"options {own}" if own else f"group number {len(self.param_groups) + 1}"
            raise ValueError(
                f"{type(self).__name__} takes one group of parameters, without options, got "
                f"{what}: margins are per length of all weights together, and another rate a "
                "group would maximise them in another norm. Give all weights in one list"
            )
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Tensor]) -> Tensor:  # type: ignore[override]
        """Take one step; the margins (n_samples,) that the closure returned last, detached.

        After a line search these are the margins at the weights that it left, otherwise those
        before the step.

        Raises
        ------
        TypeError
            Without a closure, or if it returns no tensor.
        ValueError
            If the closure does not return margins, they do not scale as `degree` says, or the
            weights are not those that the last step left.
        FloatingPointError
            If the margins have become infinite or NaN.
        """
        if not callable(closure):
            raise TypeError(
                f"{type(self).__name__}.step needs a closure that returns the margins y f(x) of "
                f"all samples, got {closure!r}: call step(lambda: y * network(X))"
            )
        if self._run is None or self._stepper is None:
            self._run, self._stepper = self._begin(closure)
        self._check_unmoved(self._run)
        self._run.closure = closure
        # What another hand loaded is what counts, and not where it has put it.
        self._stepper.state = {k: v.to(self._places[k]) for k, v in self._states["trainer"].items()}
        self._stepper.step(self._run.batch, self.param_groups[0].get("lr"))
        self._states["trainer"] = self._stepper.state
        self._left = [weight.clone() for weight in self._run.weights]
        if not bool(torch.isfinite(self._run.margins).all()):
            raise FloatingPointError(
                f"{type(self).__name__} diverged: margins are no longer finite. Begin again at a "
                "smaller rate, or with lr=None where it is known; look for NaN in the data"
            )
        return self._run.margins

    def state_dict(self) -> dict[str, Any]:
        """As torch's, a copy: with it, and the weights, a new optimiser goes on to the bit."""
        packed = super().state_dict()
        kept = self._states.get("trainer")
        if kept:
            known = self._expected or digest_of(self._left)
            copied = {name: value.detach().clone() for name, value in kept.items()}
            copied[WEIGHTS] = torch.frombuffer(bytearray.fromhex(known), dtype=torch.uint8)
            packed["state"] = {"trainer": copied}
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict`; the network's weights are loaded beside it, in any order.

        Raises
        ------
        ValueError
            If it is not one of this method, for weights of these shapes.
        """
        kept = dict(state_dict.get("state", {}).get("trainer", {}))
        known = kept.pop(WEIGHTS, None)
        begun = state_dict.get("state", {}) != {}
        if begun and (known is None or not self._fits(kept)):
            raise ValueError(
                f"this is no state of {type(self).__name__} for weights of these shapes: load "
                "what state_dict() of the same optimiser gave"
            )
        super().load_state_dict(state_dict)
        self._run = self._stepper = None
        self._left = []
        self._expected = "" if known is None else bytes(known.cpu().tolist()).hex()
        self.state.clear()
        if begun:
            self._states["trainer"] = {k: v.detach().clone() for k, v in kept.items()}

    def __getstate__(self) -> dict[str, Any]:
        own = ("_settings", "_degree", "_n_samples")
        kept = {name: getattr(self, name) for name in own}
        expected = self._expected or (digest_of(self._left) if self._left else "")
        closed: dict[str, Any] = {"_run": None, "_stepper": None, "_left": [], "_places": {}}
        return super().__getstate__() | kept | closed | {"_expected": expected}

    @property
    def _states(self) -> dict[Any, Any]:
        """The state of torch's optimisers, which casts none of what has a name for its key."""
        return self.state

    def _trained(self) -> list[torch.nn.Parameter]:
        return [p for p in self.param_groups[0]["params"] if p.requires_grad]

    def _make(self) -> tuple[ClosureRun, Stepper]:
        run = ClosureRun(self._trained(), self._degree, self._n_samples)
        return run, make_stepper(run, self._settings, self._n_samples)

    def _begin(self, closure: Callable[[], Tensor]) -> tuple[ClosureRun, Stepper]:
        """The method at the weights as they are, or where a loaded state left it."""
        _check_weights(self._trained())
        run, stepper = self._make()
        run.closure = closure
        if "trainer" in self._states:
            if self._expected != digest_of(run.weights):
                raise ValueError(
                    "the optimiser's state is of other weights than the network has: load those "
                    "that were kept beside it, or make a new optimiser for these"
                )
            self._expected = ""
        else:
            run.check_degree()
            self._states["trainer"] = stepper.state
        self._left = [weight.clone() for weight in run.weights]
        self._places = {name: value.device for name, value in stepper.state.items()}
        return run, stepper

    def _fits(self, kept: dict[str, Tensor]) -> bool:
        _, stepper = self._make()
        wanted = stepper.state
        return kept.keys() == wanted.keys() and all(
            kept[name].shape == wanted[name].shape and kept[name].dtype == wanted[name].dtype
            for name in wanted
        )

    def _check_unmoved(self, run: ClosureRun) -> None:
        now = self._trained()
        same = [p.data_ptr() for p in now] == [w.data_ptr() for w in run.weights]
        if not same or not all(map(torch.equal, run.weights, self._left)):
            raise ValueError(
                f"the weights are not those that the last step of {type(self).__name__} left: "
                "something else changed, froze or moved them, or that step was cut short. Load a "
                "state_dict with the weights kept beside it, or make a new optimiser for these"
            )


def whole(name: str, value: Any) -> int:
    """A positive whole number; raises ValueError for anything else."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ValueError(f"`{name}` must be a whole number, got {value!r}") from error
    if number < 1:
        raise ValueError(f"`{name}` must be at least 1, got {number}")
    return number


def _check_weights(weights: list[torch.nn.Parameter]) -> None:
    """See that there are weights to train, real ones, of one dtype, on one device."""
    if not weights:
        raise ValueError("no parameter has requires_grad=True: there is nothing to train")
    kinds = {(str(w.dtype), str(w.device)) for w in weights}
    if len(kinds) > 1 or weights[0].dtype not in (torch.float32, torch.float64):
        raise ValueError(
            "the weights must be float32 or float64, all of one dtype and on one device, got "
            f"{sorted(kinds)}: convert the network before the optimiser is made"
        )
