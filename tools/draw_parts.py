"""Draw docs/loss_parts.svg, the two kinds of parts of a loss: python tools/draw_parts.py.

One mask of three objects, cut into boxes and into cells. The numbers are weights of pixels, as multiples
of their weight in the plain loss, from `weight_map`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sisod.losses import boxes_of, labels_of, weight_map

PICTURE = Path(__file__).parent.parent / "docs" / "loss_parts.svg"
_SHAPE = (72, 96)
_DISCS = ((40, 28, 22), (16, 66, 8), (54, 78, 4))  # row, column, radius
_ZOOM, _GAP, _TOP, _BOTTOM = 3, 20, 32, 30
_TINTS = ("#cfe3f5", "#fbdcc4", "#d3ecd9")
_SHADES = ("#4a90c9", "#e08a4a", "#58a86c")
_NONE = "#f2f2f2"
_STYLE = (
    "rect{shape-rendering:crispEdges}text{font:12px system-ui,sans-serif;fill:#222}"
    ".h{font-size:14px;font-weight:700}.o{fill:none;stroke:#222;stroke-width:1.5}"
    ".v{font-weight:700;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:3px}"
)
Labels = NDArray[np.int64]


def make_mask() -> torch.Tensor:
    """Return the mask, (1, H, W)."""
    y, x = np.mgrid[: _SHAPE[0], : _SHAPE[1]]
    inside = [(y - cy) ** 2 + (x - cx) ** 2 <= radius**2 for cy, cx, radius in _DISCS]
    return torch.from_numpy(np.any(inside, axis=0).astype(np.float32))[None]


def draw() -> str:
    """Return the picture."""
    gt = make_mask()
    boxes = boxes_of(gt)
    cells = np.asarray(labels_of(gt)[0], dtype=np.int64)
    objects = np.where(gt[0] > 0, cells, -1)
    outlines = [_rect(y0, x0, y1, x1, None) for _, y0, x0, y1, x1 in boxes.tolist()]
    panels = [
        (
            'parts="boxes"',
            "three boxes and the background between them",
            _fill(objects, lambda label: _NONE if label < 0 else _SHADES[label]) + outlines,
            weight_map(boxes, gt.shape),
        ),
        (
            'parts="cells"',
            "every pixel in the cell of its nearest object",
            _fill(np.where(objects >= 0, objects + 3, cells), lambda label: (*_TINTS, *_SHADES)[label]),
            weight_map(None, gt.shape, parts="cells", labels=labels_of(gt)),
        ),
    ]
    width = len(panels) * (_SHAPE[1] * _ZOOM + _GAP) + _GAP
    height = _TOP + _SHAPE[0] * _ZOOM + _BOTTOM + 22
    body = []
    for index, (title, caption, shapes, weight) in enumerate(panels):
        left, under = _GAP + index * (_SHAPE[1] * _ZOOM + _GAP), _TOP + _SHAPE[0] * _ZOOM + 18
        inner = "".join([*shapes, _rect(0, 0, *_SHAPE, None), *_numbers(weight[0] * gt[0].numel())])
        body += [
            f'<text class="h" x="{left}" y="{_TOP - 11}">{title.replace(chr(34), "&quot;")}</text>',
            f'<g transform="translate({left},{_TOP})">{inner}</g>',
            f'<text x="{left}" y="{under}">{caption}</text>',
        ]
    note = (
        "Numbers: weight of a pixel in separable terms, as a multiple of its weight in the plain loss."
    )
    body.append(f'<text x="{_GAP}" y="{height - 10}">{note}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="The three kinds of parts of a loss"><style>{_STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(body)}</svg>\n'
    )


def _fill(labels: Labels, colour: Callable[[int], str]) -> list[str]:
    """Return the rectangles that colour every run of equal labels in a row."""
    shapes = []
    for y, line in enumerate(labels):
        starts = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist()]
        for start, stop in zip(starts, [*starts[1:], len(line)], strict=True):
            shapes.append(_rect(y, start, y + 1, stop, colour(int(line[start]))))
    return shapes


def _numbers(multiples: Any) -> list[str]:
    """Return the weights at the middle of every object, and of the top left corner."""
    places: Sequence[tuple[int, int]] = [*((row, column) for row, column, _ in _DISCS), (6, 8)]
    return [
        f'<text class="v" x="{column * _ZOOM}" y="{row * _ZOOM + 4}">{float(multiples[row, column]):.2g}'
        "</text>"
        for row, column in places
    ]


def _rect(y0: int, x0: int, y1: int, x1: int, fill: str | None) -> str:
    position = (
        f'x="{x0 * _ZOOM}" y="{y0 * _ZOOM}" width="{(x1 - x0) * _ZOOM}" height="{(y1 - y0) * _ZOOM}"'
    )
    return f'<rect class="o" {position}/>' if fill is None else f'<rect {position} fill="{fill}"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw())
