"""All that is fixed before any work of a run: options, data, gates, settings, and the heading."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from .._support import __version__
from .._support.words import LossName
from ..data.dataset import Dataset
from ..data.labelled import ClassDataset
from ..data.sample import Sample
from ..options.fields import Options
from ..options.resolve import each_trainer
from ..quantities.assumptions import Assumption
from ..training.settings import Phases, TrainingSettings
from .folder import RunFolder
from .model import Model
from .progress import Progress
from .reports.heading import Heading
from .seeds import Seeds
from .user_data import UserData, gates_of, load_chosen

if TYPE_CHECKING:
    import torch

    from ..networks.weights import Starting

PACKAGES = ("numpy", "scipy", "torch", "cvxpy", "clarabel", "ecos", "osqp", "scs", "scikit-learn")


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """The setup of every run; theories extend it with their data.

    Attributes
    ----------
    model : Model
    options : Options
        All of them, as they are resolved.
    user_data : UserData
        Data and gates of the user's own, in place of those that the options name.
    progress : Progress
    folder : RunFolder
    """

    model: Model
    options: Any
    user_data: UserData = field(default_factory=UserData)
    progress: Progress = field(default_factory=Progress)
    folder: RunFolder = field(default_factory=RunFolder)

    @property
    def shared(self) -> dict[str, Any]:
        """Its fields by their names, for a setup that extends this one."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def seeds(self) -> Seeds:
        """The seeds of the parts of the run."""
        return Seeds.from_seed(self.options.seed)

    @property
    def trains(self) -> bool:
        """False with `steps` 0, a prediction alone."""
        return bool(self.options.steps != (0,))

    def declared(self, found: Sequence[Assumption]) -> tuple[Assumption, ...]:
        """Return those of the assumptions that several theories share which this one makes."""
        names = {one.name for one in self.model.premises(self.options)}
        return tuple(one for one in found if one.name in names)

    def heading(
        self,
        data: Mapping[str, Any],
        *,
        title: str,
        choices: str = "",
        theorem: str = "",
        source: str = "",
        program: str = "",
    ) -> Heading:
        """Return the heading of this run's report.

        Parameters
        ----------
        data : mapping
            The record of the data, such as `data_record`, with their "description".
        title : str
            Of the picture.
        choices : str
            Further ones to name in the line about the data.
        theorem, source : str
            The theorem and its source, where they are not the model's usual ones.
        program : str
            The program in one line, where it is not the model's usual one.
        """
        source = source if theorem else self.model.source
        theorem = theorem or self.model.theorem
        line = [data["description"], *([choices] if choices else []), f"seed {self.options.seed}"]
        return Heading(
            model=self.model.name,
            theorem=theorem,
            program=program or self.model.program,
            setup="; ".join(line),
            title=title,
            source=source,
            assumptions=tuple(
                one.declared(self.options) for one in self.model.premises(self.options)
            ),
            record={"model": self.model.name, "theorem": theorem}
            | _provenance(self.options)
            | {"data": dict(data)}
            | self.user_data.record,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleSetup(Setup):
    """The setup of a run on samples in two parts, which may be gated.

    Attributes
    ----------
    dataset : Dataset or ClassDataset
    gating : fitted transformer or None
    gates : pair
        Those of the training and of the held-out inputs; None without a gating.
    settings : TrainingSettings
    """

    dataset: Dataset | ClassDataset
    gating: Any
    gates: tuple[Any, Any]
    settings: TrainingSettings

    @property
    def train(self) -> Sample:
        """The training part of the data, with its gates."""
        return self.samples[0]

    @property
    def held_out(self) -> Sample:
        """The held-out part of the data, with its gates."""
        return self.samples[1]

    @cached_property
    def samples(self) -> tuple[Sample, Sample]:
        """Both parts of the data, with their gates; labels of classes are rows (n, K)."""
        data = self.dataset
        labels: tuple[Any, Any] = (
            (data.rows("train"), data.rows("val"))
            if isinstance(data, ClassDataset)
            else (data.y_train, data.y_val)
        )
        return (
            Sample(data.X_train, labels[0], self.gates[0]),
            Sample(data.X_val, labels[1], self.gates[1]),
        )

    @property
    def gates_of(self) -> Callable[[Any], Any]:
        """A function of new inputs, their gates: None without a gating."""
        return partial(gates_of, self.gating)

    def each_trainer(self) -> dict[str, Self]:
        """Return the same with the options and settings of each trainer, by its name."""
        return {
            one.trainer: replace(self, options=one, settings=training_settings(one, self.seeds))
            for one in each_trainer(self.options)
        }


def prepare(setup: Setup, *, gating: Callable[[int], Any] | None = None) -> SampleSetup:
    """Load the data, fit the gating, and see that training can begin.

    Parameters
    ----------
    setup : Setup
        Its options have those of data and gradient steps.
    gating : callable, optional
        `gating(seed)` returns an unfitted transformer of inputs to gates.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there.
    """
    options, own = setup.options, setup.user_data
    # Of several trainers each is checked; where one is asked for, it is the last.
    *_, settings = (training_settings(one, setup.seeds) for one in each_trainer(options))
    dataset = own.dataset or load_chosen(options)
    fitted = own.gating
    if gating is not None and fitted is None:
        fitted = gating(setup.seeds.gating).fit(dataset.X_train)
    inputs = dataset.X_train, dataset.X_val
    gates = own.gates or (gates_of(fitted, inputs[0]), gates_of(fitted, inputs[1]))
    return SampleSetup(
        **setup.shared, dataset=dataset, gating=fitted, gates=gates, settings=settings
    )


def training_settings(
    options: Any, seeds: Seeds, *, loss: LossName | None = None, schedule: Phases | None = None
) -> TrainingSettings:
    """Return the trainer's settings that the options name; its own phases where they name none.

    Parameters
    ----------
    options : Options
        Without the options of a trainer: those of gradient steps, which are constant then.
    seeds : Seeds
    loss : str, optional
        The loss, where it is no option.
    schedule : phases, optional
        Steps and rates, where they are not those of the options.
    """
    return TrainingSettings(
        trainer=getattr(options, "trainer", "constant"),
        loss=loss or options.loss,
        batch_size=options.batch_size,
        schedule=schedule or schedule_of(options),
        momentum=getattr(options, "momentum", 0.0),
        weight_decay=getattr(options, "weight_decay", 0.0),
        decay="decoupled" if getattr(options, "decoupled", False) else "coupled",
        n_checkpoints=options.checkpoints,
        random_state=seeds.batches,
    )


def schedule_of(options: Any) -> Phases | None:
    """Return steps and rates, None for rates the trainer finds; None where no steps are named."""
    if options.steps is None or options.steps == (0,):
        return None
    rates: tuple[float | None, ...] = options.learning_rate or (None,) * len(options.steps)
    return tuple(zip(options.steps, rates, strict=True))


def torch_dtype(name: str) -> torch.dtype:
    """Return the floating-point dtype of that name."""
    import torch

    return {"float32": torch.float32, "float64": torch.float64}[name]


def start(options: Any, seed: int) -> Starting:
    """Return the arguments of every network: its initial weights, their precision and device."""
    return {
        "init": options.init,
        "init_scale": options.init_scale,
        "random_state": seed,
        "dtype": torch_dtype(options.dtype),
        "device": options.device,
    }


def data_record(dataset: Dataset | ClassDataset) -> dict[str, Any]:
    """Return which data a run had."""
    return {
        "name": dataset.name,
        "description": dataset.description,
        "n_train": len(dataset.X_train),
        "n_val": len(dataset.X_val),
        "n_inputs": int(dataset.X_train.shape[1]),
        "sha256": dataset.digest(),
    }


def _provenance(options: Options) -> dict[str, Any]:
    """Return versions, choices and seeds of a run."""
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


@cache  # ten milliseconds of reading a package's metadata
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
