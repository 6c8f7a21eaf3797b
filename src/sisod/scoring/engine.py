"""Pairs of arrays -> scores: choose the scorer, measure each image, finish the batch.

`CountScorer` serves every protocol but those of released code. Its first stage, below, reduces the
pixels of one image to counts; its second stage, in `batch`, turns the counts of a batch into scores.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.scoring import arrays, kernel
from sisod.scoring.arrays import Mask, Values
from sisod.scoring.batch import ImageStatistics, score_image, score_statistics
from sisod.scoring.counting.components import NO_COMPONENTS
from sisod.scoring.counting.histograms import grey_histogram, histogram
from sisod.scoring.counting.objects import count_curve, measure_predicted, measured_objects
from sisod.scoring.custom import CustomMetric, custom_values, find_custom, resolve_choice
from sisod.scoring.families.family import Family, Pixels
from sisod.scoring.metrics import FAMILIES, METRICS, MetricChoice, find_metrics
from sisod.scoring.partition import Partition, alpha_terms, check_partition, least_area
from sisod.scoring.protocols import Protocol, find_protocol
from sisod.scoring.scores import Scorer, Scores
from sisod.scoring.size_invariant import composite

_BYTES_PER_PIXEL = 24  # of all arrays that `measure` holds at a time
_BUILT_IN = frozenset(METRICS)  # those of the user are added later, and can change
_find_once = functools.lru_cache(find_metrics)


def score(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    protocol: str | Protocol = "default",
    metrics: MetricChoice = None,
    partition: Partition | None = None,
) -> dict[str, float]:
    """Return the metrics of one prediction, plain and size-invariant.

    Args:
        pred: saliency map: uint8, uint16, bool, or float in [0, 1].
        gt: ground truth: bool, or uint8, uint16, float, salient at one half or more.
        protocol: a name of `sisod.PROTOCOLS`, or a `Protocol` of your own. Settings can follow a name:
            `"default+min_area=0"`, `"paper+connectivity=4+normalize=none"`.
        metrics: None for every metric that is a function of the counts, `"all"` also those that
            need the pixels, such as S, weighted F and boundary IoU; `"paper"` the columns of the paper's
            Table 1, `"sod"` and `"dis"` those that papers on salient objects and on high-resolution
            segmentation print; or a list of keys. The list may hold metrics of your own: functions of p
            and gt, or `CustomMetric`.
        partition: frames of your own, for example from instance labels; by default the protocol's. The
            protocol's `connectivity` and `min_area` do not apply to them.

    Returns:
        Metric key -> value; undefined values are NaN.

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
    scorer = find_scorer(find_protocol(protocol), metrics, tables=False)
    image = _measure_pair(scorer, pred, gt, partition)
    if isinstance(scorer, CountScorer):
        is_binary = image.looks_binary
        values = score_image(image, scorer.keys, scorer.protocol.first_threshold)
    else:
        scores = scorer.finish([image])
        is_binary, values = bool(scores.looks_binary[0]), scores.values[0].tolist()
    if is_binary:
        arrays.warn_binary(None)
    return dict(zip(scorer.keys, values, strict=True))


def find_scorer(
    protocol: Protocol,
    metrics: MetricChoice,
    *,
    tables: bool = True,
) -> Scorer[Any]:
    """Return the scorer of a protocol for the chosen metrics: the one place that chooses.

    Without `tables`, predicted objects are left out unless a metric needs them.

    Example:
        >>> find_scorer(find_protocol("default"), "mae,si_mae").keys
        ('mae', 'si_mae')
    """
    has_boxes = protocol.kind == "boxes"
    if protocol.released_code:
        from sisod.scoring.official import OfficialScorer, find_official_metrics

        choice = None if metrics is None else resolve_choice(metrics)
        return OfficialScorer(find_official_metrics(choice), protocol)
    if _is_built_in(metrics):  # found once: `score` is called for one image after the other
        choice = tuple(metrics) if isinstance(metrics, list) else metrics
        keys = _find_once(choice, detections=protocol.detections, boxes=has_boxes)
        return CountScorer(protocol, keys, tables)
    keys = find_metrics(resolve_choice(metrics), detections=protocol.detections, boxes=has_boxes)
    return CountScorer(protocol, keys, tables, find_custom(keys))


def _is_built_in(metrics: MetricChoice) -> bool:
    """Tell whether a choice is None, or consists of keys that are not the user's."""
    names = metrics.split(",") if isinstance(metrics, str) else metrics
    if not isinstance(names, list | tuple):
        return names is None
    return {*map(type, names)} == {str} and _BUILT_IN.issuperset(names)


def score_pair(
    scorer: Scorer[Any], pred: ArrayLike, gt: ArrayLike, *, partition: Partition | None = None
) -> Scores:
    """Check and score one pair of the same shape."""
    return scorer.finish([_measure_pair(scorer, pred, gt, partition)])


def _measure_pair(
    scorer: Scorer[Any], pred: ArrayLike, gt: ArrayLike, partition: Partition | None
) -> Any:
    truth = scorer.ground_truth(gt)
    array = arrays.as_map(pred)
    arrays.check_same_shape(array, truth)
    return scorer.measure(array, truth, partition)


@dataclass(frozen=True)
class CountScorer:
    """Scores from counts of pixels per grey level and frame, by a protocol."""

    protocol: Protocol
    keys: tuple[str, ...]
    tables: bool = True
    custom: tuple[CustomMetric, ...] = ()

    def ground_truth(self, gt: ArrayLike) -> Mask:
        """Return a ground truth as a mask."""
        return arrays.as_mask(gt, level=self.protocol.gt_level)

    def measure(
        self,
        pred: arrays.Map,
        gt: Mask,
        partition: Partition | None = None,
        *,
        labels: NDArray[np.integer] | None = None,
    ) -> ImageStatistics:
        """Reduce the pixels of one image to what the metrics need."""
        if pred.shape != gt.shape:
            pred = _resize(pred, gt.shape)
        protocol = self.protocol
        # the kernel covers boxes around the components of an 8-bit map
        own_frames = partition is None and labels is None
        simple = protocol.kind == "boxes" and not protocol.detections and not protocol.keep_ties
        if own_frames and simple and pred.dtype == np.uint8 and kernel.is_usable(pred):
            image = self._count_by_kernel(pred, gt)
        else:
            image = self._count(pred, gt, partition, labels)
        if image.predicted is not None and _object_needs(self.keys)[1]:
            curve = count_curve(pred, gt, image.partition, protocol)
            image = replace(image, predicted=replace(image.predicted, curve=curve))
        families = _pixel_families(self.keys)
        if not families and not self.custom:
            return image
        pixels = Pixels(pred, gt, protocol.normalize)
        values, of_frames = _pixel_values(pixels, image.partition, families)
        if self.custom:
            own, of_own = custom_values(self.custom, pred, gt, image.partition, protocol.normalize)
            values, of_frames = values | own, of_frames | of_own
        return replace(image, pixel_values=values, frame_values=of_frames)

    def _count(
        self,
        pred: arrays.Map,
        gt: Mask,
        partition: Partition | None,
        labels: NDArray[np.integer] | None,
    ) -> ImageStatistics:
        """Cut the ground truth, unless frames are given, and count."""
        # Never written: once a block of this size was freed, the C library keeps the memory of the
        # arrays below for the next image instead of getting it from the system page by page.
        np.empty(_BYTES_PER_PIXEL * gt.size, dtype=np.uint8)
        n_tiny = n_left_out = 0
        if partition is None:
            partition = self.protocol.partition(gt, labels)
            least = least_area(self.protocol.min_area, gt.size)
            n_tiny = int(np.count_nonzero(partition.areas < least))
            n_left_out = len(partition.components) - len(partition)
        else:  # frames of the caller, to which the least area does not apply
            check_partition(partition, gt.shape)
        predicted = None
        if self.tables or _object_needs(self.keys)[0]:
            predicted = measure_predicted(pred, gt, partition, self.protocol)
        counts = histogram(pred, gt, partition, normalize=self.protocol.normalize)
        partition = replace(partition, components=NO_COMPONENTS)  # a large map, no longer needed
        is_binary = arrays.looks_binary(pred)
        return ImageStatistics(counts, partition, predicted, is_binary, n_tiny, n_left_out)

    def _count_by_kernel(self, pred: NDArray[np.uint8], gt: Mask) -> ImageStatistics:
        """Do the same as `_count`, in one pass."""
        protocol, objects = self.protocol, self.tables or _object_needs(self.keys)[0]
        least = least_area(protocol.min_area, gt.size)
        frames, rows, ends, background_area, n_left_out, measured = kernel.measure(
            pred,
            gt,
            least=least,
            connectivity=protocol.connectivity,
            minmax=protocol.normalize == "minmax",
            objects=objects,
            histograms=self.tables,
        )
        partition = Partition(
            *frames,
            shape=(gt.shape[0], gt.shape[1]),
            background_area=background_area,
            alpha_terms=alpha_terms(protocol.alpha, background_area, gt.size, int(frames[2].sum())),
        )
        counts = grey_histogram(rows, ends, gt.size, protocol.normalize)
        predicted = None if measured is None else measured_objects(measured, ends, protocol)
        n_tiny = int(np.count_nonzero(frames[1] < least))
        return ImageStatistics(counts, partition, predicted, ends[1] == 1, n_tiny, n_left_out)

    def finish(self, images: Sequence[ImageStatistics]) -> Scores:
        """Turn the statistics of a batch into its scores."""
        return score_statistics(images, self.keys, self.protocol.first_threshold)


@functools.lru_cache
def _object_needs(keys: tuple[str, ...]) -> tuple[bool, bool]:
    """Tell whether a metric needs the predicted objects, and their counts at every threshold."""
    families = [METRICS[key].family for key in keys]
    needs_curve = any(family.kind == "objects" and family.on_request for family in families)
    return any(family.kind in ("objects", "balanced") for family in families), needs_curve


def _resize(pred: arrays.Map, shape: tuple[int, ...]) -> arrays.Map:
    resized = np.asarray(cv2.resize(pred, shape[::-1], interpolation=cv2.INTER_LINEAR))
    # bilinear weights add up to one but for rounding
    return np.clip(resized, 0, 1) if resized.dtype.kind == "f" else resized


def without_ignored(pred: arrays.Map, ignored: Mask) -> arrays.Map:
    """Return a prediction, of the shape of the ground truth, with its least value at ignored pixels."""
    if pred.shape != ignored.shape:
        pred = _resize(pred, ignored.shape)
    return np.where(ignored, pred.min(), pred)


def _pixel_values(
    pixels: Pixels, partition: Partition, families: list[tuple[Family, bool]]
) -> tuple[dict[str, float], dict[str, Values]]:
    """Return the metrics that no count holds, by key, and the values of frames that are kept."""
    values, of_frames = {}, {}
    for family, is_si in families:
        if is_si and partition.regions is not None:
            raise ValueError(
                f"si_{family.key} needs rectangular frames and these are Voronoi regions; "
                "leave it out, or use kind='boxes'"
            )
        rows = family.function(pixels, partition.frames if is_si else ())
        values[family.key] = float(rows[0])
        if is_si:
            values[f"si_{family.key}"] = float(composite(rows[1:]))
        if family.per_object and is_si:
            of_frames[family.key] = rows[1:]
    return values, of_frames


@functools.lru_cache
def _pixel_families(keys: tuple[str, ...]) -> list[tuple[Family, bool]]:
    """Return the families to compute from pixels, and whether the size-invariant form is wanted."""
    wanted = {METRICS[key].family.key for key in keys}
    families = [family for family in FAMILIES if family.kind == "pixels" and family.key in wanted]
    return [(family, f"si_{family.key}" in keys) for family in families]
