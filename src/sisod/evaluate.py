"""Folders -> results: paired, scored in parallel, resumable, written whole or not at all."""

import contextlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.batches import BATCH, Batch, Job
from sisod.errors import InputError, some
from sisod.evaluation import (
    Evaluation,
    curve_table,
    make_tables,
    run_record,
    write_json,
    write_summary,
)
from sisod.files import check_free, put_in_place, write_whole
from sisod.metrics import find_metrics
from sisod.pairs import Pair, Pairing, pair_files
from sisod.progress import progress_bar
from sisod.protocols import Protocol, find_protocol
from sisod.rows import Rows, Totals
from sisod.scoring import MetricChoice

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
    request = Request(
        pred_root=str(pred_dir),
        gt_root=str(gt_dir),
        protocol=find_protocol(protocol),
        keys=find_metrics(metrics),
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
        if self.jobs is not None and self.jobs < 1:
            raise InputError(f"jobs must be at least 1, got {self.jobs}")


def evaluate_to(out: Path, request: Request, options: Options) -> list[str]:
    """Evaluate into a folder; return what the user should be warned of.

    The work is kept in a hidden folder beside `out`, one file per batch, until all is done.
    """
    pairing = request.pairing()
    plan = _plan(request, pairing)
    if options.resume and _is_finished(out, plan):
        return []
    if not options.resume:
        check_free(out, overwrite=options.overwrite)
    work = out.parent / f".{out.name}.partial"
    with _readable_errors(out):
        _prepare(work, plan, options)
        batches = list(_batches(work, pairing.pairs))
        todo = [batch for batch in batches if not batch.shard.exists()]
        done = len(pairing.pairs) - sum(len(batch.pairs) for batch in todo)
        with progress_bar(options.title, len(pairing.pairs), done=done) as advance:
            _run(request.job(), todo, advance, options)
        totals = _write_result(work, batches, request, pairing, plan)
        put_in_place(work / "result", out)
        shutil.rmtree(work)
    return _notes(request, pairing, totals)


def _run(job: Job, todo: list[Batch], advance: Any, options: Options) -> None:
    from sisod.runners import default_jobs, run_cluster, run_here, run_processes

    jobs = min(options.jobs or default_jobs(), len(todo))
    if options.cluster is not None:
        run_cluster(job, todo, advance, address=options.cluster)
    elif jobs <= 1:
        run_here(job, todo, advance)
    else:
        run_processes(job, todo, advance, jobs=jobs)


def _plan(request: Request, pairing: Pairing) -> dict[str, Any]:
    """Everything that decides the result, as plain data."""
    job = request.job().to_json()
    settings = {
        "predictions": job["pred_root"],
        "ground truths": job["gt_root"],
        "protocol": job["protocol"],
        "metrics": list(job["keys"]),
        "strict": job["strict"],
    }
    pairs = [[p.name, p.pred.path, p.pred.stamp, p.gt.path, p.gt.stamp] for p in pairing.pairs]
    return {"settings": settings, "pairs": pairs}


def _digest(plan: dict[str, Any]) -> str:
    import hashlib

    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def _is_finished(out: Path, plan: dict[str, Any]) -> bool:
    """Say whether `out` holds the result of this very plan; refuse if it holds another."""
    if not out.exists():
        return False
    try:
        run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        run = {}
    if run.get("digest") != _digest(plan):
        raise InputError(
            f"{str(out)!r} holds the result of other settings or inputs; "
            "use --overwrite to replace it, or give another folder"
        )
    return True


def _prepare(work: Path, plan: dict[str, Any], options: Options) -> None:
    if work.exists() and options.overwrite:
        shutil.rmtree(work)
    if work.exists() and not options.resume:
        raise InputError(
            f"an unfinished run was left in {str(work)!r}; use --resume to go on with it, "
            "or --overwrite to begin again"
        )
    if (work / "plan.json").exists():
        _check_resumable(work, plan)
    work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(work / "result", ignore_errors=True)  # of a run ended while writing its tables
    write_whole(work / "plan.json", json.dumps(plan).encode())


def _check_resumable(work: Path, plan: dict[str, Any]) -> None:
    """Refuse to go on if what was scored would now be scored otherwise; what was not may change."""
    old = json.loads((work / "plan.json").read_text(encoding="utf-8"))
    for key, value in plan["settings"].items():
        before = old["settings"].get(key)
        if before != value:
            raise InputError(
                f"cannot resume: {key} changed from {_short(before)} to {_short(value)}; "
                "use the settings of the unfinished run, or --overwrite to begin again"
            )
    if [pair[0] for pair in old["pairs"]] != [pair[0] for pair in plan["pairs"]]:
        raise InputError(
            f"cannot resume: there were {len(old['pairs'])} images and there are {len(plan['pairs'])}, "
            "or their names changed; use --overwrite to begin again"
        )
    scored = [
        (then, now)
        for index, (then, now) in enumerate(zip(old["pairs"], plan["pairs"], strict=True))
        if _shard(work, index // BATCH).exists()
    ]
    changed = [now[0] for then, now in scored if then != now]
    if changed:
        raise InputError(
            f"cannot resume: {len(changed)} images were scored and their files changed since "
            f"({some(changed)}); use --overwrite to begin again"
        )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _shard(work: Path, index: int) -> Path:
    return work / f"{index:07d}.npz"


def _batches(work: Path, pairs: Sequence[Pair]) -> Iterator[Batch]:
    for index in range(0, len(pairs), BATCH):
        chosen = pairs[index : index + BATCH]
        names = tuple((pair.name, pair.pred.path, pair.gt.path) for pair in chosen)
        yield Batch(_shard(work, index // BATCH), names)


def _write_result(
    work: Path,
    batches: Sequence[Batch],
    request: Request,
    pairing: Pairing,
    plan: dict[str, Any],
) -> Totals:
    """Make the tables group by group, then join their files without reading them into memory."""
    import polars as pl

    result, parts = work / "result", work / "result" / "parts"
    parts.mkdir(parents=True)
    totals: Totals | None = None
    for start in range(0, len(batches), _GROUP):
        group = batches[start : start + _GROUP]
        rows = Rows.joined([Rows.from_bytes(batch.shard.read_bytes()) for batch in group])
        totals = rows.totals if totals is None else totals.plus(rows.totals)
        for name, table in make_tables(rows).items():
            table.write_parquet(parts / f"{name}-{start // _GROUP:05d}.parquet")
    assert totals is not None  # noqa: S101  (a pairing has at least one pair)
    for name in ("images", "objects", "curves"):
        files = sorted(parts.glob(f"{name}-*.parquet"))
        if len(files) == 1:
            files[0].rename(result / f"{name}.parquet")
        else:
            # small row groups: what is being written is held in memory a group at a time
            pl.scan_parquet(files).sink_parquet(
                result / f"{name}.parquet", maintain_order=True, row_group_size=_GROUP * BATCH
            )
    shutil.rmtree(parts)
    curve_table(totals).write_parquet(result / "dataset_curves.parquet")
    write_summary(result, totals.summary(), totals.defined())
    inputs = {
        "predictions": request.pred_root,
        "ground_truths": request.gt_root,
        "missing": list(pairing.missing),
        "extra": len(pairing.extra),
    }
    record = run_record(totals, request.protocol) | {"inputs": inputs, "digest": _digest(plan)}
    write_json(result / "run.json", record)
    return totals


def _notes(request: Request, pairing: Pairing, totals: Totals) -> list[str]:
    notes = []
    if pairing.missing:
        notes.append(
            f"{len(pairing.missing)} ground truths have no prediction in {request.pred_root!r} "
            f"({some(list(pairing.missing))}) and were left out"
        )
    if pairing.extra:
        notes.append(
            f"{len(pairing.extra)} files in {request.pred_root!r} have no ground truth "
            f"({some(list(pairing.extra))}) and were not scored"
        )
    if totals.n_resized:
        notes.append(
            f"{totals.n_resized} predictions in {request.pred_root!r} had another size than their "
            "ground truth and were resized"
        )
    if totals.n_binary:
        notes.append(
            f"{totals.n_binary} predictions in {request.pred_root!r} are integers with maximum 1: "
            "they look like 0/1 instead of 0/255"
        )
    return notes


@contextlib.contextmanager
def _readable_errors(out: Path) -> Iterator[None]:
    """Say where writing failed, and that what was finished is kept."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(
            f"cannot write below {str(out.parent)!r}: {error.strerror or error}; "
            "what was finished is kept, make room and use --resume"
        ) from error
