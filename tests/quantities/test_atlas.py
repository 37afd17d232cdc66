"""The atlas: every row is of papers, functions, pages and tests that there are, and is found."""

import dataclasses
import json
import re
from operator import attrgetter
from pathlib import Path

import pytest
from click.testing import CliRunner

import implicit_bias as ib
from implicit_bias.cli import main
from implicit_bias.models import MODELS
from implicit_bias.quantities import (
    CHECKED,
    ENTRIES,
    PAPERS,
    STANDINGS,
    WITHIN,
    cited,
    kinds,
    named,
)

ROOT = Path(__file__).parents[2]


def keys(*wanted: str | None) -> set[str]:
    return {entry.key for entry in ib.atlas.which(*wanted)}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=attrgetter("key"))
def test_what_a_row_names_is_there(entry) -> None:
    assert entry.standing in STANDINGS and entry.checked in CHECKED
    assert entry.network and entry.loss and entry.optimizer and entry.regime and entry.conditions
    assert entry.papers or "none" in entry.source or entry.checked == "own"
    here = entry.here
    assert not here.function or callable(attrgetter(here.function)(ib))
    assert not here.model or here.model in MODELS
    for folder, path in (("docs", here.page), ("docs", here.picture), ("", here.test)):
        assert not path or (ROOT / folder / path).is_file(), path
    # A reader must be able to tell what is known from what is not.
    assert bool(here.function) >= bool(here.model or here.test)
    assert not re.search(r"[{}]", entry.source + entry.theorem.replace("{n", ""))


def test_every_model_is_a_row_and_says_what_it_says() -> None:
    for name, model in MODELS.items():
        (entry,) = (one for one in ENTRIES.values() if one.here.model == name)
        assert (model.theorem, model.source, model.program) == (
            entry.theorem, entry.source, entry.program
        )  # fmt: skip


def test_the_atlas_has_the_field_and_names_what_nothing_computes() -> None:
    recent = [one for one in ENTRIES.values() if any(2017 <= p.year for p in one.papers)]
    assert len(recent) >= 70
    assert sum(not one.here.function for one in recent) >= 20
    named_here = {paper.key for one in ENTRIES.values() for paper in one.papers}
    unused = [p.key for p in PAPERS.values() if p.key not in named_here and not p.used]
    assert unused == []
    assert len({p.arxiv for p in PAPERS.values() if p.arxiv}) == sum(
        bool(p.arxiv) for p in PAPERS.values()
    )
    for paper in PAPERS.values():
        assert str(paper.year) == re.search(r"-(\d{4})", paper.key)[1]
        assert re.fullmatch(r"(\d{4}\.\d{4,5})?", paper.arxiv), paper


def test_rows_are_chosen_by_their_kinds_and_by_what_these_belong_to() -> None:
    found = ib.atlas.which("leaky relu", "LOGISTIC", "gradient descent")
    assert "fixed-outer" in {one.key for one in found} and found[0].network[0] == "leaky ReLU"
    assert "kkt" in {one.key for one in found}  # of homogeneous networks
    assert not {"attention", "dgn", "linear"} & {one.key for one in found}
    own = [one for one in found if "leaky ReLU" in one.network]
    assert list(found[: len(own)]) == own
    assert keys("conv") == keys("linear convolution") > {"convolution", "equivariant"}
    assert keys(None, None, "sign descent") >= {"linear-steepest", "gated-norms"}
    assert keys() == set(ENTRIES) and keys("attention", "squared", "AdaGrad") == set()
    assert set(WITHIN) | {kind for above in WITHIN.values() for kind in above} <= {
        *kinds("network"), *kinds("loss"), *kinds("optimizer")
    }  # fmt: skip
    with pytest.raises(ValueError, match="`loss` must be, or be part of, one of any, cross-"):
        ib.atlas.which("linear", "hinge")
    with pytest.raises(ValueError, match="`network` must be"):
        ib.atlas.which(" ")


def test_papers_are_named_by_authors_title_year_and_number() -> None:
    assert named("({lippl-2022}, theorem 3.1)") == (
        "(Lippl, Abbott and Chung, The implicit bias of gradient descent on generalized gated "
        "linear networks, theorem 3.1)"
    )
    assert cited("{lyu-2020}, theorem 4.4; {soudry-2018}") == (
        "Lyu and Li 2020, theorem 4.4; Soudry et al. 2018 (arXiv 1710.10345)"
    )
    assert PAPERS["boyd-2004"].address.startswith("https://") and not PAPERS["phuong-2021"].address


def test_the_command_prints_the_rows_as_text_and_as_json() -> None:
    run = CliRunner().invoke
    wanted = ["which", "--network", "attention", "--optimizer", "mirror"]
    text = run(main, wanted)
    assert text.exit_code == 0 and "attention-mirror: attention" in text.output
    assert "here: nothing computes it" in text.output
    (row,) = json.loads(run(main, [*wanted, "--json"]).output)
    entry = dataclasses.replace(ENTRIES["attention-mirror"])
    assert row["program"] == entry.program and row["papers"] == [entry.papers[0].address]
    assert row["here"]["page"] == entry.here.page
    wrong = run(main, ["which", "--loss", "hinge"])
    assert wrong.exit_code == 2 and wrong.output.startswith("Error: `loss` must be")
    assert "No entry names all of these" in run(
        main, ["which", "--network", "attention", "--loss", "squared", "--optimizer", "adagrad"]
    ).output  # fmt: skip
