"""One page of HTML about a run that loads nothing from anywhere: to be mailed and archived."""

from __future__ import annotations

import base64
import io
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ...._support.extras import is_installed, naming_extras
from ...._support.files import harmless, write_atomically
from ...._support.solve import html_table
from ....quantities.formatting import DASH
from ....quantities.said import Table
from ....quantities.table import TABLE, lines, title_of
from ..contents import Contents, as_it_was_made
from ..verdict import WORDS, Word
from .formulas import mathml
from .screen import explanations

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure

LONGEST = 24  # letters of a cell that is never broken; longer ones are prose, or hashes
# A number with an exponent and a sign, which browsers break behind the sign.
EXPONENT = re.compile(r"\d[\d.]*e[-+]\d+")
RESOLUTION = 130  # dots per inch of the pictures, sharp at the width of the page and in print

# Entries of a limit's record in the order of a reader; what a limit does not have is left out.
CERTIFICATE = (
    "status", "advice", "objective", "dual_objective", "gap", "tol", "separation_bound",
    "separation_rounding", "stationarity", "loss", "rank", "n_samples", "n_support", "n_units",
    "n_live", "solver", "iterations", "seconds",
)  # fmt: skip
# The verdict in figures: how good the proof is, and how near the network has come.
HEADLINE = ("gap", "margin_ratio", "agreement")
# Of the data: no names, which may be those of folders that the user did not type.
DATA = ("n_train", "n_val", "n_inputs", "sha256")
STYLES = {True: "good", False: "bad", None: "open"}
# Words of verdicts that a page writes in green, or in red.
GOOD_NEWS: Mapping[Word, bool] = {
    "AT ITS LIMIT": True, "AT A LOCAL LIMIT": True, "NOT SEPARATED": False, "DIVERGED": False,
    "NOT SOLVED": False,
}  # fmt: skip


@dataclass(frozen=True)
class _Picture:
    data: str
    alternative: str


def write_html(
    report: Contents, path: str | os.PathLike[str], *, command: str | None = None
) -> None:
    """Write `render_html(report, command=command)` to a file.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    write_atomically(path, render_html(report, command=command).encode())


@naming_extras()
def render_html(report: Contents, *, command: str | None = None) -> str:
    """Render a self-contained page: theorem, assumptions, tables, picture, certificate, provenance.

    Parameters
    ----------
    report : Contents
        Of any model, trained or not.
    command : str, optional
        The command line that made it; the call of `run` if it is left out.

    Raises
    ------
    ValueError
        If the report was edited after it was saved, and cannot be shown.
    """
    with as_it_was_made():
        return _rendered(report, report.call if command is None else command)


def _rendered(report: Contents, command: str) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader(__package__, "."), autoescape=True, undefined=StrictUndefined
    )
    pages.filters["unbroken"] = _unbroken
    picture = _picture(report)
    certificate, *provenance = page_tables(report)
    page = pages.get_template("page.html.j2").render(
        heading=report.heading,
        headline=report.verdicts,
        figures=_figures(report),
        formulas=mathml(report.heading.program),
        notices=_notices(report),
        assumptions=report.assumptions,
        styles=STYLES,
        colours={word: STYLES[GOOD_NEWS.get(word)] for word in WORDS},
        longest=LONGEST,
        tables=report.tables,
        explanations=explanations(report),
        picture=picture,
        certificate=certificate,
        provenance=provenance,
        command=command,
    )
    return harmless(page)


def page_tables(report: Contents) -> list[Table]:
    """Return the tables that a page alone has: the certificates, and what the run was made of."""
    return [_certificate(report.certificates), *_provenance(report.heading.record)]


def render_cell(report: Contents) -> str:
    """Render the notebook's view of a report: verdict, assumptions, tables."""
    texts = [*_notices(report), report.heading.setup, *map(str, report.assumptions)]
    tables = (html_table(table.title, table.columns, table.rows) for table in report.tables)
    text = "".join(f"<div>{escape(line)}</div>" for line in texts)
    head = "<br>".join(escape(str(one)) for one in report.verdicts)
    title = f"<div>{escape(report.heading.title)}</div>"
    return harmless(f"<b>{head}</b>{title}{text}{''.join(tables)}")


def _unbroken(text: str) -> Markup:
    """Escape a text for HTML; numbers such as 8e-5 are kept on one line."""
    from markupsafe import Markup

    return Markup(EXPONENT.sub(r'<span class="number">\g<0></span>', escape(text)))


def _figures(report: Contents) -> str:
    """Return the gap of the proof and the distance of the network in numbers."""
    # Of several trainers each has its sentence; what they do not share would be the last one's.
    shared = {
        name: one.row[name]
        for one in report.views
        for name in (HEADLINE if len(report.verdicts) == 1 else HEADLINE[:1])
        if name in one.row
        and all(other.row.get(name, one.row[name]) == one.row[name] for other in report.views)
    }
    words = [] if report.status is None else [report.status.name]
    words += [" ".join(line).strip() for line in lines(shared, *HEADLINE)]
    return "; ".join(words)


def _notices(report: Contents) -> list[str]:
    found = []
    if report.status is not None and report.status.name != "SOLVED":
        where = f" ({report.concerns})" if report.concerns else ""
        found.append(f"{report.status.name}{where}: {report.advice}")
    if report.shortfall:
        found.append(f"Not separated: {report.shortfall}")
    if report.failure is not None:
        found.append(f"No comparison: {report.failure}")
    if not report.finished:
        found.append("Training was interrupted: everything here is of what was finished.")
    return found


def _picture(report: Contents) -> _Picture | None:
    """Return the picture of a run; None where nothing was trained, or nothing draws."""
    figure = report.figure() if is_installed("matplotlib") else None
    if figure is None:
        return None
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=RESOLUTION)
    return _Picture(base64.b64encode(content.getvalue()).decode("ascii"), _alternative(figure))


def _alternative(figure: Figure) -> str:
    """Describe the panels, by their titles and the labels of their axes."""
    panels = [about for ax in figure.axes if (about := ax.get_title() or ax.get_ylabel())]
    return f"{figure.get_suptitle() or 'pictures of the run'}. Panels: {'; '.join(panels)}."


def _certificate(proofs: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the certificates, one column a limit; the advice only where there is one."""
    limits = {name: {**proof, **proof.get("certificate", {})} for name, proof in proofs.items()}
    rows = [
        (
            _title(key),
            *(_text(limit.get(key, DASH)) for limit in limits.values()),
        )
        for key in CERTIFICATE
        if any(_is_figure(key, limit) for limit in limits.values())
        and (key != "advice" or len(limits) == 1)
    ]
    return Table("certificate of the prediction", ("", *limits), tuple(rows))


def _title(key: str) -> str:
    """Return the title of an entry: not all optima are norms."""
    return TABLE[key].head or title_of(key) if key == "objective" else title_of(key)


def _is_figure(key: str, limit: Mapping[str, Any]) -> bool:
    """Return True for an entry of a limit that says how it was proved, not for a loss's name."""
    return key in limit and not (key == "loss" and isinstance(limit[key], str))


def _provenance(record: Mapping[str, Any]) -> list[Table]:
    known = record.get("data", {})
    data = {f"data: {key}": known[key] for key in DATA if key in known}
    seeds = {f"seed of {part}": seed for part, seed in record.get("seeds", {}).items()}
    versions = {
        "implicit-bias": record.get("version"),
        "Python": record.get("python"),
        **record.get("packages", {}),
    }
    # No name of the machine: the page may go to strangers.
    machine = {
        "system": platform.system(),
        "processor": platform.machine(),
        "CPUs": os.cpu_count(),
    }
    return [
        _pairs("data and seeds", data | seeds),
        _pairs("options", _in_words(record.get("options", {}))),
        _pairs("versions", versions),
        _pairs("machine", machine),
    ]


def _in_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options, values that need explanation in words."""
    words: dict[str, Any] = dict(options)
    if words.get("batch_size") == 0:
        words["batch_size"] = "0 (the full batch)"
    if words.get("learning_rate") == ():
        words["learning_rate"] = "found by the trainer"
    return words


def _pairs(title: str, values: Mapping[str, Any]) -> Table:
    """Return the table of values that are not None, as options left to the model are."""
    rows = tuple((key, _text(value)) for key, value in values.items() if value is not None)
    return Table(title, ("", "value"), rows)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(entry) for entry in value)
    return str(value)
