"""Every number of a measured kind on a page is held: by rows, by a test, or exempt with a reason.

The tests of tables and of sentences note what they find on a page (`tests/pages.py`); here they are
run again, and what is left must stand in `EXEMPT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import ModuleType

from click.testing import CliRunner

import implicit_bias as ib
from implicit_bias.cli import compare
from tests.experiments import test_depth_codes, test_prose_of_pages, test_tables_of_pages
from tests.experiments.test_tables_of_pages import rows
from tests.generated import PAGES as GENERATED
from tests.pages import FOUND, ROOT, Piece, pieces, text_of

PAGES = ["README.md", *(
    name for path in sorted((ROOT / "docs").glob("**/*.md"))
    if (name := path.relative_to(ROOT / "docs").as_posix()) not in GENERATED
)]  # fmt: skip

# Numbers that are no measurements or are held elsewhere: page ("*": any), what is said, and why.
SET = "set by the library or by who runs it, not measured"
MACHINE = "of the machine at hand"
PRINTED = "what a source prints"
ONCE = "sizes of an installation, which no test makes"
EXEMPT = [
    ("*", r"^.*\|.*`tests/[\w/]+\.py::\w.*$", "its row names the test"),
    ("*", r"gaps? of 1e-8(?: or less)?|default 1e-8|tolerance of 1e-8|to 1e-8\b", SET),
    ("*", r"(?:rate|Adam|RMSprop at|momentum|beta|steps) [\d.]+(?:e-\d)?(?: and \.\d+)?\b", SET),
    ("*", r"rate of [\d.]+|slope [\d.]+|errors x 0\.01", SET),
    ("*", r"1\.96 standard errors", "a quantile of the normal distribution"),
    ("*", r"\d+ GFLOP/s|\d+ GB, shared", MACHINE),
    ("*", r"within 1 % of (?:it|1|the limit|a point)|at most 1 % off", "the rule of the verdicts"),
    ("*", r"margin ratio from 0\.99 on|`annealed` below 0\.99", "the rule of the verdicts"),
    ("*", r"to 99 %", "the rule of `agreement from`"),
    ("*", r"4\.6 GB", ONCE),
    ("bibliography.md", r"doi:\S+", "an identifier"),
    ("autoencoders.md", r"a = b = [\d., and]+(?:s = t = 0\.8)?", SET),
    ("deep-networks.md", r"1e-4 to 1e-2|residual of 1e-[34]", SET),
    ("distillation.md", r"to within 1e-11 of it", "tests/models/distillation/test_distillation.py"),
    (
        "dlgn.md",
        r"reached 0\.60 of the L1 margin .* Gaussian ones 0\.99",
        "tests/models/dlgn/test_dlgn.py",
    ),
    ("equivalence.md", r"up to 0\.1", SET),
    ("fixed-outer.md", r"slopes 0, 0\.1 and 0\.5", SET),
    ("equivalence.md", r"theorem 3\.1 to 1e-7", "tests/equivalence/test_groups.py"),
    ("diagonal.md", r"from scales [\d., ]+", SET),
    ("finite-limits.md", r"at penalties [\d.e, -]+|decay \.01", SET),
    ("finite-limits.md", r"Clarabel was 30 s", SET),
    ("finite-limits.md", r"1\.69 times ridge's", PRINTED),
    (
        "not-a-limit.md",
        r"below \.9[57]|ends at [\d., ]+from|ridge: at a decay of \.1",
        "tests/finite_limits/test_not_a_limit.py",
    ),
    (
        "not-a-limit.md",
        r"starts alpha I of [\d.e, -]+|4 x 4",
        SET,
    ),
    ("growth.md", r"beyond 5 s|and 4 GiB a cell|and 32 GiB;|and 512 GiB", SET),
    ("own-data.md", r"margins down to 1e-14", "tests/limits/test_separability.py"),
    ("norms-of-optimisers.md", r"kappa 0\.6 for one layer, 0\.3 for .* and 0\.13", SET),
    ("norms-of-optimisers.md", r"\(0\.9(?:, 0\.99)?\)", SET),
    ("parts.md", r"at 0\.0[14]", SET),
    ("reaching-the-limit.md", r"at most 30 %|above 1\.01|10 and 20 times", SET),
    ("research/deep-gated.md", r"to 90 % of random", SET),
    ("research/deep-gated.md", r"printed are 98\.5 and 96\.5 %", PRINTED),
    ("research/finite-time.md", r"printed 12 to 26 %", PRINTED),
    ("research/gln-paper.md", r"err 13 and 23 %", "tests/experiments/test_printed.py"),
    ("research/half-space-features.md", r"(?:to a half and to|a loss of) 0\.01", SET),
    ("research/half-space-features.md", r"is 72 %", PRINTED),
    ("research/kernels.md", r"300 of 2,010", SET),
    ("research/thesis.md", r"^E?[\d.]+[ab]?(?:(?:,| to) [\d.]+)*", "the number of a figure"),
    ("stationarity.md", r"up to 1\.1 s|within 0\.05 of its|by 2 to 10 times", SET),
    ("slow-units.md", r"samples times weights are at most 2e7|at most 0\.2|Above 0\.2", SET),
    ("slow-units.md", r"times of 1 % and 10 %", SET),
    ("speed.md", r"1\.2e10 flops|0\.3 s|1e-120 to 1e120|above 1e8|of gap 1e-10|1e-4 and 1e-6", SET),
    ("speed.md", r"3e7 multiplications", SET),
    ("trainers.md", r"fall by 1\.4|about 100 times|stationary to 1e-6", SET),
    ("trust.md", r"below 3e7", SET),
]


def claims(module: ModuleType) -> Iterator[Callable[[], None]]:
    """The tests of a module, for each of their parameters."""
    for name, test in list(vars(module).items()):
        if name.startswith("test_"):
            given = [one.args[1] for one in getattr(test, "pytestmark", ())]
            yield from (lambda v=v, t=test: t(v) for v in given[0]) if given else [test]


of_codes = test_depth_codes.test_rows_and_page_say_the_same_and_nothing_is_below_what_is_proved


def test_every_measured_number_is_held() -> None:
    for claim in (*claims(test_tables_of_pages), *claims(test_prose_of_pages), of_codes):
        claim()
    left = []
    for page in PAGES:
        free = [re.compile(said) for name, said, _ in EXEMPT if name in ("*", page)]
        left += [f"{page}: {one}" for piece in pieces(page)
                 for one in piece.numbers(FOUND[page], free)]  # fmt: skip
    assert not left, "\n".join(["rows, a test or a line of EXEMPT are wanted for", *left])


def test_every_exemption_is_asked_for() -> None:
    for name, said, _ in EXEMPT:
        texts = [
            piece.text for page in (PAGES if name == "*" else [name]) for piece in pieces(page)
        ]
        assert any(re.search(said, one) for one in texts), (name, said)


def test_a_number_that_nobody_holds_is_seen() -> None:
    """Of each kind one; equations, sizes and options are none."""
    measured = "It ends at 0.97, takes 12 % of 3 s, is 5 times as fast, in 4 of 9 runs, to 1e-7."
    piece = Piece("README.md", measured)
    assert [one.split()[0] for one in piece.numbers(set(), [])] == [
        "0.97", "12", "3", "5", "4", "1e-7"]  # fmt: skip
    assert len(list(piece.numbers({"ends at 0.97", "4 of 9"}, []))) == 4
    quiet = "By theorem 3.1 of 2021 (section 4.2), n = 500, H = 10: `--tol 1e-8`, Python 3.11."
    assert not list(Piece("README.md", quiet).numbers(set(), []))


def screens(page: str) -> list[str]:
    """The blocks of a page that show what a command printed."""
    return re.findall(r"^```text\n(.*?)^```", text_of(page), flags=re.M | re.S)


def test_the_first_screen_is_that_of_the_command() -> None:
    """Its program as it is solved here, its networks as in the rows of the defaults."""
    screen, program = screens("command-line.md")
    limit = ib.run("gln", steps=0).limit
    assert f"norm per unit margin          {limit.objective:.8g}  " in screen
    assert f"certified lower bound       {limit.dual_objective:.8g}  " in screen
    defaults = rows("defaults").query("model == 'gln'").set_index("network").value
    annealed, momentum = (f"{defaults[one]:.4f}" for one in ("annealed", "momentum"))
    assert f"margin ratio                  1          {annealed}     {momentum}\n" in screen
    done = CliRunner().invoke(compare, ["--model", "frelu", "--program"])
    assert done.stdout == program
