"""Folders -> results: paired, scored in parallel, resumable, written whole or not at all."""

import dataclasses
import json
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import cv2

from sisod.common.arguments import check_utf8
from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import is_url, write_atomically
from sisod.common.processes import default_jobs
from sisod.common.run_folder import SCRATCH, Run, open_run, read_run
from sisod.common.streams import progress_bar
from sisod.data.containers import is_coco
from sisod.data.pairs import pair_files
from sisod.data.storage import begins_with_shard, is_below, list_shards
from sisod.data.truths import TruthFormat
from sisod.evaluation.notes import run_notes
from sisod.evaluation.result import KIND, Evaluation
from sisod.evaluation.rows import Rows
from sisod.evaluation.tasks import (
    BATCH,
    Folders,
    Options,
    PairBatch,
    Request,
    TaskPlan,
    hash_of,
    make_request,
    score_task,
)
from sisod.scoring.custom import find_custom
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol

_N_EXTRA = 4  # names of predictions without a ground truth that are kept


def evaluate(
    pred_dir: Path | str,
    gt_dir: Path | str,
    *,
    protocol: str | Protocol = "default",
    metrics: MetricChoice = None,
    jobs: int | None = None,
    out: Path | str | None = None,
    pred_suffix: str = "",
    gt_suffix: str = "",
    names: Sequence[str] | None = None,
    labels: bool = False,
    category: str | int | None = None,
    allow_missing: bool = False,
    strict: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    cluster: str | None = None,
) -> Evaluation:
    """Score a folder of predictions against a folder of ground truths.

    Args:
        pred_dir: folder (or fsspec URL) of maps, any mix of png, jpg, bmp, tif, webp, npy, npz; or a
            COCO result file.
        gt_dir: folder (or URL) of masks; files are paired by their path without extension. Or a COCO
            annotation file.
        protocol: see `sisod.score`.
        metrics: see `sisod.score`.
        jobs: processes; by default one for each core.
        out: folder for the result; by default nothing is left on disk.
        pred_suffix: end of the predictions' names that is not part of the image's name.
        gt_suffix: the same for ground truths.
        names: only these images.
        labels: ground truths are label maps: every value but 0 is one object, connected or not.
        category: score one class: a number of class maps, or a name or number of a COCO file.
            Predictions are maps in a folder `pred_dir/<category>`, or else class maps too.
        allow_missing: score what has a prediction instead of raising.
        strict: raise for predictions of another size instead of resizing them bilinearly.
        resume: go on with an unfinished run to the same `out`.
        overwrite: replace a finished or unfinished result.
        cluster: a Dask scheduler, `tcp://HOST:PORT`, or Ray, `ray` or `ray://HOST:PORT`, instead of
            this machine.

    Returns:
        Summary, tables and curves; what is odd about the files is said in warnings.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> root = Path(tempfile.mkdtemp())
        >>> for folder in ("maps", "masks"):
        ...     (root / folder).mkdir()
        ...     np.save(root / folder / "a.npy", np.eye(4, dtype=bool))
        >>> evaluate(root / "maps", root / "masks", metrics="mae,si_mae", jobs=1).summary
        {'mae': 0.0, 'si_mae': 0.0}
    """
    folders = Folders(str(pred_dir), str(gt_dir), pred_suffix, gt_suffix, TruthFormat(labels))
    request = make_request(
        folders if category is None else folders.of_class(str(category)),
        protocol=protocol,
        metrics=metrics,
        names=names,
        allow_missing=allow_missing,
        strict=strict,
    )
    options = Options(jobs=jobs, resume=resume, overwrite=overwrite, cluster=cluster)
    result = evaluate_request(request, options, None if out is None else Path(out))
    for note in run_notes(result.run, request):
        warnings.warn(note, UserWarning, stacklevel=2)
    return result


def check_request(request: Request, options: Options, out: Path | None) -> TaskPlan:
    """Find the files, and validate before scoring starts that the result can be written.

    Args:
        request: what is to be scored.
        options: how.
        out: folder of the result; None if it is not written.

    Returns:
        The tasks, for `evaluate_request`.
    """
    plan = make_plan(request)
    if options.cluster is not None:
        from sisod.evaluation.executors import check_cluster

        check_cluster(options.cluster)
    if out is None:
        return plan
    check_utf8(str(out.absolute()), "the folder name")  # of the tables, which are written last
    for root in (request.pred_root, request.gt_root):
        if is_below(out, root) and list_shards(root):
            raise UsageError(
                f"the result would go into {root!r}, a folder of shards, and its tables would be taken "
                "for shards; give a folder outside with --out"
            )
    if out.parent.is_dir() and not _missing_metrics(out, request, options, plan):
        with _open(out, request, options) as run:
            if run.finished and run.record.get("files") != plan.digest:
                raise InputError(
                    f"{str(out)!r} holds the result of other images or files; use --overwrite to "
                    "replace it, or give another folder"
                )
    return plan


def make_plan(request: Request) -> TaskPlan:
    """List the files of both roots and divide them into tasks.

    Many shards on both sides are tasks themselves; otherwise the images are listed and paired by name.
    """
    is_all = request.names is None and not request.allow_missing
    if is_all and begins_with_shard(request.gt_root) and begins_with_shard(request.pred_root):
        from sisod.evaluation.shards import pair_shards

        if shards := pair_shards(request):
            return TaskPlan(shards, hash_of([task.digest for task in shards]))
    pairing = pair_files(
        request.pred_root,
        request.gt_root,
        pred_suffix=request.pred_suffix,
        gt_suffix=request.gt_suffix,
        names=request.names,
        allow_missing=request.allow_missing,
    )
    batches: list[PairBatch] = []
    for at in range(0, len(pairing.pairs), BATCH):
        pairs = pairing.pairs[at : at + BATCH]
        digest = hash_of([(p.name, p.pred.path, p.pred.stamp, p.gt.path, p.gt.stamp) for p in pairs])
        batches.append(PairBatch(len(batches), pairs, digest))
    digest = hash_of([batch.digest for batch in batches])
    return TaskPlan(batches, digest, pairing.missing, pairing.extra)


def _config(request: Request) -> dict[str, Any]:
    """What decides the result, beside the content of the files."""
    return request.inputs() | {
        "protocol": dataclasses.asdict(request.protocol),
        "metrics": list(request.scorer.keys),
        "strict": request.strict,
        **{f"function of {metric.key}": metric.digest() for metric in request.custom},
    }


def _missing_metrics(out: Path, request: Request, options: Options, plan: TaskPlan) -> list[str]:
    """The metrics that a finished result of the same files lacks; empty if there is no such result."""
    record = read_run(out)
    if options.resume or options.overwrite or record.get("kind") != KIND or not record.get("finished"):
        return []
    before, now = (
        {key: value for key, value in config.items() if key != "metrics" and "function of" not in key}
        for config in (record.get("config", {}), json.loads(json.dumps(_config(request))))
    )
    if before != now or record.get("files") != plan.digest:
        return []
    return [key for key in request.scorer.keys if key not in record["metrics"]]


def _add_metrics(
    out: Path, request: Request, options: Options, plan: TaskPlan, keys: list[str]
) -> Evaluation:
    """Score metrics that a result lacks, and add them to it; until then it stays as it is."""
    scorer = find_scorer(request.protocol, keys)
    more = dataclasses.replace(request, scorer=scorer, custom=find_custom(scorer.keys))
    added = _result(more, plan, _score(more, options, plan))
    result = Evaluation.load(out).with_metrics_of(added)
    config = _config(request) | {"metrics": result.run["metrics"]}
    with open_run(out, kind=KIND, config=config, resume=False, overwrite=True) as run:
        run.begin()
        result.write(run, files=plan.digest)
    return result


def _open(out: Path, request: Request, options: Options) -> AbstractContextManager[Run]:
    return open_run(
        out,
        kind=KIND,
        config=_config(request),
        resume=options.resume,
        overwrite=options.overwrite,
        inputs=(request.pred_root, request.gt_root),
    )


def evaluate_request(
    request: Request, options: Options, out: Path | None = None, plan: TaskPlan | None = None
) -> Evaluation:
    """Score; write the result to `out` unless that is None.

    Until all is done, the rows of every task are kept in a hidden folder beside `out`. If `out` is a
    result of the same files that lacks some of the metrics, these are added to it.

    Args:
        request: what is to be scored.
        options: how.
        out: folder of the result.
        plan: what `check_request` returned, if it was called before.

    Returns:
        The result, also if it was finished by an earlier run.
    """
    plan = plan or check_request(request, options, out)
    if out is None:
        return _result(request, plan, _score(request, options, plan))
    if missing := _missing_metrics(out, request, options, plan):
        return _add_metrics(out, request, options, plan, missing)
    with _open(out, request, options) as run:
        if run.finished:
            return Evaluation.load(run.path)
        run.begin()
        scratch = run.path / SCRATCH
        scratch.mkdir(exist_ok=True)
        result = _result(request, plan, _score(request, options, plan, scratch))
        result.write(run, files=plan.digest)
    return result


def _score(request: Request, options: Options, plan: TaskPlan, folder: Path | None = None) -> Rows:
    """Return the rows of all tasks, in their order; an earlier run has left some in the folder."""
    rows: dict[int, Rows] = {}
    paths: dict[int, Path] = {}
    if folder is not None:  # named by what is read: what changed since an earlier run is scored again
        paths = {task.index: folder / f"{task.index:07d}-{task.digest}.rows" for task in plan.tasks}
        rows = {
            index: Rows.from_bytes(path.read_bytes(), where=repr(str(path)))
            for index, path in paths.items()
            if path.exists()
        }
    unscored = [task for task in plan.tasks if task.index not in rows]
    jobs = min(options.jobs or default_jobs(), len(unscored))
    if not unscored or (options.cluster is None and jobs < 2):
        answers = ((task, score_task(request, task)) for task in unscored)
    else:
        from sisod.evaluation.executors import run_tasks

        answers = run_tasks(request, unscored, jobs=jobs, cluster=options.cluster)
    total, left = (sum(task.size for task in tasks) for tasks in (plan.tasks, unscored))
    threads = cv2.getNumThreads()
    cv2.setNumThreads(0)  # no others; 1 would wait for those that a forked process does not have
    try:
        with progress_bar(options.title, total, done=total - left) as advance:
            for task, scored in answers:
                rows[task.index] = scored
                if folder is not None:
                    write_atomically(paths[task.index], scored.to_bytes())
                advance(task.size)
    finally:
        answers.close()  # ends the workers
        cv2.setNumThreads(threads)
    return Rows.joined([rows[index] for index in sorted(rows)])


def _result(request: Request, plan: TaskPlan, rows: Rows) -> Evaluation:
    if not rows.names:
        raise InputError("the shards hold no ground truths; expected image files in them")
    extra = [*plan.extra, *rows.extra]
    inputs = request.inputs() | {
        "missing": list(plan.missing),
        "extra": len(extra),
        "extra_names": sorted(extra)[:_N_EXTRA],
    }
    if is_coco(request.gt_root):
        from sisod.data.containers.coco import count_crowds

        inputs["crowd_regions"] = count_crowds(request.gt_root, request.meaning.category)
    if request.names is not None:
        inputs["listed"] = len(request.names)
    # temperature and shift of maps that `sisod predict` or `sisod calibrate` calibrated
    folder = None if is_url(request.pred_root) else Path(request.pred_root)
    if calibration := folder and read_run(folder).get("calibration"):
        inputs["calibration"] = {key: float(calibration[key]) for key in ("temperature", "shift")}
    return Evaluation.from_rows(
        rows, request.protocol, custom=request.custom, record={"inputs": inputs}, by_name=True
    )
