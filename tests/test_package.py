"""The shape of the package: who imports whom, what loads when, and what its README promises."""

from __future__ import annotations

import ast
import functools
import importlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import implicit_bias

ROOT = Path(__file__).parents[1]
LIGHT = {"click", "rich"}  # what the command line may load before it has read its options


class Import:
    """One import statement: the absolute name of the module, and whether it runs on import."""

    def __init__(self, module: str, *, lazy: bool, typing_only: bool) -> None:
        self.module, self.lazy, self.typing_only = module, lazy, typing_only

    def of(self, package: str) -> bool:
        return self.module == package or self.module.startswith(package + ".")


@functools.cache
def imports(path: Path) -> list[Import]:
    """Every import in a file of this repository, those in functions and `TYPE_CHECKING` marked."""
    package = path.relative_to(ROOT).with_suffix("").parts
    # The package that relative names start from: the file's folder.
    parts = package[:-1]
    found: list[Import] = []

    def visit(node: ast.AST, *, lazy: bool, typing_only: bool) -> None:
        marks = {"lazy": lazy, "typing_only": typing_only}
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, **marks) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = parts[: len(parts) - node.level + 1] if node.level else ()
            module = ".".join([*start, *([node.module] if node.module else [])])
            # `from package import module` imports the module as well.
            found.append(Import(module, **marks))
            found.extend(Import(f"{module}.{alias.name}", **marks) for alias in node.names)
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                visit(child, lazy=lazy, typing_only=True)
            for child in node.orelse:
                visit(child, lazy=lazy, typing_only=typing_only)
            return
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # no expression imports
                visit(child, lazy=lazy, typing_only=typing_only)

    visit(ast.parse(path.read_text(encoding="utf-8")), lazy=False, typing_only=False)
    return found


def modules(*places: str) -> list[Path]:
    """Python files of the repository below these folders, or these files."""
    return _modules(ROOT, *places)


@functools.cache
def _modules(root: Path, *places: str) -> list[Path]:
    paths = [root / place for place in places]
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    assert files, places
    return sorted(files)


def offenders(paths: list[Path], packages: set[str], **marks: bool) -> list[str]:
    """`file imports module` for every import of one of `packages` whose marks are these."""
    return [
        f"{path.relative_to(ROOT)} imports {statement.module}"
        for path in paths
        for statement in imports(path)
        if any(statement.of(package) for package in packages)
        and all(getattr(statement, mark) == value for mark, value in marks.items())
    ]


def test_the_reader_of_imports_sees_relative_lazy_and_typing_ones(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "house" / "room").mkdir(parents=True)
    path = tmp_path / "house" / "room" / "table.py"
    path.write_text(
        "import typing\nfrom ..attic import box\nfrom . import chair\n"
        "if typing.TYPE_CHECKING:\n    import torch.nn\nelse:\n    import numpy\n"
        "def f():\n    from cvxpy import norm\n"
    )
    seen = {(i.module, i.lazy, i.typing_only) for i in imports(path)}
    assert seen == {
        ("typing", False, False),
        ("house.attic", False, False), ("house.attic.box", False, False),
        ("house.room", False, False), ("house.room.chair", False, False),
        ("torch.nn", False, True), ("numpy", False, False),
        ("cvxpy", True, False), ("cvxpy.norm", True, False),
    }  # fmt: skip


def test_solvers_have_never_heard_of_a_network() -> None:
    assert offenders(modules("solvers"), {"implicit_bias", "experiments", "tests"}) == []


def test_solvers_import_each_other_by_relative_names() -> None:
    written = [
        f"{path.name}: {ast.unparse(node)}"
        for path in modules("solvers")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (
            isinstance(node, ast.ImportFrom)
            and not node.level
            and (node.module or "").split(".")[0] == "solvers"
        )
        or (
            isinstance(node, ast.Import)
            and any(alias.name.split(".")[0] == "solvers" for alias in node.names)
        )
    ]
    assert written == []


def test_solvers_load_torch_and_cvxpy_only_where_they_use_them() -> None:
    heavy = {"torch", "cvxpy", "sklearn", "pandas", "matplotlib"}
    assert offenders(modules("solvers"), heavy, lazy=False, typing_only=False) == []


# Where programs are stated for cvxpy: the standard form, and what the formulations state.
LITERAL = {
    "solvers/methods/backends/cvxpy_margins.py", "solvers/methods/backends/cvxpy_norms.py",
    "solvers/methods/backends/cvxpy_solvers.py",
    "implicit_bias/limits/literal.py",
}  # fmt: skip


def test_cvxpy_is_imported_in_few_modules_when_a_program_is_stated() -> None:
    users = offenders(modules("solvers", "implicit_bias"), {"cvxpy"}, typing_only=False)
    assert {line.split()[0] for line in users} == LITERAL
    assert offenders(modules("implicit_bias"), {"cvxpy"}, lazy=False, typing_only=False) == []


def test_the_package_reaches_its_solvers_through_one_seam() -> None:
    users = offenders(modules("implicit_bias"), {"solvers"})
    assert {line.split()[0] for line in users} == {
        os.path.join("implicit_bias", "_support", "solve.py")
    }


# Who may import whom, below `implicit_bias`: the first row whose glob matches a file says what
# that file may name, "." for its own folder. Lazy imports count, those for type checkers do not.
BELOW_MODELS = (
    "_support.solve", "data.*", "gates.*", "limits.*", "networks.*",
    "training.*", "measures.*", "options.*", "quantities.*", "runs.*",
)  # fmt: skip
NAMESPACES = (
    "atlas", "autoencoders", "datasets", "distillation", "dynamics", "equivalence", "heads",
    "kernels", "optim", "programs", "protocols",
)  # fmt: skip
MAY_IMPORT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("__init__.py", ()),
    ("__main__.py", ("_support.interrupts", "cli")),
    ("_support/shown.py", ("_support.solve",)),
    ("_support/kinds.py", ("_support.solve",)),  # when the first argument is checked
    # By a table of texts: what `names` names is imported when a file asks for it.
    ("_support/*.py", ()),
    ("quantities/*.py", (".",)),
    # Namespaces, whose names stand in the stubs beside them.
    *((f"{name}.py", ()) for name in NAMESPACES),
    ("data/*.py", (".", "_support.solve")),
    ("data/*/*.py", (".", "_support.solve", "data.*")),
    # What reads ReLU networks is one, wherever their weights are wanted.
    ("gates/*.py", (".", "_support.solve", "data.arrays", "networks.recognition.relu")),
    # The places of inputs, and nothing of a norm.
    ("networks/structured/*.py", (".", "networks.*", "data.groups")),
    ("networks/*.py", (".",)),
    ("networks/gated/*.py", (".", "networks.*")),
    ("networks/losses/labels.py", (".", "_support.solve", "networks.placed_data",
                                   "networks.protocols")),
    ("networks/losses/*.py", (".",)),
    # By its values alone: recognition knows no program and no theory.
    ("networks/recognition/*.py", (".", "_support.solve", "data.arrays", "networks.adapted",
                                   "networks.losses.*", "networks.placed_data",
                                   "networks.weights")),
    ("limits/*.py", (".", "_support.solve", "data.*")),
    ("limits/exact/*.py", (".", "_support.solve", "data.*", "limits.*")),
    ("limits/convolution/*.py", (".", "_support.solve", "data.*", "limits.*")),
    # The kernel that a network has at its weights is a measurement; all others are predictions.
    ("limits/kernels/tangent.py", (".", "_support.solve", "data.*", "networks.placed_data",
                                   "networks.protocols")),
    ("limits/kernels/*.py", (".", "_support.solve", "data.*", "limits.literal",
                             "limits.predictors", "limits.result")),
    ("limits/local/*.py", (".", "_support.solve", "limits.predictors", "limits.result",
                           "limits.stored", "networks.adapted", "networks.derivatives",
                           "networks.gated.open_gates", "networks.losses.labels",
                           "networks.protocols", "networks.placed_data")),
    # Of a network they read the weights, and give a limit back as one.
    ("limits/relu/*.py", (".", "_support.solve", "data.arrays", "limits.literal",
                          "limits.predictors", "limits.result", "networks.relu",
                          "networks.recognition.relu")),
    ("limits/finite/*.py", (".", "_support.solve", "data.arrays", "limits.*")),
    *(
        (glob, ("_support.solve", "networks.*", "training.*"))
        for glob in ("training/*.py", "training/steppers/*.py")
    ),
    ("measures/fit/*.py", (".", "_support.solve", "networks.*", "training.*")),
    ("measures/equivalence/*.py", (".", "_support.solve", "limits.result",
                                   "networks.recognition.relu")),
    *(
        (glob, (".", "_support.solve", "data.*", "gates.*", "limits.*", "measures.*", "networks.*",
                "training.*"))
        for glob in ("measures/*.py", "measures/growth/*.py")
    ),
    ("options/*.py", (".", "data.names", "training.catalogue")),
    ("runs/drawing/*.py", (".", "_support.solve", "data.*", "measures.*", "limits.*",
                           "training.trajectory", "training.network_snapshots")),
    *(
        (glob, (".", "_support.solve", "data.sample", "gates.gating", "limits.*", "measures.*",
                "runs.drawing.*", "runs.reports.*", "options.of_models", "options.values",
                "training.settings", "training.trajectory"))
        for glob in ("runs/reports/*.py", "runs/reports/saved/*.py", "runs/reports/shown/*.py")
    ),
    # Theorems by the form that a module is recognised to have.
    ("runs/diagnosis/*.py", (".", *BELOW_MODELS, "_support.words")),
    *(
        (glob, (".", "_support.solve", "_support.interrupts", "data.*",
                "gates.*", "limits.*", "training.*", "measures.*", "networks.protocols",
                "networks.losses.*", "networks.placed_data", "options.*", "runs.*"))
        for glob in ("runs/*.py", "runs/*/*.py")
    ),
    ("models/__init__.py", ("models.*.model", "runs.model")),
    ("models/*/__init__.py", ()),
    ("models/*/model.py", (".", *BELOW_MODELS)),
    # A closed form and its trainer in one file, which meet in a picture.
    ("models/autoencoders/*.py", (".", "data.arrays", "runs.drawing.figures")),
    # Stages of a run that solve, and see nothing that trains.
    ("models/*/prediction.py", (".", "_support.solve", "data.*", "gates.*", "limits.*",
                                "quantities.*", "runs.*")),
    # Prediction and training meet here, behind limit and network: in runs, their parts, pictures.
    *(
        (f"models/*/{name}.py", (".", *BELOW_MODELS))
        for name in ("parts", "*run", "diagnosis", "*comparison", "machines", "freezing", "figure",
                     "schedule", "training", "descent", "start", "frozen_trunk", "frozen_copy",
                     "local_limit", "learning", "neurons")
    ),
    *(
        (f"models/{name}.py", (".", *BELOW_MODELS))
        for name in ("dgn/*_regime", "dgn/gated_layers", "diagonal/beside_limit", "gdln/twins")
    ),
    ("models/*/*.py", (".", "_support.solve", "data.*", "gates.*", "limits.*")),
    ("estimators/*.py", (".", "_support.solve", "data.*", "gates.*", "limits.*", "models.*")),
    # The one that looks a model up.
    ("models/run_model.py", (*BELOW_MODELS, "models")),
    # What `show` proves of a saved run.
    ("models/proving.py", ("models", "models.run_model", "runs.*", "data.*", "limits.limit")),
    *(
        (glob, (".", "models", "models.proving", "models.run_model",
                "limits.exact.linear", "options.*", "runs.*", "sweeps.*", "data.dataset",
                "data.labelled", "data.names", "_support.solve"))
        for glob in ("sweeps/*.py", "sweeps/engines/*.py")
    ),
    ("cli.py", ("models", "options.*", "models.run_model", "runs.*",
                "sweeps.commands", "sweeps.showing")),
)  # fmt: skip
PACKAGE = "implicit_bias"


def module_name(path: Path) -> str:
    """The absolute name of the module in a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def names_of_modules(package: str) -> set[str]:
    return set(map(module_name, modules(package)))


def named_modules(path: Path, *, typing_only: bool = False) -> set[str]:
    """The modules of its package that a file imports when it runs, without the package's name.

    Those for type checkers count too where `typing_only` says so.
    """
    package = path.relative_to(ROOT).parts[0]
    known = names_of_modules(package) - {module_name(path)}
    named = {
        statement.module for statement in imports(path)
        if typing_only or not statement.typing_only
    }  # fmt: skip
    return {name.removeprefix(f"{package}.") for name in named & known}


def row_of(path: Path) -> tuple[str, tuple[str, ...]]:
    inside = path.relative_to(ROOT / PACKAGE)
    return next(
        (row for row in MAY_IMPORT if len(inside.parts) == row[0].count("/") + 1
         and inside.match(row[0])),
        ("none", ()),
    )  # fmt: skip


def test_every_file_has_a_row_of_the_import_table_and_every_row_a_file() -> None:
    rows = {row_of(path)[0] for path in modules(PACKAGE)}
    assert rows == {glob for glob, _ in MAY_IMPORT}


EVERYWHERE = (  # which know nothing of what they are for
    "_support", *(f"_support.{name}" for name in (
        "files", "extras", "interrupts", "lazy", "names", "doors", "kinds", "saved", "shown",
        "pictures", "words",
    )), "quantities.*",
)  # fmt: skip


def test_imports_go_one_way() -> None:
    climbs = {}
    for path in modules(PACKAGE):
        own = ".".join(path.relative_to(ROOT / PACKAGE).parts[:-1])
        allowed = [entry.replace("./", f"{own}.") for entry in row_of(path)[1]]
        allowed += [*[f"{own}.*"] * ("." in allowed), *EVERYWHERE]
        climbs[module_name(path)] = {
            name for name in named_modules(path)
            if not any(fnmatch(name, entry) for entry in allowed)
        }  # fmt: skip
    assert {name: found for name, found in climbs.items() if found} == {}, "see `MAY_IMPORT`"


@pytest.mark.parametrize("package", [PACKAGE, "solvers"])
def test_modules_form_no_circle_not_by_types_nor_inside_functions(package) -> None:
    below = {
        module_name(path).removeprefix(f"{package}."): named_modules(path, typing_only=True)
        for path in modules(package)
    }
    # Those that lean on nothing that is left go, floor by floor; a circle would stay.
    while floor := {name for name, leans in below.items() if not leans & set(below)}:
        below = {name: leans for name, leans in below.items() if name not in floor}
    assert below == {}


# In the order of a run: each imports from those before it, for type checkers too.
FLOORS = ("options", "runs/drawing", "runs/reports", "runs", "models", "sweeps", "cli.py")


@pytest.mark.parametrize("floor", range(4))
def test_an_option_knows_no_report_a_report_no_run_and_a_run_no_model(floor) -> None:
    inside = {path for name in FLOORS[: floor + 1] for path in modules(f"{PACKAGE}/{name}")}
    above = {module_name(path).removeprefix(f"{PACKAGE}.") for name in FLOORS[floor + 1 :]
             for path in modules(f"{PACKAGE}/{name}") if path not in inside}  # fmt: skip
    met = {f"{path}: {name}" for path in inside
           for name in named_modules(path, typing_only=True) & above}  # fmt: skip
    assert met == set()


def test_the_table_of_models_knows_no_data_and_no_report() -> None:
    paths = {module_name(path).removeprefix(f"{PACKAGE}."): path for path in modules(PACKAGE)}
    seen, left = set(), {"runs.model"}
    while left:
        name = left.pop()
        seen.add(name)
        left |= named_modules(paths[name], typing_only=True) - seen
    assert seen == {"runs.model", "quantities.assumptions", "options.fields", "options.resolve",
                    "options.values", "data.names", "training.catalogue",
                    "_support.words"}  # fmt: skip


def test_a_formulation_knows_no_network_and_a_network_no_limit() -> None:
    for path in modules(f"{PACKAGE}/models"):
        if row_of(path)[0] == "models/*/*.py":
            met = [name for name in named_modules(path) if "network" in name.split(".")[-1]]
            assert met == [], path
            assert offenders([path], {"torch"}, typing_only=False) == []


def test_the_library_does_not_import_its_command_line_or_what_is_not_installed() -> None:
    library = [path for path in modules("implicit_bias") if path.name not in {"__main__.py"}]
    assert offenders(library, {"implicit_bias.cli", "experiments", "tests"}) == []


def said_by(program: str) -> list[str]:
    """The words that a program prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout.split()


def test_a_run_loads_what_it_calls_and_little_else() -> None:
    """Of more than 500 modules: another family's run, pictures that nobody asked for are not."""
    program = (
        "import sys; from implicit_bias.cli import compare\n"
        "try: compare(['--model', 'gln', '--quiet', '--n-train', '40', '--steps', '100'])\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        f"print(*(name for name in sys.modules if name.split('.')[0] in ({PACKAGE!r}, 'solvers')))"
    )
    loaded = said_by(program)
    assert len(loaded) <= 200
    families = {name.split(".")[2] for name in loaded if name.startswith("implicit_bias.models.")}
    assert families == {"gln", "run_model"}
    drawing = {name for name in loaded if name.startswith("implicit_bias.runs.drawing.")}
    assert drawing == {"implicit_bias.runs.drawing.figures"}


@pytest.mark.parametrize(
    "statement",
    [
        "import implicit_bias",
        "import implicit_bias.cli",
        "import implicit_bias.cli as c; c.compare.get_help(c.click.Context(c.compare))",
    ],
)
def test_importing_the_package_or_building_the_command_line_loads_nothing_heavy(statement) -> None:
    program = (
        f"import sys; before = set(sys.modules); {statement}\n"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    said, own = set(said_by(program)), {"implicit_bias"}
    assert said - sys.stdlib_module_names - own <= LIGHT
    assert own <= said


def test_tests_import_public_names_and_the_faces_of_folders_alone() -> None:
    """A file that moves inside its folder edits no test."""
    known = {module_name(path): path for path in modules(PACKAGE)}
    inside = {
        name for name, path in known.items()
        if name.split(".")[1:2] and (
            name.split(".")[1].startswith("_")
            or (len(name.split(".")) > 2 and path.name != "__init__.py")
        )
    }  # fmt: skip
    reach = {
        path.relative_to(ROOT).as_posix(): {one.module for one in imports(path)} & inside
        for path in modules("tests")
    }
    # What runs any model is the face of all their rooms.
    found = {
        f"{path} imports {name}"
        for path, names in reach.items() for name in names - {f"{PACKAGE}.models.run_model"}
    }  # fmt: skip
    assert found == set()


def test_no_face_lists_a_name_that_a_module_of_its_folder_has() -> None:
    """Once such a module is loaded, the folder's attribute of that name is the module."""
    for stub in (ROOT / PACKAGE).rglob("__init__.pyi"):
        below = {path.stem for path in stub.parent.iterdir()}
        listed = {
            alias.name
            for node in ast.parse(stub.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ImportFrom) and node.module is not None
            for alias in node.names
        }
        assert listed & below == set(), stub


def test_every_public_name_resolves_and_is_listed() -> None:
    assert len(set(implicit_bias.__all__)) == len(implicit_bias.__all__)
    for name in implicit_bias.__all__:
        assert getattr(implicit_bias, name) is not None
    assert set(dir(implicit_bias)) >= set(implicit_bias.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = implicit_bias.no_such_name


NAMESPACES = (
    "atlas", "autoencoders", "datasets", "distillation", "dynamics", "equivalence", "estimators",
    "gates", "heads", "kernels", "limits", "measures", "networks", "optim", "programs", "protocols",
    "sweeps",
)  # fmt: skip


def test_the_top_level_stays_short_and_the_rest_has_namespaces() -> None:
    assert len(implicit_bias.__all__) <= 61
    assert set(NAMESPACES) <= set(implicit_bias.__all__)


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_namespace_is_an_import_path_and_completes_its_names(name) -> None:
    namespace = importlib.import_module(f"implicit_bias.{name}")
    assert getattr(implicit_bias, name) is namespace
    assert namespace.__doc__ and set(dir(namespace)) >= set(namespace.__all__)
    for public in namespace.__all__:
        assert getattr(namespace, public) is not None
    # What stands at the top too is the same thing.
    for public in set(namespace.__all__) & set(implicit_bias.__all__):
        assert getattr(namespace, public) is getattr(implicit_bias, public)


@pytest.mark.parametrize("package", ["implicit_bias", "solvers"])
def test_every_module_imports(package) -> None:
    for path in modules(package):
        if path.name == "__main__.py":
            continue
        parts = path.relative_to(ROOT).with_suffix("").parts
        importlib.import_module(".".join(p for p in parts if p != "__init__"))


def test_the_version_heads_the_changelog_and_is_the_one_to_cite() -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff")]
    newest = re.search(r"^## (\S+)$", texts[0], re.M)
    cited = re.search(r"^version: (\S+)$", texts[1], re.M)
    assert newest and cited and newest[1] == cited[1] == implicit_bias.__version__


def test_the_version_is_the_installed_one() -> None:
    try:
        installed = version("implicit-bias")
    except PackageNotFoundError:
        pytest.skip("run from a checkout that is not installed")
    assert installed == implicit_bias.__version__


def test_what_is_built_has_every_file_what_type_checkers_read_and_no_link_to_a_checkout(
    built,
) -> None:
    def files(root: Path) -> set[str]:
        return {
            path.relative_to(root).as_posix()
            for package in ("implicit_bias", "solvers")
            for path in (root / package).rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }

    told = "implicit_bias/_typed_models.pyi"
    assert files(built) == files(ROOT) | {told}
    assert {"implicit_bias/py.typed", "solvers/py.typed"} <= files(built)
    assert "class GridOptions" in (built / told).read_text(encoding="utf-8")
    (metadata,) = built.parent.glob("*.egg-info/PKG-INFO")
    described = metadata.read_text(encoding="utf-8")
    assert "`docs/installing.md`" in described and not re.search(r"\]\((?!\w+:)", described)


def readme() -> str:
    path = ROOT / "README.md"
    if not path.is_file():
        pytest.skip("there is no README.md here")
    return path.read_text(encoding="utf-8")


def test_every_option_that_the_readme_shows_exists() -> None:
    from implicit_bias.cli import compare
    from implicit_bias.models import MODELS
    from implicit_bias.options import flag

    own = {name for option in compare.params for name in option.opts} | {"--help"}
    known = own | {flag(name) for model in MODELS.values() for name in model.option_names}
    shown = re.findall(r"compare ((?:[^`\n]|\\\n)*--[^`\n]*(?:\\\n[^`\n]*)*)", readme())
    options = {word for line in shown for word in re.findall(r"(?<!\S)--[a-z-]+", line)}
    assert "--model" in options
    assert options <= known


def test_the_source_distribution_carries_tests_and_all_that_the_readme_links_to() -> None:
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    carried = {
        word for command, *words in lines if command in {"graft", "include"} for word in words
    }
    assert {"tests", "docs", "experiments", "constraints.txt"} <= carried
    assert all((ROOT / name).exists() for name in carried)
    links = re.findall(r"\]\(([^)#:]+)\)", readme())
    assert {link.split("/")[0] for link in links} <= carried
    assert all((ROOT / link).exists() for link in links)


def sources() -> Iterator[Path]:
    kinds = {".py", ".md", ".toml", ".txt", ".sh", ".cfg", ".yml", ".yaml"}
    for folder, below, files in os.walk(ROOT):
        hidden = {"build", "dist", "__pycache__"}
        below[:] = [
            name for name in below
            if name not in hidden and (not name.startswith(".") or name == ".ci")
            and not name.endswith(".egg-info") and not (Path(folder) / name / "pyvenv.cfg").exists()
        ]  # fmt: skip
        for name in files:
            if Path(name).suffix in kinds or Path(folder).name == ".ci":
                yield Path(folder) / name


def test_no_file_refers_to_a_machine_of_its_authors() -> None:
    # In two parts each, since this file is one of those that are read.
    private = ["../" + "shared", "/" + "work/"]
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in sources()
        for word in private
        if word in path.read_text(encoding="utf-8")
    ]
    assert found == []


def own_fields(tree: ast.Module) -> dict[str, int]:
    """How many fields each class of a module has of its own, beside those of its bases.

    What scikit-learn's estimators learn, names that end in "_", is declared for checkers alone.
    """
    return {
        node.name: sum(
            isinstance(entry, ast.AnnAssign)
            and "ClassVar" not in ast.unparse(entry.annotation)
            and not ast.unparse(entry.target).endswith("_")
            for entry in node.body
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def test_the_fields_that_are_counted_are_those_of_dataclasses() -> None:
    text = Path(implicit_bias.__file__).with_name("training") / "trajectory.py"
    counted = own_fields(ast.parse(text.read_text(encoding="utf-8")))
    cls = implicit_bias.Trajectory
    assert counted["Trajectory"] == len(cls.__dataclass_fields__) > 10


MANY_FIELDS = 14
FILES_OF_A_FOLDER = 20
LOOKED_AT = 14


def test_no_class_of_results_or_choices_has_more_fields_of_its_own_than_a_reader_takes_in() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}": n
        for path in modules(PACKAGE, "solvers")
        for name, n in own_fields(ast.parse(path.read_text(encoding="utf-8"))).items()
    }
    assert len(found) > 200
    assert {name: n for name, n in found.items() if n > MANY_FIELDS} == {}


def test_no_folder_has_more_files_than_a_reader_takes_in() -> None:
    stubs = [path.with_suffix(".pyi") for path in modules(PACKAGE, "solvers")]
    files = [*modules(PACKAGE, "solvers"), *(stub for stub in stubs if stub.exists())]
    faces = [stub.with_suffix(".py") for stub in (ROOT / PACKAGE).glob("[a-z]*.pyi")]
    assert len(faces) == 11
    top = {*faces, *(face.with_suffix(".pyi") for face in faces)}
    folders = Counter(path.parent for path in files if path not in top)
    assert {folder: n for folder, n in folders.items() if n > FILES_OF_A_FOLDER} == {}
    entries = {path.relative_to(ROOT / PACKAGE).parts[0] for path in modules(PACKAGE)}
    seen = {
        entry for entry in entries
        if not entry.startswith("__") and ROOT / PACKAGE / entry not in faces
    }  # fmt: skip
    assert 10 < len(seen) <= LOOKED_AT, sorted(seen)
