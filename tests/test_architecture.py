"""The page of the rooms: its picture is of the imports, and all that it names is there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from xml.etree import ElementTree

import pytest

from tests import architecture
from tests.architecture import PACKAGES, PAGE, PICTURE, ROOT
from tests.commands import run
from tests.test_package import modules

TEXT = PAGE.read_text(encoding="utf-8")
LIBRARY = ROOT / "implicit_bias"
ROOMS = architecture.rooms()
STATIONS = [
    re.findall(r"`(.+?)`", line) for line in re.findall(r"^\d+\. (.*)", TEXT, flags=re.MULTILINE)
]


def located(name: str) -> list[Path]:
    """The files that a page means: of the library, or from the root; those of every THEORY."""
    pattern = name.replace("THEORY", "*")
    return [path for root in (LIBRARY, ROOT) for path in root.glob(pattern)]


def test_every_file_of_the_code_is_in_a_room_and_every_room_has_a_file() -> None:
    found = {path: architecture.room_of(path, ROOMS) for path in modules(*PACKAGES)}
    assert [path for path, room in found.items() if room is None] == []
    assert set(found.values()) == set(ROOMS)


def test_the_picture_has_the_rooms_and_the_arrows_of_the_imports() -> None:
    """Else `python -m tests.architecture` draws it anew; look at it."""
    root = ElementTree.parse(PICTURE).getroot()
    ids = {element.get("id", "") for element in root.iter()}
    leads = architecture.arrows(architecture.who_imports_whom(ROOMS))
    wanted = {f"room.{name}" for name in ROOMS}
    wanted |= {f"arrow.{above}.{name}" for above, below in leads.items() for name in below}
    assert {one for one in ids if one.startswith(("room.", "arrow."))} == wanted
    assert architecture.described(ROOMS) in {element.text for element in root.iter()}


def test_a_room_that_imports_one_above_it_is_told() -> None:
    graph = {"cellar": frozenset(), "hall": frozenset({"attic"}), "attic": frozenset({"hall"})}
    with pytest.raises(ValueError, match=r"circle: .*'attic': \['hall'\]"):
        architecture.all_below(graph)


def test_no_arrow_climbs_and_those_left_out_follow_from_those_drawn() -> None:
    graph = architecture.who_imports_whom(ROOMS)
    floor, drawn = architecture.floors(graph), architecture.arrows(graph)
    assert all(floor[above] > floor[name] for above, below in drawn.items() for name in below)
    assert architecture.all_below(drawn) == architecture.all_below(graph)
    assert sum(map(len, drawn.values())) < sum(map(len, graph.values())) / 2


def test_every_file_and_folder_that_the_page_names_is_there() -> None:
    named = {
        name for name in re.findall(r"`([^`\s]+)`", TEXT)
        if "/" in name or name.endswith((".py", ".md"))
    }  # fmt: skip
    assert len(named) > 60
    assert {name for name in named if not located(name)} == set()


def test_the_way_of_x_is_that_of_a_run_in_few_stations() -> None:
    """Functions of the stations are entered in their order."""
    entered: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            entered.setdefault((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        done = run("--model", "gln", "--n-train", 30, "--hidden-units", 2, "--steps", 20)
    finally:
        sys.setprofile(None)
    assert "gln" in done.stdout
    order = list(entered)
    assert 10 <= len(STATIONS) <= 15
    stations = [(str(located(file)[0]), function) for file, function, *_ in STATIONS]
    assert set(stations) <= set(order)
    assert stations == sorted(stations, key=order.index)
