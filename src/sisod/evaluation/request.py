"""What decides the result of an evaluation, and how its work is done: the two things passed along."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sisod.common.arguments import short_repr
from sisod.common.exceptions import UsageError
from sisod.data.containers import is_coco
from sisod.data.storage import has_folder, resolved_root
from sisod.data.truths import BINARY_MASK, TruthFormat, check_category
from sisod.scoring.custom import CustomMetric, find_custom
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol, find_protocol


@dataclass(frozen=True)
class Folders:
    """Folders (or URLs) of predictions and ground truths, and how their files are to be read.

    Attributes:
        pred_root: of the predictions.
        gt_root: of the ground truths.
        pred_suffix: end of every prediction's name that is not part of the image's, like `_sal`.
        gt_suffix: the same for ground truths, like `_mask`.
        meaning: what the values of the ground truths mean.
        class_maps: whether predictions hold the numbers of classes too.
    """

    pred_root: str
    gt_root: str
    pred_suffix: str = ""
    gt_suffix: str = ""
    meaning: TruthFormat = BINARY_MASK
    class_maps: bool = False

    def of_class(self, category: str) -> "Folders":
        """Return the folders of one class: maps in a folder of its name, or else class maps."""
        check_category(self.gt_root, category)
        chosen = dataclasses.replace(self, meaning=TruthFormat(self.meaning.labels, category))
        if is_coco(self.pred_root):
            return chosen
        if has_folder(self.pred_root, category):
            return dataclasses.replace(chosen, pred_root=f"{self.pred_root.rstrip('/')}/{category}")
        return dataclasses.replace(chosen, class_maps=True)


@dataclass(frozen=True, kw_only=True)
class Request(Folders):
    """Everything that decides the result: the files, and how they are scored.

    Attributes:
        protocol: the conventions of scoring.
        keys: the metrics.
        custom: the metrics of the user among them.
        names: only these images; None for all.
        allow_missing: score what has a prediction instead of raising.
        strict: raise for predictions of another size instead of resizing them.
    """

    protocol: Protocol
    keys: tuple[str, ...]
    custom: tuple[CustomMetric, ...] = ()
    names: tuple[str, ...] | None = None
    allow_missing: bool = False
    strict: bool = False

    def inputs(self) -> dict[str, Any]:
        """Return what is read, as run.json stores it; roots mean the same in every working folder."""
        return {
            "predictions": resolved_root(self.pred_root),
            "ground_truths": resolved_root(self.gt_root),
            "pred_suffix": self.pred_suffix,
            "gt_suffix": self.gt_suffix,
            **({"labels": True} if self.meaning.labels else {}),
            **({"class": self.meaning.category} if self.meaning.category else {}),
            **({"class_maps": True} if self.class_maps else {}),
        }


@dataclass(frozen=True)
class Options:
    """How the work is done: none of this changes the result.

    Attributes:
        jobs: processes; None for one for each core.
        resume: go on with an unfinished run.
        overwrite: replace an earlier result.
        cluster: address of a Dask scheduler or of Ray; None for this machine.
        title: of the progress bar.
    """

    jobs: int | None = None
    resume: bool = False
    overwrite: bool = False
    cluster: str | None = None
    title: str = "scoring"


def make_request(
    folders: Folders,
    *,
    protocol: str | Protocol = "default",
    metrics: MetricChoice = None,
    names: Sequence[str] | None = None,
    allow_missing: bool = False,
    strict: bool = False,
) -> Request:
    """Return a request with the protocol and the metrics that are named."""
    if isinstance(names, str):  # it would be taken for a list of letters
        raise UsageError(f"names must be a list of names, got the string {short_repr(names)}")
    protocol = find_protocol(protocol)
    if protocol.released_code and (folders.meaning.labels or is_coco(folders.gt_root)):
        raise UsageError(
            f"the protocol {protocol.name!r} finds the objects of a mask itself, and these ground "
            "truths name theirs; choose another protocol"
        )
    keys = find_scorer(protocol, metrics).keys
    return Request(
        **vars(folders),
        protocol=protocol,
        keys=keys,
        custom=find_custom(keys),
        names=None if names is None else tuple(names),
        allow_missing=allow_missing,
        strict=strict,
    )
