"""Folders -> results: paired, scored in parallel, resumable, written whole or not at all."""

import dataclasses
import json
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.common import folders
from sisod.common.arguments import check_flag, check_text, check_utf8, check_whole, shown
from sisod.common.errors import InputError, UsageError, require
from sisod.common.forks import check_not_forked
from sisod.common.output import followed, lock, readable_errors, write_atomically
from sisod.common.parquet import join_tables, write_table
from sisod.common.progress import progress_bar
from sisod.data.pairs import Pair, Pairing, pair_files
from sisod.data.storage import resolved_root
from sisod.evaluation.batches import BATCH, Batch, Job
from sisod.evaluation.notes import notes_of
from sisod.evaluation.result import (
    Evaluation,
    curve_table,
    file_table,
    make_tables,
    run_record,
    write_json,
    write_summary,
)
from sisod.evaluation.resume import check_resumable, is_finished, plan_digest, shard_path
from sisod.evaluation.rows import Rows, Totals
from sisod.evaluation.saved import FILES, read_run
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol, find_protocol

KIND = "evaluation"
_GROUP = 64  # batches whose tables are made at a time: memory does not grow with the data set


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
    allow_missing: bool = False,
    strict: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    cluster: str | None = None,
) -> Evaluation:
    """Score a folder of predictions against a folder of ground truths.

    Args:
        pred_dir: folder (or fsspec URL) of maps, any mix of png, jpg, bmp, tif, webp, npy.
        gt_dir: folder (or URL) of masks; files are paired by their path without extension.
        protocol: see `sisod.score`.
        metrics: see `sisod.score`.
        jobs: processes; by default one for each core.
        out: folder for the result; by default nothing is left on disk.
        pred_suffix: end of the predictions' names that is not part of the image's name.
        gt_suffix: the same for ground truths.
        names: only these images.
        allow_missing: score what has a prediction instead of refusing.
        strict: refuse predictions of another size instead of resizing them bilinearly.
        resume: go on with an unfinished run to the same `out`.
        overwrite: replace a finished or unfinished result.
        cluster: address of a Dask scheduler that does the work instead of this machine.
    """
    settled = find_protocol(protocol)
    if isinstance(names, str):
        raise UsageError(f"names must be a list of names, got the text {shown(names)}")
    request = Request(
        pred_root=str(pred_dir),
        gt_root=str(gt_dir),
        protocol=settled,
        keys=find_scorer(settled, metrics).keys,
        pred_suffix=pred_suffix,
        gt_suffix=gt_suffix,
        names=None if names is None else tuple(names),
        allow_missing=allow_missing,
        strict=strict,
    )
    options = Options(jobs=jobs, resume=resume, overwrite=overwrite, cluster=cluster)
    if out is not None:
        notes = evaluate_to(Path(out), request, options)
        result = Evaluation.load(out)
    else:
        with tempfile.TemporaryDirectory() as folder:
            notes = evaluate_to(Path(folder, "result"), request, options)
            result = Evaluation.load(Path(folder, "result"))
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return result


@dataclass(frozen=True)
class Request:
    """What is to be scored, and by which rules: what decides the result."""

    pred_root: str
    gt_root: str
    protocol: Protocol
    keys: tuple[str, ...]
    pred_suffix: str = ""
    gt_suffix: str = ""
    names: tuple[str, ...] | None = None
    allow_missing: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        for name in ("allow_missing", "strict"):
            check_flag(name, getattr(self, name))
        for name in ("pred_suffix", "gt_suffix"):
            check_text(name, getattr(self, name))
        for image in self.names or ():
            check_text("every one of names", image)

    def pairing(self) -> Pairing:
        """Find the pairs."""
        return pair_files(
            self.pred_root,
            self.gt_root,
            pred_suffix=self.pred_suffix,
            gt_suffix=self.gt_suffix,
            names=self.names,
            allow_missing=self.allow_missing,
        )

    def resolved(self) -> "Request":
        """Return the same with roots that mean the same in every working folder."""
        pred_root, gt_root = resolved_root(self.pred_root), resolved_root(self.gt_root)
        return dataclasses.replace(self, pred_root=pred_root, gt_root=gt_root)

    def job(self) -> Job:
        """Return what the workers need to know."""
        return Job(self.pred_root, self.gt_root, self.protocol, self.keys, self.strict)


@dataclass(frozen=True)
class Options:
    """How the work is done: what does not change the result."""

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


def check_request(out: Path, request: Request, options: Options) -> Pairing:
    """Find the pairs, and refuse now what would be refused after hours of other work."""
    check_not_forked()
    check_utf8(str(out.absolute()), "the folder name")  # of the tables, which are written last
    if options.cluster is not None:
        require("--cluster", "dask", "distributed")  # before the files are listed
    pairing = request.pairing()
    if options.cluster is not None:
        from sisod.evaluation.cluster import check_scheduler

        check_scheduler(options.cluster)
    out = followed(out)
    if out.parent.is_dir():
        with readable_errors(out, ""), lock(out):
            _check_free(out, request, options)
    return pairing


def _check_free(out: Path, request: Request, options: Options) -> None:
    folders.recover(out)
    if not options.resume:
        inputs = (request.pred_root, request.gt_root)
        folders.check_free(out, kind=KIND, overwrite=options.overwrite, inputs=inputs)


def evaluate_to(
    out: Path, request: Request, options: Options, *, pairing: Pairing | None = None
) -> list[str]:
    """Evaluate into a folder; return what the user should be warned of.

    The work is kept in a hidden folder beside `out`, one file per batch, until all is done.
    """
    if pairing is None:
        pairing = check_request(out, request, options)
    plan = _plan(request, pairing)
    out = followed(out)
    work = folders.partial_folder(out)
    full = "what was finished is kept, make room and use --resume"
    with readable_errors(out, full), lock(out):
        _check_free(out, request, options)
        folders.check_partial(work, KIND)
        if options.resume and is_finished(out, plan):
            folders.discard(work)  # of a run ended just before it removed it
            return notes_of(read_run(out), request)
        token = _prepare(work, plan, options)
        batches = list(_batches(work, token, pairing.pairs))
        todo = [batch for batch in batches if not batch.shard.exists()]
        done = len(pairing.pairs) - sum(len(batch.pairs) for batch in todo)
        with progress_bar(options.title, len(pairing.pairs), done=done) as advance:
            _run(request, todo, advance, options)
        run = _write_result(work, batches, request, pairing, plan)
        folders.put_in_place(work / "result", out)
        folders.discard(work)
    return notes_of(run, request)


def _run(request: Request, todo: list[Batch], advance: Any, options: Options) -> None:
    from sisod.evaluation.runners import default_jobs, run_here, run_processes

    jobs = min(options.jobs or default_jobs(), len(todo))
    if options.cluster is not None:
        from sisod.evaluation.cluster import run_cluster

        run_cluster(request.resolved().job(), todo, advance, address=options.cluster)
    elif jobs <= 1:
        run_here(request.job(), todo, advance)
    else:
        run_processes(request.job(), todo, advance, jobs=jobs)


def _plan(request: Request, pairing: Pairing) -> dict[str, Any]:
    """Everything that decides the result, as plain data."""
    from sisod.common.version import __version__

    job = request.job().to_json()
    settings = {
        "version of sisod": __version__,
        "predictions": resolved_root(request.pred_root),
        "ground truths": resolved_root(request.gt_root),
        "protocol": job["protocol"],
        "metrics": list(job["keys"]),
        "strict": job["strict"],
    }
    pairs = [[p.name, p.pred.path, p.pred.stamp, p.gt.path, p.gt.stamp] for p in pairing.pairs]
    return {"settings": settings, "pairs": pairs}


def _prepare(work: Path, plan: dict[str, Any], options: Options) -> str:
    """Set up the work folder; return the token that marks the batches of this run.

    The token keeps a worker that outlives a killed run from passing its batch off on the next.
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


def _batches(work: Path, token: str, pairs: Sequence[Pair]) -> Iterator[Batch]:
    for index in range(0, len(pairs), BATCH):
        chosen = pairs[index : index + BATCH]
        names = tuple((pair.name, pair.pred.path, pair.gt.path) for pair in chosen)
        stamps = tuple((pair.pred.stamp, pair.gt.stamp) for pair in chosen)
        yield Batch(shard_path(work, token, index // BATCH), names, stamps)


def _write_result(
    work: Path,
    batches: Sequence[Batch],
    request: Request,
    pairing: Pairing,
    plan: dict[str, Any],
) -> dict[str, Any]:
    """Write everything into the folder that will be the result; return its record."""
    result = work / "result"
    result.mkdir(parents=True)
    totals = _write_tables(result, batches)
    write_table(curve_table(totals), result / "dataset_curves.parquet")
    write_table(file_table(pairing.pairs), result / f"{FILES}.parquet")
    write_summary(result, totals.summary(), totals.defined())
    inputs = {
        "predictions": resolved_root(request.pred_root),
        "ground_truths": resolved_root(request.gt_root),
        "pred_suffix": request.pred_suffix,
        "gt_suffix": request.gt_suffix,
        "missing": list(pairing.missing),
        "extra": len(pairing.extra),
        "extra_names": list(pairing.extra[:4]),
        FILES: f"{FILES}.parquet",
    }
    record = run_record(totals, request.protocol) | {"inputs": inputs, "digest": plan_digest(plan)}
    write_json(result / "run.json", record)
    return record


def _write_tables(result: Path, batches: Sequence[Batch]) -> Totals:
    """Make the tables group by group, then join their files without reading them into memory."""
    parts = result / "parts"
    parts.mkdir()
    totals: Totals | None = None
    for start in range(0, len(batches), _GROUP):
        group = batches[start : start + _GROUP]
        rows = Rows.joined([_rows(batch) for batch in group])
        totals = rows.totals if totals is None else totals.plus(rows.totals)
        for name, table in make_tables(rows).items():
            write_table(table, parts / f"{name}-{start // _GROUP:05d}.parquet")
    assert totals is not None  # noqa: S101  (a pairing has at least one pair)
    for name in ("images", "objects", "curves"):
        files = sorted(parts.glob(f"{name}-*.parquet"))
        if len(files) == 1:
            files[0].rename(result / f"{name}.parquet")
        else:
            # small row groups: what is being written is held in memory a group at a time
            join_tables(files, result / f"{name}.parquet", row_group_size=_GROUP * BATCH)
    shutil.rmtree(parts)
    return totals


def _rows(batch: Batch) -> Rows:
    try:
        return Rows.from_bytes(batch.shard.read_bytes())
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{str(batch.shard)!r}, what was scored of {len(batch.pairs)} images, is damaged; remove it "
            "and use --resume"
        ) from error
