"""Notes about results: files and masks that look wrong, and images on which metrics are undefined."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sisod.common.exceptions import pluralize, printable, shorten_list
from sisod.data.containers import is_coco, plain_root, split_root
from sisod.data.pairs import MASK_WORDS, normalise
from sisod.data.storage import resolved_root
from sisod.evaluation.tasks import Request
from sisod.scoring.arrays import GREY, GREY_SIDE
from sisod.scoring.metrics import METRICS
from sisod.scoring.protocols import Protocol
from sisod.scoring.scores import INVERTED_AUC

_NEARLY_ALL = 0.9  # share of the images that have to look swapped
_MOST = 0.75  # share of the images that have to look inverted; those without an object never do
_MOST_TITLES = 6  # metrics that a note lists


def run_notes(run: Mapping[str, Any], request: Request) -> list[str]:
    """Return warnings about the images of a result, one sentence each.

    Args:
        run: the record of the result.
        request: what was scored; its paths are as the user gave them.
    """
    inputs, protocol, category = run.get("inputs", {}), request.protocol, request.meaning.category
    pred, gt = f"in {request.pred_root!r}", f"in {request.gt_root!r}"
    order = "give the predictions first, the ground truths last"
    masks = "make sure that these are masks; label maps need --label-maps, class maps --class"
    n_images, n_components = run.get("images", 0), run.get("components")
    notes = []
    if resolved_root(request.pred_root) == resolved_root(request.gt_root) and (
        request.pred_suffix == request.gt_suffix
    ):
        notes.append(f"predictions and ground truths are the same files, {pred}: {order}")
    if missing := inputs.get("missing"):
        notes.append(
            f"no prediction {pred} for {pluralize(len(missing), 'ground truth')} "
            f"({shorten_list(missing)}), left out"
        )
    if n_extra := inputs.get("extra"):
        have, were = ("has", "was") if n_extra == 1 else ("have", "were")
        names = shorten_list(inputs.get("extra_names", []))
        notes.append(
            f"{pluralize(n_extra, 'file')} {pred} {have} no ground truth ({names}) and {were} not scored"
        )
    # nothing else tells maps of the class, a natural mistake, from class maps
    is_empty = run.get("predicted") == 0 and n_components
    if request.class_maps and (is_empty or is_coco(request.gt_root)):
        found = f"no prediction {pred} has an object of the class {category!r}; they" if is_empty else ""
        notes.append(
            f"{found or f'the files {pred}'} were read as class maps, since there is no folder "
            f"{category!r} of maps in it; if they are saliency maps of this class, move them there"
        )
    # the released codes resize every pair to a grid of their own
    if (n_resized := run.get("resized")) and not protocol.released_code:
        their, were = ("its", "was") if n_resized == 1 else ("their", "were")
        notes.append(
            f"{pluralize(n_resized, 'prediction')} {pred} had another size than {their} ground truth "
            f"and {were} resized"
        )
    if run.get("looks_binary"):
        notes.append(
            f"{run['looks_binary']} predictions {pred} are integers with maximum 1: "
            "they look like 0/1 instead of 0/255"
        )
    if run.get("kept_below_min_area"):
        least = protocol.min_area
        size = f"{least} pixels" if isinstance(least, int) else f"{100 * least:g} % of the image"
        notes.append(
            f"{run['kept_below_min_area']} objects are scored only because their ground truth {gt} has "
            f"no component of {size} or more; smaller ones beside them are not scored; --min-area 0 "
            "scores all"
        )
    if n_components == 0:
        lacks = f"a salient pixel (one from {protocol.gt_level} on): {masks}"
        if category:
            lacks = f"a pixel of the class {category!r}: make sure that it is the right one"
        elif request.meaning.labels or is_coco(request.gt_root):
            lacks = "an object: make sure that these are the ground truths"
        notes.append(f"no ground truth {gt} has {lacks}")
    if 0 < _MOST * n_images <= run.get("looks_inverted", 0):
        notes.append(
            f"the maps {pred} look inverted: in {run['looks_inverted']} of {n_images} images they are "
            f"darker on objects than beside them (AUC below {INVERTED_AUC}); expected maps that are "
            "bright on objects"
        )
    # by the names of the folders, or of the columns of a container
    roots = (request.pred_root, request.gt_root)
    titles = [split_root(root)[1] or Path(plain_root(root)).resolve().name for root in roots]
    is_mask_folder = [normalise(title) in MASK_WORDS for title in titles]
    # grey edges do not count: anti-aliased or lossily compressed masks are no grey masks
    if 0 < _NEARLY_ALL * n_images <= run.get("looks_swapped", 0):
        notes.append(
            f"predictions and ground truths look swapped: in {run['looks_swapped']} of {n_images} "
            f"images the ground truth, {gt}, has grey areas and the prediction, {pred}, has none; "
            f"{order}"
        )
    elif is_mask_folder[0] and not (is_mask_folder[1] or is_coco(request.gt_root)):
        # of two binary maps, nothing else tells which is the prediction
        notes.append(
            f"predictions and ground truths may be swapped: {request.pred_root!r}, given for the "
            f"predictions, is called like ground truths, and {request.gt_root!r} is not; {order}"
        )
    elif n_grey := run.get("grey_masks"):
        n_emptied = run.get("emptied_masks", 0)
        notes.append(grey_masks_note(request.gt_root, protocol, n_grey, n_images, n_emptied))
    elif (n_emptied := run.get("emptied_masks")) and n_components:
        notes.append(
            f"{n_emptied} of {n_images} ground truths {gt} are not black but have no salient pixel (one "
            f"from {protocol.gt_level} on): {masks}"
        )
    return notes


def grey_masks_note(root: str, protocol: Protocol, n_grey: int, n_masks: int, n_emptied: int) -> str:
    """Return how many masks have grey areas, what is made of them, and how many become empty.

    Args:
        root: of the masks.
        protocol: by which they are scored.
        n_grey: number of masks with grey areas.
        n_masks: number of all masks.
        n_emptied: number of those that are grey or dark and have no salient pixel.
    """
    emptied = f"; {n_emptied} have no salient pixel then" if n_emptied else ""
    values = ", though their grey values are scored" if protocol.released_code else ""
    return (
        f"{n_grey} of {n_masks} ground truths in {root!r} have grey areas (values from {GREY[0]} to "
        f"{GREY[1]} over {GREY_SIDE} x {GREY_SIDE} pixels or more); a pixel is salient from "
        f"{protocol.gt_level} on{values}{emptied}"
    )


def undefined_notes(
    results: Sequence[tuple[str, str, Mapping[str, int], int]], keys: Sequence[str]
) -> list[str]:
    """Return on how many images metrics are undefined: a line for each data set and count.

    Metrics of objects are computed from counts summed over all images, and leave none out; they count
    only if no image has a value.

    Args:
        results: data set (may be empty) and method, on how many images each metric is defined, and the
            number of images.
        keys: the metrics.

    Example:
        >>> a = ("MSOD", "A", {"mae": 300, "auc": 297, "si_auc": 297}, 300)
        >>> undefined_notes([a], ["mae", "auc", "si_auc"])
        ['MSOD: AUC, SI-AUC undefined on 3 of 300 images, which are left out of the mean']
    """
    # data set, number of undefined and of all images, metrics -> methods
    groups: dict[tuple[str, int, int, tuple[str, ...]], list[str]] = {}
    for dataset, method, defined, n_images in results:
        by_count: dict[int, list[str]] = {}
        for key in keys:
            n_defined = defined.get(key, n_images)
            if n_defined == 0 or METRICS[key].family.kind != "objects":
                by_count.setdefault(n_images - n_defined, []).append(METRICS[key].title)
        for count, titles in by_count.items():
            if count:
                groups.setdefault((dataset, count, n_images, tuple(titles)), []).append(method)
    notes = []
    for (dataset, count, n_images, shared), methods in groups.items():
        n_methods = sum(other == dataset for other, *_ in results)
        names = "" if len(methods) == n_methods else shorten_list(methods)
        start = f"{printable(dataset)} ({names})" if dataset and names else printable(dataset) or names
        more = f" ({len(shared)} metrics)" if len(shared) > _MOST_TITLES else ""
        verb = "is" if count == 1 else "are"
        images = f"{count} of {n_images} images, which {verb} left out of the mean"
        if count == n_images:
            images = "the only image" if n_images == 1 else f"all {n_images} images"
        titles_text = shorten_list(list(shared), most=_MOST_TITLES) + more
        notes.append(f"{start}{': ' if start else ''}{titles_text} undefined on {images}")
    return notes
