"""The pages of the documentation as tests read them, and which of their numbers tests have found.

A number of a measured kind (with a decimal point, an exponent, a per cent or another unit, or a
count "so many of so many") is held where a test looks for it: a row of a table by `row in
lines(page)`, a phrase by `phrase in said(page)`. Both are noted, so that the walk over all pages
(tests/experiments/test_numbers_of_pages.py) sees what nobody has looked for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOUND: dict[str, set[str]] = defaultdict(set)

FENCE = re.compile(r"^(\s*)```.*?^\1```$|^\$\$.*?\$\$$", re.M | re.S)
# Commands, formulas and output that stand by themselves.
INDENTED = re.compile(r"(?:^ {4,}\S.*\n?)+", re.M)
CODE = re.compile(r"`[^`]*`|\$[^$]+\$|\]\([^)]*\)|<!--.*?-->")
# What is no measurement: versions, places in a source, names.
NAMED = re.compile(
    r"\b(?:Python|NumPy|SciPy|torch|PyTorch|cvxpy|pytorch-lightning|version|ECOS|"
    r"[Tt]heorems?|[Ll]emmas?|[Cc]orollar(?:y|ies)|[Pp]ropositions?|[Ff]igures?|[Tt]ables?|"
    r"[Ss]ections?|[Cc]hapters?|[Ee]quations?|[Aa]lgorithm|[Ee]xperiment|[Aa]ppendix)"
    r" [A-Z]?\d[\d.]*[a-z]?(?:(?:,| to| and|, and| or) [A-Z]?\d[\d.]*[a-z]?)*(?!\d)"
)
UNIT = (
    r" ?%| per cent|-fold| times\b| s\b| ms\b| seconds?\b| minutes?\b| milliseconds\b"
    r"| GB\b| GiB\b| MB\b| GFLOP| degrees\b| x(?=$| [^\d]| \|)"
)
NUMBER = re.compile(
    r"(?<![\w.^/])[-+~]?(?:"
    r"\d[\d,]*\.\d+(?:e[-+]?\d+)?|\.\d+|\d+e[-+]?\d+"  # 0.9, .97, 1e-8
    rf"|\d[\d,]*(?={UNIT})"  # 12 %, 3 times
    r"|\d[\d,]*(?= of (?:the |all )?\d)"  # 9 of 10
    r")(?![\w^]|\.\d)"
)


def held(page: str, row: list[str]) -> None:
    """Note a row, or neighbouring cells of one, that a test has compared by itself."""
    FOUND[page].add(" | ".join(row))


class Rows(list[list[str]]):
    """Rows of the tables of a page, which notes those that are found in it."""

    def __init__(self, page: str, rows: list[list[str]]) -> None:
        super().__init__(rows)
        self.page = page

    def __contains__(self, row: object) -> bool:
        if found := super().__contains__(row):
            assert isinstance(row, list)
            held(self.page, row)
        return found


class Words(str):
    """The words of a page, which notes the phrases that are found in it."""

    page: str

    def __contains__(self, phrase: object) -> bool:
        found = super().__contains__(str(phrase))
        if found:
            FOUND[self.page].add(str(phrase))
        return found


def text_of(page: str) -> str:
    path = ROOT / page if page.isupper() or page == "README.md" else ROOT / "docs" / page
    return path.read_text(encoding="utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@cache
def lines(page: str) -> Rows:
    """The cells of all tables of a page."""
    return Rows(page, [cells(one) for one in text_of(page).splitlines() if one.startswith("|")])


@cache
def said(page: str) -> Words:
    """The words of a page, with single spaces between them."""
    words = Words(re.sub(r"\s+", " ", text_of(page)))
    words.page = page
    return words


@dataclass(frozen=True)
class Piece:
    """A row of a table or a paragraph, as `lines` and `said` have them."""

    page: str
    text: str

    def numbers(self, held: set[str], free: Sequence[re.Pattern[str]]) -> Iterator[str]:
        """Numbers of a measured kind that are not held or free, with the words around them."""
        text = self.text
        for pattern in (*free, CODE, NAMED):
            text = pattern.sub(lambda found: "_" * len(found[0]), text)
        for phrase in held:
            at = self.text.find(phrase)
            while phrase and at >= 0:
                text = text[:at] + "_" * len(phrase) + text[at + len(phrase) :]
                at = self.text.find(phrase, at + 1)
        for found in NUMBER.finditer(text):
            around = self.text[max(0, found.start() - 40) : found.end() + 40]
            yield f"{found[0]} in {around!r}"


@cache
def pieces(page: str) -> list[Piece]:
    """The rows and paragraphs of a page, without its code and its heads."""
    return list(_pieces(page))


def _pieces(page: str) -> Iterator[Piece]:
    text = INDENTED.sub("\n\n", FENCE.sub("\n\n", text_of(page)) + "\n")
    text = re.sub(r"^#.*$|^\|.*\n(?=\|[ :|-]+\n)", "", text, flags=re.M)  # heads, of tables too
    for block in re.split(r"\n\s*\n", text):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        for row in rows:
            yield Piece(page, " | ".join(cells(row)))
        prose = " ".join(line for line in block.splitlines() if not line.startswith("|"))
        if prose.strip():
            yield Piece(page, re.sub(r"\s+", " ", prose).strip())
