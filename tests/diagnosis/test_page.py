"""The page on `diagnose`, run as a reader would paste it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "diagnose.md"


def test_the_blocks_of_the_page_run_one_after_the_other_and_say_what_stands_there(capsys) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 3
    namespace: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"diagnose.md, block {number}", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "a product of linear layers, homogeneous of degree 2" in printed
    assert "NO THEOREM" in printed and "too early" in printed and "2 ('2.bias',)" in printed
    assert namespace["report"].limit.status.name == "SOLVED"
