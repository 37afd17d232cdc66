"""Pages of the documentation that are written from declarations.

python -m tests.generated    writes them; a test compares
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from implicit_bias.models import MODELS
from implicit_bias.quantities import CHECKED, ENTRIES, PAPERS, STANDINGS, Entry, Paper, kinds
from implicit_bias.runs import KNOWN, Premise

DOCS = Path(__file__).parents[1] / "docs"
ASSUMPTIONS = """\
# What each theorem assumes, and how it is known

Written from the table of models (`python -m tests.generated`). A run prints the same with what it
has found of each: in short on the first screen, in full with `--details`, in the page (`--report`)
and under `assumptions` in the record (`report.assumptions`).
"""
METHODS = """\
Trainers other than those named are not the theorem's method: that `momentum`, `annealed`,
mini-batches or large steps come to the same limit is measured, with the certificate of the limit
beside the network, and not proved ([trainers](trainers.md))."""
WHICH = """\
# Which limit applies to my network

Written from the atlas, a table of results (`python -m tests.generated`). The same rows, of one network, loss or optimiser:

    implicit-bias which --network relu --loss logistic --optimizer adam

and `ib.atlas.which("relu", "logistic", "adam")` in Python. `diagnose` says of a network of your own which of them apply
([how](diagnose.md)). What each theorem assumes, and how a run knows it: [assumptions](assumptions.md).

Three questions decide: what the network is, what the loss is, and how it is trained.

- Labels -1 and +1, or K classes, that can be separated, and a loss with an exponential tail (logistic, exponential,
  cross-entropy): weights grow without end, and their *direction* has a limit, a max-margin program.
- Data that are not separable have no such limit. `is_separable` proves which case it is, and a run ends with the proof
  (exit code 3); linear predictors then have a direction for what can be separated, and a finite part beside it.
- Squared loss, soft labels, weight decay: a finite limit.
- Is the network homogeneous? Upper biases, normalising layers and softplus break it; the bias of the first layer, or a
  constant column of the inputs, does not. `check_network` and `diagnose` tell, and what is left without them.

```python
import implicit_bias as ib

data = ib.load_digits(n_train=60, random_state=0)
print(ib.is_separable(data.X_train, data.y_train).message)  # first: is there a limit at all?
limit = ib.solve_linear_svm(data.X_train, data.y_train).require()  # then: which
print(limit.status.name, limit.gap)  # and: proved to what gap
```

How a row stands:
"""  # noqa: E501
BIBLIOGRAPHY = """\
# Bibliography, and how to cite

Cite the version that you used (`implicit_bias.__version__`), and the paper whose theorem the run names
(`report.heading.source`); [CITATION.cff](../CITATION.cff) has the fields.

```bibtex
@software{implicit_bias,
  author  = {{The implicit-bias developers}},
  title   = {implicit-bias: predictions of the implicit bias of gradient descent, certified and compared},
  version = {the version that you used}
}
```

Written from the table of papers (`python -m tests.generated`); [which limit applies](which-limit.md) has what each proves."""  # noqa: E501
KINDS_OF_PAPERS = {"theorem": "Theorems on limits", "network": "Networks", "method": "Methods"}


def assumptions_page() -> str:
    """Every model with all that its theorem assumes, and how a run knows it."""
    lines = [ASSUMPTIONS, *(f"- *{known}*: {said}" for known, said in KNOWN.items()), "", METHODS]
    for name, model in MODELS.items():
        lines += [
            "", f"## {name}", "", f"{escaped(sentence(model.theorem))}", "",
            "| assumption | how it is known | only with |", "| --- | --- | --- |",
        ]  # fmt: skip
        lines += [f"| {escaped(one.text)} | {one.known} | {only_with(one)} |"
                  for one in model.assumes]  # fmt: skip
    return "\n".join(lines) + "\n"


def which_page() -> str:
    """Every entry of the atlas, by kinds of networks."""
    lines = [WHICH, *(f"- *{name}*: {said}" for name, said in STANDINGS.items()), "",
             "How its statement was checked: " + "; ".join(f"*{name}*, {said}" for name, said
                                                          in CHECKED.items()) + "."]  # fmt: skip
    for network in kinds("network"):
        rows = [entry for entry in ENTRIES.values() if entry.network[0] == network]
        if rows:
            lines += ["", f"## {network[0].upper()}{network[1:]}", ""]
            lines += [ROW_OF_WHICH.format(*HEAD_OF_WHICH), "| --- " * len(HEAD_OF_WHICH) + "|"]
        lines += [row_of_which(entry) for entry in rows]
    return "\n".join(lines) + "\n"


HEAD_OF_WHICH = ("network", "loss", "trained by", "what is known", "program", "standing", "here")
ROW_OF_WHICH = "| {} |".format(" | ".join(["{}"] * len(HEAD_OF_WHICH)))


def row_of_which(entry: Entry) -> str:
    """An entry as a row: its papers as links, what computes it, and where more is said."""
    said = entry.theorem
    for paper in entry.papers:
        said = said.replace(paper.named, linked(paper))
    source = entry.source
    for paper in entry.papers:
        source = source.replace(f"{paper.short} {paper.year}", linked(paper))
        source = source.replace(f" ({paper.identifier})", "")
    model = entry.here.model
    here = [f"`{entry.here.function}`"] * bool(entry.here.function)
    here += [f"`compare --model {model}`"] * bool(model)
    here += [f"[more]({entry.here.page})"] * bool(entry.here.page)
    every = model and f" ([all assumptions](assumptions.md#{model}))"
    standing = f"**{entry.standing}**: {entry.conditions}{every}. "
    standing += f"Source: {source} (*{entry.checked}*)"
    cells = (
        ", ".join(entry.network), ", ".join(entry.loss), ", ".join(entry.optimizer),
        f"*{entry.regime}*: {said}", f"`{entry.program}`", standing, ", ".join(here) or "nothing",
    )  # fmt: skip
    return ROW_OF_WHICH.format(*map(escaped, cells))


def linked(paper: Paper) -> str:
    """A paper by authors and year, with its address."""
    name = f"{paper.short} {paper.year}"
    return f"[{name}]({paper.address})" if paper.address else name


def bibliography_page() -> str:
    """Every paper, with what takes it up."""
    lines = [BIBLIOGRAPHY]
    for kind, title in KINDS_OF_PAPERS.items():
        lines += ["", f"## {title}", "", "| where | used for |", "| --- | --- |"]
        lines += [f"| {reference(paper)} | {escaped(paper.used or 'which-limit.md')} |".replace(
                  "| which-limit.md |", "| [a row of what is known](which-limit.md) |")
                  for paper in PAPERS.values() if paper.kind == kind]  # fmt: skip
    return "\n".join(lines) + "\n"


def reference(paper: Paper) -> str:
    """A paper as a bibliography has it."""
    number = paper.identifier.replace(" ", ":" if paper.arxiv or paper.doi else " ")
    place = f"[{number}]({paper.address})" if paper.address else number
    return ", ".join(filter(None, (paper.authors, f"*{paper.title}*", paper.venue,
                                   str(paper.year), place)))  # fmt: skip


def only_with(premise: Premise) -> str:
    """The options that a premise needs to hold, and those to which it belongs."""
    said = [f"`{name}` {words(values)}" for name, values in premise.needs.items()]
    said += [f"asked where `{name}` is {words(values)}" for name, values in premise.where.items()]
    said += [f"not asked where `{name}` is {words(values)}"
             for name, values in premise.unless.items()]  # fmt: skip
    return "; ".join(said)


def words(values: tuple[object, ...]) -> str:
    return " or ".join(dict.fromkeys(f"{value:g}" if isinstance(value, float) else str(value)
                                     for value in values))  # fmt: skip


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def escaped(text: str) -> str:
    """Text within a table of Markdown."""
    return re.sub(r"(?<!\\)\|", r"\\|", text)


PAGES: dict[str, Callable[[], str]] = {
    "assumptions.md": assumptions_page, "which-limit.md": which_page,
    "bibliography.md": bibliography_page,
}  # fmt: skip


if __name__ == "__main__":
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(), encoding="utf-8")
