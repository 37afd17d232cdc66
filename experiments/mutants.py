"""Mutation testing: which single faults of a module its nearest tests do not see.

    pip install "cosmic-ray>=8.4"
    python -m experiments.mutants solvers/certificates/max_margin.py --out experiments/results

Cosmic Ray makes the mutants, one operator, number or condition each. pytest collects the nearest
tests once, in a copy of the checkout, and one run notes which lines each of them executes. A mutant
is then tried in a fork, whose functions get its code, by the tests that execute its statement, the
first of them those that have killed most in least time. What runs as the module is imported is
tried on the mutated file. What survives is shown, and is counted as equivalent where `mutants.toml`
names it. What was killed is kept under `runs/mutants`: until the module changes, a further run
tries the rest alone, so that a run may be interrupted, and tests added. Linux and macOS.
"""

from __future__ import annotations

import ast
import compileall
import gc
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
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from functools import cache, partial
from itertools import accumulate, product, zip_longest
from pathlib import Path
from py_compile import PycInvalidationMode
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import click
import pandas as pd

ROOT = Path(__file__).parents[1]
KEPT = Path("runs/mutants")
OUTPUT = "mutants-output.txt"
# Tests that take as many seconds of a core, as they are traced, are left out.
LONG = 1.5
KILLER = Path("mutants-killer.txt")

_BOUNDS = (
    "tests/solvers/test_bad_points.py", "tests/solvers/test_certificate.py",
    "-k", "not (every_scale and many)",
)  # fmt: skip
_RELU = (
    "tests/relu_limits/test_pieces.py", "tests/relu_limits/test_bounds.py",
    "tests/relu_limits/test_relu_limits.py",
    "-k", "not (sixty or kinks_on_a_grid or births or weaker or leaky_networks or random_data)",
)  # fmt: skip
_DIAGNOSIS = (
    "tests/diagnosis/test_evidence.py", "tests/diagnosis/test_pieces.py",
    "tests/diagnosis/test_any_network.py", "tests/diagnosis/test_diagnose.py",
    "-k", "test_evidence or test_pieces or frozen or two_parts or repeated_tokens or added_since "
    "or off_its or balanced or dead_unit or another_regime or refused or wrong_input",
)  # fmt: skip
FROZEN = "tests/test_frozen.py"  # of classes of all modules

_RECOGNITION = {
    ("tests/recognition/test_rates.py",): ("rates", "homogenised", "regime", "shares"),
    ("tests/recognition/test_homogeneity.py", "tests/recognition/test_powers.py"): ("homogeneity",),
    ("tests/recognition/test_structure.py",): (
        "structure", "dependence", "layers", "units", "fixed_outer", "network",
    ),
    ("tests/recognition/test_relu.py",): ("relu",),
    ("tests/recognition/test_intake.py",): ("intake",),
    ("tests/recognition/test_subject.py", "tests/recognition/test_intake.py"): ("subject",),
    ("tests/diagnosis/test_attention.py",): ("attention",),
}  # fmt: skip


def _modules_in(folder: str) -> list[str]:
    paths = sorted((ROOT / folder).glob("[!_]*.py"))
    return [path.relative_to(ROOT).as_posix() for path in paths]


# Tests of each module, as pytest takes them, those first that fail soonest.
NEAREST: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_modules_in("solvers/certificates"), _BOUNDS),
    **dict.fromkeys(_modules_in("implicit_bias/limits/relu"), _RELU),
    **{
        f"implicit_bias/networks/recognition/{name}.py": tests
        for tests, names in _RECOGNITION.items() for name in names
    },
    **dict.fromkeys(_modules_in("implicit_bias/runs/diagnosis"), _DIAGNOSIS),
    "implicit_bias/runs/diagnosis/attention.py": ("tests/diagnosis/test_attention.py",),
    "implicit_bias/runs/diagnosis/method.py": ("tests/diagnosis/test_method.py",),
    "implicit_bias/runs/diagnosis/figure.py": ("tests/drawing/test_units_drawn.py",),
    "implicit_bias/runs/diagnosis/network_report.py": (
        "tests/diagnosis/test_network_report.py", "tests/diagnosis/test_attention.py",
        "-k", "test_network_report or frozen or selects or name_no_program",
    ),
    "implicit_bias/runs/diagnosis/state.py": (
        "tests/diagnosis/test_evidence.py", "tests/diagnosis/test_diagnose.py",
        "-k", "test_evidence or frozen or dead_unit or balanced",
    ),
    "implicit_bias/runs/diagnosis/optimum.py": (
        "tests/diagnosis/test_pieces.py", "tests/diagnosis/test_unit_features.py",
        "tests/diagnosis/test_evidence.py",
    ),
    **{
        f"implicit_bias/runs/diagnosis/{name}.py": ("tests/diagnosis/test_evidence.py",)
        for name in ("local", "problem")
    },
    **{
        f"implicit_bias/runs/diagnosis/{name}.py": (
            "tests/diagnosis/test_findings.py", "tests/diagnosis/test_any_network.py",
            "-k", "test_findings or frozen or repeated_tokens",
        )
        for name in ("decayed", "findings", "splitting", "theory")
    },
    "solvers/certificates/constrained.py": ("tests/solvers/test_constrained.py",),
    "solvers/certificates/max_margin.py": (
        *_BOUNDS[:2], "tests/once_wrong/test_certificates.py",
        "-k", "test_certificate or test_bad_points or proves_no_gap or frozen",
    ),
    "solvers/certificates/fits.py": (
        "tests/finite_limits/test_bad_points.py", "tests/once_wrong/test_certificates.py",
        "tests/finite_limits/test_fit.py",
    ),
    "implicit_bias/limits/exact/multiclass.py": ("tests/limits/test_multiclass.py",),
    "implicit_bias/limits/exact/optimiser_norms.py": (
        "tests/limits/test_induced_norms.py", "tests/measures/test_thresholds.py",
    ),
    "implicit_bias/limits/finite/diagonal.py": (
        "tests/finite_limits/test_bad_points.py", "tests/finite_limits/test_diagonal.py",
    ),
    "implicit_bias/limits/kernels/margin.py": ("tests/kernels/test_limits.py",),
    "implicit_bias/limits/kernels/regression.py": ("tests/kernels/test_limits.py",),
    **{
        f"implicit_bias/limits/relu/{name}.py": (*_RELU[:2], "tests/solvers/test_bad_points.py")
        for name in ("arrangement", "bound", "directions", "kinks", "limit", "minimum_norm",
                     "formulation", "problem")
    },
    "implicit_bias/limits/relu/branching.py": ("tests/relu_limits/test_bounds.py",),
    "implicit_bias/limits/relu/descent.py": (
        "tests/relu_limits/test_descent.py", "tests/relu_limits/test_pieces.py",
    ),
    "implicit_bias/limits/relu/fixed_outer.py": (
        "tests/models/fixed_outer/test_steps.py", "tests/models/fixed_outer/test_fixed_outer.py",
        "-k", "test_steps or local_optimum or closed_form or wrong_input",
    ),
    "implicit_bias/limits/relu/search.py": (
        "tests/relu_limits/test_search.py", "tests/relu_limits/test_pieces.py",
    ),
    "implicit_bias/limits/relu/least_bias.py": ("tests/relu_limits/test_least_bias.py",),
    "implicit_bias/networks/losses/labels.py": ("tests/recognition/test_intake.py",),
    "implicit_bias/measures/kkt.py": (
        "tests/measures/test_kkt.py", "tests/measures/test_exchange.py",
        "tests/measures/test_level.py",
    ),
    "implicit_bias/measures/kkt_ratio.py": (
        "tests/measures/test_kkt_ratio.py", "tests/measures/test_kkt.py",
    ),
    "implicit_bias/measures/level.py": ("tests/measures/test_level.py",),
    "implicit_bias/measures/fit/margin_rows.py": (
        "tests/measures/test_margin_rows.py", "tests/measures/test_level.py",
    ),
    "implicit_bias/networks/gated/open_gates.py": ("tests/measures/test_open_gates.py",),
}  # fmt: skip

# Of Cosmic Ray's operators one a symbol: of a comparison its opposite, of a number one more.
OPERATORS = re.compile(
    "core/(ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_Mul|Pow_Mul"
    "|BitAnd_BitOr|BitOr_BitAnd)"
    "|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is|Lt_GtE|LtE_Gt|Gt_LtE|GtE_Lt"
    "|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt)"
    "|ReplaceUnaryOperator_Delete_.*|AddNot|Replace(True|False|And|Or|Break|Continue).*"
    "|ExceptionReplacer|NumberReplacer|ZeroIterationForLoop)$"
)
# Edges of comparisons beside their opposites, where the other side is a number.
EDGES = re.compile(".*_(Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt)")
TYPES = "TYPE_CHECKING"  # a condition of imports for annotations alone
# What is imported once, before tests are timed; of torch what it imports as it first needs it.
_LIBRARIES = (
    "numpy", "scipy.optimize", "sklearn.svm", "torch", "torch._dynamo", "cvxpy", "pytest",
    "hypothesis",
)  # fmt: skip
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
        for was, *becomes in entry["changes"]:
            changes |= {Change(was, one): entry["reason"] for one in becomes}
    return found


def mutants(text: str) -> Iterator[Mutant]:
    """Yield all mutants of the text of a module, but for those of annotations."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    told, lines = _annotations(text), text.splitlines(keepends=True)
    begins = [0, *accumulate(map(len, lines))]
    operators = {name: get_operator(name)() for name in operator_names() if OPERATORS.match(name)}
    for node, (name, operator) in product(ast_nodes(get_ast(text)), operators.items()):
        for index, (place, _) in enumerate(operator.mutation_positions(node)):
            if any(a <= place < b for a, b in told) or not _says_more(name, index, node, place):
                continue
            (line, column), code = node.start_pos, node.get_code(include_prefix=False)
            first = begins[line - 1] + column
            changed = operator.mutate(deepcopy(node, {id(node.parent): node.parent}), index)
            becomes = changed.get_code(include_prefix=False)
            mutant = text[:first] + becomes.lstrip() + text[first + len(code) :]
            change = (one[place[0] - 1].strip() for one in (lines, mutant.splitlines()))
            yield Mutant(mutant, place[0], Change(*change))


def _says_more(name: str, index: int, node: Any, place: tuple[int, int]) -> bool:
    """Whether a mutant of a node is none of those whose killers are those of another one."""
    if EDGES.fullmatch(name):
        return any(child.type == "number" for child in node.children)
    if name.endswith("AddNot"):
        told = next(one for one in node.children if one.start_pos == place)
        while told.type in ("and_test", "or_test"):  # of which the first part is negated
            told = told.children[0]
        return told.type not in ("comparison", "not_test") and told.get_code(False) != TYPES
    if "Binary" in name and node.parent.type == "parameters":  # a star
        return False
    return not (name.endswith("NumberReplacer") and index)


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
@click.option("--seconds", default=60.0, help="Time of the tests that each is tried with at most.")
def main(modules: tuple[str, ...], out: Path | None, seconds: float) -> None:
    if importlib.util.find_spec("cosmic_ray") is None:
        raise click.UsageError('`pip install "cosmic-ray>=8.4"` first')
    for name in _LIBRARIES:
        importlib.import_module(name)
    for module in modules or NEAREST:
        counts = {"module": module, **tried(module, seconds)}
        click.echo("  ".join(f"{name} {value}" for name, value in counts.items()))
        if out is not None:
            path = out / "mutants.csv"
            table = pd.read_csv(path).set_index("module") if path.exists() else pd.DataFrame()
            table = table.drop(index=module, errors="ignore")
            row = pd.DataFrame([counts]).set_index("module")
            pd.concat([table, row]).sort_index().to_csv(path, index_label="module")


def tried(module: str, seconds: float) -> dict[str, int]:
    """Return how many mutants a module has, how many are killed, and how many are equivalent."""
    text = (ROOT / module).read_text()
    if _left(module, text):
        with tempfile.TemporaryDirectory() as folder:
            copy = _copied(Path(folder))
            if not _passes(lambda: _try_all(copy, module, seconds)):
                said = (copy / OUTPUT).read_text()[-4000:]
                raise click.ClickException(f"the tests of {module} fail as it is:\n{said}")
    alive, keys = _left(module, text), [one.key for one in mutants(text)]
    for mutant in alive:
        was, becomes = mutant.change
        click.echo(f"{module}:{mutant.number} survives\n  - {was}\n  + {becomes}")
    n_killed = len(set(_killed(module, text)) & set(keys))
    n_equivalent = len(keys) - n_killed - len(alive)
    return {"mutants": len(keys), "killed": n_killed, "equivalent": n_equivalent}


def _left(module: str, text: str) -> list[Mutant]:
    """Return the mutants of a module of this text that are neither killed nor equivalent."""
    killed, same = _killed(module, text), equivalent().get(module, {})
    return [one for one in mutants(text) if one.key not in killed and one.change not in same]


def _killed(module: str, text: str) -> list[str]:
    """Return the keys of the mutants of a module of this text that were killed by now."""
    path = _kept(module)
    known = json.loads(path.read_text()) if path.exists() else {}
    return known["killed"] if known.get("text") == text else []


def _kept(module: str) -> Path:
    return ROOT / KEPT / f"{module.replace('/', '.')}.json"


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


def _passes(run: Callable[[], bool], limit: float = 3600.0) -> bool:
    """Return whether a function returns True within so many seconds, in a fork."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, limit)
            code = 0 if run() else 1
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return status == 0


def _try_all(copy: Path, module: str, seconds: float) -> bool:
    """Try all mutants of a module that are not killed yet; False where its tests fail as it is."""
    os.chdir(copy)
    output = os.open(OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.path[0] = os.environ["PYTHONPATH"] = str(copy)
    trials = _Trials(copy / module, seconds)
    return _pytest([FROZEN, *NEAREST[module]], trials, _Killer()) == 0


def _pytest(paths: Iterable[str], *plugins: object) -> int:
    import pytest

    for name in [name for name in sys.modules if name.split(".")[0] in _OWN]:
        del sys.modules[name]
    options = ["-x", "-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider"]
    return int(pytest.main([*options, "-o", "addopts=--import-mode=importlib", *paths], plugins))


class _Killer:
    """A plugin of pytest that writes down which test fails."""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            KILLER.write_text(report.nodeid)


class _Trials:
    """A plugin of pytest that tries the mutants of a module in place of running tests once."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.seconds = seconds
        self.path, self.module = path, path.relative_to(Path.cwd()).as_posix()
        self.lines: set[int] = set()  # those executed since it was cleared
        self.kills: Counter[str] = Counter()
        self._trace(True)

    def _trace(self, on: bool) -> None:
        path, lines = str(self.path), self.lines

        def inside(frame: FrameType, event: str, arg: object) -> Any:
            lines.add(frame.f_lineno)
            return inside

        def entered(frame: FrameType, event: str, arg: object) -> Any:
            return inside(frame, event, arg) if frame.f_code.co_filename == path else None

        sys.settrace(entered if on else None)

    def pytest_runtestloop(self, session: Any) -> bool:
        self._trace(False)
        imported, found = set(self.lines), Path(OUTPUT).with_suffix(".json")
        if not _passes(lambda: self._note(session, found)):
            session.testsfailed = 1
            return True
        noted = json.loads(found.read_text())
        gc.unfreeze()
        functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
        # None where no test file imports the module, but the tests themselves.
        self.own = [one for one in functions if one.__code__.co_filename == str(self.path)]
        gc.freeze()
        text = self.path.read_text()
        killed, statements = _killed(self.module, text), _statements(text)
        for mutant in _left(self.module, text):
            own = statements[mutant.number]
            whole = bool(own & imported)
            tests = [test for test, (_, lines) in noted.items() if whole or own & set(lines)]
            tests.sort(key=lambda test: noted[test][0] / (1 + self.kills[test]))
            took = list(accumulate(noted[test][0] for test in tests))
            tests = tests[: 1 + bisect_right(took, self.seconds)]
            limit = 30 + 10 * sum(took[: len(tests)])
            if tests and not _passes(partial(self._survives, session, mutant, tests, whole), limit):
                killed.append(mutant.key)
                _kept(self.module).parent.mkdir(parents=True, exist_ok=True)
                _kept(self.module).write_text(json.dumps({"text": text, "killed": killed}))
                if KILLER.exists():
                    self.kills[KILLER.read_text()] += 1
                    KILLER.unlink()
        return True

    def _note(self, session: Any, found: Path) -> bool:
        """Run all tests, and write how many seconds each takes and which lines it executes."""
        noted = {}
        for item, following in zip_longest(session.items, session.items[1:]):
            self.lines.clear()
            began = time.process_time()
            self._trace(True)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._trace(False)
            if (took := time.process_time() - began) < LONG:
                noted[item.nodeid] = took, sorted(self.lines)
        found.write_text(json.dumps(noted))
        return not session.testsfailed

    def _survives(self, session: Any, mutant: Mutant, tests: list[str], whole: bool) -> bool:
        """Return whether all tests of a mutant pass."""
        if whole or not self.own or not self._replaced(mutant.text):
            sys.dont_write_bytecode = True
            self.path.write_text(mutant.text)
            return _pytest(tests, _Killer()) == 0
        items = {item.nodeid: item for item in session.items}
        for test, following in zip_longest(tests, tests[1:]):
            item, nextitem = items[test], items.get(following)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if session.testsfailed:
                return False
        return True

    def _replaced(self, text: str) -> bool:
        """Give all functions of the module the code that they have in a mutant, if they can."""
        codes = _codes(compile(text, str(self.path), "exec"))
        try:
            for one in self.own:
                one.__code__ = codes[one.__code__.co_qualname, one.__code__.co_firstlineno]
        except ValueError:  # a loop left out, and a variable of an outer function with it
            return False
        return True


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Return all code within that of a module, by its name and first line."""
    found = {(code.co_qualname, code.co_firstlineno): code}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _codes(inner)
    return found


def _statements(text: str) -> dict[int, set[int]]:
    """Return the lines of the statement, without its body, that each line belongs to."""
    found: dict[int, set[int]] = {}
    for node in ast.walk(ast.parse(text)):  # outer ones first
        if isinstance(node, (ast.stmt, ast.excepthandler)):
            body = getattr(node, "body", None)
            last = max(body[0].lineno - 1, node.lineno) if body else node.end_lineno or 0
            first = min(one.lineno for one in [node, *getattr(node, "decorator_list", [])])
            own = set(range(first, last + 1))
            found |= dict.fromkeys(own, own)
    return found


if __name__ == "__main__":
    main()
