"""An assumption of a theorem, declared once, and what a run has found of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Known = Literal["by construction", "proved", "measured", "cannot be checked"]
KNOWN: Mapping[Known, str] = {
    "by construction": "holds by construction, under the options that the table names",
    "proved": "a run proves it, or that it does not hold, by a certificate",
    "measured": "a run measures it, at a finite time and in floating point",
    "cannot be checked": "no finite run can tell; what it has measured stands beside",
}


@dataclass(frozen=True)
class Assumption:
    """One assumption of a theorem and whether it holds in this run; None where unknown.

    `name` is what the first screen calls it, and `how` says how it is known, or for None why not.
    """

    text: str
    holds: bool | None
    name: str = ""
    how: str = ""

    @property
    def mark(self) -> str:
        """Whether it holds, in words."""
        if self.holds is None:
            return self.how or "not checked"
        if not self.holds:
            return "DOES NOT HOLD"
        return f"holds ({self.how})" if self.how else "holds"

    def __str__(self) -> str:
        return f"{self.text}: {self.mark}"


def _as_told(*, holds: bool | None = None, **_: Any) -> bool | None:
    return holds


@dataclass(frozen=True, kw_only=True)
class Premise:
    """One assumption of a theorem: the words for it, how a run knows it, and whether it holds.

    Attributes
    ----------
    name : str
        What the first screen calls it, and what findings about it are called.
    text : str
        As the theorem has it.
    known : str
        How it is known, one of `KNOWN`.
    said : str
        What a run says of it, with the names of its evidence in braces; `text` is one of them.
    how : str, optional
        How this run knows it, with names in braces; `known` if it is left out.
    holds : callable
        `holds(**evidence)` is True, False, or None where unknown; by default it is evidence itself.
    needs : mapping of option to values
        Without these values of options it does not hold.
    where : mapping of option to values
        With other values of these options the theorem does without it.
    unless : mapping of option to values
        With these values of options the theorem does without it.
    """

    name: str
    text: str
    known: Known
    said: str = "{text}"
    how: str | None = None
    holds: Callable[..., Any] = _as_told
    needs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    unless: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def applies(self, options: Any) -> bool:
        """Return False where the theorem does without it under these options."""
        given = {name: getattr(options, name, None) for name in {**self.where, **self.unless}}
        return all(
            any(one in values for one in _each(given[name])) for name, values in self.where.items()
        ) and not any(given[name] in values for name, values in self.unless.items())

    def broken_by(self, options: Any) -> str:
        """Return the options that it does not hold with, in words; empty if there are none."""
        found = []
        for option, values in self.needs.items():
            # None: the model takes no such option, or every trainer has its own default of it.
            wrong = [
                str(one)
                for one in _each(getattr(options, option, None))
                if one is not None and one not in values
            ]
            found += [f"{option} {', '.join(wrong)}"] if wrong else []
        return "; ".join(found)

    def declared(self, options: Any) -> Assumption:
        """Return what options alone tell of it."""
        broken = self.broken_by(options)
        if broken:
            return Assumption(f"{self.text} (here {broken})", False, self.name, broken)
        if self.known == "by construction":
            return Assumption(self.text, True, self.name, self.known)
        how = self.known if self.known == "cannot be checked" else f"not {self.known} yet"
        return Assumption(self.text, None, self.name, how)

    def found(
        self, *, said: str | None = None, how: str | None = None, **evidence: Any
    ) -> Assumption:
        """Return what a run has found of it.

        Parameters
        ----------
        said, how : str, optional
            In place of what is declared, of a run that knows it otherwise.
        evidence
            What was measured, by the names that the declaration has in braces and in `holds`.
        """
        if said is None:
            said = self.said.format(text=self.text, **evidence)
        if how is None:
            how = self.known if self.how is None else self.how.format(**evidence)
        holds = self.holds(**evidence)
        return Assumption(said, None if holds is None else bool(holds), self.name, how)


def _each(given: Any) -> Sequence[Any]:
    """Return the values that an option names, several where it names several."""
    several = given.split(",") if isinstance(given, str) else given
    return several if isinstance(several, Sequence) else [several]
