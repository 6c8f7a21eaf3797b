"""A slow second opinion on predicted objects: sets of pixels and loops, from the definitions alone.

Nothing of the package is used but the frames' rule of order; components are flood fills over sets.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helpers import oracle

Pixel = tuple[int, int]
Region = frozenset[Pixel]
SMALL = 0.01
THRESHOLDS = [1 / (1 + math.exp(12 - step / 2)) for step in range(49)]


def components(mask: NDArray[np.bool_], connectivity: int) -> list[Region]:
    """Flood fill, in reading order of the first pixel."""
    return [frozenset(pixels) for pixels in oracle.components(mask, connectivity)]


def box(region: Region) -> tuple[int, int, int, int]:
    return oracle.box_of(sorted(region))


def in_frame_order(regions: Iterable[Region]) -> list[Region]:
    return sorted(regions, key=lambda region: (*box(region)[:2], min(region)))


def least_pixels(min_area: float, size: int) -> int:
    return min_area if isinstance(min_area, int) else math.ceil(min_area * size - 1e-9)


def true_objects(gt: NDArray[np.bool_], connectivity: int, min_area: float) -> list[Region]:
    """Components large enough, or else the largest."""
    regions = components(gt, connectivity)
    kept = [region for region in regions if len(region) >= least_pixels(min_area, gt.size)]
    if not kept and regions:
        kept = [max(regions, key=len)]  # the first of equals
    return in_frame_order(kept)


def stretched(p: NDArray[np.float64], normalize: str) -> NDArray[np.float64]:
    low, high = p.min(), p.max()
    return p if normalize == "none" or low == high else (p - low) / (high - low)


@dataclass
class Image:
    """One pair, judged: rows of predicted objects and the counts that are summed over images."""

    rows: list[dict[str, Any]]
    recalls: list[float]  # of each frame, at p > 0.5
    counts: dict[str, float]
    curve: list[dict[str, int]] = field(default_factory=list)


def judge(
    p: NDArray[np.float64],
    gt: NDArray[np.bool_],
    *,
    connectivity: int = 8,
    min_area: float = 0.0002,
    normalize: str = "minmax",
) -> Image:
    """Judge a map of values in [0, 1]."""
    p = stretched(p, normalize)
    objects = true_objects(gt, connectivity, min_area)
    rows = _rows(p, gt, objects, connectivity, min_area)
    recalls = [_frame_recall(p, gt, region, 0.5) for region in objects]
    size = gt.size
    matches = [row["iou"] for row in rows if row["match"] >= 0 and row["iou"] > 0.5]
    counts = {
        "images": 1,
        "pixels": size,
        **_tallies(rows, recalls, objects, size),
        "objects": len(objects),
        "false": sum(row["false"] for row in rows),
        "false_pixels": sum(row["area"] for row in rows if row["false"]),
        "matched": len(matches),
        "matched_iou": math.fsum(matches),
        "objects_small": sum(len(region) / size < SMALL for region in objects),
    }
    curve = []
    for threshold in THRESHOLDS:
        at = _rows(p, gt, objects, connectivity, min_area, threshold)
        found = [_frame_recall(p, gt, region, threshold) for region in objects]
        curve.append(_tallies(at, found, objects, size))
    return Image(rows, recalls, counts, curve)


def _tallies(
    rows: Sequence[dict[str, Any]], recalls: Sequence[float], objects: Sequence[Region], size: int
) -> dict[str, int]:
    small = [row for row in rows if row["share"] < SMALL]
    return {
        "found": sum(recall >= 0.5 for recall in recalls),
        "predicted": len(rows),
        "precise": sum(row["precision"] >= 0.5 for row in rows),
        "found_small": sum(
            recall >= 0.5
            for recall, region in zip(recalls, objects, strict=True)
            if len(region) / size < SMALL
        ),
        "predicted_small": len(small),
        "precise_small": sum(row["precision"] >= 0.5 for row in small),
    }


def _frame_recall(
    p: NDArray[np.float64], gt: NDArray[np.bool_], region: Region, threshold: float
) -> float:
    y0, x0, y1, x1 = box(region)
    salient = [(y, x) for y in range(y0, y1) for x in range(x0, x1) if gt[y, x]]
    return sum(bool(p[pixel] > threshold) for pixel in salient) / len(salient)


def _rows(
    p: NDArray[np.float64],
    gt: NDArray[np.bool_],
    objects: Sequence[Region],
    connectivity: int,
    min_area: float,
    threshold: float = 0.5,
) -> list[dict[str, Any]]:
    height, width = gt.shape
    rows = []
    regions = components(p > threshold, connectivity)
    large = [region for region in regions if len(region) >= least_pixels(min_area, gt.size)]
    for region in in_frame_order(large):
        shared = [len(region & other) for other in objects]
        match = shared.index(max(shared)) if any(shared) else -1
        inside = [p[pixel] for pixel in region]
        salient = sum(bool(gt[pixel]) for pixel in region)
        y0, x0, y1, x1 = box(region)
        rows.append(
            {
                "box": (y0, x0, y1, x1),
                "area": len(region),
                "share": len(region) / gt.size,
                "touches_border": y0 == 0 or x0 == 0 or y1 == height or x1 == width,
                "mean": math.fsum(inside) / len(inside),
                "peak": max(inside),
                "precision": salient / len(region),
                "match": match,
                "iou": shared[match] / len(region | objects[match]) if match >= 0 else 0.0,
                "false": salient == 0,
            }
        )
    return rows


def dataset_values(images: Sequence[Image]) -> dict[str, float]:
    """The values over a data set, from sums over its images."""
    total = {key: math.fsum(image.counts[key] for image in images) for key in images[0].counts}
    values = {
        "false_objects": ratio(total["false"], total["images"]),
        "false_area": ratio(total["false_pixels"], total["pixels"]),
        "sq": ratio(total["matched_iou"], total["matched"]),
    }
    wrong = total["predicted"] - total["matched"] + total["objects"] - total["matched"]
    values["rq"] = ratio(total["matched"], total["matched"] + wrong / 2)
    values["pq"] = ratio(total["matched_iou"], total["matched"] + wrong / 2)
    for small in ("", "_small"):
        n_objects = total[f"objects{small}"]
        recall = ratio(total[f"found{small}"], n_objects)
        precision = ratio(total[f"precise{small}"], total[f"predicted{small}"])
        values[f"object_recall{small}"], values[f"object_precision{small}"] = recall, precision
        values[f"object_f1{small}"] = harmonic(precision, recall)
        points = []
        for step in range(len(THRESHOLDS)):
            at = {
                key: sum(image.curve[step][f"{key}{small}"] for image in images)
                for key in ("found", "predicted", "precise")
            }
            points.append((ratio(at["found"], n_objects), ratio(at["precise"], at["predicted"])))
        scores = [harmonic(precision, recall) for recall, precision in points]
        defined = [value for value in scores if not math.isnan(value)]
        values[f"object_f1_max{small}"] = max(defined) if defined else math.nan
        if not small:
            values["object_ap"] = average_precision(points) if n_objects else math.nan
    return values


def average_precision(points: Sequence[tuple[float, float]]) -> float:
    """Points are (recall, precision); a threshold at which nothing is predicted has precision 0 here."""
    known = sorted((recall, 0.0 if math.isnan(p) else p) for recall, p in points)
    area, before = 0.0, 0.0
    for recall, _ in known:
        best = max(p for r, p in known if r >= recall)
        area += (recall - before) * best
        before = recall
    return area


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def harmonic(a: float, b: float) -> float:
    """The harmonic mean of two shares; of zeros it is zero."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return 2 * a * b / (a + b) if a + b else 0.0
