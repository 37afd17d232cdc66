"""Figures of the sources: each row has a state, and commands, rows and pictures that are there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec

import click
import pytest
from click.testing import CliRunner

from experiments.paper.elsewhere import ELSEWHERE, Elsewhere, main_of
from tests.pages import ROOT, lines

PAGES = ("research/half-space-features.md", "research/deep-gated.md", "research/thesis.md",
         "research/gln-paper.md")  # fmt: skip
STATES = (
    "reproduced",
    "differs",
    "cannot be had",
    "a sketch",
    "a definition",
    "stored",
)
RESULTS = ROOT / "experiments" / "results"
# A command, a test or a page; "the same" is that of the row above.
SHOWN = re.compile(r"`experiments\.|`compare |`networks\.|\]\(|tests?\b|the same|below")
NAMED = re.compile(r"`(?:python -m )?(experiments\.[a-z_.]+[^`]*)`")


def figures(page: str) -> Iterator[list[str]]:
    """The rows of the table of figures of a page, without its head."""
    table = lines(page)
    (first,) = [k for k, one in enumerate(table) if one[0] in ("figure", "figure or table")]
    for row in table[first + 2 :]:
        if len(row) != len(table[first]) or set(row[0]) <= set("-: "):
            return
        yield row


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command of an experiment that is named in a text."""
    for found in NAMED.findall(re.sub(r"\s+", " ", text)):
        yield shlex.split(found)


def refused(words: list[str]) -> str:
    """What is wrong with a command, empty for one that parses."""
    name, *arguments = words
    if find_spec(name) is None:
        return "no such module"
    main = main_of(name)
    if main is None:
        return "it takes no options" * bool(arguments)
    if arguments == ["--help"]:
        return ""
    context = click.Context(main)
    if isinstance(main, click.Group):
        if arguments[:1] == ["NAME"]:  # of all
            return ""
        figure = main.get_command(context, arguments.pop(0)) if arguments else None
        if figure is None:
            return "no such figure"
        if isinstance(figure, Elsewhere):
            return refused([*figure.words, *arguments])
        main, context = figure, click.Context(figure)
    try:
        given, _, _ = main.make_parser(context).parse_args(arguments)
        for one in main.params:
            value = given.get(one.name or "")
            if one.required and one.value_is_missing(value):
                raise click.MissingParameter(ctx=context, param=one)
            if isinstance(one.type, click.Choice) and isinstance(value, str) and value.islower():
                one.type.convert(value, one, context)
    except click.UsageError as problem:
        return problem.format_message()
    return ""


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_has_a_state_and_what_shows_it(page: str) -> None:
    rows = list(figures(page))
    assert len(rows) >= 5
    for row in rows:
        told = " | ".join(row[1:])
        (state,) = [one for one in STATES if row[1].startswith(one)] or ["sketch"] * (row[1] == "-")
        if state in ("reproduced", "differs"):
            assert SHOWN.search(told), row


def test_commands_of_experiments_parse() -> None:
    wrong = {}
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))):
        for words in commands(path.read_text(encoding="utf-8")):
            if why := refused(words):
                wrong[path.name, " ".join(words)] = why
    assert not wrong, wrong


def test_a_command_that_does_not_parse_is_seen() -> None:
    assert "no such module" in refused(["experiments.none"])
    assert "--fulll" in refused(["experiments.circle", "--fulll"])
    for one in ("thesis", "paper"):
        assert "no such figure" in refused([f"experiments.{one}"])
    assert "no such figure" in refused(["experiments.thesis", "exit"])
    assert "--full" in refused(["experiments.thesis", "surfaces", "--full"])
    assert not refused(["experiments.circle"])
    assert "no such figure" in refused(["experiments.paper", "gln-3"])
    assert "--printed" in refused(["experiments.paper", "relu-3", "--printed"])
    assert "--fulll" in refused(["experiments.paper", "half-space-3", "--fulll"])


def numbers(head: str) -> set[str]:
    """The figures that the first cell of a row begins with: "7, 11: paths", "5.1 to 5.3, 5.5"."""
    listed = re.match(r"(?:E\.\d|\d[\d.]*|[ab,]| |to (?=\d))*", head)
    assert listed is not None
    found = set(re.findall(r"E\.\d|\d+(?:\.\d)?", listed[0]))
    for chapter, first, last in re.findall(r"(\d)\.(\d) to \d\.(\d)", listed[0]):
        found |= {f"{chapter}.{k}" for k in range(int(first), int(last) + 1)}
    return found


def test_every_figure_has_a_command_of_its_name_and_no_other_one() -> None:
    """Those of the catalogue are those that pages name, where they name one."""
    named: dict[str, set[str]] = {}
    for page, source in (("half-space-features", "half-space"), ("deep-gated", "deep-gated"),
                         ("thesis", "thesis")):  # fmt: skip
        last: set[str] = set()
        for row in figures(f"research/{page}.md"):
            own = {" ".join(words[:1]) for words in commands(" ".join(row))}
            last = own or (last if "the same" in row[2] else set())
            if row[1].startswith(("reproduced", "differs")):
                for number in numbers(row[0]):
                    named.setdefault(f"{source}-{number}", set()).update(last)
    for figure, modules in named.items():
        if modules:
            assert ELSEWHERE[figure][0] in modules, figure
    for figure, words in ELSEWHERE.items():
        assert not refused(["experiments.paper", figure]), words
        assert figure.startswith("notes") or figure in named, figure


def test_a_figure_is_redone_by_the_command_that_is_named(tmp_path) -> None:
    options = ["thesis-2.1", "--out", str(tmp_path)]
    result = CliRunner().invoke(main_of("experiments.paper"), options)
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} == {
        "thesis_surfaces.csv",
        "thesis_surfaces.png",
    }
    helped = CliRunner().invoke(main_of("experiments.paper"), ["deep-gated-4", "--help"])
    assert "experiments.gram_figures --only galu" in helped.output and "--full" in helped.output


def test_every_committed_row_and_picture_is_used() -> None:
    """A page shows it, or a test or an experiment reads it."""
    pages = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/**/*.md"))
    code = "".join(path.read_text(encoding="utf-8") for folder in ("tests", "experiments")
                   for path in ROOT.glob(f"{folder}/**/*.py"))  # fmt: skip
    globs = re.findall(r"results/(\w+\*)", pages)
    for path in sorted(RESULTS.iterdir()):
        if path.suffix == ".png":
            assert f"results/{path.name}" in pages, path.name
        else:
            bare = re.sub(r"_(?:digits|mnist)$", "", path.stem)
            read = (path.name in pages + code, f'"{path.stem}"' in code, f'"{bare}_' in code,
                    any(path.match(one) for one in globs),
                    f"results/{path.stem}.png" in pages)  # fmt: skip
            assert any(read), path.name


@pytest.mark.parametrize("page", PAGES[:3])
def test_commands_of_figures_have_the_published_sizes(page: str) -> None:
    """Those whose sizes differ take `--full`."""
    for words in commands(" ".join("|".join(row) for row in figures(page))):
        main = main_of(words[0])
        assert main is not None
        names = {one.name for one in main.params}
        assert "full" in names or not names & {"seeds", "steps", "draws", "epochs"}, words
