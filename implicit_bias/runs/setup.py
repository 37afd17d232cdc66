"""All that is fixed before any work: data, gates, settings, and what a report says of them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._shown import Shown
from .._version import __version__
from ..data.dataset import Dataset
from ..data.labelled import ClassDataset
from ..data.sample import Sample
from ..networks.protocols import check_device
from ..options.fields import Options
from ..options.resolve import each_trainer
from ..training.settings import Phases, TrainingSettings
from .folder import Keeping
from .progress import Progress
from .seeds import Seeds
from .user_data import Given, gates_of, load_chosen

if TYPE_CHECKING:
    import torch

    from ..networks.weights import Starting
    from .model import Model

__all__ = [
    "Heading",
    "Setup",
    "data_record",
    "prepare",
    "provenance",
    "schedule_of",
    "start",
    "torch_dtype",
    "training_settings",
    "trains",
]

PACKAGES = ("numpy", "scipy", "torch", "cvxpy", "clarabel", "ecos", "osqp", "scs", "scikit-learn")


@dataclass(frozen=True, repr=False)
class Heading(Shown):
    """What stands above the findings of a run.

    Attributes
    ----------
    model, theorem, program : str
        What is predicted, by which theorem of which paper, as which program.
    setup : str
        The data and the choices that matter, in a line.
    title : str
        Of the picture.
    record : mapping
        What it takes to repeat the run: versions, choices, seeds, data.
    """

    model: str
    theorem: str
    program: str
    setup: str
    title: str
    record: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Setup:
    """What a run is given.

    Attributes
    ----------
    model : Model
    options : Options
    progress, keeping : Progress, Keeping
    seeds : Seeds
    dataset : Dataset or ClassDataset
    gating : fitted transformer or None
    gates : pair
        Of the training and of the held-out inputs; None without a gating.
    settings : TrainingSettings
    """

    model: Model
    options: Any
    progress: Progress
    keeping: Keeping
    seeds: Seeds
    dataset: Dataset | ClassDataset
    gating: Any
    gates: tuple[Any, Any]
    settings: TrainingSettings

    @property
    def trains(self) -> bool:
        """Whether anything is trained after the limit: not with `steps` 0."""
        return trains(self.options)

    @property
    def train(self) -> Sample:
        """The training part of data of two labels, with its gates."""
        return self.samples[0]

    @property
    def held_out(self) -> Sample:
        """The held-out part of data of two labels, with its gates."""
        return self.samples[1]

    @cached_property
    def samples(self) -> tuple[Sample, Sample]:
        """Both parts of data of two labels, with their gates."""
        data = self.dataset
        assert isinstance(data, Dataset)
        return (
            Sample(data.X_train, data.y_train, self.gates[0]),
            Sample(data.X_val, data.y_val, self.gates[1]),
        )

    @property
    def gates_of(self) -> Callable[[Any], Any]:
        """A function of new inputs, their gates: None without a gating."""
        return partial(gates_of, self.gating)

    def each_trainer(self) -> dict[str, Setup]:
        """The same with the options and settings of each trainer that was named, by its name."""
        return {
            one.trainer: replace(self, options=one, settings=training_settings(one, self.seeds))
            for one in each_trainer(self.options)
        }

    def heading(self, *, title: str, theorem: str = "") -> Heading:
        """The heading of this run's report; `theorem` where it is not the model's usual one."""
        model, options = self.model, self.options
        theorem = theorem or model.theorem
        return Heading(
            model=model.name,
            theorem=theorem,
            program=model.program,
            setup=f"{self.dataset.description}; seed {options.seed}",
            title=title,
            record={"model": model.name, "theorem": theorem}
            | provenance(options)
            | data_record(self.dataset)
            | ({} if model.given is None else model.given.record),
        )


def prepare(
    model: Model,
    options: Any,
    progress: Progress,
    keeping: Keeping,
    *,
    gating: Callable[[int], Any] | None = None,
) -> Setup:
    """Load the data, fit the gating, and see that training can begin.

    Parameters
    ----------
    options : Options
        With those of data, gradient steps and device.
    gating : callable, optional
        `gating(seed)` returns an unfitted transformer of inputs to gates.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there.
    """
    seeds = Seeds.from_seed(options.seed)
    # Of several trainers each is checked; where one is asked for, it is the last.
    *_, settings = (training_settings(one, seeds) for one in each_trainer(options))
    check_device(options.device)
    given = model.given or Given()
    dataset = given.dataset or load_chosen(options)
    fitted = given.gating
    if gating is not None and fitted is None:
        fitted = gating(seeds.gating).fit(dataset.X_train)
    inputs = dataset.X_train, dataset.X_val
    gates = given.gates or (gates_of(fitted, inputs[0]), gates_of(fitted, inputs[1]))
    return Setup(model, options, progress, keeping, seeds, dataset, fitted, gates, settings)


def training_settings(options: Any, seeds: Seeds) -> TrainingSettings:
    """The trainer's settings that the options name; its own phases where they name none."""
    return TrainingSettings(
        trainer=options.trainer,
        loss=options.loss,
        batch_size=options.batch_size,
        schedule=schedule_of(options),
        momentum=options.momentum,
        random_state=seeds.batches,
    )


def schedule_of(options: Any) -> Phases | None:
    """Steps and rates, None for those that the trainer finds; None where no steps are named."""
    if options.steps is None or not trains(options):
        return None
    rates: tuple[float | None, ...] = options.learning_rate or (None,) * len(options.steps)
    return tuple(zip(options.steps, rates, strict=True))


def trains(options: Any) -> bool:
    """Whether the options ask for training: `steps` 0 is a prediction alone."""
    return bool(options.steps != (0,))


def torch_dtype(name: str) -> torch.dtype:
    """The floating-point dtype of that name."""
    import torch

    return {"float32": torch.float32, "float64": torch.float64}[name]


def start(options: Any, seed: int) -> Starting:
    """What every network takes: how its weights begin, in which precision, and where."""
    return {
        "init": options.init,
        "init_scale": options.init_scale,
        "random_state": seed,
        "dtype": torch_dtype(options.dtype),
        "device": options.device,
    }


def provenance(options: Options) -> dict[str, Any]:
    """Versions, choices and seeds of a run."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "options": {
            key: str(value) if isinstance(value, Path) else value
            for key, value in asdict(options).items()
        },
        "seeds": asdict(Seeds.from_seed(options.seed)),
    }


def data_record(dataset: Dataset | ClassDataset) -> dict[str, Any]:
    """Which data a run was given."""
    return {
        "data": {
            "name": dataset.name,
            "description": dataset.description,
            "n_train": len(dataset.X_train),
            "n_val": len(dataset.X_val),
            "n_inputs": int(dataset.X_train.shape[1]),
            "sha256": dataset.digest(),
        },
    }


@cache  # ten milliseconds of reading a package's metadata
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
