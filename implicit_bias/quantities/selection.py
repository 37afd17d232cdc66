"""Entries of the atlas by network, loss and optimiser."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .._support.doors import door
from .atlas import ENTRIES, Entry

# What is of the first kind is of the others too; "any" is of every kind.
WITHIN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("linear", "deep linear", "diagonal", "linear convolution", "fixed gates", "ReLU"),
            ("homogeneous",),
        ),
        "leaky ReLU": ("homogeneous",),
        "matrix factorisation": ("homogeneous",),
        **dict.fromkeys(
            ("sign descent", "spectral descent", "coordinate descent"), ("steepest descent",)
        ),
    }
)
WHAT = ("network", "loss", "optimizer")
OTHER = 2  # rank of what is of another kind


def kinds(what: str) -> tuple[str, ...]:
    """Return what entries name as networks, losses or optimisers, in their order."""
    return tuple(dict.fromkeys(one for entry in ENTRIES.values() for one in getattr(entry, what)))


@door()
def which(
    network: str | None = None, loss: str | None = None, optimizer: str | None = None
) -> tuple[Entry, ...]:
    """Return what is known of where training ends.

    Parameters
    ----------
    network, loss, optimizer : str, optional
        A kind that entries name, in any case, or a part of its name ("leaky" is "leaky ReLU"); what
        is known of homogeneous networks is known of "linear" and "ReLU" too. All by default.

    Returns
    -------
    tuple of Entry
        Those of the kind itself first, then those of what it belongs to. An entry has `network`,
        `loss` and `optimizer` (tuples of str), `regime`, `theorem`, `program`, `conditions`,
        `standing` ("proved", "conditional", "bound" or "open"), `source` and `papers` (with
        `title`, `year`, `address`), `checked` (how its statement was checked: "text", "abstract",
        "quoted", "own"), and `here`, what this package has of it (`function`, `model`, `page`).

    Raises
    ------
    ValueError
        If no entry names such a kind, with those that they name.

    Examples
    --------
    >>> [entry.key for entry in ib.atlas.which("attention", optimizer="mirror")]
    ['attention-mirror']
    >>> entry = ib.atlas.which("linear", "logistic", "gradient descent")[0]
    >>> entry.standing, entry.here.function, entry.source
    ('proved', 'solve_linear_svm', 'Soudry et al. 2018, theorem 3')
    """
    wanted = {
        what: _meant(what, text)
        for what, text in zip(WHAT, (network, loss, optimizer), strict=True)
        if text is not None
    }
    ranks = {
        key: max((_rank(getattr(entry, what), of) for what, of in wanted.items()), default=0)
        for key, entry in ENTRIES.items()
    }
    found = [key for key, rank in ranks.items() if rank < OTHER]
    return tuple(ENTRIES[key] for key in sorted(found, key=ranks.__getitem__))


def _meant(what: str, text: str) -> tuple[str, ...]:
    """Return the kinds that a text names: one by its whole name, or all that have it in theirs."""
    known, said = kinds(what), text.strip().casefold()
    exact = tuple(one for one in known if one.casefold() == said)
    found = exact or tuple(one for one in known if said and said in one.casefold())
    if not found:
        listed = ", ".join(sorted(known, key=str.casefold))
        raise ValueError(f"`{what}` must be, or be part of, one of {listed}; got {text!r}")
    return found


def _rank(named: tuple[str, ...], wanted: tuple[str, ...]) -> int:
    """Return 0 for an entry of a wanted kind, 1 for one of what it belongs to, otherwise 2."""
    if set(named) & set(wanted):
        return 0
    above = {"any", *(kind for one in wanted for kind in WITHIN.get(one, ()))}
    return 1 if set(named) & above else OTHER
