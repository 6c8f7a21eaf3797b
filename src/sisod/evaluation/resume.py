"""Whether a run may go on: its plan is everything that decides the result, as plain data."""

import json
import re
from pathlib import Path
from typing import Any

from sisod.common import folders
from sisod.common.errors import InputError, shorten_list
from sisod.evaluation.batches import BATCH
from sisod.evaluation.saved import read_run


def plan_digest(plan: dict[str, Any]) -> str:
    """Return what tells plans apart."""
    import hashlib

    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def is_finished(out: Path, plan: dict[str, Any]) -> bool:
    """Say whether `out` holds the result of this very plan; refuse if it holds another."""
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
    """Refuse to go on if what was scored would now be scored otherwise; what was not may change."""
    old = _read_plan(work / "plan.json")
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
    token: str = old["token"]
    scored = [
        (then, now)
        for index, (then, now) in enumerate(zip(old["pairs"], plan["pairs"], strict=True))
        if shard_path(work, token, index // BATCH).exists()
    ]
    changed = [now[0] for then, now in scored if then != now]
    if changed:
        raise InputError(
            f"cannot resume: {len(changed)} images were scored and their files changed since "
            f"({shorten_list(changed)}); use --overwrite to begin again"
        )
    return token


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        old: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        whole = isinstance(old["settings"], dict) and re.fullmatch("[0-9a-f]{8}", old["token"])
        if not whole or not all(isinstance(pair[0], str) for pair in old["pairs"]):
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
    return "..." + text[-57:] if isinstance(value, str) else text[:57] + "..."  # a path's end tells more


def shard_path(work: Path, token: str, index: int) -> Path:
    """Return the file that holds the rows of a batch of the run with this token."""
    return work / f"{index:07d}.{token}.rows"
