"""Draw docs/predicted_objects.svg, the example of "Predicted objects": python tools/draw_objects.py.

Left are the objects of the ground truth, right the predicted objects, both numbered as in their tables.
Colours and numbers come from the scores of the scene.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sisod.report.style import COLOURS
from sisod.scoring.counting.objects import HALF
from sisod.scoring.engine import find_scorer, score_pair
from sisod.scoring.protocols import Protocol

PICTURE = Path(__file__).parent.parent / "docs" / "predicted_objects.svg"
RAW = Protocol("raw", normalize="none")
_COLOUR = dict(zip(("found", "missed", "merged", "split", "false"), COLOURS, strict=False))
_ZOOM = 8  # screen pixels per pixel
_GAP, _TOP, _LINE = 16, 34, 15
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.h{font-size:14px;font-weight:700}"
    ".n{font-size:14px;font-weight:700;text-anchor:middle;dominant-baseline:central;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".o{fill:none;stroke:#222;stroke-width:1.5;stroke-dasharray:5 3}.p{fill:#f4f4f4;stroke:#999}"
)
Box = tuple[int, int, int, int]


def make_scene() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a map and its ground truth, with a case of each kind."""
    gt = np.zeros((40, 60), dtype=bool)
    gt[2:10, 2:12] = True
    gt[2:6, 50:54] = True
    gt[20:28, 2:8] = True
    gt[20:28, 12:18] = True
    gt[20:24, 30:50] = True
    p = np.zeros((40, 60))
    p[2:10, 2:12] = 0.9
    p[20:28, 2:18] = 0.8
    p[20:24, 30:38] = 0.7
    p[20:24, 40:50] = 0.7
    p[34:38, 20:28] = 0.6
    return p, gt


def draw() -> str:
    """Return the picture of the scene."""
    p, gt = make_scene()
    scores = score_pair(find_scorer(RAW, "n_predicted"), p, gt)
    true_boxes, predicted_boxes = _boxes(scores.objects), _boxes(scores.predicted)
    # every object of the scene is a rectangle: objects overlap where their boxes do
    hits = [[i for i, box in enumerate(true_boxes) if _overlap(box, other)] for other in predicted_boxes]
    recalls = scores.objects["recall_binary"].tolist()
    kinds = [_kind(index, recall, hits) for index, recall in enumerate(recalls)]
    truth = [
        _object(box, index, kind, [kind, f"recall {recall:g}"])
        for index, (box, kind, recall) in enumerate(zip(true_boxes, kinds, recalls, strict=True))
    ]
    predicted = []
    for index, box in enumerate(predicted_boxes):
        kind = kinds[hits[index][0]] if hits[index] else "false"
        precision, iou = (scores.predicted[key][index] for key in ("precision", "iou"))
        lines = [kind, f"p = {p[box[:2]]:g}", f"precision {precision:g}", f"IoU {iou:g}"]
        predicted.append(_object(box, index, kind, lines))
    outlines = [_rect(box, 'class="o"') for box in true_boxes]
    height, width = gt.shape
    panels = {"Objects of the ground truth": truth, "Predicted objects": predicted + outlines}
    panel = _rect((0, 0, height, width), 'class="p"')
    body = [
        f'<g transform="translate({_GAP + index * (width * _ZOOM + _GAP)},{_TOP})">'
        f'<text class="h" y="-12">{title}</text>{panel}{"".join(content)}</g>'
        for index, (title, content) in enumerate(panels.items())
    ]
    size = f"{2 * width * _ZOOM + 3 * _GAP} {_TOP + height * _ZOOM + _GAP}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img" '
        'aria-label="Found, missed, merged, split and false objects">'
        f'<style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(body)}</svg>\n'
    )


def _boxes(rows: dict[str, NDArray[np.generic]]) -> list[Box]:
    return list(zip(*(rows[side].tolist() for side in ("y0", "x0", "y1", "x1")), strict=True))


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _kind(index: int, recall: float, hits: list[list[int]]) -> str:
    """Return what happened to an object; `hits` lists the objects under each predicted object."""
    sharing = [objects for objects in hits if index in objects]
    if recall < HALF:
        return "missed"
    if len(sharing) > 1:
        return "split"
    return "merged" if len(sharing[0]) > 1 else "found"


def _object(box: Box, index: int, kind: str, lines: list[str]) -> str:
    """Draw an object with its number, and lines of text below it, or above it where they do not fit."""
    y0, x0, y1, x1 = (_ZOOM * side for side in box)
    number = f'<text class="n" x="{(x0 + x1) // 2}" y="{(y0 + y1) // 2}">{index}</text>'
    top = y1 + _LINE
    if top + _LINE * (len(lines) - 1) > _ZOOM * make_scene()[1].shape[0]:
        top = y0 - 6 - _LINE * (len(lines) - 1)
    text = [f'<text x="{x0}" y="{top + _LINE * row}">{line}</text>' for row, line in enumerate(lines)]
    return _rect(box, f'fill="{_COLOUR[kind]}"') + number + "".join(text)


def _rect(box: Box, attributes: str) -> str:
    y0, x0, y1, x1 = (_ZOOM * side for side in box)
    return f'<rect x="{x0}" y="{y0}" width="{x1 - x0}" height="{y1 - y0}" {attributes}/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8", newline="\n")
