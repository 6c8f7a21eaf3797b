"""Draw docs/architecture.svg from the real import graph: python tools/draw_rooms.py.

An arrow leads from a room to a room that imports it. An arrow is left out if a longer path leads the
same way, and so are those of `common`, which every room imports, and of `cli`, which imports all.
"""

import ast
from pathlib import Path

from import_graph import reduced, room_graph

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "architecture.svg"
# results draw themselves in a notebook: the only imports against the direction
EXCEPTIONS = frozenset(
    {
        ("sisod.evaluation.result", "sisod.report.notebook"),
        ("sisod.analysis.comparison", "sisod.report.forest"),
    }
)
PLACES = {  # column and row
    "scoring": (0.0, 1.0),
    "data": (1.0, 1.0),
    "evaluation": (2.0, 1.0),
    "analysis": (3.0, 1.0),
    "report": (4.0, 1.0),
    "reproduction": (5.0, 1.0),
    "compat": (1.0, 0.0),
    "paper": (2.0, 0.0),
    "networks": (1.0, 2.0),
    "losses": (1.0, 3.0),
    "training": (3.0, 2.0),
}
MAIN_ROW = 1.0
BARS = {"cli": -0.9, "common": 3.9}
STEP, LEFT, TOP = (150, 78), 12, 84
WIDTH, HEIGHT = 122, 50


def draw(package: Path) -> str:
    """Return the picture of a package's rooms."""
    graph = room_graph(package, without=EXCEPTIONS)
    inner = {name: graph[name] - BARS.keys() for name in graph if name not in BARS}
    if inner.keys() != PLACES.keys():
        raise SystemExit(f"rooms without a position in the picture: {inner.keys() ^ PLACES.keys()}")
    arrows = [
        _arrow(source, target)
        for target, sources in sorted(reduced(inner).items())
        for source in sorted(sources)
    ]
    boxes = [_box(name, *_corner(*PLACES[name]), WIDTH, package) for name in sorted(PLACES)]
    full = STEP[0] * 5 + WIDTH
    bars = [_box(name, LEFT, _corner(0, row)[1], full, package) for name, row in BARS.items()]
    size = f"{full + 2 * LEFT} {_corner(0, BARS['common'])[1] + HEIGHT + 12:.0f}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#555555"/></marker>',
        *arrows,
        *boxes,
        *bars,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _corner(column: float, row: float) -> tuple[float, float]:
    return LEFT + column * STEP[0], TOP + row * STEP[1]


def _arrow(source: str, target: str) -> str:
    """Return a curve with one bend: vertical first from the main row, else horizontal first."""
    (x0, y0), (x1, y1) = _corner(*PLACES[source]), _corner(*PLACES[target])
    begin, end = (x0 + WIDTH, y0 + HEIGHT / 2), (x1 - 1, y1 + HEIGHT / 2)
    corner = begin
    if y0 != y1 and PLACES[source][1] == MAIN_ROW:
        begin = (x0 + WIDTH / 2, y0 + HEIGHT if y0 < y1 else y0)
        end = (begin[0], y1 - 1) if x0 == x1 else end
        corner = (begin[0], end[1])
    elif y0 != y1:
        end = (x1 + WIDTH / 2, y1 - 1 if y0 < y1 else y1 + HEIGHT + 1)
        corner = (end[0], begin[1])
    points = " ".join(f"{x:g} {y:g}" for x, y in (corner, end))
    return (
        f'<path d="M{begin[0]:g} {begin[1]:g}Q{points}" fill="none" stroke="#555555" '
        'stroke-width="1.4" marker-end="url(#tip)"/>'
    )


def _box(name: str, x: float, y: float, width: float, package: Path) -> str:
    middle = x + width / 2
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{HEIGHT}" rx="6" fill="#eef4fa" '
        f'stroke="#0072b2"/><text x="{middle:g}" y="{y + 21:g}" text-anchor="middle" font-size="14" '
        f'font-weight="bold" fill="#12344d">{name}</text><text x="{middle:g}" y="{y + 38:g}" '
        f'text-anchor="middle" font-size="10" fill="#333333">{_subtitle(package / name)}</text>'
    )


def _subtitle(folder: Path) -> str:
    """Return the docstring of a room up to its first colon or full stop."""
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    text = (ast.get_docstring(tree) or "").replace(".", ":").partition(":")[0]
    return text.replace("->", "→")


if __name__ == "__main__":
    PICTURE.write_text(draw(ROOT / "src" / "sisod"), encoding="utf-8", newline="\n")
