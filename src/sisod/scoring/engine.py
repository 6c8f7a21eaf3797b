"""Pairs -> their rows, objects and curves: counted one by one, scored several at a time."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import shown
from sisod.scoring import arrays
from sisod.scoring.curves import BatchCurves, ImageStatistics, measure
from sisod.scoring.histograms import ADAPTIVE, BINARY, LEVELS, histogram
from sisod.scoring.metrics import FAMILIES, METRICS, Family, find_metrics
from sisod.scoring.official import OfficialImage, measure_official
from sisod.scoring.partition import Partition, least_area
from sisod.scoring.protocols import Protocol, find_protocol
from sisod.scoring.size_invariant import composite
from sisod.scoring.structure import Pixels

Values = NDArray[np.float64]
MetricChoice = str | Sequence[str] | None

_OBJECT_FAMILIES = ("f", "iou", "recall", "auc")  # what the object table is made of
_FORMS = ("mean", "max", "adaptive", "binary")  # of a curve


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
        n_tiny: frames of each image that are there only because none of its components is large enough.
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
    n_tiny: NDArray[np.int64]


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
        partition: frames of your own, for example from instance labels; by default the protocol's. The
            protocol's `connectivity` and `min_area` have no say in them.

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
) -> ImageStatistics | OfficialImage:
    """Check one pair and take from its pixels what the metrics need."""
    mask = arrays.as_mask(gt, level=protocol.gt_level)
    array = arrays.as_map(pred)
    arrays.check_same_shape(array, mask)
    if protocol.released_code:
        _check_no_partition(partition)
        return measure_official(array, gt)
    own_frames = partition is not None
    if partition is None:
        partition = protocol.partition(mask)
    elif not isinstance(partition, Partition):
        raise TypeError(
            f"partition must be a Partition, got {shown(partition)}; sisod.partition(gt) makes one"
        )
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
    return ImageStatistics(
        histogram=histogram(array, mask, partition, normalize=protocol.normalize),
        partition=partition,
        own_frames=own_frames,
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
    images: Sequence[ImageStatistics | OfficialImage], *, protocol: Protocol, keys: tuple[str, ...]
) -> Scores:
    """Score images together: as one by one, to the last bit, in fewer steps."""
    counted = [image for image in images if isinstance(image, ImageStatistics)]
    if not counted:
        return _official_scores([i for i in images if isinstance(i, OfficialImage)], keys)
    first = protocol.first_threshold
    measured = measure(counted, _families(keys), first)
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
        n_tiny=np.array([_count_tiny(one, protocol) for one in counted]),
    )


def _count_tiny(counted: ImageStatistics, protocol: Protocol) -> int:
    """Frames below the least size: an image without a larger component has its largest as a frame."""
    if counted.own_frames:  # the least size is a rule of the protocol, for the frames that it cuts
        return 0
    areas, size = counted.partition.areas, counted.partition.background.size
    return int(np.count_nonzero(areas < least_area(protocol.min_area, size)))


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
        n_tiny=np.zeros(len(images), dtype=np.int64),  # the released code has no such rule
    )


@functools.lru_cache
def _families(keys: tuple[str, ...]) -> tuple[Family, ...]:
    """The families to compute: those asked for and those the object table shows."""
    wanted = {METRICS[key].family.key for key in keys}.union(_OBJECT_FAMILIES)
    return tuple(family for family in FAMILIES if family.key in wanted)


def _values(
    counted: Sequence[ImageStatistics], measured: BatchCurves, keys: tuple[str, ...], first: int
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


def _curves(measured: BatchCurves, first: int) -> Values:
    curves = np.concatenate([measured.plain[:, :, :LEVELS], measured.si[:, :, :LEVELS]], axis=1)
    curves[:, len(measured.names) :, :first] = np.nan
    return curves


def _objects(
    counted: Sequence[ImageStatistics], measured: BatchCurves
) -> dict[str, NDArray[np.generic]]:
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
