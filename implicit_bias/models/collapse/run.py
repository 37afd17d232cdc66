"""The run of unconstrained features: the geometry of their limit, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import require_finite, require_memory
from ...data.catalogue import load_class_data
from ...data.dataset import digest
from ...quantities.atlas import ENTRIES, Statement, named, statement
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.setup import Setup, training_settings
from ...runs.stages import Found, Run, Stage, later
from ...training.catalogue import TRAINERS
from ...training.settings import TrainingSettings
from .formulation import Collapse, checked_sizes, solve_collapse
from .limit import CollapseLimit
from .model import WIDE

NAME = Collapse.name
# Of classes of one size, beside those of the run.
ALIKE = "balanced"
# Where no sizes are named: in steps of ten to one, of nearly as many samples as six times 6.
SIZES = (10, 10, 10, 1, 1, 1)
# Of a search for stationary points: one on a sphere of every dimension up to five.
STARTS = 4
_DEEP: Statement = {
    "theorem": named(
        "no theorem names the best of more layers, or of less than K - 1 dimensions: "
        "training goes to KKT points of the margin problem ({lyu-2020}, theorem 4.4), at each of "
        "which features collapse to their class means, and the nuclear norm bounds what they cost"
    ),
    "source": ENTRIES["dgn"].source,
    "program": "min ||w||^2 / 2  s.t.  every relative margin >= 1, locally",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class CollapseSetup(Setup):
    """The setup of a run, with its classes.

    Attributes
    ----------
    class_sizes : (K,) ints
    settings : TrainingSettings
    """

    class_sizes: NDArray[np.int64]
    settings: TrainingSettings

    @property
    def decay(self) -> float | None:
        """The weight decay; None without."""
        return self.options.weight_decay or None

    @property
    def dimension(self) -> int:
        """Of features and of layers between."""
        return int(self.options.dimension or len(self.class_sizes))

    @property
    def named(self) -> bool:
        """True where the best is known."""
        wide = self.dimension >= len(self.class_sizes) - 1
        return bool(wide and self.options.depth == 2)

    @property
    def alike(self) -> NDArray[np.int64] | None:
        """Sizes of as many classes of one size, beside sizes by default alone."""
        own = self.options.data == "sizes" and self.options.class_sizes is None
        K = len(self.class_sizes)
        return np.full(K, round(self.class_sizes.mean())) if own else None

    def solved(self, sizes: NDArray[np.int64]) -> CollapseLimit:
        """Solve for the limit of classes of these sizes."""
        options = self.options
        return solve_collapse(
            class_sizes=sizes, dimension=self.dimension, depth=options.depth,
            weight_decay=self.decay, n_starts=STARTS, random_state=options.seed, tol=options.tol,
        )  # fmt: skip


def run_collapse(setup: Setup) -> Run[CollapseSetup]:
    """Predict the geometry of features and classifiers, train them, and compare them.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        If an option is out of range or labels are not there, before any long work.
    """
    options = setup.options
    sizes, about = _classes(setup)
    settings = _settings(setup)
    whole = CollapseSetup(**setup.shared, class_sizes=sizes, settings=settings)
    data = {
        "name": options.data,
        "description": f"{about}: {len(sizes)} classes of {_listed(sizes)} samples",
        "n_train": int(sizes.sum()),
        "n_val": 0,
        "n_inputs": int(sizes.sum()),
        "sha256": digest(sizes),
    }
    if whole.trains:
        require_memory(int(sizes.sum()) ** 2, "a unit vector a sample", "take smaller classes")
    known = statement("collapse-decay" if whole.decay else "collapse")
    heading = setup.heading(
        data,
        title="unconstrained features and classifiers beside their limit",
        choices=f"{options.depth} layers of dimension {whole.dimension}",
        **(known if whole.decay or whole.named else _DEEP),
    )
    return Run(setup=whole, heading=heading, stages=STAGES)


def _classes(setup: Setup) -> tuple[NDArray[np.int64], str]:
    """Return the class sizes, and where they come from."""
    options, own = setup.options, setup.user_data
    if options.data != "sizes" and options.class_sizes is not None:
        raise ValueError("`class_sizes` follow from labels: leave one of them out")
    if own.y is not None:
        return _counted(own.y), "labels of the caller's own"
    if options.data == "sizes":
        for name in ("label", "n_train"):
            if getattr(options, name) is not None:
                raise ValueError(f"`{name}` is of labels by name or file: give `--data` too")
        return checked_sizes(None, options.class_sizes or SIZES), "sizes by hand"
    data = load_class_data(
        options.data, label=options.label, n_train=options.n_train, random_state=setup.seeds.data
    )
    others = data.labels_val if options.n_train is None else data.labels_val[:0]
    return _counted(np.concatenate([data.labels_train, others])), data.source


def _counted(labels: Any) -> NDArray[np.int64]:
    """Return the sizes of the classes that there are, in the order of their numbers."""
    require_finite("y", np.asarray(labels))
    return checked_sizes(None, np.unique(labels, return_counts=True)[1])


def _settings(setup: Setup) -> TrainingSettings:
    """Return the settings of the trainer, which is to descend the gradient."""
    options = setup.options
    if "," in options.trainer or TRAINERS[options.trainer].norms != ("l2", "l2"):
        raise ValueError(
            f"`trainer` {options.trainer!r}: take one that descends the gradient, such as momentum "
            "or annealed; of steps in other norms `deep-linear --classes joint` has programs"
        )
    if options.weight_decay and options.loss != "logistic":
        raise ValueError(f"`loss` {options.loss!r} with weight decay has no program: take logistic")
    if options.weight_decay and setup.options.batch_size:
        raise ValueError("`batch_size` must be 0 with weight decay: steps on batches end elsewhere")
    return training_settings(options, setup.seeds)


def _listed(sizes: NDArray[np.int64]) -> str:
    """Return sizes in words: alike, all of them, or their range."""
    if len(set(sizes.tolist())) == 1:
        return str(sizes[0])
    return ", ".join(map(str, sizes)) if len(sizes) <= 10 else f"{sizes.min()} to {sizes.max()}"


def _predict(setup: CollapseSetup, found: Found) -> Iterator[Finding]:
    K, depth = len(setup.class_sizes), setup.options.depth
    wide = WIDE.found(depth=depth, dimension=setup.dimension, n_classes=K, least=K - 1)
    limit = setup.solved(setup.class_sizes)
    yield Finding("limit", {"limit": limit}, NAME, assumptions=(wide,))
    if setup.alike is not None:
        other = setup.solved(setup.alike)
        tables = other.tables(f"{NAME}, {K} classes of {setup.alike[0]}")
        yield Finding.said(f"{ALIKE} limit", tables=tables, objects={f"{ALIKE}_limit": other})


def _state(setup: CollapseSetup) -> Iterator[StatedProgram]:
    setup.progress.stage(f"stating {NAME} on {setup.class_sizes.sum()} samples")
    yield stated(NAME, Collapse(setup.decay).literal(class_sizes=setup.class_sizes))


STAGES: tuple[Stage[CollapseSetup], ...] = (
    Stage(finds=_predict, says=f"solving {NAME}", states=_state),
    Stage(
        finds=later(f"{__package__}.training:train"),
        says="training for {setup.settings.n_steps} steps",
        trains=True,
        required=True,
    ),
    Stage(
        finds=later(f"{__package__}.training:train_alike"),
        says="training classes of {setup.alike[0]} samples",
        trains=True,
        when=lambda setup, found: setup.alike is not None,
    ),
)
