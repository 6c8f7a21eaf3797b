"""What decides the result of an evaluation, and how its work is done: the two things passed along."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sisod.common.arguments import check_flag, check_int, check_text, short_repr
from sisod.common.exceptions import UsageError
from sisod.data.containers.coco import is_coco
from sisod.data.pairs import Pairing, pair_files
from sisod.data.storage import has_folder, resolved_root
from sisod.data.truths import TruthFormat, check_category
from sisod.scoring.custom import CustomMetric, find_custom
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol, find_protocol


@dataclass(frozen=True)
class Folders:
    """Folders (or URLs) of predictions and ground truths, the ends of their files' names, their values.

    A suffix is the end of every file name that is not part of the image's name, such as `_mask`. For
    `labels` and `category` see `sisod.data.truths.TruthFormat`; `class_maps` says that predictions hold
    the numbers of classes too.
    """

    pred_root: str
    gt_root: str
    pred_suffix: str = ""
    gt_suffix: str = ""
    labels: bool = False
    category: str = ""
    class_maps: bool = False

    def __post_init__(self) -> None:
        for name in ("pred_suffix", "gt_suffix", "category"):
            check_text(name, getattr(self, name))
        for name in ("labels", "class_maps"):
            check_flag(name, getattr(self, name))
        TruthFormat(self.labels, self.category)

    def value_settings(self) -> dict[str, Any]:
        """Return what is not the default about the values of the files, as `run.json` stores it."""
        return self.meaning.settings() | ({"class_maps": True} if self.class_maps else {})

    @property
    def meaning(self) -> TruthFormat:
        """What the values of the ground truths mean."""
        return TruthFormat(self.labels, self.category)

    def of_class(self, category: str) -> "Folders":
        """Return the folders of one class: maps in a folder of its name, or else class maps."""
        check_category(self.gt_root, category)
        if is_coco(self.pred_root):
            return dataclasses.replace(self, category=category)
        if has_folder(self.pred_root, category):
            root = f"{self.pred_root.rstrip('/')}/{category}"
            return dataclasses.replace(self, pred_root=root, category=category)
        return dataclasses.replace(self, category=category, class_maps=True)


@dataclass(frozen=True, kw_only=True)
class Request(Folders):
    """Everything that decides the result: the files, and the rules by which they are scored.

    `custom` are the metrics of the user among the keys.
    """

    protocol: Protocol
    keys: tuple[str, ...]
    custom: tuple[CustomMetric, ...] = ()
    names: tuple[str, ...] | None = None
    allow_missing: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        for name in ("allow_missing", "strict"):
            check_flag(name, getattr(self, name))
        super().__post_init__()
        for image in self.names or ():
            check_text("every one of names", image)
        if self.protocol.released_code and (self.labels or is_coco(self.gt_root)):
            raise UsageError(
                f"the protocol {self.protocol.name!r} finds the objects of a mask itself, and these "
                "ground truths name theirs; choose another protocol"
            )

    def pairing(self) -> Pairing:
        """List the files of both folders and pair them."""
        return pair_files(
            self.pred_root,
            self.gt_root,
            pred_suffix=self.pred_suffix,
            gt_suffix=self.gt_suffix,
            names=self.names,
            allow_missing=self.allow_missing,
        )

    def resolved(self) -> "Request":
        """Return the same request with roots that mean the same in every working folder."""
        pred_root, gt_root = resolved_root(self.pred_root), resolved_root(self.gt_root)
        return dataclasses.replace(self, pred_root=pred_root, gt_root=gt_root)

    def config(self) -> dict[str, Any]:
        """Return what decides the result beside the content of the files, as run.json stores it."""
        config = {
            "predictions": resolved_root(self.pred_root),
            "ground_truths": resolved_root(self.gt_root),
            "suffixes": [self.pred_suffix, self.gt_suffix],
            "protocol": dataclasses.asdict(self.protocol),
            "metrics": list(self.keys),
            "strict": self.strict,
        }
        functions = {f"function of {metric.key}": metric.digest() for metric in self.custom}
        return config | functions | self.value_settings()


@dataclass(frozen=True)
class Options:
    """How the work is done: none of this changes the result."""

    jobs: int | None = None
    resume: bool = False
    overwrite: bool = False
    cluster: str | None = None
    title: str = "scoring"

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_int("jobs", self.jobs, least=1)
        for name in ("resume", "overwrite"):
            check_flag(name, getattr(self, name))
        if self.resume and self.overwrite:
            raise UsageError("--resume goes on with a run and --overwrite begins again; choose one")


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
