"""One page of HTML about a run that loads nothing from anywhere: to be mailed and archived."""

from __future__ import annotations

import base64
import io
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models import MODELS
from .report import Assumption, Report, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["render_html", "write_html"]

RESOLUTION = 130  # dots per inch of the pictures, sharp at the width of the page and in print

# Of the certificate, in the order of a reader; what a limit does not have is left out.
CERTIFICATE = {
    "status": "status",
    "advice": "what it means",
    "objective": "upper bound of the optimum",
    "dual_objective": "lower bound of the optimum",
    "gap": "relative gap between them",
    "tol": "gap asked for",
    "separation_bound": "best margin of unit norm is at most",
    "separation_rounding": "rounding error of that bound",
    "stationarity": "stationarity residual",
    "loss": "optimal loss",
    "rank": "rank",
    "n_samples": "samples",
    "n_support": "support vectors",
    "n_units": "units",
    "n_live": "live units",
    "solver": "solver",
    "iterations": "iterations",
    "seconds": "seconds",
}

# Of the data: no names, which may be those of folders that the user did not type.
DATA = ("n_train", "n_val", "n_inputs", "sha256")

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6675; --line: #d8dde4;
  --paper: #ffffff; --band: #f4f6f9; --good: #1a7f4b; --bad: #b3261e; --open: #8a6100; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #a0aab8;
  --line: #3a424e; --paper: #14181f; --band: #1d232c; --good: #5fd39a; --bad: #ff8a80;
  --open: #e7bd5c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 2rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .6rem; }
p { margin: .4rem 0; max-width: 50rem; }
.soft { color: var(--soft); }
code, pre { font: .88em/1.5 ui-monospace, monospace; }
pre { background: var(--band); border: 1px solid var(--line); border-radius: 6px;
  padding: .7rem .9rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .93rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 0 0 .35rem; }
th, td { text-align: left; padding: .28rem 1.4rem .28rem .5rem; vertical-align: top;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid var(--line); }
tbody th { font-weight: 400; white-space: pre-wrap; min-width: 11rem; }
tbody tr:nth-child(even) { background: var(--band); }
.pair { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: flex-start; }
ul { list-style: none; padding: 0; margin: .4rem 0; max-width: 55rem; }
li { padding: .2rem 0 .2rem 8.5rem; text-indent: -8.5rem; }
li b { display: inline-block; width: 8.5rem; text-indent: 0; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
.notice { border-left: 4px solid var(--bad); padding: .4rem .9rem; background: var(--band); }
figure { margin: .6rem 0; }
img { display: block; width: 100%; height: auto; background: #ffffff; border: 1px solid var(--line);
  border-radius: 6px; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; }
  h2 { break-after: avoid; } figure, tr, li { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class _Mark:
    word: str
    style: str


_MARKS = {True: _Mark("holds", "good"), False: _Mark("does not hold", "bad"),
          None: _Mark("not checked", "open")}  # fmt: skip


def write_html(report: Report, path: str | os.PathLike[str], *, command: str) -> None:
    """Write `render_html(report, command=command)` to a file.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    Path(path).write_text(render_html(report, command=command), encoding="utf-8")


def render_html(report: Report, *, command: str) -> str:
    """A self-contained page: theorem, assumptions, tables, picture, certificate, provenance.

    Parameters
    ----------
    report : Report
        Of any model, trained or not.
    command : str
        The command line that made it.
    """
    model = MODELS.get(report.model)
    program = [] if model is None else [f"<pre>{escape(model.program)}</pre>"]
    parts = [
        f"<h1>{escape(report.model)}: {escape(_verdict(report))}</h1>",
        f'<p class="soft">{escape(report.setup)}</p>',
        *_notices(report),
        "<h2>Theorem</h2>",
        f"<p>{escape(report.theorem)}</p>",
        *program,
        "<h2>Assumptions</h2>",
        _assumptions(report.assumptions),
        "<h2>Results</h2>",
        f'<div class="pair">{"".join(_table(table) for table in report.tables)}</div>',
        *_picture(report),
        "<h2>Certificate</h2>",
        "<p>Recomputed from the returned arrays by code that knows no solver.</p>",
        _table(_certificate(report.results)),
        "<h2>How this page was made</h2>",
        f"<pre>{escape(command)}</pre>",
        f'<div class="pair">{"".join(_table(table) for table in _provenance(report.results))}'
        "</div>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>implicit-bias: {escape(report.model)}</title>\n<style>{STYLE}</style>\n"
        "</head>\n<body>\n<main>\n" + "\n".join(parts) + "\n</main>\n</body>\n</html>\n"
    )


def _verdict(report: Report) -> str:
    if report.figure is None:
        return "the predicted limit"
    return "the predicted limit and a trained network"


def _notices(report: Report) -> list[str]:
    found = []
    if report.status.name != "SOLVED":
        where = f" ({report.concerns})" if report.concerns else ""
        found.append(f"{report.status.name}{where}: {report.status.advice}")
    if report.failure is not None:
        found.append(f"No comparison: {report.failure}")
    if not report.finished:
        found.append("Training was interrupted: everything here is of what was finished.")
    return [f'<p class="notice">{escape(text)}</p>' for text in found]


def _assumptions(assumptions: Iterable[Assumption]) -> str:
    items = [
        f'<li><b class="{_MARKS[a.holds].style}">{_MARKS[a.holds].word}</b>{escape(a.text)}</li>'
        for a in assumptions
    ]
    return "<ul>\n" + "\n".join(items) + "\n</ul>"


def _table(table: Table) -> str:
    """Its first column holds the labels; leading blanks of a label stay, they indent it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = [
        f'<tr><th scope="row">{escape(label)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for label, *cells in table.rows
    ]
    return (
        f'<div class="scroll"><table>\n<caption>{escape(table.title)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def _picture(report: Report) -> list[str]:
    if report.figure is None:
        return []
    figure = report.figure()
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=RESOLUTION)
    data = base64.b64encode(content.getvalue()).decode("ascii")
    text = escape(_alternative_text(figure))
    return [
        "<h2>Pictures</h2>",
        f'<figure><img alt="{text}" src="data:image/png;base64,{data}"></figure>',
    ]


def _alternative_text(figure: Figure) -> str:
    """What the panels show, by their titles and the labels of their axes."""
    panels = []
    for ax in figure.axes:
        about = ax.get_title() or ax.get_ylabel()
        if about:
            panels.append(about)
    title = figure.get_suptitle()
    return f"{title or 'pictures of the run'}. Panels: {'; '.join(panels)}."


def _certificate(results: Mapping[str, Any]) -> Table:
    """One column a limit; what a status means in words only where there is one."""
    limits = {
        name: {**limit, **limit.get("certificate", {})} for name, limit in _limits(results).items()
    }
    rows = [
        (label, *(_text(limit.get(key, "-")) for limit in limits.values()))
        for key, label in CERTIFICATE.items()
        if any(key in limit for limit in limits.values()) and (key != "advice" or len(limits) == 1)
    ]
    return Table("certificate of the prediction", ("", *limits), tuple(rows))


def _limits(results: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Of most models one; four machines beside a ReLU network; one a class against the rest."""
    from ..models.relu.machines import RELU_SVMS

    if "limits" in results:
        limits = {RELU_SVMS.get(key, key): limit for key, limit in results["limits"].items()}
        frozen = results.get("frozen") or {}
        return limits | ({"frozen gates": frozen["limit"]} if "limit" in frozen else {})
    if "one_vs_rest" in results:
        return {f"class {one['class']}": one["limit"] for one in results["one_vs_rest"]}
    return {"limit": results.get("limit", {})}


def _provenance(results: Mapping[str, Any]) -> list[Table]:
    known = results.get("data", {})
    data = {f"data: {key}": known[key] for key in DATA if key in known}
    seeds = {f"seed of {part}": seed for part, seed in results.get("seeds", {}).items()}
    versions = {
        "implicit-bias": results.get("version"),
        "Python": results.get("python"),
        **results.get("packages", {}),
    }
    # No name of the machine: the page may go to strangers.
    machine = {
        "system": platform.system(),
        "processor": platform.machine(),
        "CPUs": os.cpu_count(),
    }
    return [
        _pairs("data and seeds", data | seeds),
        _pairs("options", results.get("options", {})),
        _pairs("versions", versions),
        _pairs("machine", machine),
    ]


def _pairs(title: str, values: Mapping[str, Any]) -> Table:
    """What there is a value of: options that were left to the model have none."""
    rows = tuple((key, _text(value)) for key, value in values.items() if value is not None)
    return Table(title, ("", "value"), rows)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(entry) for entry in value)
    return str(value)
