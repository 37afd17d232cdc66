"""What type checkers tell users: their mistakes, each on its line, and nothing of what is right."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCRIPTS = ("correct.py", "mistakes.py")
MARK = re.compile(r"# E: (?P<code>[a-z-]+)$")


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, set[tuple[int, str]]]:
    """The lines and codes of what mypy says of each script, beside nothing of the package."""
    folder = tmp_path_factory.mktemp("scripts")
    config = folder / "mypy.ini"
    # As of an installed package, whose own code mypy does not check.
    config.write_text(
        "[mypy]\nstrict = true\n[mypy-implicit_bias.*,solvers.*]\nignore_errors = true\n"
        "[mypy-cvxpy.*]\nfollow_imports = skip\nignore_missing_imports = true\n",
        encoding="utf-8",
    )
    scripts = [str(HERE / name) for name in SCRIPTS]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(config), "--no-error-summary",
         "--hide-error-context", "--cache-dir", str(ROOT / ".mypy_cache" / "scripts"), *scripts],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines: dict[str, set[tuple[int, str]]] = {name: set() for name in SCRIPTS}
    for line in done.stdout.splitlines():
        if said := re.match(r"(?P<file>.*?):(?P<line>\d+): error: .*\[(?P<code>[a-z-]+)\]$", line):
            lines[Path(said["file"]).name].add((int(said["line"]), said["code"]))
    return lines


def test_a_correct_script_passes(found) -> None:
    assert found["correct.py"] == set()


def test_every_planted_mistake_is_found_on_its_line_and_nothing_else(found) -> None:
    script = (HERE / "mistakes.py").read_text(encoding="utf-8").splitlines()
    planted = {
        (number, mark["code"])
        for number, line in enumerate(script, 1)
        if (mark := MARK.search(line))
    }
    assert len(planted) > 13
    assert found["mistakes.py"] == planted
