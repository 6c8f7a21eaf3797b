"""A slow second opinion on the error breakdown: a label for every pixel and object, from the definition.

Sets of pixels and loops; nothing of the package is used.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from helpers.object_oracle import Pixel, Region, box, components, in_frame_order, least_pixels


@dataclass
class Breakdown:
    """The class of every object and of every pixel; "" for a pixel that is right."""

    objects: list[str]
    n_false: int
    pixels: dict[Pixel, str]

    def counts(self) -> Counter[str]:
        """Return how many pixels each class has."""
        return Counter(name for name in self.pixels.values() if name)


def break_down(
    p: NDArray[np.float64],
    gt: NDArray[np.bool_],
    objects: list[Region],
    *,
    connectivity: int,
    min_area: float,
    recalls: list[float],
) -> Breakdown:
    """Classify a map of values in [0, 1], after its normalisation.

    Args:
        p: the map.
        gt: the ground truth.
        objects: those with a frame.
        connectivity: of the components of the prediction.
        min_area: least area of a predicted object.
        recalls: recall of each object's frame; for boxes that of `object_oracle`.
    """
    regions = components(p > 0.5, connectivity)
    predicted = in_frame_order(r for r in regions if len(r) >= least_pixels(min_area, gt.size))
    classes = [
        _object_class(region, objects, predicted, gt, recall)
        for region, recall in zip(objects, recalls, strict=True)
    ]
    false = [region for region in predicted if not any(gt[pixel] for pixel in region)]
    pixels: dict[Pixel, str] = {}
    height, width = gt.shape
    for pixel in ((y, x) for y in range(height) for x in range(width)):
        if bool(p[pixel] > 0.5) == bool(gt[pixel]):
            pixels[pixel] = ""
        elif gt[pixel]:
            pixels[pixel] = "fn_" + _miss_class(pixel, objects, classes)
        else:
            pixels[pixel] = "fp_" + _false_class(pixel, objects, predicted, false)
    return Breakdown(classes, len(false), pixels)


def _held(region: Region, predicted: Region) -> bool:
    return len(region & predicted) > len(region) / 2


def _object_class(
    region: Region,
    objects: list[Region],
    predicted: list[Region],
    gt: NDArray[np.bool_],
    recall: float,
) -> str:
    if recall < 0.5:
        return "missed"
    if any(len(region & other) / len(region | other) > 0.5 for other in predicted):
        return "correct"
    for holder in predicted:
        if _held(region, holder):
            if sum(_held(other, holder) for other in objects) > 1:
                return "merged"
            if sum(bool(gt[pixel]) for pixel in holder) < len(holder) / 2:
                return "spilled"
            return "partly_found"
    return (
        "split" if sum(_match(other, objects) == region for other in predicted) > 1 else "partly_found"
    )


def _match(predicted: Region, objects: list[Region]) -> Region | None:
    shared = [len(predicted & region) for region in objects]
    return objects[shared.index(max(shared))] if any(shared) else None


def _miss_class(pixel: Pixel, objects: list[Region], classes: list[str]) -> str:
    for region, name in zip(objects, classes, strict=True):
        if pixel in region:
            return name if name in ("missed", "split") else "partly_found"
    return "below_min_area"


def _false_class(
    pixel: Pixel, objects: list[Region], predicted: list[Region], false: list[Region]
) -> str:
    for region in predicted:
        if pixel in region:
            if region in false:
                return "false"
            if sum(_held(other, region) for other in objects) > 1:
                return "merged"
            return "in_frame" if any(_is_inside(pixel, box(other)) for other in objects) else "spilled"
    return "below_min_area"


def _is_inside(pixel: Pixel, sides: tuple[int, int, int, int]) -> bool:
    y0, x0, y1, x1 = sides
    return y0 <= pixel[0] < y1 and x0 <= pixel[1] < x1
