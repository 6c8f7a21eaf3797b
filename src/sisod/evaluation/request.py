"""What decides the result of an evaluation, and how its work is done: the two things passed along."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sisod.common.arguments import check_flag, check_text, check_whole, shown
from sisod.common.errors import UsageError
from sisod.data.containers.coco import is_coco
from sisod.data.pairs import Pairing, pair_files
from sisod.data.storage import has_folder, resolved_root
from sisod.data.truths import Meaning, check_category
from sisod.scoring.custom import CustomMetric, register_metric
from sisod.scoring.protocols import Protocol


@dataclass(frozen=True)
class Folders:
    """Folders (or URLs) of predictions and ground truths, the ends of their files' names, their values.

    A suffix is the end of every file name that is not part of the image's name, such as `_mask`. For
    `labels` and `category` see `sisod.data.truths.Meaning`; `class_maps` says that predictions hold the
    numbers of classes too.
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
        Meaning(self.labels, self.category)

    def value_settings(self) -> dict[str, Any]:
        """Return what is not the default about the values of the files, as `run.json` stores it."""
        return self.meaning.settings() | ({"class_maps": True} if self.class_maps else {})

    @property
    def meaning(self) -> Meaning:
        """What the values of the ground truths mean."""
        return Meaning(self.labels, self.category)

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

    def to_json(self) -> dict[str, Any]:
        """Return plain data for other processes; without `names`, for they are sent pairs of files."""
        data = dataclasses.asdict(dataclasses.replace(self, names=None, custom=()))
        return data | {"custom": [metric.to_json() for metric in self.custom]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Request":
        """Return the request that `to_json` described; metrics of the user are imported."""
        protocol = Protocol(**data["protocol"])
        custom = tuple(map(CustomMetric.from_json, data["custom"]))
        for metric in custom:
            register_metric(metric)
        return cls(**(data | {"protocol": protocol, "keys": tuple(data["keys"]), "custom": custom}))


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
            check_whole("jobs", self.jobs, least=1)
        for name in ("resume", "overwrite"):
            check_flag(name, getattr(self, name))
        if self.resume and self.overwrite:
            raise UsageError("--resume goes on with a run and --overwrite begins again; choose one")


def checked_names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names of images; a single text would be taken for a list of letters."""
    if isinstance(names, str):
        raise UsageError(f"names must be a list of names, got the text {shown(names)}")
    return None if names is None else tuple(names)
