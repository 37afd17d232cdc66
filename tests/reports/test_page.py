"""The page about a run: it parses, holds every cell, and loads nothing from anywhere."""

from __future__ import annotations

import base64
import os
import platform
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from implicit_bias import Status, __version__
from implicit_bias import run as run_model
from implicit_bias.models import MODELS
from implicit_bias.runs.drawing import Row
from implicit_bias.runs.reports import (
    Assumption,
    Evidence,
    Finding,
    Heading,
    Report,
    Table,
    decide,
    mathml,
    render_html,
    write_html,
)
from tests.commands import DONE, run
from tests.long import some_of

VOID = {"meta", "img", "br", "link", "hr", "input"}
NASTY = "<b> & \"quoted\" 'text' </table>"
TINY = [
    *["--n-train", "40", "--n-val", "30", "--steps", "20"],
    *["--learning-rate", "0.1", "--trainer", "constant"],
]


class Page(HTMLParser):
    """Elements, texts and attributes of a page whose tags are all closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.kinds: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")
            self.kinds.setdefault(tag, []).append(dict(attrs).get("class") or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} closed out of turn"

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


def declarations(style: str) -> dict[str, dict[str, str]]:
    """The first rule of each selector outside of media queries, or of the text of one."""
    rules: dict[str, dict[str, str]] = {}
    for selector, body in re.findall(r"^ *([\w.-]+) \{([^{}]*)\}", style, re.MULTILINE):
        pairs = (line.split(":", 1) for line in body.split(";") if ":" in line)
        rules.setdefault(selector, {k.strip(): v.strip() for k, v in pairs})
    return rules


RECORD = {
    "version": __version__,
    "python": "3.99",
    "packages": {"numpy": "9.9", "absent": None},
    "options": {"tol": 1e-8, "steps": (1, 2), "batch_size": 0, "learning_rate": (),
                "data_dir": "typed/by/user"},
    "seeds": {"data": 17},
    "data": {"name": "private-folder", "n_train": 10, "sha256": "ab" * 32},
}  # fmt: skip
PROOF = {"status": "SOLVED", "objective": 2.5, "gap": 1e-9, "unit_norms": [1.0]}


def report(*, theorem: str = "everything tends to <i>1</i>", **changes) -> Report:
    heading = Heading("gln", theorem, "min x", "ten points & a seed", "network & limit", RECORD)
    about = {
        "assumptions": (
            Assumption("first", True), Assumption(NASTY, False), Assumption("third", None),
        ),
        "tables": (
            Table("numbers", ("", "limit", "network"), (("  a", "1 < 2", NASTY), ("b", "-", "3"))),
        ),
        "statuses": {"SVM": Status.SOLVED},
        "certificates": {"SVM": PROOF},
    }  # fmt: skip
    of_report = {k: changes.pop(k) for k in ("interrupted", "failure") if k in changes}
    return Report(heading, (Finding.said("limit", **about | changes),), **of_report)


def draw(axes) -> None:
    axes[0].set_ylabel("margin ratio")
    axes[1].set_title("limit: SVM")


PANELS = (Row(2, draw),)


def assert_self_contained(text: str) -> None:
    page = Page(text)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    for name in ("src", "href", "srcset", "data", "poster"):
        assert all(value.startswith("data:image/png;base64,") for value in page.values(name))
    style = page.texts["style"][0]
    assert not re.search(r"url\(|@import", style)
    assert not re.search(r"https?://", text)


def test_the_page_is_well_formed_and_self_contained() -> None:
    text = render_html(report(panels=PANELS), command="compare --model gln")
    assert text.startswith("<!DOCTYPE html>\n")
    assert_self_contained(text)
    page = Page(text)
    assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("title") == 1
    assert ("html", "lang", "en") in page.attributes
    assert ("meta", "charset", "utf-8") in page.attributes
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_every_cell_and_assumption_is_there_as_text() -> None:
    page = Page(render_html(report(), command="x"))
    table = report().tables[0]
    cells = page.texts["td"] + page.texts["th"]
    for row in (table.columns, *table.rows):
        assert all(cell in cells for cell in row)
    assert "numbers" in page.texts["caption"]
    assert page.texts["span"] == ["first", NASTY, "third"]
    assert page.texts["b"] == ["PREDICTED", "holds", "DOES NOT HOLD", "not checked"]
    assert "everything tends to <i>1</i>" in page.texts["p"]
    assert "min x" in page.texts["p"]


def test_the_certificate_the_command_and_the_origin_are_on_the_page() -> None:
    page = Page(render_html(report(), command="compare --model gln --report 'a & b.html'"))
    cells = page.texts["td"]
    for cell in ("SOLVED", "2.5", "1e-09", "17", "1, 2", "typed/by/user", "ab" * 32, "9.9",
                 __version__, platform.system(), str(os.cpu_count())):  # fmt: skip
        assert cell in cells
    assert "compare --model gln --report 'a & b.html'" in page.texts["pre"]
    assert "None" not in cells


def test_no_name_of_the_machine_or_of_folders_that_were_not_typed_is_on_the_page() -> None:
    text = render_html(report(panels=PANELS), command="compare --model gln")
    readable = re.sub(r"base64,[^\"]*", "", text)
    for private in (platform.node(), "private-folder", str(Path.home()), str(Path.cwd())):
        assert private not in readable


def test_several_limits_are_columns_of_one_certificate_and_trouble_says_which() -> None:
    proofs = {"class 0": {"status": "SOLVED", "gap": 0.5}, "class 3": {"status": "UNDECIDED"}}
    statuses = {"class 0": Status.SOLVED, "class 3": Status.UNDECIDED}
    page = Page(render_html(report(certificates=proofs, statuses=statuses), command="x"))
    assert set(proofs) <= set(page.texts["th"])
    assert {"UNDECIDED", "0.5", "-"} <= set(page.texts["td"])
    assert any("UNDECIDED (class 3): " in text for text in page.texts["p"])


def test_values_that_do_not_speak_for_themselves_are_in_words() -> None:
    cells = Page(render_html(report(), command="x")).texts["td"]
    assert {"0 (the full batch)", "found by the trainer"} <= set(cells)


def test_numbers_are_never_broken_and_prose_has_room() -> None:
    reason = "units 1, 3, 4 still grow: their dual norms exceed 1"
    numbers = ("1.2470034", "5.59e-11", "1.02297e+06", "100.00%", "0 (in the limit)")
    table = Table("numbers", ("", *"abcdef"), (("row", *numbers, reason),))
    page = Page(render_html(report(tables=(table,)), command="x"))
    assert reason in page.texts["td"]
    cells = dict(zip(page.texts["td"], page.kinds["td"], strict=True))
    assert {cells[number] for number in numbers} == {""}
    assert cells[reason] == cells["ab" * 32] == "prose"
    rules = declarations(page.texts["style"][0])
    assert rules["td"]["white-space"] == "nowrap"
    assert rules["td.prose"]["white-space"] == "normal"
    assert float(rules["td.prose"]["min-width"].removesuffix("rem")) >= 16


def test_numbers_with_an_exponent_are_kept_whole_in_prose() -> None:
    """A browser would break 8e-5 behind its sign."""
    sentence = "a residual of 8e-5 <here>, and 1.5e+06 steps were taken; e-5 stands"
    table = Table("words", ("", "value"), (("row", sentence),))
    html = render_html(report(tables=(table,)), command="x")
    whole = '<span class="number">{}</span>'.format
    assert f"a residual of {whole('8e-5')} &lt;here&gt;, and {whole('1.5e+06')} steps" in html
    assert "; e-5 stands<" in html
    assert declarations(Page(html).texts["style"][0])[".number"]["white-space"] == "nowrap"


def test_the_picture_keeps_its_size_on_a_narrow_screen_and_is_dark_in_the_dark() -> None:
    style = Page(render_html(report(panels=PANELS), command="x")).texts["style"][0]
    rules = declarations(style)
    # As wide as the text on a large screen; on a small one its frame scrolls.
    assert float(rules["img"]["min-width"].removesuffix("rem")) >= 50
    assert rules["figure"]["overflow-x"] == "auto"
    assert "background" not in rules["img"]
    dark = style.partition("@media screen and (prefers-color-scheme: dark)")[2].split("@media")[0]
    assert declarations(dark.strip().removeprefix("{"))["img"]["filter"].startswith("invert(")


def test_the_headline_speaks_of_no_trainer_alone() -> None:
    ratios = {"momentum": 0.5, "annealed": 0.875}
    limit = Finding.said("limit", statuses={"SVM": Status.SOLVED}, row={"gap": 0.0625})
    trained = [Finding.said(name, row={"margin_ratio": one}) for name, one in ratios.items()]
    heading = report().heading
    (both,) = figures(Report(heading, (limit, *trained)))
    assert "6.25e-02" in both
    assert "margin ratio" not in both
    (alone,) = figures(Report(heading, (limit, trained[0])))
    assert "6.25e-02" in alone
    assert "margin ratio (ideal 1) 0.5000" in alone


def test_the_headline_is_the_verdict_and_others_stand_below_it() -> None:
    ratios = {"momentum": 0.5, "annealed": 0.995}
    verdicts = tuple(
        decide(Evidence(near={"margin_ratio": ratio}, reason="<slow> & far", trainer=name))
        for name, ratio in ratios.items()
    )
    text = render_html(report(verdicts=verdicts), command="x")
    page = Page(text)
    near, far = report(verdicts=verdicts).verdicts
    headline = re.search("<h1>(.*?)</h1>", text, re.DOTALL)
    assert headline and near.word == "AT ITS LIMIT" and page.texts["title"] == ["gln: " + near.word]
    words = Page(headline[1])
    assert (words.texts["b"], words.kinds["b"]) == ([near.word], ["good"])
    assert headline[1].endswith(near.text) and near.text not in text.split("</h1>")[1]
    assert (page.texts["b"][1], page.kinds["b"][1]) == (far.word, "open")
    assert far.text in [one.strip() for one in page.texts["p"]]


def test_nor_does_that_of_a_run_whose_trainers_share_a_table() -> None:
    several = run_model("gln", n_train=40, n_val=10, hidden_units=3, steps=20)
    assert len(several.verdicts) == 2
    (line,) = figures(several)
    assert "duality gap" in line and "margin ratio" not in line and "agreement" not in line


def figures(report: Report) -> list[str]:
    whole = re.sub('<span class="number">(.*?)</span>', r"\1", render_html(report, command="x"))
    page = Page(whole)
    return [text for text in page.texts["p"] if text.startswith("SOLVED; ")]


def test_the_picture_is_inside_and_says_what_it_shows() -> None:
    page = Page(render_html(report(panels=PANELS), command="x"))
    (source,) = page.values("src")
    assert base64.b64decode(source.split(",")[1]).startswith(b"\x89PNG\r\n")
    assert page.values("alt") == ["network & limit. Panels: margin ratio; limit: SVM."]
    assert "img" not in Page(render_html(report(), command="x")).tags


def test_what_went_wrong_stands_at_the_top() -> None:
    text = render_html(
        report(statuses={"SVM": Status.NOT_SEPARABLE}, failure="it diverged", interrupted=True),
        command="x",
    )
    notices = [p for p in Page(text).texts["p"] if "NOT_SEPARABLE: " in p or "diverged" in p]
    assert len(notices) == 2
    assert "NOT SEPARABLE" in Page(text).texts["b"]
    assert "interrupted" in text.split("<h2>")[0]
    assert "notice" not in render_html(report(), command="x").split("</style>")[1]


def test_the_page_is_written_as_utf_8(tmp_path) -> None:
    write_html(report(theorem="λ ≥ 0"), tmp_path / "r.html", command="x")
    assert "λ ≥ 0" in (tmp_path / "r.html").read_bytes().decode("utf-8")


@pytest.mark.parametrize(
    ("model", "extra"),
    some_of(
        [
            ("gln", ["--data", "quadrants"]),
            ("frelu", ["--data", "quadrants"]),
            ("relu", ["--data", "quadrants", "--hidden-units", "6", "--batch-size", "0"]),
            ("orthosep", []),
        ],
        one_in=2,
    ),
)
def test_the_command_line_writes_the_page_of_a_run(tmp_path, model, extra) -> None:
    path = tmp_path / "a page.html"
    result = run("--model", model, *TINY, *extra, "--quiet", "--report", path)
    assert result.exit_code in DONE, result.stderr
    text = path.read_text(encoding="utf-8")
    assert_self_contained(text)
    page = Page(text)
    (command,) = [pre for pre in page.texts["pre"] if "--report" in pre]
    assert command.startswith("compare --model " + model)
    assert command.endswith(f"--report '{path}'")
    assert page.values("src")
    assert "SOLVED" in page.texts["td"]
    maps = "network after 20 steps" in page.values("alt")[0]
    assert maps == ("quadrants" in extra)


def test_data_that_are_not_separable_have_a_page_with_the_certificate(tmp_path) -> None:
    path = tmp_path / "r.htm"
    result = run("--model", "linear", "--data", "quadrants", "--quiet", "--report", path)
    assert result.exit_code == 3
    page = Page(path.read_text(encoding="utf-8"))
    assert "NOT_SEPARABLE" in page.texts["td"]
    assert "img" not in page.tags
    assert any("relative margin of any coefficients" in cell for cell in page.texts["th"])


def test_formulas_are_mathml_with_the_scripts_fences_and_signs_of_the_line() -> None:
    (one,) = mathml("min sum_h ||zeta_h||_F  s.t.  y_n <zeta_h,c_h(n), x_n> >= 1")
    tree = ElementTree.fromstring(one)
    assert tree.get("alttext", "").startswith("min sum_h")
    # What a reader sees, blanks aside; every program of the table is well formed.
    assert "".join(tree.itertext()).replace(" ", "") == "min∑h‖ζh‖Fs.t.yn⟨ζh,ch(n),xn⟩≥1"
    assert [len(part) for part in tree.iter("msub")] == [2] * 7
    for model in MODELS.values():
        for formula in mathml(model.program):
            ElementTree.fromstring(formula)
