"""Mutation testing: which single faults of a module its nearest tests do not see.

    pip install "cosmic-ray>=8.4"
    python -m experiments.mutants solvers/certificates/max_margin.py --out experiments/results

Cosmic Ray makes the mutants, one operator, number or condition each, in a copy of the checkout.
The tests of each run in a fork of one process, which has imported NumPy, torch and cvxpy already.
What survives is shown, and is counted as equivalent where `mutants_equivalent.toml` names it. What
was killed is kept under `runs/mutants`: until the module changes, a further run tries the rest
alone, so that a run may be interrupted, and tests added. Linux and macOS.
"""

from __future__ import annotations

import ast
import compileall
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import NamedTuple

import click
import pandas as pd

ROOT = Path(__file__).parents[1]
KEPT = Path("runs/mutants")
OUTPUT = "mutants-output.txt"

_BOUNDS = (
    "tests/solvers/test_bad_points.py", "tests/solvers/test_certificate.py",
    "-k", "not (every_scale and many)",
)  # fmt: skip
_RELU = ("tests/relu_limits/test_bounds.py", "tests/relu_limits/test_relu_limits.py")
_KKT = ("tests/measures/test_kkt_ratio.py", "tests/measures/test_kkt.py")


def _modules_in(folder: str) -> list[str]:
    paths = sorted((ROOT / folder).glob("[!_]*.py"))
    return [path.relative_to(ROOT).as_posix() for path in paths]


# Tests of each module, as pytest takes them, those first that fail soonest.
NEAREST: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_modules_in("solvers/certificates"), _BOUNDS),
    **dict.fromkeys(_modules_in("implicit_bias/limits/relu"), _RELU),
    **dict.fromkeys(_modules_in("implicit_bias/networks/recognition"), ("tests/recognition",)),
    **dict.fromkeys(_modules_in("implicit_bias/runs/diagnosis"), ("tests/diagnosis",)),
    "solvers/certificates/constrained.py": ("tests/solvers/test_constrained.py",),
    "solvers/certificates/fits.py": (
        "tests/finite_limits/test_bad_points.py", "tests/once_wrong/test_certificates.py",
        "tests/finite_limits/test_fit.py",
    ),
    "implicit_bias/limits/exact/multiclass.py": ("tests/limits/test_multiclass.py",),
    "implicit_bias/limits/exact/optimiser_norms.py": (
        "tests/measures/test_thresholds.py", "tests/runs/test_own_norms.py",
    ),
    "implicit_bias/limits/finite/diagonal.py": (
        "tests/finite_limits/test_bad_points.py", "tests/finite_limits/test_diagonal.py",
    ),
    "implicit_bias/limits/kernels/margin.py": ("tests/kernels/test_limits.py",),
    "implicit_bias/limits/kernels/regression.py": ("tests/kernels/test_limits.py",),
    "implicit_bias/limits/relu/arrangement.py": (
        "tests/relu_limits/test_bounds.py", "-k", "arrangement or cancel",
    ),
    "implicit_bias/limits/relu/bound.py": (
        "tests/relu_limits/test_bounds.py", "tests/solvers/test_bad_points.py",
        "-k", "arrangement or cancel or patterns or bounds_of_relu or refused",
    ),
    "implicit_bias/measures/kkt.py": _KKT,
    "implicit_bias/measures/kkt_ratio.py": _KKT,
}  # fmt: skip

# Of Cosmic Ray's operators, one or two a symbol: what kills these kills the others.
OPERATORS = re.compile(
    "core/(ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_Mul|Pow_Mul"
    "|BitAnd_BitOr|BitOr_BitAnd)"
    "|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is|Lt_LtE|Lt_GtE|LtE_Lt|LtE_Gt"
    "|Gt_GtE|Gt_LtE|GtE_Gt|GtE_Lt)"
    "|ReplaceUnaryOperator_Delete_.*|AddNot|Replace(True|False|And|Or|Break|Continue).*"
    "|ExceptionReplacer|NumberReplacer|ZeroIterationForLoop)"
)
_LIBRARIES = ("numpy", "scipy.optimize", "sklearn.svm", "torch", "cvxpy", "pytest", "hypothesis")
_OWN = ("experiments", "implicit_bias", "solvers", "tests")


class Change(NamedTuple):
    """A line of a module and what a mutant makes of it, both without indentation."""

    was: str
    becomes: str


class Mutant(NamedTuple):
    """The text of a mutant, and its change of line `number`, counted from 1."""

    text: str
    number: int
    change: Change

    @property
    def key(self) -> str:
        return f"{self.number}: {self.change.becomes}"


@cache
def equivalent() -> dict[str, dict[Change, str]]:
    """Return why mutants of each module are equivalent, by their change."""
    found: dict[str, dict[Change, str]] = {}
    for entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["equivalent"]:
        changes = found.setdefault(entry["module"], {})
        changes |= {Change(*pair): entry["reason"] for pair in entry["changes"]}
    return found


def mutants(text: str) -> Iterator[Mutant]:
    """Yield all mutants of the text of a module, but for those of annotations."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    told, lines = _annotations(text), text.splitlines()
    for name in filter(OPERATORS.fullmatch, operator_names()):
        number = 0
        while (mutant := mutate_code(text, get_operator(name)(), number)) is not None:
            number += 1
            pairs = enumerate(zip(lines, mutant.splitlines(), strict=True), 1)
            line, (was, becomes) = next((k, pair) for k, pair in pairs if pair[0] != pair[1])
            same = takewhile(lambda pair: pair[0] == pair[1], zip(was, becomes, strict=False))
            place = line, len(list(same))
            if not any(first <= place < last for first, last in told):
                yield Mutant(mutant, line, Change(was.strip(), becomes.strip()))


def _annotations(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """First and last places, as lines and columns, of the annotations in a text."""
    nodes = (
        getattr(node, name, None)
        for node in ast.walk(ast.parse(text)) for name in ("annotation", "returns")
    )  # fmt: skip
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in nodes if isinstance(node, ast.expr)
    ]  # fmt: skip


@click.command(help=__doc__)
@click.argument("modules", nargs=-1, type=click.Choice(list(NEAREST)))
@click.option("--out", type=click.Path(path_type=Path), help="Folder of `mutants.csv`.")
def main(modules: tuple[str, ...], out: Path | None) -> None:
    if importlib.util.find_spec("cosmic_ray") is None:
        raise click.UsageError('`pip install "cosmic-ray>=8.4"` first')
    for name in _LIBRARIES:
        importlib.import_module(name)
    for module in modules or NEAREST:
        counts = {"module": module, **tried(module)}
        click.echo("  ".join(f"{name} {value}" for name, value in counts.items()))
        if out is not None:
            path = out / "mutants.csv"
            table = pd.read_csv(path).set_index("module") if path.exists() else pd.DataFrame()
            table = table.drop(index=module, errors="ignore")
            row = pd.DataFrame([counts]).set_index("module")
            pd.concat([table, row]).sort_index().to_csv(path, index_label="module")


def tried(module: str) -> dict[str, int]:
    """Return how many mutants a module has, how many are killed, and how many are equivalent."""
    text = (ROOT / module).read_text()
    kept = KEPT / f"{module.replace('/', '.')}.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    killed: list[str] = known["killed"] if known.get("text") == text else []
    counts = Counter(mutants=0, killed=0, equivalent=0)
    with tempfile.TemporaryDirectory() as folder:
        copy, began = _copied(Path(folder)), time.monotonic()
        if not _passes(copy, module, limit=3600.0):
            said = (copy / OUTPUT).read_text()[-4000:]
            raise click.ClickException(f"the tests of {module} fail as it is:\n{said}")
        limit = 30 + 5 * (time.monotonic() - began)
        sys.dont_write_bytecode = True  # but for the tests, by the run above
        for mutant in mutants(text):
            counts["mutants"] += 1
            if mutant.key not in killed:
                (copy / module).write_text(mutant.text)
                if not _passes(copy, module, limit):
                    killed.append(mutant.key)
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    kept.write_text(json.dumps({"text": text, "killed": killed}))
            if mutant.key in killed:
                counts["killed"] += 1
            elif mutant.change in equivalent().get(module, {}):
                counts["equivalent"] += 1
            else:
                was, becomes = mutant.change
                click.echo(f"{module}:{mutant.number} survives\n  - {was}\n  + {becomes}")
    return dict(counts)


def _copied(folder: Path) -> Path:
    """Copy what the checkout keeps or has new, into which mutants are written."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    # By their times compiled files are told from sources in seconds, and mutants come faster.
    for name in ("implicit_bias", "solvers"):
        by_hash = PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(folder / name, quiet=2, invalidation_mode=by_hash)
    return folder


def _passes(copy: Path, module: str, limit: float) -> bool:
    """Return whether the nearest tests of a module pass within so many seconds, in a fork."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        _test(copy, NEAREST[module])
    end, status = time.monotonic() + limit, None
    while status is None and time.monotonic() < end:
        time.sleep(0.05)
        ended, code = os.waitpid(child, os.WNOHANG)
        status = code if ended else None
    if status is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return status == 0


def _test(copy: Path, paths: tuple[str, ...]) -> None:
    """Run tests of a copy in this process and end it, with 0 if all pass."""
    import pytest

    code = 1
    try:
        os.chdir(copy)
        output = os.open(OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.path[0] = os.environ["PYTHONPATH"] = str(copy)
        for name in [name for name in sys.modules if name.split(".")[0] in _OWN]:
            del sys.modules[name]
        options = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
        code = pytest.main([*options, "-o", "addopts=--import-mode=importlib", *paths])
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
