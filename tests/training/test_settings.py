"""What a run may be told: the catalogue's own choices, schedules from parts, and refusals."""

from __future__ import annotations

import math
import subprocess
import sys
from pkgutil import resolve_name

import pytest

from implicit_bias import GLN, TrainingSettings, train
from implicit_bias.training import LOSSES, OBJECTIVES, TRAINERS, Stepper, losses_of

PUBLISHED = ((1600, 0.04), (1600, 0.01))


def test_the_catalogue_has_a_stepper_for_every_trainer_and_an_objective_for_every_loss() -> None:
    for trainer in TRAINERS.values():
        place = f"implicit_bias.training.steppers.{trainer.stepper}"
        assert issubclass(resolve_name(place), Stepper)
    assert OBJECTIVES.keys() == set(LOSSES)
    # Those that work with the logarithm of a loss take the losses that have one, others all.
    with_logarithm = {name for name, objective in OBJECTIVES.items() if objective.in_logarithms}
    taken = {"constant": set(LOSSES), "newton": set(LOSSES) - with_logarithm}
    searching = {"momentum", "dual", "annealed", "smoothed"}  # losses of attention may rise
    taken |= dict.fromkeys(searching, with_logarithm - {"attention"})
    for name in TRAINERS:
        assert set(losses_of(name)) == taken.get(name, with_logarithm)


def test_settings_and_catalogue_load_neither_torch_nor_numpy() -> None:
    program = (
        "import sys; import implicit_bias as ib; ib.TrainingSettings();"
        "sys.exit(len({'torch', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_defaults_are_those_of_the_published_experiment() -> None:
    settings = TrainingSettings()
    assert (settings.schedule, settings.n_steps) == (PUBLISHED, 3200)
    assert (settings.loss, settings.batch_size, settings.momentum) == ("logistic", 128, 0.0)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_trainer_alone_begins_from_its_own_row_of_the_catalogue(trainer) -> None:
    settings, row = TrainingSettings(trainer=trainer, loss=losses_of(trainer)[0]), TRAINERS[trainer]
    assert settings.batch_size == row.batch_size
    assert [steps for steps, _ in settings.phases] == list(row.steps)
    assert settings.automatic == (not row.learning_rates)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"loss": "hinge"},
            r"`loss` must be one of \['attention', 'cross-entropy', 'excess', 'exponential'",
        ),
        ({"trainer": "sgd"}, r"`trainer` must be one of \['adam', 'annealed'"),
        ({"batch_size": -1}, "`batch_size` must be at least 0"),
        ({"schedule": ((2**53, 0.1), (1, 0.1))}, "together at most 9007199254740992"),
        ({"schedule": ()}, "`schedule` must be pairs .*; got none"),
        ({"schedule": (10, 0.1)}, r"`schedule` must be pairs .*got \(10, 0.1\)"),
        ({"schedule": 10}, "`schedule` must be pairs .*got 10"),
        ({"schedule": ((10, 0.1), (0, 0.1))}, "steps of `schedule` must be at least 1, got 0"),
        ({"schedule": ((10**26, 0.1),)}, "steps of `schedule` must .* at most 9007199254740992"),
        ({"schedule": ((10, math.nan),)}, "rates of `schedule` must be positive"),
        ({"schedule": ((10, "0.1"),)}, "rates of `schedule` must be positive .*got '0.1'"),
        ({"schedule": ((10, math.inf),)}, "rates of `schedule` must be positive"),
        ({"momentum": 1.0}, "`momentum`"),
        ({"momentum": math.nan}, "`momentum`"),
        ({"n_checkpoints": 1}, "`n_checkpoints` must be at least 2"),
        ({"trainer": "normalised", "batch_size": 128}, "let `batch_size` be 0"),
        ({"trainer": "newton"}, "least value of the loss, which 'logistic' has not"),
        ({"trainer": "annealed", "schedule": PUBLISHED}, r"must be None .*'annealed'"),
        ({"trainer": "dual", "schedule": PUBLISHED}, r"must be None .*'dual'"),
        ({"trainer": "momentum", "schedule": PUBLISHED}, r"must be None .*'momentum'"),
        ({"schedule": ((10, None),)}, "must be numbers for trainer 'constant'"),
        (
            {"trainer": "normalised", "schedule": ((10, None), (10, 0.1))},
            "a number in all of them or None in all",
        ),
        ({"trainer": "annealed", "momentum": 0.5}, "has a momentum of its own"),
        ({"trainer": "signum", "momentum": 0.5}, "has a momentum of its own"),
        ({"trainer": "annealed", "loss": "attention"}, "may rise .* take one of .*'normalised'"),
        ({"trainer": "annealed", "loss": "squared"}, "logarithm of the loss, which 'squared' has"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(kwargs, message) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**kwargs)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"batch_size": 2.5}, "`batch_size` must be an integer, got 2.5"),
        ({"n_checkpoints": "9"}, "`n_checkpoints` must be an integer, got '9'"),
        ({"schedule": ((10.5, 0.1),)}, "steps of `schedule` must be an integer, got 10.5"),
    ],
)
def test_counts_that_are_no_whole_numbers_are_refused(kwargs, message) -> None:
    with pytest.raises(TypeError, match=message):
        TrainingSettings(**kwargs)


def test_settings_in_a_dict_are_told_what_to_become() -> None:
    with pytest.raises(TypeError, match=r"TrainingSettings, got dict: .*TrainingSettings\(\*\*"):
        train(GLN(2, 1, 2), [[1.0, 0.0]], [1.0], [[0]], settings={"loss": "logistic"})
