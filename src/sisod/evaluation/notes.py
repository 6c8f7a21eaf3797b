"""What to warn of after an evaluation: images left out, resized, or scored although very small."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sisod.common.errors import shorten_list

if TYPE_CHECKING:
    from sisod.evaluation.driver import Request


def notes_of(run: Mapping[str, Any], request: "Request") -> list[str]:
    """Return what the record of a run holds that a user should hear of; paths are as they were given."""
    inputs = run.get("inputs", {})
    where = f"in {request.pred_root!r}"
    notes = []
    if missing := inputs.get("missing"):
        notes.append(
            f"{len(missing)} ground truths have no prediction {where} ({shorten_list(missing)}) "
            "and were left out"
        )
    if inputs.get("extra"):
        names = shorten_list(inputs.get("extra_names", []))
        notes.append(
            f"{inputs['extra']} files {where} have no ground truth ({names}) and were not scored"
        )
    if run.get("resized"):
        notes.append(
            f"{run['resized']} predictions {where} had another size than their ground truth "
            "and were resized"
        )
    if run.get("looks_binary"):
        notes.append(
            f"{run['looks_binary']} predictions {where} are integers with maximum 1: "
            "they look like 0/1 instead of 0/255"
        )
    if run.get("tiny"):
        least = request.protocol.min_area
        size = f"{least} pixels" if isinstance(least, int) else f"{100 * least:g} % of the image"
        notes.append(
            f"{run['tiny']} objects are scored only because their ground truth in "
            f"{request.gt_root!r} has no component of {size} or more; smaller ones beside them "
            "are not scored; --protocol paper scores all"
        )
    return notes
