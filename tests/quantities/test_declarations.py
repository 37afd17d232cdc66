"""Every quantity of the library is declared once, and no label stands anywhere else."""

from __future__ import annotations

import ast
import collections
import importlib
import re
import tomllib
from pathlib import Path

import pytest

from implicit_bias.quantities import MEASURED, TABLE, Measured, read_quantities
from implicit_bias.runs.reports import COLUMNS, OPTIONS

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / name for name in ("implicit_bias", "solvers")]
FILE = tomllib.loads((ROOT / "implicit_bias/quantities/quantities.toml").read_text("utf-8"))
PATHS = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]


def measured_classes() -> set[type[Measured]]:
    """All classes of declared quantities in the library."""
    for path in PATHS:
        if path.name != "__main__.py":
            parts = path.relative_to(ROOT).with_suffix("").parts
            importlib.import_module(".".join(part for part in parts if part != "__init__"))
    found, left = set(), [Measured]
    while left:
        below = set(left.pop().__subclasses__()) - found
        found |= below
        left += below
    return {one for one in found if one.__module__.startswith("implicit_bias.")}


def texts(path: Path) -> list[str]:
    """The strings of a file that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def test_no_label_stands_twice_in_the_library() -> None:
    declared = [*TABLE.values()]
    declared += [about.quantity for one in measured_classes() for about in one.declared.values()]
    # Single words ("loss", "status") are names of much else.
    known = {one.label.strip(): one.label.strip() for one in declared if " " in one.label.strip()}
    assert len(known) > 80
    # A label with its ideal value typed behind it is that label once more.
    known |= {
        one.title.strip(): one.label.strip() for one in declared if one.label.strip() in known
    }
    written = [text for path in PATHS for text in texts(path)]
    written += [entry.get("label", "") for table in FILE.values() for entry in table.values()]
    counted = collections.Counter(known[text.strip()] for text in written if text.strip() in known)
    assert {label: n for label, n in counted.items() if n > 1} == {}
    assert set(counted) == set(known.values())


def test_no_line_of_a_table_is_written_by_hand_in_two_places() -> None:
    # A label in words beside values that are computed.
    written = [
        node.elts[0].value.strip()
        for path in PATHS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Tuple)
        and len(node.elts) > 1
        and isinstance(node.elts[0], ast.Constant)
        and isinstance(node.elts[0].value, str)
        and not all(isinstance(one, ast.Constant) for one in node.elts)
    ]
    counted = collections.Counter(text for text in written if " " in text)
    assert len(counted) > 30
    assert [text for text, n in counted.items() if n > 1] == []


def test_every_column_of_a_run_s_row_is_declared_once() -> None:
    names = [column.name for column in COLUMNS]
    assert len(set(names)) == len(names)
    own = {column.name for column in OPTIONS}
    assert not own & {one.name for one in MEASURED}
    by_name = {column.name: column for column in COLUMNS}
    for one in MEASURED:
        assert by_name[one.name].type == one.type
        assert by_name[one.name].doc.startswith(one.doc) and one.doc.endswith(".")


def test_every_attribute_of_a_result_has_a_sentence_and_what_is_shown_a_label() -> None:
    classes = measured_classes()
    assert len(classes) > 10
    for one in classes:
        for name, about in one.declared.items():
            assert about.quantity.sentence.endswith("."), f"{one.__name__}.{name}"
            assert about.quantity.label or not about.shown, f"{one.__name__}.{name}"
        section = (one.__doc__ or "").partition("Attributes\n----------\n")[2]
        assert all(f"{field} : " in section for field in one.__dataclass_fields__), one


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("", "`a` needs a `label` and a sentence as `doc`"),
        ('label = "a"', "`a` needs a `label` and a sentence as `doc`"),
        ('label = "a"\ndoc = "A."\nideals = 1.0', "`a`: `ideals = 1.0` is no entry of a quantity"),
        ('label = "a"\ndoc = "A."\nideal = "1"', "`a`: `ideal = '1'` is no entry"),
        ('label = "a"\ndoc = "A."\ntype = "int"', "`a`: `type = 'int'` is no entry"),
        ('label = "a"\ndoc = "A."\nformat = ".4 g"', "`a`: `format = '.4 g'` is no entry"),
        ('label = "a"\ndoc = "A."\nover_classes = "mean"', "`a`: `over_classes = 'mean'` is no"),
        ('like = "c"', "`a` is like `c`, which is not in the table"),
    ],
)
def test_an_entry_that_is_none_is_refused_with_the_name_of_its_quantity(entries, message) -> None:
    shared = '\n[shared.b]\nlabel = "b"\ndoc = "B."\nover_classes = "sum"'
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        read_quantities(f"[row.a]\n{entries}{shared}")
    (a,), (b,) = read_quantities(f'[row.a]\nlike = "b"\nideal = 2.0{shared}')
    assert (a.label, a.type, a.ideal, a.over_classes) == ("b", "float64", 2.0, None)
    assert (b.type, b.ideal, b.over_classes) == (None, None, "sum")
