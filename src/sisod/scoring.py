"""One pair -> its row, its objects, its curves."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod import arrays
from sisod.frames import Partition
from sisod.histograms import ADAPTIVE, BINARY, COLUMNS, LEVELS, Histogram, histogram
from sisod.metrics import FAMILIES, METRICS, Family, counts_of, find_metrics
from sisod.protocols import Protocol, find_protocol
from sisod.size_invariant import composite, separable
from sisod.structure import Pixels

Values = NDArray[np.float64]
MetricChoice = str | Sequence[str] | None

_ROWS_AT_ONCE = 32  # of a histogram: what the arrays of all families together leave in the cache
_OBJECT_FAMILIES = ("f", "iou", "recall", "auc")  # what the object table is made of


@dataclass(frozen=True, eq=False)
class Scores:
    """Everything that is kept of one image.

    Attributes:
        values: metric key -> value, NaN where undefined.
        curve_names: family keys, ordinary then `si_`.
        curve_values: one row of 256 values per name, NaN where left out or undefined.
        objects: column of the object table -> one value per frame.
        shape: height and width.
        n_objects: number of frames.
        alpha: weight of the background.
        looks_binary: an integer prediction with maximum 1.
    """

    values: dict[str, float]
    curve_names: tuple[str, ...]
    curve_values: Values
    objects: dict[str, NDArray[np.generic]]
    shape: tuple[int, int]
    n_objects: int
    alpha: float
    looks_binary: bool

    @property
    def curves(self) -> dict[str, Values]:
        """Curves by name."""
        return dict(zip(self.curve_names, self.curve_values, strict=True))


def score(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    protocol: str | Protocol = "default",
    metrics: MetricChoice = None,
    partition: Partition | None = None,
) -> dict[str, float]:
    """Return the metrics of one prediction, ordinary and size-invariant.

    Args:
        pred: saliency map: uint8, uint16, bool, or float in [0, 1].
        gt: ground truth: bool, or uint8, uint16, float salient from one half on.
        protocol: `"default"`, `"paper"`, `"pysodmetrics"`, `"official"`, or a `Protocol` of your own.
        metrics: None for every metric that is a function of the counts, `"all"` also S, weighted F and
            multi-scale IoU, `"paper"` the columns of the paper's Table 1, or a list of keys.
        partition: frames of your own, for example from instance labels; by default the protocol's.

    Undefined values are NaN.

    Example:
        Of two objects, 16 pixels and 1 pixel, the small one is missed. MAE hardly notices:

        >>> gt = np.zeros((8, 8), dtype=bool)
        >>> gt[:4, :4] = True
        >>> gt[7, 7] = True
        >>> pred = gt.copy()
        >>> pred[7, 7] = False
        >>> {key: round(value, 3) for key, value in score(pred, gt, metrics="mae,si_mae").items()}
        {'mae': 0.016, 'si_mae': 0.21}
    """
    settled = find_protocol(protocol)
    keys = find_metrics(metrics, settled)
    scores = score_pair(pred, gt, protocol=settled, keys=keys, partition=partition)
    if scores.looks_binary:
        arrays.warn_binary(None)
    return scores.values


def score_pair(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    protocol: Protocol,
    keys: Sequence[str],
    partition: Partition | None = None,
) -> Scores:
    """Check and score one pair."""
    mask = arrays.as_mask(gt, level=protocol.gt_level)
    array = arrays.as_map(pred)
    arrays.check_same_shape(array, mask)
    if protocol.released_code:
        return _official(array, gt, keys, partition)
    if partition is None:
        partition = protocol.partition(mask)
    elif partition.shape != mask.shape:
        raise ValueError(
            f"partition is of an image of shape {partition.shape} but gt has shape {mask.shape}; "
            "make it from the same ground truth"
        )
    counted = histogram(array, mask, partition, normalize=protocol.normalize)
    families = _families(tuple(keys))
    measured = _measure(counted, partition, families, protocol.first_threshold)
    scalars = _errors(counted, partition, families) | measured.scalars()
    structural = [family for family in families if family.kind == "pixels"]
    if structural:
        pixels = Pixels(array, mask, protocol.normalize)
        scalars |= _pixel_scores(pixels, partition, structural, keys)
    return Scores(
        values=_values(tuple(keys), measured, scalars),
        curve_names=(*measured.row, *(f"si_{key}" for key in measured.row)),
        curve_values=measured.curves(),
        objects=_objects(counted, partition, measured),
        shape=partition.shape,
        n_objects=len(partition),
        alpha=partition.alpha,
        looks_binary=arrays.looks_binary(array),
    )


def _official(
    pred: arrays.Map, gt: ArrayLike, keys: Sequence[str], partition: Partition | None
) -> Scores:
    from sisod.official import score_official  # which needs what is defined here

    if partition is not None:
        raise ValueError(
            "the paper's released code cuts frames itself; leave out partition=, or the protocol"
        )
    return score_official(pred, gt, keys=keys)


@dataclass(frozen=True, eq=False)
class _Measured:
    """What the counts give.

    Attributes:
        row: family key -> its row in `plain` and `si`.
        plain: curves of the image at every column of the histogram.
        si: the same, size-invariant.
        frames: values of the frames that the object table shows, and of scalar families.
        image: values of scalar families for the image.
        first: where size-invariant curves begin.
        begin: where their means and maxima begin.
    """

    row: dict[str, int]
    plain: Values
    si: Values
    frames: dict[str, Values]
    image: dict[str, float]
    first: int
    begin: int

    def curves(self) -> Values:
        curves = np.concatenate([self.plain[:, :LEVELS], self.si[:, :LEVELS]])
        curves[len(self.plain) :, : self.first] = np.nan
        return curves

    def scalars(self) -> dict[str, float]:
        si = {f"si_{key}": float(composite(self.frames[key])) for key in self.image}
        return self.image | si | {"si_f_max_frame": float(composite(self.frames["f_max"]))}


def _measure(
    counted: Histogram, partition: Partition, families: Sequence[Family], first: int
) -> _Measured:
    curved = [family for family in families if family.kind == "curve" and not family.separable]
    summed = [family for family in families if family.kind == "curve" and family.separable]
    single = [family for family in families if family.kind == "scalar"]
    index = {family.key: row for row, family in enumerate(curved + summed)}
    n_rows = len(partition) + 1
    plain, total = np.empty((len(index), COLUMNS)), np.zeros((len(curved), COLUMNS))
    n_defined = np.zeros((len(curved), 1))
    kept = ("f_mean", "f_max", "iou", "recall", *(family.key for family in single))
    per_row = {key: np.empty(n_rows) for key in kept}
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = slice(start, min(start + _ROWS_AT_ONCE, n_rows))
            counts = counts_of(counted, rows)
            for family in single:
                per_row[family.key][rows] = family.function(counts)
            values = np.stack([family.function(counts) for family in curved])
            thresholds = values[index["f"], :, first:LEVELS]
            per_row["f_mean"][rows] = thresholds.mean(axis=1)
            per_row["f_max"][rows] = thresholds.max(axis=1)
            for key in ("iou", "recall"):
                per_row[key][rows] = values[index[key], :, BINARY]
            if start == 0:
                plain[: len(curved)], values = values[:, 0], values[:, 1:]
            undefined = np.isnan(values[:, :, 0])  # a row is undefined at all thresholds or at none
            if undefined.any():
                values[undefined] = 0.0
            total += values.sum(axis=1)
            n_defined += np.count_nonzero(~undefined, axis=1, keepdims=True)
        si = np.empty_like(plain)
        si[: len(curved)] = total / n_defined
    for family in summed:
        sums = family.function(counts_of(counted, slice(0, None)))
        plain[index[family.key]] = sums[0] / partition.background.size
        si[index[family.key]] = separable(sums, partition)
    return _Measured(
        row=index,
        plain=plain,
        si=si,
        frames={key: values[1:] for key, values in per_row.items()},
        image={family.key: float(per_row[family.key][0]) for family in single},
        first=first,
        # without frames the defined size-invariant values are the plain ones, over all thresholds
        begin=first if len(partition) else 0,
    )


def _errors(counted: Histogram, partition: Partition, families: Sequence[Family]) -> dict[str, float]:
    scalars = {}
    for family in families:
        if family.kind == "error":
            sums = family.function(counted)
            scalars[family.key] = float(sums[0] / partition.background.size)
            scalars[f"si_{family.key}"] = float(separable(sums, partition))
    return scalars


def _pixel_scores(
    pixels: Pixels,
    partition: Partition,
    families: Sequence[Family],
    keys: Sequence[str],
) -> dict[str, float]:
    framed = {METRICS[key].family.key: key for key in keys if METRICS[key].size_invariant}
    scalars = {}
    for family in families:
        if family.key in framed and partition.regions is not None:
            raise ValueError(
                f"{framed[family.key]} needs rectangular frames and these are Voronoi regions; "
                "leave it out, or use kind='boxes'"
            )
        values = family.function(pixels, partition.frames if family.key in framed else ())
        scalars[family.key] = float(values[0])
        scalars[f"si_{family.key}"] = float(composite(values[1:]))
    return scalars


def _values(keys: tuple[str, ...], measured: _Measured, scalars: dict[str, float]) -> dict[str, float]:
    plain, si = measured.plain[:, :LEVELS], measured.si[:, measured.begin : LEVELS]
    reduced = [
        plain.mean(axis=1),
        plain.max(axis=1),
        measured.plain[:, ADAPTIVE],
        measured.plain[:, BINARY],
        si.mean(axis=1),
        si.max(axis=1),
        measured.si[:, ADAPTIVE],
        measured.si[:, BINARY],
    ]
    flat = np.concatenate(reduced).tolist()
    places = _places(keys, tuple(measured.row))
    return {
        key: scalars[key] if place is None else flat[place]
        for key, place in zip(keys, places, strict=True)
    }


@functools.lru_cache
def _places(keys: tuple[str, ...], curved: tuple[str, ...]) -> list[int | None]:
    """Where among the reduced curves each metric is, None for one that has no curve."""
    forms = ("mean", "max", "adaptive", "binary")
    places: list[int | None] = []
    for key in keys:
        metric = METRICS[key]
        form = metric.form.removesuffix("_image")  # of one image, the same as the maximum
        if form not in forms:
            places.append(None)
        else:
            block = forms.index(form) + len(forms) * metric.size_invariant
            places.append(block * len(curved) + curved.index(metric.family.key))
    return places


@functools.lru_cache
def _families(keys: tuple[str, ...]) -> tuple[Family, ...]:
    """The families to compute: those asked for and those the object table shows."""
    wanted = {METRICS[key].family.key for key in keys}.union(_OBJECT_FAMILIES)
    return tuple(family for family in FAMILIES if family.key in wanted)


def _objects(
    counted: Histogram, partition: Partition, measured: _Measured
) -> dict[str, NDArray[np.generic]]:
    y0, x0, y1, x1 = partition.boxes.T
    height, width = partition.shape
    return {
        "y0": y0,
        "x0": x0,
        "y1": y1,
        "x1": x1,
        "area": partition.areas,
        "share": partition.areas / (height * width),
        "fill": partition.areas / partition.frame_areas,
        "touches_border": (y0 == 0) | (x0 == 0) | (y1 == height) | (x1 == width),
        "mae": counted.absolute[1:-1] / partition.frame_areas,
        "f_mean": measured.frames["f_mean"],
        "f_max": measured.frames["f_max"],
        "auc": measured.frames["auc"],
        "iou_binary": measured.frames["iou"],
        "recall_binary": measured.frames["recall"],
    }
