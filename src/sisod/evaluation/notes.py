"""Notes about results: files and masks that look wrong, and images on which metrics are undefined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.common.exceptions import pluralize, printable, shorten_list
from sisod.data.catalogue import MASK_WORDS, normalise
from sisod.data.containers import plain_root, split_root
from sisod.data.containers.coco import is_coco
from sisod.data.storage import resolved_root
from sisod.evaluation.request import Request
from sisod.scoring.arrays import GREY, GREY_SIDE
from sisod.scoring.metrics import METRICS
from sisod.scoring.protocols import Protocol
from sisod.scoring.scores import INVERTED_AUC

_NEARLY_ALL = 0.9  # share of the images that have to look swapped
_MOST = 0.75  # share of the images that have to look inverted; those without an object never do
_MOST_TITLES = 6  # metrics that a note lists


def run_notes(run: Mapping[str, Any], request: Request) -> list[str]:
    """Return warnings about the images of a result, from its record.

    Paths are as the user gave them.
    """
    inputs = run.get("inputs", {})
    where = f"in {request.pred_root!r}"
    notes = []
    if _is_same_root(request):
        notes.append(
            f"predictions and ground truths are the same files, {where}: give the predictions first, "
            "the ground truths last"
        )
    if missing := inputs.get("missing"):
        notes.append(
            f"no prediction {where} for {pluralize(len(missing), 'ground truth')} "
            f"({shorten_list(missing)}), left out"
        )
    if n_extra := inputs.get("extra"):
        have, were = ("has", "was") if n_extra == 1 else ("have", "were")
        names = shorten_list(inputs.get("extra_names", []))
        notes.append(
            f"{pluralize(n_extra, 'file')} {where} {have} no ground truth ({names}) and "
            f"{were} not scored"
        )
    if request.class_maps and is_coco(request.gt_root):
        # nothing else tells maps of the class, a natural mistake, from class maps
        notes.append(
            f"the files {where} were read as class maps, since there is no folder {request.category!r} "
            "of maps in it; if they are saliency maps of this class, move them there"
        )
    elif request.class_maps and run.get("predicted") == 0 and run.get("components"):
        notes.append(
            f"no prediction {where} has an object of the class {request.category!r}; they were read as "
            f"class maps, since there is no folder {request.category!r} of maps in it; if they are "
            "saliency maps of this class, move them there"
        )
    # the released codes resize every pair to a grid of their own
    if (n_resized := run.get("resized")) and not request.protocol.released_code:
        their, were = ("its", "was") if n_resized == 1 else ("their", "were")
        notes.append(
            f"{pluralize(n_resized, 'prediction')} {where} had another size than {their} ground truth "
            f"and {were} resized"
        )
    if run.get("looks_binary"):
        notes.append(
            f"{run['looks_binary']} predictions {where} are integers with maximum 1: "
            "they look like 0/1 instead of 0/255"
        )
    if run.get("kept_below_min_area"):
        least = request.protocol.min_area
        size = f"{least} pixels" if isinstance(least, int) else f"{100 * least:g} % of the image"
        notes.append(
            f"{run['kept_below_min_area']} objects are scored only because their ground truth in "
            f"{request.gt_root!r} has no component of {size} or more; smaller ones beside them "
            "are not scored; --min-area 0 scores all"
        )
    if run.get("components") == 0:
        notes.append(_empty_note(request))
    if 0 < _MOST * run.get("images", 0) <= run.get("looks_inverted", 0):
        notes.append(
            f"the maps {where} look inverted: in {run['looks_inverted']} of {run['images']} images they "
            f"are darker on objects than beside them (AUC below {INVERTED_AUC}); expected maps that are "
            "bright on objects"
        )
    if looks_swapped(run):
        notes.append(
            f"predictions and ground truths look swapped: in {run['looks_swapped']} of {run['images']} "
            f"images the ground truth, in {request.gt_root!r}, has grey areas and the prediction, "
            f"{where}, has none; give the predictions first, the ground truths last"
        )
    elif (
        _is_named_like_truths(request.pred_root)
        and not _is_named_like_truths(request.gt_root)
        and not is_coco(request.pred_root)
    ):  # of two binary maps, nothing else tells which is the prediction
        notes.append(
            f"predictions and ground truths may be swapped: {request.pred_root!r}, given for the "
            f"predictions, is called like ground truths, and {request.gt_root!r} is not; give the "
            "predictions first, the ground truths last"
        )
    elif run.get("grey_masks"):
        notes.append(
            grey_masks_note(
                str(request.gt_root),
                request.protocol,
                run["grey_masks"],
                run["images"],
                run.get("emptied_masks", 0),
            )
        )
    elif (n_emptied := run.get("emptied_masks")) and run.get("components"):
        notes.append(
            f"{n_emptied} of {run['images']} ground truths in {request.gt_root!r} are not black but "
            f"have no salient pixel (one from {request.protocol.gt_level} on): make sure that these "
            "are masks; label maps need --label-maps, class maps --class"
        )
    return notes


def _is_same_root(request: Request) -> bool:
    ends = request.pred_suffix, request.gt_suffix
    return ends[0] == ends[1] and resolved_root(request.pred_root) == resolved_root(request.gt_root)


def _is_named_like_truths(root: str) -> bool:
    """Tell from the name of a folder or a column; a COCO file says itself what it is."""
    name = split_root(root)[1] or Path(plain_root(resolved_root(root))).name
    return normalise(name) in MASK_WORDS or is_coco(root)


def _empty_note(request: Request) -> str:
    where = f"no ground truth in {request.gt_root!r} has"
    if request.category:
        return f"{where} a pixel of the class {request.category!r}: make sure that it is the right one"
    if request.labels or is_coco(request.gt_root):
        return f"{where} an object: make sure that these are the ground truths"
    level = request.protocol.gt_level
    return (
        f"{where} a salient pixel (one from {level} on): make sure that these are masks; label maps "
        "need --label-maps, class maps --class"
    )


def looks_swapped(run: Mapping[str, Any]) -> bool:
    """Tell whether ground truths are grey and predictions are not, in nearly all images.

    Grey edges do not count, so that anti-aliased or lossily compressed masks are no grey masks.

    Example:
        >>> looks_swapped({"images": 10, "looks_swapped": 9})
        True
        >>> looks_swapped({"images": 10, "looks_swapped": 6})
        False
    """
    return bool(0 < _NEARLY_ALL * run.get("images", 0) <= run.get("looks_swapped", 0))


def grey_masks_note(root: str, protocol: Protocol, n_grey: int, n_masks: int, n_emptied: int) -> str:
    """Return how many masks have grey areas, what is made of them, and how many become empty."""
    emptied = f"; {n_emptied} have no salient pixel then" if n_emptied else ""
    values = ", though their grey values are scored" if protocol.released_code else ""
    return (
        f"{n_grey} of {n_masks} ground truths in {root!r} have grey areas (values from {GREY[0]} to "
        f"{GREY[1]} over {GREY_SIDE} x {GREY_SIDE} pixels or more); a pixel is salient from "
        f"{protocol.gt_level} on{values}{emptied}"
    )


@dataclass(frozen=True)
class DefinedCounts:
    """On how many of its images each metric of a result is defined."""

    dataset: str
    method: str
    defined: Mapping[str, int]
    n_images: int


def undefined_notes(results: Sequence[DefinedCounts], keys: Sequence[str]) -> list[str]:
    """Return on how many images metrics are undefined: a line for each data set and count.

    Metrics of objects are computed from counts summed over all images, and leave none out; they count
    only if no image has a value. The name of the data set may be empty.

    Example:
        >>> a = DefinedCounts("MSOD", "A", {"mae": 300, "auc": 297, "si_auc": 297}, 300)
        >>> undefined_notes([a], ["mae", "auc", "si_auc"])
        ['MSOD: AUC, SI-AUC undefined on 3 of 300 images, which are left out of the mean']
    """
    # data set, number of undefined and of all images, metrics -> methods
    groups: dict[tuple[str, int, int, tuple[str, ...]], list[str]] = {}
    for result in results:
        by_count: dict[int, list[str]] = {}
        for key in keys:
            n_defined = result.defined.get(key, result.n_images)
            if n_defined == 0 or METRICS[key].family.kind != "objects":
                n_undefined = result.n_images - n_defined
                by_count.setdefault(n_undefined, []).append(METRICS[key].title)
        for count, titles in by_count.items():
            if count:
                group = (result.dataset, count, result.n_images, tuple(titles))
                groups.setdefault(group, []).append(result.method)
    methods_of = {
        dataset: [result.method for result in results if result.dataset == dataset]
        for dataset in dict.fromkeys(result.dataset for result in results)
    }
    return [
        f"{_start(dataset, [] if methods == methods_of[dataset] else methods)}{_listed(titles)} "
        f"undefined on {_undefined_images(count, n_images)}"
        for (dataset, count, n_images, titles), methods in groups.items()
    ]


def _start(dataset: str, methods: list[str]) -> str:
    """The start of a line: the data set, and the methods if not all of them are meant."""
    names = shorten_list(methods)
    if dataset and names:
        return f"{printable(dataset)} ({names}): "
    return f"{printable(dataset) or names}: " if dataset or names else ""


def _undefined_images(count: int, n_images: int) -> str:
    if count == n_images:
        return "the only image" if n_images == 1 else f"all {n_images} images"
    verb = "is" if count == 1 else "are"
    return f"{count} of {n_images} images, which {verb} left out of the mean"


def _listed(titles: Sequence[str]) -> str:
    more = f" ({len(titles)} metrics)" if len(titles) > _MOST_TITLES else ""
    return shorten_list(list(titles), most=_MOST_TITLES) + more
