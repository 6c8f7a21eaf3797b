"""A slow, independent implementation of every metric: loops over pixels, from its formula.

Nothing here shares code or method with the library: components by flood fill, thresholds one by
one, AUC by all pairs, Voronoi by every distance. For small images only.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

Mask = NDArray[np.bool_]
Pixel = tuple[int, int]
Bits = tuple[bool, ...]

EPS = 2.0**-52  # np.spacing(1), where PySODMetrics' S and weighted F put it
BETA2 = 0.3
COUNTED = ("accuracy", "f", "precision", "recall", "iou", "dice", "specificity", "fpr", "ber", "kappa")
FAMILIES = (*COUNTED, "e")


# ------------------------------------------------------------------------------------ partition


@dataclass(frozen=True)
class Cut:
    """Frames as lists of pixels, in order, and the pixels of no frame."""

    boxes: list[tuple[int, int, int, int]]
    areas: list[int]
    frames: list[list[Pixel]]
    background: list[Pixel]
    alpha: float


def components(mask: Mask, connectivity: int) -> list[list[Pixel]]:
    """Flood fill; components in the raster order of their first pixels."""
    height, width = mask.shape
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    if connectivity == 8:
        steps += [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    seen: set[Pixel] = set()
    found = []
    for start in pixels_of(mask.shape):
        if not mask[start] or start in seen:
            continue
        seen.add(start)
        stack, component = [start], []
        while stack:
            y, x = stack.pop()
            component.append((y, x))
            for dy, dx in steps:
                near = (y + dy, x + dx)
                inside = 0 <= near[0] < height and 0 <= near[1] < width
                if inside and mask[near] and near not in seen:
                    seen.add(near)
                    stack.append(near)
        found.append(sorted(component))
    return found


def pixels_of(shape: tuple[int, ...]) -> list[Pixel]:
    return [(y, x) for y in range(shape[0]) for x in range(shape[1])]


def box_of(component: Sequence[Pixel]) -> tuple[int, int, int, int]:
    rows = [y for y, _ in component]
    columns = [x for _, x in component]
    return min(rows), min(columns), max(rows) + 1, max(columns) + 1


def cut(
    mask: Mask,
    *,
    labels: NDArray[Any] | None = None,
    kind: str = "boxes",
    connectivity: int = 8,
    min_area: float = 0.0002,
    keep_ties: bool = False,
    alpha: str | float = "ratio",
) -> Cut:
    """Cut a mask, or a label map of its shape, by DESIGN 2."""
    everything = pixels_of(mask.shape)
    if labels is None:
        found = components(mask, connectivity)
    else:
        names = [label for label in dict.fromkeys(labels.ravel().tolist()) if label != 0]
        found = [[pixel for pixel in everything if labels[pixel] == label] for label in names]
    least = min_area * len(everything) if isinstance(min_area, float) else min_area
    kept = [component for component in found if len(component) >= least]
    if found and not kept:
        most = max(len(component) for component in found)
        kept = [component for component in found if len(component) == most]
        kept = kept if keep_ties else kept[:1]
    kept.sort(key=lambda component: (*box_of(component)[:2], component[0]))
    boxes = [box_of(component) for component in kept]
    areas = [len(component) for component in kept]
    if not kept:
        return Cut([], [], [], everything, 1.0)
    if kind == "voronoi":
        frames: list[list[Pixel]] = [[] for _ in kept]
        for y, x in everything:
            distances = [min((y - v) ** 2 + (x - u) ** 2 for v, u in component) for component in kept]
            frames[distances.index(min(distances))].append((y, x))
        return Cut(boxes, areas, frames, [], 0.0)
    frames = [[(y, x) for y in range(y0, y1) for x in range(x0, x1)] for y0, x0, y1, x1 in boxes]
    framed = {pixel for frame in frames for pixel in frame}
    background = [pixel for pixel in everything if pixel not in framed]
    if not background:
        weight = 0.0
    elif alpha == "ratio":
        weight = len(background) / sum(len(frame) for frame in frames)
    elif alpha == "union":
        weight = len(background) / len(framed)
    else:
        weight = float(alpha)
    return Cut(boxes, areas, frames, background, weight)


# ---------------------------------------------------------------------------------- predictions


def probabilities(pred: NDArray[Any], normalize: str = "minmax") -> NDArray[np.float64]:
    """Every pixel's p, in double precision, one by one."""
    whole = {"uint8": 255, "uint16": 65535}.get(pred.dtype.name, 1)
    p = [[float(value) / whole for value in row] for row in pred.tolist()]
    low = min(min(row) for row in p)
    high = max(max(row) for row in p)
    if normalize == "minmax" and high != low:
        p = [[(value - low) / (high - low) for value in row] for row in p]
    return np.array(p)


def adaptive_threshold(p: NDArray[np.float64]) -> float:
    return min(2 * mean(p.ravel().tolist()), 1.0)


def adaptive_is_clear(p: NDArray[np.float64]) -> bool:
    """Return whether no pixel is so near the adaptive threshold that the order of a sum decides."""
    values = p.ravel().tolist()
    twice = 2 * mean(values)
    if twice > 1 + 1e-9 or set(values) <= {0.0, 1.0}:
        return True  # however it is summed
    return all(abs(value - twice) > 1e-9 for value in values)


def mean(values: Iterable[float]) -> float:
    """Mean of the defined values; NaN if there is none."""
    defined = [value for value in values if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def largest(values: Iterable[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return max(defined) if defined else math.nan


# ----------------------------------------------------------------------- one region, one threshold


def family_values(predicted: Bits, truth: Bits, e_divisor: int) -> dict[str, float]:
    """Every thresholded metric of one region; NaN where DESIGN 2 calls it undefined."""
    tp = sum(p and g for p, g in zip(predicted, truth, strict=True))
    fp = sum(p and not g for p, g in zip(predicted, truth, strict=True))
    fn = sum(not p and g for p, g in zip(predicted, truth, strict=True))
    tn = len(truth) - tp - fp - fn
    out = dict.fromkeys(FAMILIES, math.nan)
    out["accuracy"] = (tp + tn) / len(truth)
    out["e"] = alignment(predicted, truth) / e_divisor
    if tp + fn:  # without a salient pixel only accuracy, specificity, fpr and e are defined
        precision = tp / (tp + fp) if tp + fp else 0.0
        recall = tp / (tp + fn)
        out["precision"], out["recall"] = precision, recall
        out["f"] = (1 + BETA2) * precision * recall / (BETA2 * precision + recall) if tp else 0.0
        out["iou"] = tp / (tp + fp + fn)
        out["dice"] = 2 * tp / (2 * tp + fp + fn)
    if fp + tn:
        out["specificity"] = tn / (tn + fp)
        out["fpr"] = fp / (tn + fp)
    if tp + fn and fp + tn:
        out["ber"] = 1 - (tp / (tp + fn) + tn / (tn + fp)) / 2
        chance = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / len(truth) ** 2
        out["kappa"] = (out["accuracy"] - chance) / (1 - chance)
    return out


def alignment(predicted: Bits, truth: Bits) -> float:
    """Sum of the enhanced alignment matrix of the E-measure."""
    if not any(truth):
        return sum(not p for p in predicted)
    if all(truth):
        return sum(predicted)
    mean_p, mean_g = sum(predicted) / len(truth), sum(truth) / len(truth)
    total = 0.0
    for p, g in zip(predicted, truth, strict=True):
        a, b = p - mean_p, g - mean_g
        total += (1 + 2 * a * b / (a * a + b * b)) ** 2 / 4
    return total


def area_under_curve(levels: Sequence[int], truth: Bits) -> float:
    """Share of pairs (salient, not salient) in the right order; a tie is one half."""
    salient = [level for level, g in zip(levels, truth, strict=True) if g]
    other = [level for level, g in zip(levels, truth, strict=True) if not g]
    if not salient or not other:
        return math.nan
    wins = sum(1.0 if s > o else 0.5 if s == o else 0.0 for s in salient for o in other)
    return wins / (len(salient) * len(other))


@dataclass(frozen=True)
class Region:
    """Return curves, scalars and errors of one set of pixels."""

    curves: dict[str, list[float]]
    adaptive: dict[str, float]
    binary: dict[str, float]
    auc: float
    mae: float
    mse: float


def region(p: NDArray[np.float64], gt: Mask, pixels: Sequence[Pixel], e_divisor: int) -> Region:
    values = [float(p[pixel]) for pixel in pixels]
    truth = tuple(bool(gt[pixel]) for pixel in pixels)
    levels = [math.floor(255 * value) for value in values]
    known: dict[Bits, dict[str, float]] = {}

    def at(is_predicted: Callable[[int], bool]) -> dict[str, float]:
        predicted = tuple(is_predicted(i) for i in range(len(pixels)))
        if predicted not in known:
            known[predicted] = family_values(predicted, truth, e_divisor)
        return known[predicted]

    rows = [at(lambda i, t=t: levels[i] >= t) for t in range(256)]  # type: ignore[misc]
    threshold = adaptive_threshold(p)
    return Region(
        {name: [row[name] for row in rows] for name in FAMILIES},
        at(lambda i: values[i] >= threshold),
        at(lambda i: values[i] > 0.5),
        area_under_curve(levels, truth),
        mean(abs(value - g) for value, g in zip(values, truth, strict=True)),
        mean((value - g) ** 2 for value, g in zip(values, truth, strict=True)),
    )


# ------------------------------------------------------------------------------ S and weighted F


def structure_measure(p: NDArray[np.float64], gt: Mask) -> float:
    """S with alpha one half; exact rational moments, so that zero means zero."""
    height, width = gt.shape
    exact = {(y, x): Fraction(float(p[y, x])) for y, x in pixels_of(gt.shape)}
    salient = [pixel for pixel in exact if gt[pixel]]
    if not salient:
        return float(1 - sum(exact.values()) / len(exact))
    if len(salient) == len(exact):
        return float(sum(exact.values()) / len(exact))

    def object_score(values: list[Fraction]) -> float:
        middle = sum(values) / Fraction(len(values))
        spread = 0.0
        if len(values) > 1:
            spread = math.sqrt(float(sum((v - middle) ** 2 for v in values) / (len(values) - 1)))
        return 2 * float(middle) / (float(middle) ** 2 + 1 + spread + EPS)

    share = len(salient) / len(exact)
    inner = object_score([exact[pixel] for pixel in salient])
    outer = object_score([1 - exact[pixel] for pixel in exact if not gt[pixel]])
    # Python rounds a half to even, as numpy does
    cy = round(Fraction(sum(y for y, _ in salient), len(salient))) + 1
    cx = round(Fraction(sum(x for _, x in salient), len(salient))) + 1
    regions = 0.0
    for rows, columns in [
        (range(cy), range(cx)),
        (range(cy), range(cx, width)),
        (range(cy, height), range(cx)),
        (range(cy, height), range(cx, width)),
    ]:
        quadrant = [(y, x) for y in rows for x in columns]
        if quadrant:  # an empty one adds 0
            similarity = ssim([exact[q] for q in quadrant], [Fraction(bool(gt[q])) for q in quadrant])
            regions += similarity * len(quadrant) / len(exact)
    return max(0.0, 0.5 * (share * inner + (1 - share) * outer) + 0.5 * regions)


def ssim(pred: list[Fraction], gt: list[Fraction]) -> float:
    n = len(pred)
    x, y = sum(pred) / Fraction(n), sum(gt) / Fraction(n)
    divisor = max(n - 1, 1)
    var_x = sum((p - x) ** 2 for p in pred) / divisor
    var_y = sum((g - y) ** 2 for g in gt) / divisor
    covariance = sum((p - x) * (g - y) for p, g in zip(pred, gt, strict=True)) / divisor
    alpha = 4 * x * y * covariance
    beta = (x**2 + y**2) * (var_x + var_y)
    if alpha:
        return float(alpha) / (float(beta) + EPS)
    return 0.0 if beta else 1.0


def weighted_errors(p: NDArray[np.float64], gt: Mask) -> NDArray[np.float64]:
    """Margolin's error times importance of every pixel of the whole image."""
    height, width = gt.shape
    error = np.abs(p - gt)
    distance, nearest = distance_transform_edt(~gt, return_indices=True)
    moved = error.copy()
    for y, x in pixels_of(gt.shape):
        if not gt[y, x]:
            moved[y, x] = error[nearest[0][y, x], nearest[1][y, x]]
    kernel = {
        (dy, dx): math.exp(-(dy * dy + dx * dx) / (2 * 5 * 5))
        for dy in range(-3, 4)
        for dx in range(-3, 4)
    }
    total = math.fsum(kernel.values())
    weighted = error.copy()
    for y, x in pixels_of(gt.shape):
        if gt[y, x]:
            near = 0.0  # outside the image is zero
            for (dy, dx), weight in kernel.items():
                if 0 <= y + dy < height and 0 <= x + dx < width:
                    near += weight / total * float(moved[y + dy, x + dx])
            weighted[y, x] = min(float(error[y, x]), near)
        else:
            weighted[y, x] *= 2 - math.exp(math.log(0.5) / 5 * float(distance[y, x]))
    return weighted


def weighted_f(weighted: NDArray[np.float64], gt: Mask, pixels: Sequence[Pixel]) -> float:
    salient = [float(weighted[pixel]) for pixel in pixels if gt[pixel]]
    if not salient:
        return math.nan
    true_positive = len(salient) - math.fsum(salient)
    false_positive = math.fsum(float(weighted[pixel]) for pixel in pixels if not gt[pixel])
    recall = 1 - mean(salient)
    precision = true_positive / (true_positive + false_positive + EPS)
    return 2 * recall * precision / (recall + precision + EPS)


# ------------------------------------------------------------------------------------ all of it


@dataclass(frozen=True)
class Opinion:
    """The oracle's values, curves and object table of one pair."""

    values: dict[str, float]
    curves: dict[str, list[float]]
    objects: dict[str, list[float]]


def opinion(
    pred: NDArray[Any],
    gt: Mask,
    parts: Cut,
    *,
    normalize: str = "minmax",
    first_threshold: int = 1,
    structure: bool = True,
) -> Opinion:
    """Score one pair. `structure=False` leaves out S and weighted F, as Voronoi frames do for SI."""
    p = probabilities(pred, normalize)
    everything = pixels_of(gt.shape)
    image = region(p, gt, everything, max(len(everything) - 1, 1))
    frames = [region(p, gt, frame, len(frame)) for frame in parts.frames]
    outside = region(p, gt, parts.background, len(parts.background)) if parts.background else None

    def separable(of: Callable[[Region], float]) -> float:
        total = math.fsum(of(frame) for frame in frames)
        if outside is not None:
            total += parts.alpha * of(outside)
        return total / (len(frames) + parts.alpha)

    values = {"mae": image.mae, "mse": image.mse, "auc": image.auc}
    values["si_mae"] = separable(lambda r: r.mae)
    values["si_mse"] = separable(lambda r: r.mse)
    values["si_auc"] = mean(frame.auc for frame in frames)
    curves: dict[str, list[float]] = {}
    for name in FAMILIES:
        values[f"{name}_adaptive"] = image.adaptive[name]
        values[f"{name}_binary"] = image.binary[name]
        curves[name] = image.curves[name]
        combine: Callable[[Callable[[Region], float]], float] = (
            separable if name == "accuracy" else lambda of: mean(of(frame) for frame in frames)
        )
        values[f"si_{name}_adaptive"] = combine(lambda r, n=name: r.adaptive[n])  # type: ignore[misc]
        values[f"si_{name}_binary"] = combine(lambda r, n=name: r.binary[n])  # type: ignore[misc]
        curves[f"si_{name}"] = [
            math.nan if t < first_threshold else combine(lambda r, n=name, t=t: r.curves[n][t])  # type: ignore[misc]
            for t in range(256)
        ]
    for name, curve in curves.items():
        values[f"{name}_mean"] = mean(curve)
        values[f"{name}_max"] = largest(curve)
    if not frames:  # K = 0: the plain values, t = 0 among them
        values["si_accuracy_mean"] = values["accuracy_mean"]
        values["si_accuracy_max"] = values["accuracy_max"]
    values["f_max_image"], values["si_f_max_image"] = values["f_max"], values["si_f_max"]
    best = [largest(frame.curves["f"][first_threshold:]) for frame in frames]
    values["si_f_max_frame"] = mean(best)
    if structure:
        values["s"] = structure_measure(p, gt)
        values["si_s"] = mean(
            structure_measure(p[y0:y1, x0:x1], gt[y0:y1, x0:x1]) for y0, x0, y1, x1 in parts.boxes
        )
        weighted = weighted_errors(p, gt) if gt.any() else p
        values["wf"] = weighted_f(weighted, gt, everything)
        values["si_wf"] = mean(weighted_f(weighted, gt, frame) for frame in parts.frames)
    objects = {
        "mae": [frame.mae for frame in frames],
        "f_mean": [mean(frame.curves["f"][first_threshold:]) for frame in frames],
        "f_max": best,
        "auc": [frame.auc for frame in frames],
        "iou_binary": [frame.binary["iou"] for frame in frames],
        "recall_binary": [frame.binary["recall"] for frame in frames],
    }
    return Opinion(values, curves, objects)
