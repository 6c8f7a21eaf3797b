"""Whether a run may be resumed: its plan holds everything that decides the result, as plain data."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from sisod.common import folders
from sisod.common.errors import InputError, shorten_list
from sisod.common.version import __version__
from sisod.data.storage import resolved_root
from sisod.evaluation.answers import AnyPairing
from sisod.evaluation.batches import BATCH
from sisod.evaluation.request import Request
from sisod.evaluation.saved import read_run
from sisod.evaluation.shards import ShardPairing


def make_plan(request: Request, pairing: AnyPairing) -> dict[str, Any]:
    """Return everything that decides the result."""
    settings = {
        "version of sisod": __version__,
        "predictions": resolved_root(request.pred_root),
        "ground truths": resolved_root(request.gt_root),
        "protocol": dataclasses.asdict(request.protocol),
        "metrics": list(request.keys),
        "strict": request.strict,
    } | {f"the function of {metric.key}": metric.digest() for metric in request.custom}
    settings |= request.value_settings()
    if isinstance(pairing, ShardPairing):
        suffixes = {"ends of names": [request.pred_suffix, request.gt_suffix]}
        shards = [
            [p.gt.prefix.rstrip("/"), p.pred.prefix, p.pred.stamp, p.gt.prefix, p.gt.stamp]
            for p in pairing.shards
        ]
        return {"settings": settings | suffixes, "shards": shards}
    pairs = [[p.name, p.pred.path, p.pred.stamp, p.gt.path, p.gt.stamp] for p in pairing.pairs]
    return {"settings": settings, "pairs": pairs}


def plan_digest(plan: dict[str, Any]) -> str:
    """Return a hash of a plan."""
    import hashlib

    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def is_finished(out: Path, plan: dict[str, Any]) -> bool:
    """Tell whether `out` holds the result of this plan; refuse if it holds another."""
    if folders.is_free(out):
        return False
    try:
        run = read_run(out)
    except InputError:
        run = {}
    if run.get("digest") != plan_digest(plan):
        raise InputError(
            f"{str(out)!r} holds the result of other settings or inputs; "
            "use --overwrite to replace it, or give another folder"
        )
    return True


def check_resumable(work: Path, plan: dict[str, Any]) -> str:
    """Return the token of the unfinished run; refuse if the settings or files already scored changed."""
    old = _read_plan(work / "plan.json")
    what, entries, in_task = _entries(plan)
    old_what, old_entries, _ = _entries(old)
    if what != old_what:
        raise InputError(
            f"cannot resume: the work was divided into {old_what} and is now divided into {what}; use "
            "the options and files of the unfinished run, or --overwrite to begin again"
        )
    for key, value in plan["settings"].items():
        old_value = old["settings"].get(key)
        if old_value != value:
            raise InputError(
                f"cannot resume: {key} changed from {_short(old_value)} to {_short(value)}; "
                "use the settings of the unfinished run, or --overwrite to begin again"
            )
    if [entry[0] for entry in old_entries] != [entry[0] for entry in entries]:
        raise InputError(
            f"cannot resume: there were {len(old_entries)} {what} and there are {len(entries)}, "
            "or their names changed; use --overwrite to begin again"
        )
    token: str = old["token"]
    changed = [
        entry[0]
        for index, (old_entry, entry) in enumerate(zip(old_entries, entries, strict=True))
        if old_entry != entry and shard_path(work, token, index // in_task).exists()
    ]
    if changed:
        raise InputError(
            f"cannot resume: {len(changed)} {what} were scored and their files changed since "
            f"({shorten_list(changed)}); use --overwrite to begin again"
        )
    return token


def _entries(plan: dict[str, Any]) -> tuple[str, list[list[str]], int]:
    """Return what a plan lists, the entries of the list, and how many of them are a task."""
    if "shards" in plan:
        return "shards", plan["shards"], 1
    return "images", plan["pairs"], BATCH


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        old: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        is_complete = isinstance(old["settings"], dict) and re.fullmatch("[0-9a-f]{8}", old["token"])
        if not is_complete or not all(isinstance(entry[0], str) for entry in _entries(old)[1]):
            raise ValueError
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InputError(
            f"cannot resume: {str(path)!r} is damaged; use --overwrite to begin again"
        ) from None
    return old


def _short(value: Any) -> str:
    text = json.dumps(value)
    if len(text) <= 60:
        return text
    return (
        "..." + text[-57:] if isinstance(value, str) else text[:57] + "..."
    )  # the end of a path says more


def shard_path(work: Path, token: str, index: int) -> Path:
    """Return the file that holds the rows of a batch of the run with this token."""
    return work / f"{index:07d}.{token}.rows"
