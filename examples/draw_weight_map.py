"""Draws the weight of every pixel in the losses; needs NumPy only.

`python examples/draw_weight_map.py` writes docs/weight_map.svg.
Weights are shown as multiples of 1/S, the weight of a pixel in the plain loss.
"""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sisod
from sisod.scoring.size_invariant import weight_map

OUT = Path(__file__).parent.parent / "docs" / "weight_map.svg"
_SHAPE = (120, 160)
_ZOOM = 2  # screen pixels per pixel
_GAP, _TOP, _BOTTOM = 24, 34, 52
_LIGHT, _DARK = np.array([247, 251, 255]), np.array([0, 74, 128])
_STYLE = (
    "rect{shape-rendering:crispEdges}text{font:14px system-ui,sans-serif;fill:#222}"
    ".h{font-weight:700}.s{font-size:12px;fill:#555}"
    ".v{font-size:12px;font-weight:700;text-anchor:middle}"
    ".o{fill:none;stroke:#d55e00;stroke-width:1.5}"
)


def make_mask() -> NDArray[np.bool_]:
    """One large object, one medium one whose frame overlaps it, two small ones."""
    y, x = np.mgrid[: _SHAPE[0], : _SHAPE[1]]
    discs = [(62, 46, 38), (100, 92, 15), (24, 112, 6), (52, 140, 4)]
    inside = [(y - cy) ** 2 + (x - cx) ** 2 <= radius**2 for cy, cx, radius in discs]
    return np.asarray(np.any(inside, axis=0))


def draw(mask: NDArray[np.bool_]) -> str:
    """Return the picture: mask and frames, plain weights, size-invariant weights."""
    parts = sisod.partition(mask)
    plain = np.full(mask.shape, 1 / mask.size)
    panels = [
        (
            "Mask and frames",
            f"{len(parts)} objects, alpha = {parts.alpha:.2f}",
            _mask_panel(mask, parts),
        ),
        ("Plain loss", "every pixel weighs 1/S: shares follow size", _weight_panel(plain, parts)),
        (
            "Size-invariant loss",
            "every object has the same share",
            _weight_panel(weight_map(parts.boxes, parts.shape), parts),
        ),
    ]
    width = len(panels) * (_SHAPE[1] * _ZOOM + _GAP) + _GAP
    height = _TOP + _SHAPE[0] * _ZOOM + _BOTTOM
    body = []
    for index, (title, caption, content) in enumerate(panels):
        left = _GAP + index * (_SHAPE[1] * _ZOOM + _GAP)
        under = _TOP + _SHAPE[0] * _ZOOM + 20
        body += [
            f'<text class="h" x="{left}" y="{_TOP - 12}">{title}</text>',
            f'<g transform="translate({left},{_TOP})">{content}</g>',
            f'<text class="s" x="{left}" y="{under}">{caption}</text>',
        ]
    note = "Numbers: weight of a pixel as a multiple of 1/S. Where frames (orange) overlap, weights add."
    body.append(f'<text class="s" x="{_GAP}" y="{height - 12}">{note}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Weight of every pixel in the plain and in the size-invariant loss">'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(body)}</svg>\n'
    )


def _mask_panel(mask: NDArray[np.bool_], parts: sisod.Partition) -> str:
    """Draw the salient pixels, row by row, and the frames."""
    rows = [_rect(0, 0, *_SHAPE, "#222")]
    for y, line in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]]).astype(np.int8)))
        rows += [_rect(y, int(x0), y + 1, int(x1), "#fff") for x0, x1 in edges.reshape(-1, 2)]
    return "".join(rows) + _outlines(parts)


def _weight_panel(weight: NDArray[np.float64], parts: sisod.Partition) -> str:
    """Draw the cells between the edges of the frames; the weight is constant in each cell."""
    ys = sorted({0, _SHAPE[0], *parts.boxes[:, [0, 2]].ravel().tolist()})
    xs = sorted({0, _SHAPE[1], *parts.boxes[:, [1, 3]].ravel().tolist()})
    multiples = weight * weight.size
    cells = [
        _rect(y0, x0, y1, x1, _colour(multiples[y0, x0]))
        for y0, y1 in pairwise(ys)
        for x0, x1 in pairwise(xs)
    ]
    labels = [_label(multiples, frame) for frame in parts]
    labels.append(_text(12, 14, multiples[0, 0]))
    return "".join(cells) + _outlines(parts) + "".join(labels)


def _label(multiples: NDArray[np.float64], frame: sisod.Frame) -> str:
    """Write the weight of the pixels in no other frame: inside a large frame, above a small one."""
    value = float(multiples[frame.window].min())
    middle = (frame.x0 + frame.x1) / 2
    if frame.y1 - frame.y0 > 20:
        return _text((frame.y0 + frame.y1) / 2 + 2, middle, value, on=value)
    return _text(frame.y0 - 3, middle, value)


def _text(y: float, x: float, value: float, *, on: float = 1.0) -> str:
    fill = "#fff" if _shade(on) > 0.5 else "#222"
    return f'<text class="v" x="{x * _ZOOM:g}" y="{y * _ZOOM:g}" style="fill:{fill}">{value:.2g}</text>'


def _shade(multiple: float) -> float:
    """Return 0 for a tenth of the plain weight, 1 for a hundred times it, on a logarithmic scale."""
    return min(max((math.log10(multiple) + 1) / 3, 0.0), 1.0)


def _colour(multiple: float) -> str:
    red, green, blue = (_LIGHT + (_DARK - _LIGHT) * _shade(multiple)).round().astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _outlines(parts: sisod.Partition) -> str:
    return "".join(_rect(y0, x0, y1, x1, None) for y0, x0, y1, x1 in parts.boxes.tolist())


def _rect(y0: int, x0: int, y1: int, x1: int, fill: str | None) -> str:
    position = (
        f'x="{x0 * _ZOOM}" y="{y0 * _ZOOM}" width="{(x1 - x0) * _ZOOM}" height="{(y1 - y0) * _ZOOM}"'
    )
    return f'<rect class="o" {position}/>' if fill is None else f'<rect {position} fill="{fill}"/>'


if __name__ == "__main__":
    OUT.write_text(draw(make_mask()))
    print(f"wrote {OUT.name}")
