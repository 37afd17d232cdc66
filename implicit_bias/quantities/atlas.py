"""Results of the field and their papers, declared once in `results.toml` and `papers.toml`.

Models, runs, diagnoses and pages read them from here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict, TypeVar

# In a text, a paper by its key.
KEY = re.compile(r"\{([a-z]+-[0-9]{4}[a-z-]*)\}")


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper, thesis or book.

    Attributes
    ----------
    key : str
        First author, year and, where there are several, a word of the title.
    authors, title, venue : str
    year : int
    arxiv, doi, isbn, link : str
        Where it is found; empty where there is none.
    kind : {"theorem", "network", "method"}
        What it is named for here.
    used : str
        What takes it up here, in Markdown; empty where nothing does.
    """

    key: str
    authors: str
    title: str
    year: int
    venue: str = ""
    arxiv: str = ""
    doi: str = ""
    isbn: str = ""
    link: str = ""
    kind: str = "theorem"
    used: str = ""

    @property
    def short(self) -> str:
        """Surnames of the authors, of the first alone where there are more than three."""
        names = [re.sub(r"^(?:[A-Z]\.[ -]?)+", "", one) for one in self.authors.split(", ")]
        if len(names) > 3:
            return f"{names[0]} et al."
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

    @property
    def named(self) -> str:
        """Authors and title, as sentences name it."""
        return f"{self.short}, {self.title}"

    @property
    def identifier(self) -> str:
        """Where it is found, in a few letters; empty where nothing is known."""
        known = (("arXiv", self.arxiv), ("doi", self.doi), ("ISBN", self.isbn))
        return next((f"{name} {value}" for name, value in known if value), "")

    @property
    def address(self) -> str:
        """Its address on the web; empty where there is none."""
        if self.arxiv:
            return f"https://arxiv.org/abs/{self.arxiv}"
        return f"https://doi.org/{self.doi}" if self.doi else self.link


Row = TypeVar("Row")


class _Table(Mapping[str, Row]):
    """Rows of a file of tables, by their keys; one is read when it is asked for, which takes 1 ms.

    Parameters
    ----------
    name : str
        Of the file beside this one; no line within a table begins with a bracket.
    made : callable
        ``made(key, **entries)`` is the row.
    """

    def __init__(self, name: str, made: Callable[..., Row]) -> None:
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        _, *parts = re.split(r"^\[([a-z0-9-]+)\]$", text, flags=re.MULTILINE)
        self._tables = dict(zip(parts[::2], parts[1::2], strict=True))
        self._read = cache(lambda key: made(key=key, **tomllib.loads(self._tables[key])))

    def __getitem__(self, key: str) -> Row:
        return self._read(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


PAPERS: Mapping[str, Paper] = _Table("papers.toml", Paper)


def named(text: str) -> str:
    """Return a text with every ``{key}`` as authors and title."""
    return KEY.sub(lambda found: PAPERS[found[1]].named, text)


def cited(text: str) -> str:
    """Return a text with every ``{key}`` as authors and year, and its number if no place follows.

    A place is what follows a comma: ``{lyu-2020}, theorem 4.4``.
    """

    def of(found: re.Match[str]) -> str:
        paper = PAPERS[found[1]]
        place = text[found.end() :].startswith(",") or not paper.identifier
        return f"{paper.short} {paper.year}" + ("" if place else f" ({paper.identifier})")

    return KEY.sub(of, text)


def papers_in(text: str) -> tuple[Paper, ...]:
    """Return the papers that a text names, each once, in its order."""
    return tuple(PAPERS[key] for key in dict.fromkeys(KEY.findall(text)))


STANDINGS: Mapping[str, str] = MappingProxyType(
    {
        "proved": "a theorem, or a proof at the function, names the limit",
        "conditional": "proved if training converges, or up to which of several points",
        "bound": "proved from one side",
        "open": "stated or measured, and proved of nothing that is trained",
    }
)
CHECKED: Mapping[str, str] = MappingProxyType(
    {
        "text": "read in the paper",
        "abstract": "read in the paper's abstract alone",
        "quoted": "as other papers quote it",
        "own": "a proof of this project",
        "not": "from memory, not checked",
    }
)


class Statement(TypedDict):
    """What a model or a diagnosis says of a result."""

    theorem: str
    source: str
    program: str


@dataclass(frozen=True, kw_only=True)
class Here:
    """What this project has of a result; each empty where it has nothing.

    Attributes
    ----------
    function : str
        What computes it, a name of this package.
    model : str
        That of `compare --model`.
    page, picture, test : str
        Where more is said, drawn and tested, in docs and in tests.
    """

    function: str = ""
    model: str = ""
    page: str = ""
    picture: str = ""
    test: str = ""

    def __str__(self) -> str:
        run = self.model and f"implicit-bias compare --model {self.model}"
        called = self.function and f"ib.{self.function}"
        return ", ".join(filter(None, (called, run))) or "nothing computes it"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is known of where training ends, for some networks, losses and optimisers.

    Attributes
    ----------
    key : str
    network, loss, optimizer : tuple of str
        To which it applies.
    regime : str
        Data, sizes and times of which it speaks.
    theorem : str
        The result in a sentence, with its papers by authors and title.
    program : str
        Where training ends, in a line.
    conditions : str
        What it asks for, and what it leaves open.
    standing : {"proved", "conditional", "bound", "open"}
        See `STANDINGS`.
    source : str
        Authors, year and place in the paper.
    papers : tuple of Paper
        First the one that it is from.
    checked : {"text", "abstract", "quoted", "own", "not"}
        How its statement was checked: see `CHECKED`.
    here : Here
        What computes it here, says more of it and tests it.
    """

    key: str
    network: tuple[str, ...]
    loss: tuple[str, ...]
    optimizer: tuple[str, ...]
    regime: str
    theorem: str
    program: str
    conditions: str
    standing: str
    source: str
    papers: tuple[Paper, ...]
    checked: str
    here: Here

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it, with papers by their addresses."""
        papers = [paper.address or paper.named for paper in self.papers]
        return vars(self) | {"papers": papers, "here": vars(self.here)}

    def __str__(self) -> str:
        lines = (
            f"{self.key}: {', '.join(self.network)} | {', '.join(self.loss)} | "
            f"{', '.join(self.optimizer)}",
            f"{self.standing.upper()}, {self.regime}: {self.theorem}",
            f"program: {self.program}",
            f"conditions: {self.conditions}",
            f"source: {self.source} ({CHECKED[self.checked]})",
            f"here: {self.here}",
        )
        return "\n  ".join(lines)


def _entry(*, key: str, says: str, source: str, conditions: str, **entries: Any) -> Entry:
    return Entry(
        key=key,
        theorem=named(says),
        conditions=named(conditions),
        source=cited(source),
        papers=papers_in(source + says + conditions),
        here=Here(**{one.name: entries.pop(one.name, "") for one in fields(Here)}),
        network=tuple(entries.pop("network")),
        loss=tuple(entries.pop("loss")),
        optimizer=tuple(entries.pop("optimizer")),
        **entries,
    )


ENTRIES: Mapping[str, Entry] = _Table("results.toml", _entry)


def statement(key: str) -> Statement:
    """Return theorem, source and program of an entry, as the table of models holds them."""
    entry = ENTRIES[key]
    return {"theorem": entry.theorem, "source": entry.source, "program": entry.program}
