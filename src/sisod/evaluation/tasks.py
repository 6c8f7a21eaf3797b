"""What is scored: a request, and its tasks, the unit of every executor, of saving and of resuming.

A task is a batch of pairs of files, or a pair of shards. It gives images, each with two functions that
read its files, and `score_task` turns them into rows.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, UsageError
from sisod.common.processes import readable_memory_errors
from sisod.data.containers import is_coco
from sisod.data.files import StoredFile
from sisod.data.images import display_path
from sisod.data.pairs import Pair
from sisod.data.storage import has_folder, resolved_root
from sisod.data.truths import (
    BINARY_MASK,
    Truth,
    TruthFormat,
    check_category,
    read_prediction,
    read_truth,
)
from sisod.evaluation.rows import Rows, diagnose_pair
from sisod.scoring.arrays import Map, has_grey_area
from sisod.scoring.custom import CustomMetric, CustomMetricError, find_custom, register_metric
from sisod.scoring.engine import find_scorer, without_ignored
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol, find_protocol
from sisod.scoring.scores import Scorer

if TYPE_CHECKING:
    from sisod.evaluation.shards import ShardPair

BATCH = 32  # images; fixed, so that results do not depend on the number of processes


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
        """Return the folders of one class: maps in a folder of its name, or else class maps.

        Args:
            category: number of the class; of a COCO file its name or number.
        """
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
        scorer: the way of scoring, with its metrics.
        custom: the metrics of the user among them.
        names: only these images; None for all.
        allow_missing: score what has a prediction instead of raising.
        strict: raise for predictions of another size instead of resizing them.
    """

    protocol: Protocol
    scorer: Scorer[Any]
    custom: tuple[CustomMetric, ...] = ()
    names: tuple[str, ...] | None = None
    allow_missing: bool = False
    strict: bool = False

    def inputs(self) -> dict[str, Any]:
        """Return what is read, as run.json stores it; roots mean the same in every working folder.

        Example:
            >>> request = make_request(Folders("file:///maps", "file:///masks", "_sal"), metrics="mae")
            >>> request.inputs()["pred_suffix"]
            '_sal'
        """
        return {
            "predictions": resolved_root(self.pred_root),
            "ground_truths": resolved_root(self.gt_root),
            "pred_suffix": self.pred_suffix,
            "gt_suffix": self.gt_suffix,
            **self.meaning.settings(),
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
    """Return a request with the protocol and the metrics that are named.

    Args:
        folders: what is scored.
        protocol: or its name.
        metrics: see `sisod.score`.
        names: only these images.
        allow_missing: score what has a prediction instead of raising.
        strict: raise for predictions of another size instead of resizing them.

    Example:
        >>> request = make_request(Folders("maps/edn", "MSOD/mask"), metrics="mae")
        >>> request.protocol.name, request.scorer.keys
        ('default', ('mae',))
    """
    if isinstance(names, str):  # it would be taken for a list of letters
        raise UsageError(f"names must be a list of names, got the string {short_repr(names)}")
    protocol = find_protocol(protocol)
    if protocol.released_code and (folders.meaning.labels or is_coco(folders.gt_root)):
        raise UsageError(
            f"the protocol {protocol.name!r} finds the objects of a mask itself, and these ground "
            "truths name theirs; choose another protocol"
        )
    scorer = find_scorer(protocol, metrics)
    return Request(
        **vars(folders),
        protocol=protocol,
        scorer=scorer,
        custom=find_custom(scorer.keys),
        names=None if names is None else tuple(names),
        allow_missing=allow_missing,
        strict=strict,
    )


# ------------------------------------------------------------------------------------------------ tasks


class PairReader(NamedTuple):
    """An image whose two files are read when they are needed.

    Attributes:
        name: of the image.
        pred: reads the prediction.
        gt: reads the ground truth.
        pred_label: name of the prediction's file for messages.
        gt_label: the same of the ground truth.
        files: paths and stamps of both, of images that are files.
    """

    name: str
    pred: Callable[[], Map]
    gt: Callable[[], Truth]
    pred_label: str
    gt_label: str
    files: tuple[StoredFile, StoredFile] | None = None


@dataclass(frozen=True)
class PairBatch:
    """Pairs of files that are scored together.

    Attributes:
        index: position among the tasks.
        pairs: the files.
        digest: a hash of names and stamps of the files.
        extra: predictions without a ground truth; empty, for the pairing lists them.
    """

    index: int
    pairs: tuple[Pair, ...]
    digest: str = ""
    extra: Sequence[str] = ()

    @property
    def size(self) -> int:
        """Number of images, for the progress bar."""
        return len(self.pairs)

    def images(self, request: Request) -> Iterator[PairReader]:
        """Give the images."""
        pred_root, gt_root, meaning = request.pred_root, request.gt_root, request.meaning
        read_pred = functools.partial(
            read_prediction, gt_root=gt_root, meaning=meaning, class_maps=request.class_maps
        )
        for pair in self.pairs:
            yield PairReader(
                pair.name,
                functools.partial(read_pred, pred_root, pair.pred.path),
                functools.partial(read_truth, gt_root, pair.gt.path, meaning),
                display_path(pred_root, pair.pred.path),
                display_path(gt_root, pair.gt.path),
                (pair.pred, pair.gt),
            )


Task: TypeAlias = "PairBatch | ShardPair"


class TaskPlan(NamedTuple):
    """All tasks of an evaluation, and images without a partner as far as they are known before.

    The digest is a hash of everything that is read: other files, or changed ones, have another.
    """

    tasks: "Sequence[Task]"
    digest: str
    missing: Sequence[str] = ()
    extra: Sequence[str] = ()


def hash_of(content: Iterable[object]) -> str:
    """Return a short hash of the names and stamps of files.

    Example:
        >>> hash_of([("a.png", "12-1")]) == hash_of([("a.png", "12-2")])
        False
    """
    return hashlib.sha256(repr(list(content)).encode(errors="surrogatepass")).hexdigest()[:16]


def score_task(request: Request, task: Task) -> Rows:
    """Read and score the images of a task, in any process.

    Args:
        request: how they are scored.
        task: a batch of pairs, or a pair of shards.
    """
    for metric in request.custom:  # in another process they are not known yet
        register_metric(metric)
    readers, parts = task.images(request), []
    level, strict = request.protocol.gt_level, request.strict
    with readable_memory_errors():
        while batch := list(islice(readers, BATCH)):
            parts.append(score_images(request.scorer, batch, level=level, strict=strict))
    return dataclasses.replace(Rows.joined(parts), extra=tuple(task.extra))


def score_images(scorer: Scorer[Any], images: Iterable[PairReader], *, level: int, strict: bool) -> Rows:
    """Score images one after the other: the one loop of files, of shards and of tables.

    Args:
        scorer: the way of scoring.
        images: to be read.
        level: a pixel of the ground truth is salient at this value or above.
        strict: raise for predictions of another size instead of resizing them.
    """
    names: list[str] = []
    measured: list[Any] = []
    noticed: list[dict[str, bool]] = []
    files: list[tuple[StoredFile, StoredFile]] = []
    for image in images:
        truth = image.gt()
        array = truth.array
        try:
            gt = scorer.ground_truth(array)
        except (ValueError, TypeError) as error:
            raise InputError(f"{image.gt_label}: {error}") from error
        is_grey = has_grey_area(array)  # while it is in the cache
        pred = image.pred()
        noticed.append(diagnose_pair(pred, array, is_grey=is_grey, level=level))
        if noticed[-1]["resized"] and strict:
            raise InputError(
                f"{image.pred_label} has shape {pred.shape} but its ground truth "
                f"{gt.shape}; resize the prediction, or leave out --strict"
            )
        try:
            if truth.ignored is not None:
                pred = without_ignored(pred, truth.ignored)
            measured.append(scorer.measure(pred, gt, labels=truth.labels))
        except CustomMetricError as error:
            raise InputError(f"{image.pred_label}: {error}") from error
        names.append(image.name)
        files += [image.files] if image.files else []
    return Rows.from_scores(names, scorer.finish(measured), noticed, files)
