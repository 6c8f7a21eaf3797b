"""Folders -> results: paired, scored in parallel, resumable, written whole or not at all."""

import dataclasses
import json
import secrets
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common import folders
from sisod.common.arguments import check_utf8, is_number
from sisod.common.errors import InputError, UsageError, require
from sisod.common.forks import check_not_forked
from sisod.common.output import followed, lock, readable_errors, write_atomically
from sisod.common.progress import progress_bar
from sisod.data.containers.coco import count_crowds, is_coco
from sisod.data.pairs import Pairing
from sisod.data.storage import is_below, list_shards, resolved_root
from sisod.evaluation.answers import Answers, AnyPairing, Task, count_items, make_tasks
from sisod.evaluation.notes import run_notes
from sisod.evaluation.request import Folders, Options, Request, checked_names
from sisod.evaluation.result import (
    KIND,
    Evaluation,
    ResultWriter,
    curve_table,
    file_table,
    make_tables,
    run_record,
    sorted_by_name,
)
from sisod.evaluation.resume import check_resumable, is_finished, make_plan, plan_digest, shard_path
from sisod.evaluation.rows import Rows
from sisod.evaluation.saved import FILES, read_run
from sisod.evaluation.shards import pair_shards
from sisod.scoring.custom import find_custom
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol, find_protocol

if TYPE_CHECKING:
    from sisod.evaluation.runners import Deliver


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
        metrics: see `sisod.score`. Processes import a function of your own by its name; one that is not
            at the top of a module is scored in this process only.
        jobs: processes; by default one for each core.
        out: folder for the result; by default nothing is left on disk.
        pred_suffix: end of the predictions' names that is not part of the image's name.
        gt_suffix: the same for ground truths.
        names: only these images.
        labels: ground truths are label maps: every value but 0 is one object, connected or not.
        category: score one class: a number of class maps, or a name or number of a COCO file.
            Predictions are maps in a folder `pred_dir/<category>`, or else class maps too.
        allow_missing: score what has a prediction instead of refusing.
        strict: refuse predictions of another size instead of resizing them bilinearly.
        resume: go on with an unfinished run to the same `out`.
        overwrite: replace a finished or unfinished result.
        cluster: address of a Dask scheduler that does the work instead of this machine.
    """
    rules = find_protocol(protocol)
    keys = find_scorer(rules, metrics).keys
    roots = Folders(str(pred_dir), str(gt_dir), pred_suffix, gt_suffix, labels)
    if category is not None:
        roots = roots.of_class(str(category))
    request = Request(
        **dataclasses.asdict(roots),
        protocol=rules,
        keys=keys,
        custom=find_custom(keys),
        names=checked_names(names),
        allow_missing=allow_missing,
        strict=strict,
    )
    options = Options(jobs=jobs, resume=resume, overwrite=overwrite, cluster=cluster)
    if out is None:
        result = _evaluate_in_memory(request, options)
        notes = run_notes(result.run, request)
    else:
        notes = evaluate_to(Path(out), request, options)
        result = Evaluation.load(out)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return result


def _evaluate_in_memory(request: Request, options: Options) -> Evaluation:
    pairing = _find_pairs(request, options)
    answers: dict[int, bytes] = {}

    def keep(task: Task, data: bytes) -> None:
        answers[task.index] = data

    _score(request, make_tasks(pairing), keep, options)
    reader = Answers(pairing)
    parts = list(reader.parts(("an answer", answers.pop(index)) for index in sorted(answers)))
    rows = Rows.joined([part for part, _ in parts])
    result = Evaluation.from_rows(rows, protocol=request.protocol, custom=request.custom)
    run = _record(reader, request, make_plan(request, pairing))
    if isinstance(pairing, Pairing):
        return dataclasses.replace(result, run=run, files=file_table(pairing.pairs))
    import polars as pl

    files = pl.concat([files for _, files in parts])
    return sorted_by_name(dataclasses.replace(result, run=run, files=files))


def check_request(out: Path, request: Request, options: Options) -> AnyPairing:
    """Find the pairs, and refuse now what would be refused after hours of other work."""
    check_utf8(str(out.absolute()), "the folder name")  # of the tables, which are written last
    pairing = _find_pairs(request, options)
    for root in (request.pred_root, request.gt_root):
        if is_below(out, root) and list_shards(root):
            raise UsageError(
                f"the result would go into {root!r}, a folder of shards, and its tables would be taken "
                "for shards; give a folder outside with --out"
            )
    out = followed(out)
    if out.parent.is_dir():
        with readable_errors(out, ""), lock(out):
            _check_free(out, request, options)
    return pairing


def _find_pairs(request: Request, options: Options) -> AnyPairing:
    check_not_forked()
    if options.cluster is not None:
        require("--cluster", "dask", "distributed")  # before the files are listed
        if unnamed := _unnamed_metrics(request):
            raise UsageError(f"{unnamed}, so a cluster cannot compute it; move it to a module")
    pairing = pair_shards(request) or request.pairing()
    if options.cluster is not None:
        from sisod.evaluation.cluster import check_scheduler

        check_scheduler(options.cluster)
    return pairing


def _check_free(out: Path, request: Request, options: Options) -> None:
    folders.recover(out)
    if not options.resume:
        inputs = (request.pred_root, request.gt_root)
        folders.check_free(out, kind=KIND, overwrite=options.overwrite, inputs=inputs)


def evaluate_to(
    out: Path, request: Request, options: Options, *, pairing: AnyPairing | None = None
) -> list[str]:
    """Evaluate into a folder; return what the user should be warned of.

    The work is kept in a hidden folder beside `out`, one file per batch, until all is done.
    """
    if pairing is None:
        pairing = check_request(out, request, options)
    plan = make_plan(request, pairing)
    out = followed(out)
    work = folders.partial_folder(out)
    full = "what was finished is kept, make room and use --resume"
    with readable_errors(out, full), lock(out):
        _check_free(out, request, options)
        folders.check_partial(work, KIND)
        if options.resume and is_finished(out, plan):
            folders.discard(work)  # of a run ended just before it removed it
            return run_notes(read_run(out), request)
        token = _prepare(work, plan, options)
        tasks = make_tasks(pairing)
        answers = [shard_path(work, token, task.index) for task in tasks]
        unscored = [task for task in tasks if not answers[task.index].exists()]

        def store(task: Task, data: bytes) -> None:
            write_atomically(answers[task.index], data)

        n_scored = count_items(tasks) - count_items(unscored)
        _score(request, unscored, store, options, n_scored=n_scored)
        run = _write_result(work / "result", answers, request, pairing, plan)
        folders.put_in_place(work / "result", out)
        folders.discard(work)
    return run_notes(run, request)


def _score(
    request: Request,
    tasks: Sequence[Task],
    store: "Deliver",
    options: Options,
    *,
    n_scored: int = 0,
) -> None:
    """Score with a progress bar; `n_scored` images or shards were scored by an earlier run."""
    from sisod.evaluation.runners import default_jobs, run_here, run_processes

    total = n_scored + count_items(tasks)
    jobs = min(options.jobs or default_jobs(), len(tasks))
    unnamed = _unnamed_metrics(request)
    if unnamed and jobs > 1 and options.cluster is None:
        warnings.warn(
            f"{unnamed}, so all is scored in one process instead of {jobs}; move it to a module",
            UserWarning,
            stacklevel=4,
        )
    with progress_bar(options.title, total, done=n_scored) as advance:

        def deliver(task: Task, data: bytes) -> None:
            store(task, data)
            advance(count_items([task]))

        if options.cluster is not None:
            from sisod.evaluation.cluster import run_cluster

            run_cluster(request, tasks, deliver, address=options.cluster)
        elif jobs <= 1 or unnamed:
            run_here(request, tasks, deliver)
        else:
            run_processes(request, tasks, deliver, jobs=jobs)


def _unnamed_metrics(request: Request) -> str:
    """Say which metric of the user other processes cannot import; "" if they can import all."""
    names = [metric.key for metric in request.custom if metric.import_name() is None]
    return f"the function of {names[0]!r} cannot be imported by its name" if names else ""


def _prepare(work: Path, plan: dict[str, Any], options: Options) -> str:
    """Set up the work folder; return the token that marks the batches of this run.

    Where a disk knows no locks, the token keeps the batches of another run apart.
    """
    if options.overwrite:
        folders.discard(work)
    if not folders.is_free(work) and not options.resume:
        raise InputError(
            f"a run into {str(work)!r} is unfinished, or still at work; use --resume to go on with it, "
            "or --overwrite to begin again"
        )
    token = secrets.token_hex(4)
    if (work / "plan.json").exists():
        token = check_resumable(work, plan)
    folders.begin(work, KIND)
    shutil.rmtree(work / "result", ignore_errors=True)  # of a run ended while writing its tables
    write_atomically(work / "plan.json", json.dumps(plan | {"token": token}).encode())
    return token


def _write_result(
    result: Path,
    answers: Sequence[Path],
    request: Request,
    pairing: AnyPairing,
    plan: dict[str, Any],
) -> dict[str, Any]:
    """Write everything into the folder that will be the result, group by group; return its record."""
    result.mkdir(parents=True)
    writer = ResultWriter(result, by_name=True)
    reader = Answers(pairing)
    for rows, files in reader.parts((str(path), path.read_bytes()) for path in answers):
        writer.add(make_tables(rows) | {FILES: files})
    totals = reader.totals
    run = _record(reader, request, plan)
    writer.finish(totals.summary(), totals.defined(), curve_table(totals), None, run)
    return run


def _record(reader: Answers, request: Request, plan: dict[str, Any]) -> dict[str, Any]:
    """Return the content of run.json, after all answers were read."""
    unpaired = reader.unpaired
    inputs = {
        "predictions": resolved_root(request.pred_root),
        "ground_truths": resolved_root(request.gt_root),
        "pred_suffix": request.pred_suffix,
        "gt_suffix": request.gt_suffix,
        "missing": list(unpaired.missing),
        "extra": unpaired.n_extra,
        "extra_names": list(unpaired.extra),
        FILES: f"{FILES}.parquet",
    }
    inputs |= request.value_settings()
    if is_coco(request.gt_root):
        inputs["crowd_regions"] = count_crowds(request.gt_root, request.category)
    if request.names is not None:
        inputs["listed"] = len(request.names)
    if calibration := stored_calibration(request.pred_root):
        inputs["calibration"] = calibration
    record = run_record(reader.totals, request.protocol, request.custom)
    return record | {"inputs": inputs, "digest": plan_digest(plan)}


def stored_calibration(pred_root: str) -> dict[str, float] | None:
    """Return temperature and shift of maps that `sisod predict` or `sisod calibrate` calibrated."""
    stored = {} if folders.is_url(pred_root) else folders.read_run(Path(pred_root)).get("calibration")
    numbers = stored if isinstance(stored, dict) else {}
    if not all(is_number(numbers.get(key)) for key in ("temperature", "shift")):
        return None
    return {key: float(numbers[key]) for key in ("temperature", "shift")}
