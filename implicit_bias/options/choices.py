"""The names and types of all that `run` takes, of all models together.

Type checkers and editors read them in `_typed_models.pyi`, which is written as the package is
built; see `typed_models.py`, beside the package. Where it was not, they let everything pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._typed_models import Choices as Choices
    from .._typed_models import GridOptions as GridOptions
    from .._typed_models import ModelName as ModelName
    from .._typed_models import RunOptions as RunOptions
else:
    # What the types of options are written with.
    import os  # noqa: F401
    from collections.abc import Sequence  # noqa: F401
    from typing import Literal, TypedDict

    from .of_models import hint_of, model_names, options_of_models

    ModelName = Literal[model_names()]

    _TAKEN = {name: hint_of(taken) for name, taken in options_of_models().items()}
    # A range such as "0:3" beside whole numbers.
    _RANGES = {
        name: " | str"
        for name, taken in options_of_models().items()
        if any(kind.base is int for kind in taken)
    }
    # What a user gives beside the values of an option, or without one.
    _GIVEN = {
        **dict.fromkeys(("X", "y", "X_val", "y_val", "queries"), "ArrayLike | None"),
        "data": f"{_TAKEN['data']} | Dataset | ClassDataset",
        "gating": f"{_TAKEN['gating']} | Transformer | None",
    }
    _CHOICES = {name: hint for name, hint in _TAKEN.items() if name not in _GIVEN}
    _GRID = {
        name: f"Values[{hint}]{_RANGES.get(name, '')}"
        for name, hint in _TAKEN.items()
        if name != "gating"
    }

    class Choices(TypedDict, total=False):
        """Every option of every model, beside `data` and `gating`."""

        __annotations__ = _CHOICES

    class RunOptions(TypedDict, total=False):
        """Everything that a model may be told."""

        __annotations__ = _CHOICES | _GIVEN

    class GridOptions(TypedDict, total=False):
        """The grid of a sweep as a mapping: options by their names, with the values of each.

        Type checkers know the names and values of all models; whether the model at hand has an
        option is seen as the sweep begins. A mapping that is written into the call of `sweep` needs
        no annotation, and one that is computed goes through `product`.

        Examples
        --------
        >>> grid: ib.sweeps.GridOptions = {"n_train": [20, 40], "seed": "0:3"}
        >>> len(ib.sweep("linear", grid, out="runs", steps=0).cells)
        6
        """

        __annotations__ = _GRID
