"""The trainers as optimisers of torch: their common base, for closures that return margins."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from .._support.doors import door
from .._support.kinds import anything, count
from .._support.words import MarginLoss, TrainerName
from .catalogue import get_trainer
from .closure_network import ClosureNetwork
from .network_stack import refuse_autocast
from .run_file import digest_of
from .settings import MOST_STEPS, TrainingSettings
from .steppers.stepper import Stepper
from .trainers import make_stepper

# Name of an entry of saved states beside those of the method: a digest of the weights it left.
WEIGHTS = "weights"


class MarginOptimizer(torch.optim.Optimizer):
    """Base of the optimisers, which take the steps of `train` in training loops of your own.

    The closure of `step` returns the margins y f(x), y in {-1, +1}, of all samples, always the same
    ones, as a tensor (n_samples,) with its graph, and no loss. It may be called several times a
    step, leaves `grad` alone, and has to be deterministic. The weights belong to the optimiser as
    long as it steps: between two steps nothing else may change them.

    Parameters
    ----------
    params : iterable of Parameter
        All weights of the network, in one group unless the method says otherwise; float32 or
        float64.
    n_samples : int
        Number of margins that the closure returns.
    degree : int, optional
        Degree of homogeneity of the margins in these weights: the number of layers of a network
        without biases. The first step tests it.
    lr : float, optional
        Learning rate; without it the method finds its steps by itself.
    momentum : float
        Heavy-ball momentum in [0, 1).
    weight_decay : float
        Decay lam of the weights, of methods that have it: in the gradient or beside the step, as
        the method says.
    loss : {"logistic", "exponential"}

    Attributes
    ----------
    trainer : str
        The method's name in `TrainingSettings`.

    Raises
    ------
    TypeError
        If `n_samples` or `degree` is not a whole number.
    ValueError
        If one of them is below 1, another argument is not one that the method takes, or the weights
        are not trained, of several dtypes or on several devices.

    Examples
    --------
    >>> issubclass(ib.optim.Annealed, ib.optim.MarginOptimizer), ib.optim.Annealed.trainer
    (True, 'annealed')
    """

    trainer: ClassVar[TrainerName]
    # Options that a group may have of its own; without any there is one group.
    group_options: ClassVar[tuple[str, ...]] = ()
    # How many steps there will be, where that is known.
    _n_steps: int | None = None
    # Attributes of a subclass that copies and pickles need.
    _kept: ClassVar[tuple[str, ...]] = ()

    @door(n_samples=count(1), degree=count(1), loss=anything)
    def __init__(
        self,
        params: Iterable[Any],
        *,
        n_samples: int,
        degree: int | None = None,
        lr: float | None = None,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        loss: MarginLoss = "logistic",
    ) -> None:
        decays = get_trainer(self.trainer).decays
        self._settings = TrainingSettings(
            trainer=self.trainer,
            loss=loss,
            batch_size=0,
            schedule=((self._n_steps or MOST_STEPS, lr),),
            momentum=momentum,
            weight_decay=weight_decay,
            decay=decays[0] if decays else "coupled",
        )
        self._degree, self._n_samples = degree, n_samples
        self._network: ClosureNetwork | None = None
        self._stepper: Stepper | None = None
        self._left: list[Tensor] = []  # the weights after the last step
        self._devices: dict[str, torch.device] = {}  # of the method's state
        self._expected = ""  # the digest that a loaded state names
        params = list(params)
        for k, one in enumerate(params):
            if not isinstance(one, Tensor | dict | tuple):
                raise TypeError(f"`params[{k}]` must be a tensor to train, got {one!r}")
        super().__init__(params, self._group_defaults() | ({} if lr is None else {"lr": lr}))
        _check_weights(self._trained())

    @door()
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; called by the constructor, and for one group alone by most.

        Raises
        ------
        ValueError
            If it is not the first of a method that takes one, comes after the first step, or has
            options that no group has.
        """
        taken = self.group_options or tuple(self.defaults)
        own = sorted(set(param_group) - {"params", "param_names", *taken})
        if self.group_options and (own or getattr(self, "_stepper", None) is not None):
            what = f"options {own}" if own else "a group after the first step"
            raise ValueError(
                f"groups of {type(self).__name__} have {', '.join(self.group_options)} of their "
                f"own and nothing else, from the first step on, got {what}: another rate a group "
                "would maximise margins in another norm"
            )
        if not self.group_options and (self.param_groups or own):
            what = f"options {own}" if own else f"group number {len(self.param_groups) + 1}"
            raise ValueError(
                f"{type(self).__name__} takes one group of parameters, without options, got "
                f"{what}: margins are per length of all weights together, and another rate a "
                "group would maximise them in another norm. Give all weights in one list"
            )
        super().add_param_group(param_group)
        self._know_rates()

    def _know_rates(self) -> None:
        """Let the group say what it means where a scheduler asks for a rate that it has not."""
        self.param_groups[:] = [_Group(group, type(self).__name__) for group in self.param_groups]

    def step(self, closure: Callable[[], Tensor]) -> Tensor:  # type: ignore[override]
        """Take one step, and return the margins (n_samples,) that the closure returned last.

        They are detached; after a line search those at the weights that it left, otherwise those
        before the step.

        Parameters
        ----------
        closure : callable
            Returns the margins of all samples at the present weights.

        Raises
        ------
        TypeError
            Without a closure, or if it returns no tensor.
        ValueError
            If the closure does not return margins, they do not scale as `degree` says, or the
            weights are not those that the last step left.
        RuntimeError
            Under `torch.autocast`, unless the closure itself turns it on.
        FloatingPointError
            If the margins have become infinite or NaN.
        """
        if not callable(closure):
            raise TypeError(
                f"{type(self).__name__}.step needs a `closure` that returns the margins y f(x) of "
                f"all samples, got {closure!r}: call step(lambda: y * network(X))"
            )
        refuse_autocast(self._trained())
        if self._network is None or self._stepper is None:
            self._network, self._stepper = self._begin(closure)
        self._check_unmoved(self._network)
        self._network.closure = closure
        # Other code may have loaded the state, and on another device.
        state = self._states["trainer"]
        self._stepper.state = {k: v.to(self._devices[k]) for k, v in state.items()}
        had_stopped = self._stepper.stopped
        self._stepper.step(self._network.batch, self.param_groups[0].get("lr"))
        self._states["trainer"] = self._stepper.state
        self._left = [weight.clone() for weight in self._network.weights]
        if not bool(torch.isfinite(self._network.margins).all()):
            raise FloatingPointError(
                f"{type(self).__name__} diverged: margins are no longer finite. Begin again at a "
                "smaller rate, or with lr=None where it is known; look for NaN in the data"
            )
        if self._stepper.stopped and not had_stopped:
            warnings.warn(self._stepper.stopped, stacklevel=3)  # torch wraps this method
        return self._network.margins

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the state, from which a new optimiser goes on to the bit."""
        packed = super().state_dict()
        state = self._states.get("trainer")
        if state is not None:  # begun, though a given rate leaves nothing to remember
            digest = self._expected or digest_of(self._left)
            copied = {name: value.detach().clone() for name, value in state.items()}
            copied[WEIGHTS] = torch.frombuffer(bytearray.fromhex(digest), dtype=torch.uint8)
            packed["state"] = {"trainer": copied}
        return packed

    @door()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a `state_dict`; load the network's weights too, before or after.

        Raises
        ------
        ValueError
            If it is not one of this method, for weights of these shapes.
        """
        state = dict(state_dict.get("state", {}).get("trainer", {}))
        digest = state.pop(WEIGHTS, None)
        begun = state_dict.get("state", {}) != {}
        if begun and (digest is None or not self._fits(state)):
            raise ValueError(
                f"this is no state of {type(self).__name__} for weights of these shapes: load "
                "what state_dict() of the same optimiser gave"
            )
        super().load_state_dict(state_dict)
        self._know_rates()
        self._network = self._stepper = None
        self._left = []
        self._expected = "" if digest is None else bytes(digest.cpu().tolist()).hex()
        self.state.clear()
        if begun:
            self._states["trainer"] = {k: v.detach().clone() for k, v in state.items()}

    def __getstate__(self) -> dict[str, Any]:
        own = ("_settings", "_degree", "_n_samples", *self._kept)
        settings = {name: getattr(self, name) for name in own}
        expected = self._expected or (digest_of(self._left) if self._left else "")
        unbound: dict[str, Any] = {"_network": None, "_stepper": None, "_left": [], "_devices": {}}
        return super().__getstate__() | settings | unbound | {"_expected": expected}

    @property
    def _states(self) -> dict[Any, Any]:
        """The state of torch's optimisers, which casts no entry whose key is a text."""
        return self.state

    def _group_defaults(self) -> dict[str, Any]:
        """Return the options of groups that name none."""
        return {}

    def _trained(self) -> list[torch.nn.Parameter]:
        return [p for group in self.param_groups for p in group["params"] if p.requires_grad]

    def _make(self) -> tuple[ClosureNetwork, Stepper]:
        network = ClosureNetwork(self._trained(), self._degree, self._n_samples)
        return network, self._method(network)

    def _method(self, network: ClosureNetwork) -> Stepper:
        """Return the gradient method at its start."""
        return make_stepper(network, self._settings, self._n_samples)

    def _begin(self, closure: Callable[[], Tensor]) -> tuple[ClosureNetwork, Stepper]:
        """Return the method at the weights as they are, or where a loaded state left it."""
        _check_weights(self._trained())
        network, stepper = self._make()
        network.closure = closure
        if "trainer" in self._states:
            if self._expected != digest_of(network.weights):
                raise ValueError(
                    "the optimiser's state is of other weights than the network has: load those "
                    "that were saved with it, or make a new optimiser for these"
                )
            self._expected = ""
        else:
            network.check_degree()
            self._states["trainer"] = stepper.state
        self._left = [weight.clone() for weight in network.weights]
        self._devices = {name: value.device for name, value in stepper.state.items()}
        return network, stepper

    def _fits(self, state: dict[str, Tensor]) -> bool:
        wanted = self._make()[1].state
        return state.keys() == wanted.keys() and all(
            state[name].shape == like.shape and state[name].dtype == like.dtype
            for name, like in wanted.items()
        )

    def _check_unmoved(self, network: ClosureNetwork) -> None:
        now = self._trained()
        same = [p.data_ptr() for p in now] == [w.data_ptr() for w in network.weights]
        if not same or not all(map(torch.equal, network.weights, self._left)):
            raise ValueError(
                f"the weights are not those that the last step of {type(self).__name__} left: "
                "something else changed, froze or moved them, or that step was cut short. Load a "
                "state_dict with the weights saved with it, or make a new optimiser for these"
            )


class _Group(dict[str, Any]):
    """A group of parameters, which may have no learning rate."""

    def __init__(self, group: dict[str, Any], optimiser: str) -> None:
        super().__init__(group)
        self._optimiser = optimiser

    def __missing__(self, name: str) -> Any:
        if name in ("lr", "initial_lr"):
            raise ValueError(
                f"{self._optimiser} finds its steps by itself and has no learning rate for a "
                "scheduler: leave the scheduler out, or take Normalised with `lr`"
            )
        raise KeyError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self._optimiser)


def _check_weights(weights: list[torch.nn.Parameter]) -> None:
    """Check that there are weights to train, real ones, of one dtype, on one device."""
    if not weights:
        raise ValueError("no parameter has requires_grad=True: there is nothing to train")
    kinds = {(str(w.dtype), str(w.device)) for w in weights}
    if len(kinds) > 1 or weights[0].dtype not in (torch.float32, torch.float64):
        raise ValueError(
            "the weights must be float32 or float64, all of one dtype and on one device, got "
            f"{sorted(kinds)}: convert the network before the optimiser is made"
        )
