"""What type checkers tell users: their mistakes, each on its line, and nothing of what is right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = ("correct.py", "mistakes.py")
MARK = re.compile(r"# E: (?P<code>[a-z-]+)$")


@pytest.mark.long
def test_mypy_finds_every_planted_mistake_on_its_line_and_nothing_else(built, tmp_path) -> None:
    # As of an installed package, whose own code mypy does not check.
    config = tmp_path / "mypy.ini"
    config.write_text(
        "[mypy]\nstrict = true\n[mypy-implicit_bias.*,solvers.*]\nignore_errors = true\n"
        "[mypy-cvxpy.*]\nfollow_imports = skip\nignore_missing_imports = true\n",
        encoding="utf-8",
    )
    # A cache of its own: two processes that open one cache may find its database locked.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(config), "--no-error-summary",
         "--hide-error-context", "--show-traceback", "--cache-dir", str(tmp_path / "cache"),
         *(str(HERE / name) for name in SCRIPTS)],
        capture_output=True, text=True, cwd=built, env=os.environ | {"MYPYPATH": str(built)},
        check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    found: dict[str, set[tuple[int, str]]] = {name: set() for name in SCRIPTS}
    for line in done.stdout.splitlines():
        if said := re.match(r"(?P<file>.*?):(?P<line>\d+): error: .*\[(?P<code>[a-z-]+)\]$", line):
            found[Path(said["file"]).name].add((int(said["line"]), said["code"]))
    script = (HERE / "mistakes.py").read_text(encoding="utf-8").splitlines()
    planted = {
        (number, mark["code"])
        for number, line in enumerate(script, 1)
        if (mark := MARK.search(line))
    }
    assert len(planted) > 13
    assert found == {"correct.py": set(), "mistakes.py": planted}
