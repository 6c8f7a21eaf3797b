"""Pairs -> their rows, objects and curves: counted one by one, scored several at a time."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod import arrays
from sisod.frames import Partition
from sisod.histograms import ADAPTIVE, BINARY, COLUMNS, LEVELS, Histogram, histogram
from sisod.metrics import FAMILIES, METRICS, Family, counts_of, find_metrics
from sisod.official import OfficialImage, measure_official
from sisod.protocols import Protocol, find_protocol
from sisod.size_invariant import composite, separable
from sisod.structure import Pixels

Values = NDArray[np.float64]
MetricChoice = str | Sequence[str] | None

_ROWS_AT_ONCE = 48  # of a histogram: what the arrays of all families together leave in the cache
_OBJECT_FAMILIES = ("f", "iou", "recall", "auc")  # what the object table is made of
_FORMS = ("mean", "max", "adaptive", "binary")  # of a curve


@dataclass(frozen=True, eq=False)
class Counted:
    """All that is kept of the pixels of one image.

    Attributes:
        histogram: its counts and sums of errors.
        partition: its frames.
        structural: the metrics that no count holds, by key.
        looks_binary: an integer prediction with maximum 1.
    """

    histogram: Histogram
    partition: Partition
    structural: dict[str, float]
    looks_binary: bool


@dataclass(frozen=True, eq=False)
class Scores:
    """Everything that is kept of some images.

    Attributes:
        keys: the metrics.
        values: images x metrics, NaN where undefined.
        curve_names: family keys, ordinary then `si_`.
        curves: images x names x 256, NaN where left out or undefined.
        objects: column of the object table -> one value per frame, image after image.
        shapes: height and width of each image.
        n_objects: frames of each image.
        alphas: weight of the background of each image.
        looks_binary: images with an integer prediction whose maximum is 1.
    """

    keys: tuple[str, ...]
    values: Values
    curve_names: tuple[str, ...]
    curves: Values
    objects: dict[str, NDArray[np.generic]]
    shapes: NDArray[np.int64]
    n_objects: NDArray[np.int64]
    alphas: Values
    looks_binary: NDArray[np.bool_]


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
    if scores.looks_binary[0]:
        arrays.warn_binary(None)
    return dict(zip(keys, scores.values[0].tolist(), strict=True))


def score_pair(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    protocol: Protocol,
    keys: tuple[str, ...],
    partition: Partition | None = None,
) -> Scores:
    """Check and score one pair."""
    counted = count_pair(pred, gt, protocol=protocol, keys=keys, partition=partition)
    return score_counted([counted], protocol=protocol, keys=keys)


def count_pair(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    protocol: Protocol,
    keys: tuple[str, ...],
    partition: Partition | None = None,
) -> Counted | OfficialImage:
    """Check one pair and take from its pixels what the metrics need."""
    mask = arrays.as_mask(gt, level=protocol.gt_level)
    array = arrays.as_map(pred)
    arrays.check_same_shape(array, mask)
    if protocol.released_code:
        _check_no_partition(partition)
        return measure_official(array, gt)
    if partition is None:
        partition = protocol.partition(mask)
    elif partition.shape != mask.shape:
        raise ValueError(
            f"partition is of an image of shape {partition.shape} but gt has shape {mask.shape}; "
            "make it from the same ground truth"
        )
    structural = [family for family in _families(keys) if family.kind == "pixels"]
    scores = {}
    if structural:
        pixels = Pixels(array, mask, protocol.normalize)
        scores = _pixel_scores(pixels, partition, structural, keys)
    return Counted(
        histogram=histogram(array, mask, partition, normalize=protocol.normalize),
        partition=partition,
        structural=scores,
        looks_binary=arrays.looks_binary(array),
    )


def _check_no_partition(partition: Partition | None) -> None:
    if partition is not None:
        raise ValueError(
            "the paper's released code cuts frames itself; leave out partition=, or the protocol"
        )


def _pixel_scores(
    pixels: Pixels,
    partition: Partition,
    families: Sequence[Family],
    keys: Sequence[str],
) -> dict[str, float]:
    framed = {METRICS[key].family.key: key for key in keys if METRICS[key].size_invariant}
    scores = {}
    for family in families:
        if family.key in framed and partition.regions is not None:
            raise ValueError(
                f"{framed[family.key]} needs rectangular frames and these are Voronoi regions; "
                "leave it out, or use kind='boxes'"
            )
        values = family.function(pixels, partition.frames if family.key in framed else ())
        scores[family.key] = float(values[0])
        scores[f"si_{family.key}"] = float(composite(values[1:]))
    return scores


def score_counted(
    images: Sequence[Counted | OfficialImage], *, protocol: Protocol, keys: tuple[str, ...]
) -> Scores:
    """Score images together: as one by one, to the last bit, in fewer steps."""
    counted = [image for image in images if isinstance(image, Counted)]
    if not counted:
        return _official_scores([i for i in images if isinstance(i, OfficialImage)], keys)
    first = protocol.first_threshold
    measured = _measure(counted, _families(keys), first)
    return Scores(
        keys=keys,
        values=_values(counted, measured, keys, first),
        curve_names=(*measured.names, *(f"si_{name}" for name in measured.names)),
        curves=_curves(measured, first),
        objects=_objects(counted, measured),
        shapes=np.array([one.partition.shape for one in counted]),
        n_objects=np.array([len(one.partition) for one in counted]),
        alphas=np.array([one.partition.alpha for one in counted]),
        looks_binary=np.array([one.looks_binary for one in counted]),
    )


def _official_scores(images: Sequence[OfficialImage], keys: tuple[str, ...]) -> Scores:
    """What the released code computes, as rows like all others; it keeps no curves of 256 thresholds."""
    return Scores(
        keys=keys,
        values=np.array([[image.values[key] for key in keys] for image in images]),
        curve_names=("f", "si_f"),
        curves=np.full((len(images), 2, LEVELS), np.nan),
        objects={
            key: np.concatenate([image.objects[key] for image in images]) for key in images[0].objects
        },
        shapes=np.array([image.shape for image in images]),
        n_objects=np.array([image.n_objects for image in images]),
        alphas=np.array([image.alpha for image in images]),
        looks_binary=np.array([image.looks_binary for image in images]),
    )


@functools.lru_cache
def _families(keys: tuple[str, ...]) -> tuple[Family, ...]:
    """The families to compute: those asked for and those the object table shows."""
    wanted = {METRICS[key].family.key for key in keys}.union(_OBJECT_FAMILIES)
    return tuple(family for family in FAMILIES if family.key in wanted)


@dataclass(frozen=True, eq=False)
class _Measured:
    """What the counts of some images give.

    Attributes:
        names: families with a curve.
        plain: images x names x columns of a histogram.
        si: the same, size-invariant.
        frames: values of the frames, image after image, that the object table shows.
        scalars: metrics without a curve, one value per image.
    """

    names: tuple[str, ...]
    plain: Values
    si: Values
    frames: dict[str, Values]
    scalars: dict[str, Values]


def _measure(counted: Sequence[Counted], families: Sequence[Family], first: int) -> _Measured:
    curved = [family for family in families if family.kind == "curve" and not family.separable]
    single = [family for family in families if family.kind == "scalar"]
    stacked = _stack(counted)
    plain, si, per_row = _composites(stacked, curved, single, first)
    separables = [family for family in families if family.separable]
    plain_means, si_means = _separables(counted, separables)
    frames = {key: values[~stacked.is_image] for key, values in per_row.items()}
    scalars = {"si_f_max_frame": stacked.means(frames["f_max"])}
    for family in single:
        scalars[family.key] = per_row[family.key][stacked.is_image]
        scalars[f"si_{family.key}"] = stacked.means(frames[family.key])
    summed = [family for family in separables if family.kind == "curve"]
    for at, family in enumerate(family for family in separables if family.kind == "error"):
        scalars[family.key], scalars[f"si_{family.key}"] = plain_means[:, at], si_means[:, at]
    shape = (len(counted), len(summed), COLUMNS)
    n_errors = len(separables) - len(summed)
    return _Measured(
        names=tuple(family.key for family in curved + summed),
        plain=np.concatenate([plain, plain_means[:, n_errors:].reshape(shape)], axis=1),
        si=np.concatenate([si, si_means[:, n_errors:].reshape(shape)], axis=1),
        frames=frames,
        scalars=scalars,
    )


@dataclass(frozen=True, eq=False)
class _Stack:
    """The histograms of some images as one: a row for the image, then one for each of its frames."""

    above: Values
    totals: Values
    owner: NDArray[np.intp]
    is_image: NDArray[np.bool_]

    def means(self, values: Values) -> Values:
        """Return the mean over the frames of each image where it is defined."""
        defined = ~np.isnan(values)
        owner, n_images = self.owner[~self.is_image][defined], self.owner[-1] + 1
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.bincount(owner, values[defined], n_images) / np.bincount(owner, minlength=n_images)
            )


def _stack(counted: Sequence[Counted]) -> _Stack:
    n_rows = [len(one.partition) + 1 for one in counted]
    is_image = np.zeros(sum(n_rows), dtype=np.bool_)
    is_image[np.cumsum([0, *n_rows[:-1]])] = True
    return _Stack(
        above=np.concatenate([one.histogram.above[:-1] for one in counted]),
        totals=np.concatenate([one.histogram.totals[:-1] for one in counted]),
        owner=np.repeat(np.arange(len(counted)), n_rows),
        is_image=is_image,
    )


def _composites(
    stacked: _Stack, curved: Sequence[Family], single: Sequence[Family], first: int
) -> tuple[Values, Values, dict[str, Values]]:
    """Curves of the images, their means over frames, and what is kept of every row."""
    index = {family.key: row for row, family in enumerate(curved)}
    n_images, n_rows = int(stacked.owner[-1]) + 1, len(stacked.owner)
    plain = np.empty((n_images, len(curved), COLUMNS))
    total, n_defined = np.zeros_like(plain), np.zeros((n_images, len(curved), 1))
    kept = ("f_mean", "f_max", "iou", "recall", *(family.key for family in single))
    per_row = {key: np.empty(n_rows) for key in kept}
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            owner, is_image = stacked.owner[rows], stacked.is_image[rows]
            counts = counts_of(stacked.above[rows], stacked.totals[rows], is_image)
            for family in single:
                per_row[family.key][rows] = family.function(counts)
            values = np.stack([family.function(counts) for family in curved], axis=1)
            thresholds = values[:, index["f"], first:LEVELS]
            per_row["f_mean"][rows] = thresholds.mean(axis=1)
            per_row["f_max"][rows] = thresholds.max(axis=1)
            for key in ("iou", "recall"):
                per_row[key][rows] = values[:, index[key], BINARY]
            plain[owner[is_image]] = values[is_image]
            undefined = np.isnan(values[:, :, :1])  # a row is undefined at all thresholds or at none
            if undefined.any():
                values[undefined[:, :, 0]] = 0.0
            # row by row, in order: the same sums whatever else is scored at the same time
            for row in np.flatnonzero(~is_image).tolist():
                total[owner[row]] += values[row]
                n_defined[owner[row]] += ~undefined[row]
        return plain, total / n_defined, per_row


def _separables(counted: Sequence[Counted], families: Sequence[Family]) -> tuple[Values, Values]:
    """Plain and size-invariant means over pixels: errors, then columns of curves."""
    plain, si = [], []
    for one in counted:
        counts = one.histogram
        sums = [
            family.function(counts)[:, None]
            if family.kind == "error"
            else family.function(counts_of(counts.above, counts.totals))
            for family in families
        ]
        columns = np.concatenate(sums, axis=1) if sums else np.empty((len(counts.totals), 0))
        plain.append(columns[0] / one.partition.background.size)
        si.append(separable(columns, one.partition))
    return np.stack(plain), np.stack(si)


def _values(
    counted: Sequence[Counted], measured: _Measured, keys: tuple[str, ...], first: int
) -> Values:
    si = _reduced(measured.si, first)
    unframed = [index for index, one in enumerate(counted) if len(one.partition) == 0]
    if unframed:  # the defined size-invariant values are the plain ones, over all thresholds
        si[unframed] = _reduced(measured.si[unframed], 0)
    reduced = np.concatenate([_reduced(measured.plain, 0), si], axis=1)
    values = np.empty((len(counted), len(keys)))
    places, others = _places(keys, measured.names)
    values[:, list(places)] = reduced[:, list(places.values())]
    for index in others:
        key = keys[index]
        if METRICS[key].family.kind == "pixels":
            values[:, index] = [one.structural[key] for one in counted]
        else:
            values[:, index] = measured.scalars[key]
    return values


def _reduced(curves: Values, begin: int) -> Values:
    """Every form of every curve, images x (forms, names)."""
    thresholds = curves[:, :, begin:LEVELS]
    forms = thresholds.mean(axis=2), thresholds.max(axis=2), curves[:, :, ADAPTIVE], curves[:, :, BINARY]
    return np.concatenate(forms, axis=1)


@functools.lru_cache
def _places(keys: tuple[str, ...], names: tuple[str, ...]) -> tuple[dict[int, int], list[int]]:
    """Where among the reduced curves each metric is, and which metrics have no curve."""
    places, others = {}, []
    for index, key in enumerate(keys):
        metric = METRICS[key]
        form = metric.form.removesuffix("_image")  # of one image, the same as the maximum
        if form in _FORMS:
            block = _FORMS.index(form) + len(_FORMS) * metric.size_invariant
            places[index] = block * len(names) + names.index(metric.family.key)
        else:
            others.append(index)
    return places, others


def _curves(measured: _Measured, first: int) -> Values:
    curves = np.concatenate([measured.plain[:, :, :LEVELS], measured.si[:, :, :LEVELS]], axis=1)
    curves[:, len(measured.names) :, :first] = np.nan
    return curves


def _objects(counted: Sequence[Counted], measured: _Measured) -> dict[str, NDArray[np.generic]]:
    partitions = [one.partition for one in counted]
    n_objects = [len(one) for one in partitions]
    y0, x0, y1, x1 = np.concatenate([one.boxes for one in partitions]).T
    height, width = np.repeat([one.shape for one in partitions], n_objects, axis=0).T
    areas = np.concatenate([one.areas for one in partitions])
    frame_areas = np.concatenate([one.frame_areas for one in partitions])
    absolute = np.concatenate([one.histogram.absolute[1:-1] for one in counted])
    return {
        "y0": y0,
        "x0": x0,
        "y1": y1,
        "x1": x1,
        "area": areas,
        "share": areas / (height * width),
        "fill": areas / frame_areas,
        "touches_border": (y0 == 0) | (x0 == 0) | (y1 == height) | (x1 == width),
        "mae": absolute / frame_areas,
        "f_mean": measured.frames["f_mean"],
        "f_max": measured.frames["f_max"],
        "auc": measured.frames["auc"],
        "iou_binary": measured.frames["iou"],
        "recall_binary": measured.frames["recall"],
    }
