"""Draw docs/errors.svg, the example of docs/errors.md: PYTHONPATH=tests python tools/draw_errors.py.

Left are the objects of the ground truth and the outlines of the predicted objects, right all wrong
pixels. Classes come from the slow second opinion of the tests, which labels every pixel.
"""

from itertools import groupby
from pathlib import Path

import numpy as np
from helpers import error_oracle, object_oracle
from helpers.object_oracle import Region
from numpy.typing import NDArray

from sisod.analysis.error_breakdown import CLASS_TITLES
from sisod.report.error_breakdown import CLASS_STYLES
from sisod.scoring.protocols import Protocol

PICTURE = Path(__file__).parent.parent / "docs" / "errors.svg"
RAW = Protocol("raw", normalize="none", min_area=4)
_ZOOM = 8  # screen pixels per pixel
_GAP, _TOP, _LINE = 16, 34, 24
_STYLE = (
    "rect{shape-rendering:crispEdges}text{font:12px system-ui,sans-serif;fill:#222}"
    ".h{font-size:15px;font-weight:700}"
    ".l{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".o{fill:none;stroke:#222;stroke-width:1.5;stroke-dasharray:5 3}.p{fill:#fff;stroke:#999}"
)
Box = tuple[int, int, int, int]


def make_scene() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a map and its ground truth, with every class of objects and of pixels."""
    gt, p = np.zeros((40, 80), dtype=bool), np.zeros((40, 80))
    gt[2:10, 2:12] = True
    gt[5, 5] = False
    p[2:10, 2:11] = 0.9
    gt[2:6, 70:74] = True
    p[2:3, 70:74] = 0.9
    gt[14:22, 2:8] = True
    gt[14:22, 10:16] = True
    p[14:22, 2:16] = 0.9
    gt[14:18, 30:50] = True
    p[14:18, 30:38] = 0.9
    p[14:18, 42:50] = 0.9
    gt[26:30, 4:8] = True
    p[24:32, 2:10] = 0.9
    gt[26:36, 30:40] = True
    p[26:32, 30:46] = 0.9
    p[36:39, 60:66] = 0.9
    p[38, 2] = 0.9
    gt[38, 20] = True
    return p, gt


def draw() -> str:
    """Return the picture of the scene."""
    p, gt = make_scene()
    objects = object_oracle.true_objects(gt, 8, RAW.min_area)
    predicted = [r for r in object_oracle.components(p > 0.5, 8) if len(r) >= RAW.min_area]
    recalls = [sum(p[pixel] > 0.5 for pixel in region) / len(region) for region in objects]
    breakdown = error_oracle.break_down(
        p, gt, objects, connectivity=8, min_area=RAW.min_area, recalls=recalls
    )
    names = np.full(gt.shape, "", dtype=object)
    for region, name in zip(objects, breakdown.objects, strict=True):
        for pixel in region:
            names[pixel] = name
    outlines = [_rect(object_oracle.box(region), 'class="o"') for region in predicted]
    false = [region for region in predicted if not any(gt[pixel] for pixel in region)]
    labelled = [*zip(objects, breakdown.objects, strict=True), *((r, "false") for r in false)]
    labels = [_label(region, predicted, CLASS_TITLES[name]) for region, name in labelled]
    wrong = np.full(gt.shape, "", dtype=object)
    for pixel, name in breakdown.pixels.items():
        wrong[pixel] = name[3:]  # without fn_ or fp_
    height, width = gt.shape
    panel = _rect((0, 0, height, width), 'class="p"')
    panels = {
        "Objects, and outlines of predicted objects": [*_fill(names), *outlines, *labels],
        "Wrong pixels": _fill(wrong),
    }
    body = [
        f'<g transform="translate({_GAP + index * (width * _ZOOM + _GAP)},{_TOP})">'
        f'<text class="h" y="-12">{title}</text>{panel}{"".join(content)}</g>'
        for index, (title, content) in enumerate(panels.items())
    ]
    total = 2 * width * _ZOOM + 3 * _GAP
    legend = _legend(total, _TOP + height * _ZOOM + _LINE)
    size = f"{total} {_TOP + height * _ZOOM + 2 * _LINE}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" '
        'aria-label="Objects of every class, and the wrong pixels of every class">'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        f"{''.join(body)}{legend}</svg>\n"
    )


def _fill(names: NDArray[np.object_]) -> list[str]:
    """Draw the runs of equal names along each row."""
    rectangles = []
    for y, row in enumerate(names.tolist()):
        x = 0
        for name, run in groupby(row):
            end = x + len(list(run))
            if name:
                outline = ' stroke="#222"' if name == "below_min_area" else ""
                rectangles.append(
                    _rect((y, x, y + 1, end), f'fill="{CLASS_STYLES[name].colour}"{outline}')
                )
            x = end
    return rectangles


def _label(region: Region, predicted: list[Region], text: str) -> str:
    """Write below an object and the predicted objects on it, or above where that does not fit."""
    y0, x0, y1, _ = object_oracle.box(region)
    y1 = max([y1, *(object_oracle.box(other)[2] for other in predicted if other & region)])
    y = _ZOOM * y1 + 13 if y1 < 37 else _ZOOM * y0 - 6
    return f'<text class="l" x="{_ZOOM * x0}" y="{y}">{text}</text>'


def _legend(width: int, y: int) -> str:
    step = (width - 2 * _GAP) // len(CLASS_TITLES)
    return "".join(
        f'<rect x="{_GAP + i * step}" y="{y - 11}" width="18" height="12" '
        f'fill="{CLASS_STYLES[name].colour}" stroke="#555"/>'
        f'<text x="{_GAP + i * step + 24}" y="{y}">{title}</text>'
        for i, (name, title) in enumerate(CLASS_TITLES.items())
    )


def _rect(box: Box, attributes: str) -> str:
    y0, x0, y1, x1 = (_ZOOM * side for side in box)
    return f'<rect x="{x0}" y="{y0}" width="{x1 - x0}" height="{y1 - y0}" {attributes}/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8", newline="\n")
