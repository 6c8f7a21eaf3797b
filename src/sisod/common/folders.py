"""Folders of results: whose they are, how one takes the place of another, and what a kill leaves.

Every folder that a command writes holds a run.json that says of which kind it is. A command replaces
only results of its own kind. It writes beside them and changes places at the end:

.NAME.sisod-new        of a command that cannot be resumed; removed if it fails
.NAME.sisod-partial    of one that can; kept for --resume
.NAME.sisod-old        the replaced result, while places are changed
.NAME.sisod-lock       says which process is writing; see `sisod.common.output.lock`
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sisod.common.errors import InputError
from sisod.common.output import followed, is_temporary, lock, readable_errors, write_atomically

RUN_FILE = "run.json"
_COMMANDS = {
    "ablation": "sisod ablate",
    "demo": "sisod demo",
    "evaluation": "sisod evaluate",
    "frames": "sisod frames",
    "labels": "sisod train",
    "prediction": "sisod predict",
    "scenes": "sisod reproduce",
    "training": "sisod train",
}
_INSIDE = {"training": ("labels", "training"), "demo": tuple(_COMMANDS)}  # kinds that hold results
_TRASH = "-trash"


class OtherRunError(InputError):
    """There is a run, but not the one that should go on."""


def read_run(folder: Path) -> dict[str, Any]:
    """Return what a folder of ours says of itself; nothing if it is not ours."""
    try:
        record = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) and "sisod" in record else {}


def kind_of(folder: Path) -> str | None:
    """Return of which kind a result is; None if it is not a result of sisod."""
    record = read_run(folder)
    if "kind" in record:
        return str(record["kind"])
    commands = {"predict": "prediction", "frames": "frames", "demo": "demo"}  # without a kind: of 0.1.0
    if record.get("command") in commands:
        return commands[record["command"]]
    if "asked" in record:
        return "training"
    return "evaluation" if "protocol" in record and "metrics" in record else None


def sign(folder: Path, kind: str) -> None:
    """Let a folder's run.json say of which kind it is."""
    from sisod.common.version import __version__

    try:
        record = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = {}
    if "sisod" not in record or record.get("kind") != kind:
        signed = {"sisod": __version__, "kind": kind, **record} | {"kind": kind}
        text = json.dumps(signed, indent=2, ensure_ascii=False)
        write_atomically(folder / RUN_FILE, f"{text}\n".encode())


def is_free(folder: Path) -> bool:
    """Say whether there is nothing, or nothing but what a killed process left."""
    if not folder.is_dir():
        return not folder.exists()
    return all(is_temporary(path) for path in folder.iterdir())


def check_free(
    folder: Path, *, kind: str, overwrite: bool, inputs: Sequence[str | Path | None] = ()
) -> None:
    """Refuse to write over a result that was not given up, or over anything that is no such result.

    Args:
        folder: where the result is to be.
        kind: of the result.
        overwrite: whether an earlier one may be replaced.
        inputs: what the result is made from; it must not go with the folder.
    """
    if is_free(folder):
        return
    there, advice = kind_of(folder), "give another folder or remove it yourself"
    if there is None:
        raise InputError(
            f"{str(folder)!r} exists and is not a result of sisod; it is not replaced, {advice}"
        )
    if there != kind:
        raise InputError(
            f"{str(folder)!r} is a result of '{_COMMANDS.get(there, 'sisod')}' and not of "
            f"'{_COMMANDS[kind]}'; it is not replaced, {advice}"
        )
    if not overwrite:
        raise InputError(
            f"{str(folder)!r} exists already; use --overwrite to replace it, or give another folder"
        )
    for path in sorted(folder.rglob(RUN_FILE)):
        inside = None if path.parent == folder else kind_of(path.parent)
        if inside is not None and inside not in _INSIDE.get(kind, ()):
            raise InputError(
                f"{str(folder)!r} is not replaced: it holds {str(path.parent)!r}, a result of "
                f"'{_COMMANDS.get(inside, 'sisod')}'; move that elsewhere first"
            )
    for path in (Path(root) for root in inputs if root is not None and not is_url(root)):
        if path.exists() and path.resolve().is_relative_to(folder.resolve()):
            raise InputError(
                f"{str(folder)!r} is not replaced: {str(path)!r}, from which the result is made, "
                "is inside; give another folder"
            )


@contextmanager
def write_folder(
    folder: Path, *, kind: str, overwrite: bool, inputs: Sequence[str | Path | None] = ()
) -> Iterator[Path]:
    """Give a folder to write into that takes the name of `folder` when all is done."""
    folder = followed(folder)
    with readable_errors(folder, "use --overwrite or another folder"), lock(folder):
        recover(folder)
        check_free(folder, kind=kind, overwrite=overwrite, inputs=inputs)
        inside = _beside(folder, "new")
        discard(inside)  # of a process that was killed
        try:
            begin(inside, kind)
            yield inside
            sign(inside, kind)
            put_in_place(inside, folder)
        except BaseException:
            with suppress(OSError):
                discard(inside)
            raise


def begin(folder: Path, kind: str) -> None:
    """Make a folder that says from the start that it is ours."""
    folder.mkdir(parents=True, exist_ok=True)
    sign(folder, kind)


def partial_folder(folder: Path) -> Path:
    """Return where a run that can be resumed works while something stands at its place."""
    return _beside(folder, "partial")


def check_partial(folder: Path, kind: str) -> None:
    """Refuse to remove the unfinished run of another command, or anything else under that name."""
    if not is_free(folder) and kind_of(folder) != kind:
        raise InputError(_in_the_way(folder))


def choose_folder(
    folder: Path, *, kind: str, resume: bool, overwrite: bool, differs: Callable[[Path], str | None]
) -> tuple[Path, bool]:
    """Return the folder to work in, `folder` itself or the one beside, and whether to go on with it.

    Changes nothing. What is to be replaced stays until the new result is finished, so `overwrite` means
    the folder beside, which `resume` then finds.

    Args:
        folder: where the result is to be.
        kind: of the result.
        resume: go on with a run of the same.
        overwrite: replace an earlier one.
        differs: says why the run in a folder is not the same, None if it is.
    """
    beside = partial_folder(folder)
    begun = [path for path in (beside, folder) if not is_free(path)]
    if resume and begun:
        reasons = [differs(path) for path in begun]
        if None in reasons:
            return begun[reasons.index(None)], True
        raise OtherRunError(reasons[0] or "")
    if not is_free(beside):
        check_partial(beside, kind)
        if not overwrite:
            raise InputError(
                f"a run into {str(folder)!r} is unfinished; use --resume to go on with it, or "
                "--overwrite to begin again"
            )
    return (beside if overwrite else folder), False


def put_in_place(inside: Path, folder: Path) -> None:
    """Move a finished folder to its name; what stood there is removed only after that."""
    old = _beside(folder, "old")
    if is_free(folder):
        discard(folder)
    else:
        folder.rename(old)
    try:
        inside.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise
    with suppress(OSError):  # in use by somebody: `recover` tries again
        discard(old)


def recover(folder: Path) -> None:
    """Undo or finish a replacement that was cut off between its steps."""
    old = _beside(folder, "old")
    for path in (folder, old, _beside(folder, "new"), partial_folder(folder)):
        trash = path.with_name(path.name + _TRASH)
        if trash.name.startswith(".") and _is_ours(trash):
            _remove(trash)
    if not old.exists():
        return
    if not _is_ours(old):
        raise InputError(_in_the_way(old))
    if is_free(folder):
        discard(folder)
        old.rename(folder)
    else:
        discard(old)


def discard(folder: Path) -> None:
    """Remove a folder of ours; nothing if there is none."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not _is_ours(folder):
        raise InputError(_in_the_way(folder))
    if not is_free(folder):  # half of it must never be taken for a result
        folder = folder.rename(folder.with_name(folder.name + _TRASH))
    _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, its record last: until then it is known as ours."""
    for path in folder.iterdir():
        if path.name != RUN_FILE:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (folder / RUN_FILE).unlink(missing_ok=True)
    folder.rmdir()


def _is_ours(folder: Path) -> bool:
    if folder.is_symlink() or not folder.is_dir():
        return False
    return is_free(folder) or bool(read_run(folder))


def _beside(folder: Path, what: str) -> Path:
    return folder.parent / f".{folder.name}.sisod-{what}"


def _in_the_way(path: Path) -> str:
    there = _COMMANDS.get(kind_of(path) or "")
    whose = f"an unfinished run of '{there}'" if there else "not of sisod"
    return f"{str(path)!r} is in the way and is not removed: it is {whose}; move it elsewhere"


def is_url(root: str | Path) -> bool:
    """Say whether a root is a URL rather than a local folder."""
    return "://" in str(root)
