"""The picture of the rooms of the code, drawn from the imports of its files.

python -m tests.architecture    draws docs/architecture.svg; a test compares

Which rooms there are, and the words in them, are the table of rooms of docs/architecture.md.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Curve
from scipy.optimize import linprog

from tests.test_package import ROOT, imports, module_name, modules

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
PACKAGES = ("implicit_bias", "solvers")
ROW = re.compile(r"\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \|")

WIDTH, HEIGHT, GAP, FLOOR = 2.3, 1.14, 0.26, 1.54  # of a box, between two, of a floor, in inches
CROWD = 0.6  # what one more room on a floor costs, as lengths of arrows
BEND = 0.3  # between two arrows that pass a floor side by side
# What a room knows, by all that it leads to: limits, networks, both, neither.
PREDICTS, TRAINS = "limits", "networks"
COLOURS: Mapping[tuple[bool, bool], tuple[str, str, str]] = {
    (True, False): ("#dbe9f6", "#2b6ca3", "knows predictions alone"),
    (False, True): ("#fde6cf", "#b3631b", "knows networks alone"),
    (True, True): ("#e8dff2", "#6a4c93", "knows both: here they are compared"),
    (False, False): ("#eeeeee", "#6b6b6b", "knows neither"),
}
LEADING = 1.25 / 72  # inches of a line, a point of its size
INK, ARROW = "#222222", "#555555"

Graph = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Room:
    """A row of the table: a name, globs of the files from the repository's root, what they hold."""

    name: str
    files: tuple[str, ...]
    words: str


def rooms(page: Path = PAGE) -> dict[str, Room]:
    """The rooms that the page names."""
    found = [Room(name, tuple(re.findall(r"`(.+?)`", files)), words)
             for name, files, words in ROW.findall(page.read_text(encoding="utf-8"))]  # fmt: skip
    return {room.name: room for room in found}


def room_of(path: Path, known: Mapping[str, Room]) -> str | None:
    """The room of a file: of all rows that match the one that says most."""
    name = path.relative_to(ROOT).as_posix()
    matching = [
        (len(glob), room.name)
        for room in known.values()
        for glob in room.files
        if name.startswith(glob) or (fnmatch(name, glob) and name.count("/") == glob.count("/"))
    ]
    return max(matching)[1] if matching else None


def who_imports_whom(known: Mapping[str, Room]) -> dict[str, frozenset[str]]:
    """The other rooms that files of each room import, in functions too."""
    files = {module_name(path): path for path in modules(*PACKAGES)}
    leads: dict[str, set[str]] = {name: set() for name in known}
    for path in files.values():
        named = {one.module for one in imports(path) if not one.typing_only} & set(files)
        own = room_of(path, known)
        if own is not None:
            leads[own] |= {room for name in named if (room := room_of(files[name], known))} - {own}
    return {name: frozenset(below) for name, below in leads.items()}


def all_below(graph: Graph) -> dict[str, frozenset[str]]:
    """All rooms that each one leads to.

    Raises
    ------
    ValueError
        If rooms import each other in a circle: an arrow would climb.
    """
    below: dict[str, frozenset[str]] = {}
    left = dict(graph)
    while left:
        floor = {name for name, leads in left.items() if leads <= set(below)}
        if not floor:
            circle = {name: sorted(leads & set(left)) for name, leads in left.items()}
            raise ValueError(f"rooms import each other in a circle: {circle}")
        for name in floor:
            leads = left.pop(name)
            below[name] = leads.union(*(below[other] for other in leads))
    return below


def arrows(graph: Graph) -> dict[str, frozenset[str]]:
    """The imports that do not follow from others: what remains says the same order."""
    below = all_below(graph)
    return {
        name: frozenset(one for one in leads if not any(one in below[other] for other in leads))
        for name, leads in graph.items()
    }


def floors(graph: Graph) -> dict[str, int]:
    """The floor of each room, above all that it imports, so that arrows and floors are short."""
    leads, found = arrows(graph), dict[str, int]()
    for name in sorted(graph, key=lambda name: len(all_below(graph)[name])):
        found[name] = 1 + max((found[other] for other in leads[name]), default=-1)
    above = {name: {one for one in graph if name in leads[one]} for name in graph}
    for name in itertools.chain.from_iterable([sorted(graph)] * len(graph)):
        if above[name]:  # it may rise as far as those that import it let it
            ends = [found[other] for other in leads[name]], [found[other] for other in above[name]]
            among = [k for other, k in found.items() if other != name]
            found[name] = min(
                range(1 + max(ends[0], default=-1), min(ends[1])),
                key=lambda k: (sum(abs(k - end) for end in ends[0] + ends[1])
                               + among.count(k) * CROWD, k),
            )  # fmt: skip
    return found


# An arrow over several floors passes each of them at a point of its own: (from, to, floor).
Point = str | tuple[str, str, int]


def placed(graph: Graph) -> tuple[dict[Point, float], list[list[Point]]]:
    """Where rooms and passing arrows stand from left to right, and the points of every arrow."""
    height, leads = floors(graph), arrows(graph)
    ways: list[list[Point]] = [
        [above, *((above, name, k) for k in range(height[above] - 1, height[name], -1)), name]
        for above in graph for name in sorted(leads[above])
    ]  # fmt: skip
    edges = [edge for way in ways for edge in itertools.pairwise(way)]
    rows: list[list[Point]] = [[] for _ in range(max(height.values()) + 1)]
    for point in dict.fromkeys([*graph, *itertools.chain.from_iterable(ways)]):
        rows[height[point] if isinstance(point, str) else point[2]].append(point)
    best = min((_untangled(rows, edges, seed) for seed in range(60)), key=lambda one: one[0])
    return _straightened(best[1], edges), ways


def _untangled(
    rows: list[list[Point]], edges: list[tuple[Point, Point]], seed: int
) -> tuple[float, list[list[Point]]]:
    """The rows in an order with few crossings, and a measure of crossings and lengths."""
    rng = np.random.default_rng(seed)
    rows = [[row[k] for k in rng.permutation(len(row))] for row in rows]
    beside: dict[Point, list[Point]] = {}
    for upper, lower in edges:
        beside.setdefault(upper, []).append(lower)
        beside.setdefault(lower, []).append(upper)
    for _ in range(24):
        for row in rows if rng.random() < 0.5 else rows[::-1]:
            at = _shares(rows)
            noise = rng.normal(scale=0.02, size=len(row))
            means = {point: float(np.mean([at[one] for one in beside.get(point, [point])])) + e
                     for point, e in zip(row, noise, strict=True)}  # fmt: skip
            row.sort(key=means.__getitem__)
    at = _shares(rows)
    order = {point: k for row in rows for k, point in enumerate(row)}
    level = {point: k for k, row in enumerate(rows) for point in row}
    crossings = sum(
        level[a[0]] == level[b[0]] and (order[a[0]] - order[b[0]]) * (order[a[1]] - order[b[1]]) < 0
        for a, b in itertools.combinations(edges, 2)
    )
    return crossings + sum(abs(at[a] - at[b]) for a, b in edges) / 10, rows


def _shares(rows: list[list[Point]]) -> dict[Point, float]:
    """Places of points in their rows, as shares of a row's length."""
    return {point: (k + 1) / (len(row) + 1) for row in rows for k, point in enumerate(row)}


def _straightened(rows: list[list[Point]], edges: list[tuple[Point, Point]]) -> dict[Point, float]:
    """Places in inches that make arrows short, boxes of a row side by side: a linear program."""
    points = [point for row in rows for point in row]
    at = {point: k for k, point in enumerate(points)}
    n, m = len(points), len(edges)
    # Lengths of arrows are m further variables; straight passages matter more than short ends.
    weights = [1.0 + 4.0 * sum(isinstance(end, tuple) for end in edge) for edge in edges]
    matrix, bounds = [], []
    for k, (upper, lower) in enumerate(edges):
        for sign in (1.0, -1.0):
            line = np.zeros(n + m)
            line[at[upper]], line[at[lower]], line[n + k] = sign, -sign, -1.0
            matrix.append(line)
            bounds.append(0.0)
    for row in rows:
        for left, right in itertools.pairwise(row):
            line = np.zeros(n + m)
            line[at[left]], line[at[right]] = 1.0, -1.0
            matrix.append(line)
            bounds.append(-_distance(left, right))
    solution = linprog(
        np.concatenate([np.full(n, 1e-6), weights]), A_ub=np.array(matrix), b_ub=bounds,
        method="highs-ds",
    )  # fmt: skip
    assert solution.status == 0
    return {point: float(solution.x[k]) for point, k in at.items()}


def _distance(left: Point, right: Point) -> float:
    widths = [WIDTH if isinstance(point, str) else 0.0 for point in (left, right)]
    return sum(widths) / 2 + (GAP if any(widths) else BEND)


def draw(known: Mapping[str, Room], graph: Graph) -> Figure:
    """Rooms over those that they import; where one import follows from others it has no arrow."""
    at, ways = placed(graph)
    height, below = floors(graph), all_below(graph)
    lefts = [at[name] for name in graph]
    size = (max(at.values()) - min(lefts) + WIDTH + 0.4, max(height.values()) * FLOOR + 2.0)
    figure = Figure(figsize=size)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(min(lefts) - WIDTH / 2 - 0.2, min(lefts) - WIDTH / 2 - 0.2 + size[0]),
           ylim=(-1.15, size[1] - 1.15))  # fmt: skip
    ax.axis("off")
    for way, start, end in zip(ways, *_ports(ways, at), strict=True):
        _arrow(ax, way, at, height, (start, end))
    for name in graph:
        reached = below[name] | {name}
        colours = COLOURS[PREDICTS in reached, TRAINS in reached]
        _box(ax, known, name, (at[name], height[name] * FLOOR), colours)
    _legend(ax)
    return figure


def _ports(ways: list[list[Point]], at: Mapping[Point, float]) -> tuple[list[float], list[float]]:
    """Where each arrow leaves its upper box and meets its lower one: side by side, uncrossed."""
    found = ([0.0] * len(ways), [0.0] * len(ways))
    for side, (end, next_to) in enumerate(((0, 1), (-1, -2))):
        for box in {way[end] for way in ways}:
            own = sorted((k for k, way in enumerate(ways) if way[end] == box),
                         key=lambda k: at[ways[k][next_to]])  # fmt: skip
            step = min(0.34, 0.8 * WIDTH / len(own))
            for place, k in enumerate(own):
                found[side][k] = at[box] + step * (place - (len(own) - 1) / 2)
    return found


def _arrow(
    ax: Axes, way: list[Point], at: Mapping[Point, float], height: Mapping[str, int],
    ends: tuple[float, float],
) -> None:  # fmt: skip
    above, name = str(way[0]), str(way[-1])
    stops = [(ends[0], height[above] * FLOOR - HEIGHT / 2)]
    for point in way[1:-1]:  # straight through its floor, beside the boxes
        y = point[2] * FLOOR if isinstance(point, tuple) else 0.0
        stops += [(at[point], y + HEIGHT / 2), (at[point], y - HEIGHT / 2)]
    stops.append((ends[1], height[name] * FLOOR + HEIGHT / 2))
    vertices, codes = [stops[0]], [Curve.MOVETO]
    for k, ((x, y), (u, v)) in enumerate(itertools.pairwise(stops)):
        if k % 2:
            vertices.append((u, v))
            codes.append(Curve.LINETO)
        else:
            vertices += [(x, (y + v) / 2), (u, (y + v) / 2), (u, v)]
            codes += [Curve.CURVE4] * 3
    ax.add_patch(
        FancyArrowPatch(
            path=Curve(vertices, codes), arrowstyle="-|>", mutation_scale=11, color=ARROW,
            linewidth=1.1, zorder=1, gid=f"arrow.{above}.{name}", shrinkA=0, shrinkB=0,
        )
    )  # fmt: skip


def _box(
    ax: Axes, known: Mapping[str, Room], name: str, middle: tuple[float, float],
    colours: tuple[str, str, str],
) -> None:  # fmt: skip
    room, (x, y) = known[name], middle
    face, edge, _ = colours
    ax.add_patch(
        FancyBboxPatch(
            (x - WIDTH / 2 + 0.06, y - HEIGHT / 2 + 0.06), WIDTH - 0.12, HEIGHT - 0.12,
            boxstyle="round,pad=0.06", facecolor=face, edgecolor=edge, linewidth=1.3, zorder=2,
            gid=f"room.{room.name}",
        )
    )  # fmt: skip
    lines = [(room.name, 13.0, "bold", edge)]
    lines += [(line, 10.0, "normal", INK) for line in textwrap.wrap(room.words, 27)]
    inside = ", ".join(folders(room, known))
    lines += [(line, 8.5, "normal", edge) for line in textwrap.wrap(inside, 33)]
    y += sum(LEADING * size for _, size, *_ in lines) / 2
    for line, size, weight, colour in lines:
        y -= LEADING * size
        ax.text(x, y + 0.2 * LEADING * size, line, ha="center", size=size, weight=weight,
                color=colour)  # fmt: skip


def folders(room: Room, known: Mapping[str, Room]) -> Iterator[str]:
    """The folders inside of a room that are no rooms of their own."""
    for place in room.files:
        if place.endswith("/"):
            yield from sorted(path.parent.name for path in (ROOT / place).glob("*/__init__.py")
                              if room_of(path, known) == room.name)  # fmt: skip


def _legend(ax: Axes) -> None:
    x, y = ax.get_xlim()[0] + 0.2, -1.0
    for face, edge, words in COLOURS.values():
        ax.add_patch(FancyBboxPatch((x, y), 0.16, 0.1, boxstyle="round,pad=0.03", facecolor=face,
                                    edgecolor=edge, linewidth=1.0))  # fmt: skip
        ax.text(x + 0.28, y + 0.05, words, va="center", size=10, color=INK)
        x += 0.55 + 0.085 * len(words)


def described(known: Mapping[str, Room]) -> str:
    """The words in the picture, which it keeps beside their curves for those who cannot see it."""
    return "; ".join(f"{room.name}: {', '.join([room.words, *folders(room, known)])}"
                     for room in known.values())  # fmt: skip


def write(page: Path = PAGE, picture: Path = PICTURE) -> None:
    """Draw the picture of the rooms that a page names."""
    known = rooms(page)
    about = {"Date": None, "Title": "Rooms of the code", "Description": described(known)}
    with mpl.rc_context({"svg.hashsalt": "architecture", "font.family": "DejaVu Sans"}):
        draw(known, who_imports_whom(known)).savefig(picture, metadata=about)


if __name__ == "__main__":
    write()
