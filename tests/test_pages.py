"""Every page of the documentation does what it says: its code runs as a reader would paste it.

Blocks of a page run in its order, in one folder: Python in one namespace, commands through the
functions that the installed ones call. A comment in the page above a block says what differs:

- `<!-- not run: REASON -->`, for what needs files, packages or time that tests do not have;
- `<!-- tested with: OPTIONS -->`, options that are added to each of its commands, to be fast;
- `<!-- exit code: N -->`, where it is not 0.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.models import MODELS
from tests.generated import PAGES as GENERATED

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")))
}
EXAMPLES = sorted(ROOT.glob("docs/examples/*/*.py"))
LANGUAGES = ("python", "sh", "text", "toml", "bibtex")
COMMANDS = {"compare": cli.compare, "implicit-bias": cli.main}
MODULE = ["python", "-m", "implicit_bias"]
# What a page may leave out in all: more than this, and it says less than it seems to.
EXEMPT = 16

FENCE = re.compile(r"```(\S*)")
MARKER = re.compile(r"<!-- (not run|tested with|exit code): (.+) -->")
# What `.ci/run` runs in a fresh environment, before any test.
CI = "<!-- ci -->"
# A list of links that are entries of the navigation.
LISTED = re.compile(r"<!-- pages -->\n+((?:(?:- |  ).*\n?)+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PRINTED = re.compile(r"print\(.*\)  # ([-+\d.e ]+)$")


@dataclass(frozen=True)
class Block:
    """Lines of code of a page, the number of the line before them, and what is said above."""

    language: str
    line: int
    text: str
    said: dict[str, str]


def blocks(text: str) -> Iterator[Block]:
    """Fenced blocks, and indented ones that begin with a command."""
    lines = text.splitlines()
    said: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        fence, marker = FENCE.match(line), MARKER.fullmatch(line)
        indented = line.startswith("    ") and line.split()[0] in (*COMMANDS, "python")
        if marker:
            said[marker[1]] = marker[2]
        elif line == CI:
            said["not run"] = "run before the tests"
        elif fence or indented:
            ends = (lambda k: lines[k] == "```") if fence else (lambda k: not lines[k].strip())
            end = next(k for k in range(at + 1, len(lines)) if ends(k))
            begin = at + bool(fence)
            language = fence[1] if fence else "sh"
            yield Block(language, begin, textwrap.dedent("\n".join(lines[begin:end])), said)
            said, at = {}, end
        elif line.strip():
            said = {}
        at += 1


def commands(block: Block) -> Iterator[list[str]]:
    """The words of each command, lines that go on joined, comments left out."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def run_command(words: list[str], block: Block) -> None:
    """One command of a shell, which has to be one of the library's."""
    if words[:3] == MODULE:
        words = ["implicit-bias", *words[3:]]
    assert words[0] in COMMANDS, f"{words[0]} is not run: say why in the page"
    added = shlex.split(block.said.get("tested with", ""))
    result = CliRunner().invoke(COMMANDS[words[0]], [*words[1:], *added])
    # Networks that are trained for a few steps need not separate their data.
    wanted = {int(block.said.get("exit code", 0))} | ({5} if added else set())
    assert result.exit_code in wanted, f"{shlex.join(words)}:\n{result.output[-2000:]}"


RUNS = [
    page for page, text in PAGES.items()
    if any(one.language in ("python", "sh") and "not run" not in one.said for one in blocks(text))
]  # fmt: skip


# Whose blocks take longest: a change waits for those of the others.
LONG = {
    f"docs/{name}.md" for name in (
        "attention", "autoencoders", "classes", "command-line", "diagnose", "dlgn",
        "equivalence", "fixed-outer", "heads", "next-token", "norms-of-optimisers", "optimisers",
        "orthosep", "own-data", "parts", "running-from-python", "stationarity", "sweeps",
    )
}  # fmt: skip


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.long] * (page in LONG)) for page in RUNS]
)
def test_blocks_run_as_they_are_pasted(page, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(PAGES[page]):
        if "not run" in block.said:
            continue
        if block.language == "sh":
            for words in commands(block):
                run_command(words, block)
        elif block.language == "python":
            capsys.readouterr()
            exec(compile("\n" * block.line + block.text, page, "exec"), names)
            shown = capsys.readouterr().out.splitlines()
            for line in block.text.splitlines():
                if promised := PRINTED.search(line):
                    assert any(as_promised(promised[1], one) for one in shown), (line, shown)


def as_promised(promised: str, shown: str) -> bool:
    """True where numbers that were printed are those of a page, to the digits that it has."""
    pairs = list(itertools.zip_longest(promised.split(), shown.split(), fillvalue="nan"))
    try:
        return all(
            abs(float(one) - float(other)) <= 0.51 * 10.0 ** -len(one.partition(".")[2])
            for one, other in pairs
        )
    except ValueError:
        return False


def test_few_blocks_are_exempt_and_each_says_why() -> None:
    exempt = [
        f"{page}:{block.line}" for page, text in PAGES.items() for block in blocks(text)
        if "not run" in block.said
    ]  # fmt: skip
    assert len(exempt) <= EXEMPT, exempt


@pytest.mark.parametrize("page", PAGES)
def test_blocks_say_what_they_are_written_in(page) -> None:
    assert {block.language for block in blocks(PAGES[page])} <= set(LANGUAGES)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_what_is_there(page) -> None:
    for link in LINK.findall(PAGES[page]):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), flags=re.M)
            assert anchor in {slug(head) for head in heads}, f"{page}: {link}"


def slug(head: str) -> str:
    """The anchor that renderers of Markdown make of a heading."""
    return re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES)
def test_experiments_that_are_named_are_there(page) -> None:
    for name in re.findall(r"python -m (experiments\.[a-z_]+)", PAGES[page]):
        assert find_spec(name) is not None, f"{page}: {name}"


@pytest.mark.parametrize("page", PAGES)
def test_tests_that_are_named_are_there(page) -> None:
    for path, names in re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", PAGES[page]):
        inside = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        for name in names.split("::"):
            (found,) = [one for one in inside if getattr(one, "name", None) == name] or [None]
            assert found is not None, f"{page}: {path}::{names}"
            inside = found.body


def test_every_page_is_in_one_list_of_the_navigation_and_lists_stay_short() -> None:
    """From the front page on, by the lists below `<!-- pages -->` that the site is made of."""
    listed = ["docs/index.md"]
    for page in listed:
        for items in LISTED.findall(PAGES.get(page, "")):
            links = re.findall(r"^- \[[^\]]+\]\(([^)#]+)\)", items, flags=re.M)
            assert 1 <= len(links) <= (8 if page == "docs/index.md" else 7), page
            targets = [(ROOT / page).parent / link for link in links]
            listed += [path.resolve().relative_to(ROOT).as_posix() for path in targets]
    pages = [page for page in listed if page.startswith("docs/")]
    others = ["docs/tour.ipynb", "docs/your-network.ipynb", "docs/examples/GALLERY_HEADER.rst"]
    assert sorted(pages) == sorted([*(one for one in PAGES if "/" in one), *others])


@pytest.mark.parametrize("name", [path.stem for path in EXAMPLES])
def test_examples_of_the_gallery_name_what_is_there(name) -> None:
    """The site runs them; here a name or a page that has gone is found."""
    (path,) = [one for one in EXAMPLES if one.stem == name]
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"\bib((?:\.[A-Za-z_]\w*)+)", text)
    for found in (*used, *re.findall(r"`~?implicit_bias((?:\.\w+)+)`", text)):
        assert operator.attrgetter(found[1:])(ib), found
    for page in re.findall(r":doc:`[^`]*</([\w-]+)>`", text):
        assert f"docs/{page}.md" in PAGES, page


@pytest.mark.parametrize("page", GENERATED)
def test_pages_of_declarations_are_as_they_are_declared(page) -> None:
    assert PAGES[f"docs/{page}"] == GENERATED[page](), "run `python -m tests.generated`"


@pytest.mark.parametrize("model", MODELS)
def test_the_source_of_every_theorem_is_in_the_bibliography(model) -> None:
    named = re.findall(r"(\w+(?:(?:, \w+)* and \w+)?(?: et al\.)?) (20\d\d)", MODELS[model].source)
    entries = PAGES["docs/bibliography.md"].splitlines()
    for authors, year in named:
        all_of = re.findall(r"[A-Z]\w+", authors)
        assert any(all(one in line for one in (*all_of, year)) for line in entries), authors
