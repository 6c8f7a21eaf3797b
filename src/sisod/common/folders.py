"""Output folders: which command wrote them, how they are replaced, and recovery after a kill.

Every folder that a command writes holds a run.json that states its kind. A command replaces only results
of its own kind. It writes to a folder beside the result and renames it at the end:

.NAME.sisod-new        new result of a command that cannot be resumed; removed if it fails
.NAME.sisod-partial    unfinished result of a command that can; kept for --resume
.NAME.sisod-old        the replaced result, between the two renames
.NAME.sisod-lock       states which process is writing; see `sisod.common.output.lock`
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
    "calibration": "sisod calibrate",
    "demo": "sisod demo",
    "evaluation": "sisod evaluate",
    "frames": "sisod frames",
    "labels": "sisod train",
    "prediction": "sisod predict",
    "scenes": "sisod reproduce",
    "training": "sisod train",
}
_MAY_HOLD = {"training": ("labels", "training"), "demo": tuple(_COMMANDS)}  # kind -> kinds inside
_TRASH = "-trash"


class OtherRunError(InputError):
    """There is an unfinished run, but with other settings than the one to be resumed."""


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of run.json; empty if the folder is not an output of sisod."""
    try:
        record = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) and "sisod" in record else {}


def kind_of(folder: Path) -> str | None:
    """Return the kind of a result; None if it is not a result of sisod."""
    record = read_run(folder)
    if "kind" in record:
        return str(record["kind"])
    commands = {"predict": "prediction", "frames": "frames", "demo": "demo"}  # 0.1.0 wrote no kind
    if record.get("command") in commands:
        return commands[record["command"]]
    if "asked" in record:
        return "training"
    return "evaluation" if "protocol" in record and "metrics" in record else None


def sign(folder: Path, kind: str) -> None:
    """Write the kind of a folder into its run.json."""
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
    """Tell whether a folder is missing, or empty except for temporary files of a killed process."""
    if not folder.is_dir():
        return not folder.exists()
    return all(is_temporary(path) for path in folder.iterdir())


def check_free(
    folder: Path, *, kind: str, overwrite: bool, inputs: Sequence[str | Path | None] = ()
) -> None:
    """Refuse to replace a result without `overwrite`, or anything that is not such a result.

    Args:
        folder: where the result is to be.
        kind: of the result.
        overwrite: whether an earlier one may be replaced.
        inputs: files or folders that the result is computed from; they must not be inside.
    """
    if is_free(folder):
        return
    kind_there, advice = kind_of(folder), "give another folder or remove it yourself"
    if kind_there is None:
        raise InputError(
            f"{str(folder)!r} exists and is not a result of sisod; it is not replaced, {advice}"
        )
    if kind_there != kind:
        raise InputError(
            f"{str(folder)!r} is a result of '{_COMMANDS.get(kind_there, 'sisod')}' and not of "
            f"'{_COMMANDS[kind]}'; it is not replaced, {advice}"
        )
    if not overwrite:
        raise InputError(
            f"{str(folder)!r} exists already; use --overwrite to replace it, or give another folder"
        )
    for path in sorted(folder.rglob(RUN_FILE)):
        kind_inside = None if path.parent == folder else kind_of(path.parent)
        if kind_inside is not None and kind_inside not in _MAY_HOLD.get(kind, ()):
            raise InputError(
                f"{str(folder)!r} is not replaced: it holds {str(path.parent)!r}, a result of "
                f"'{_COMMANDS.get(kind_inside, 'sisod')}'; move that elsewhere first"
            )
    roots = [str(root) for root in inputs if root is not None and not is_url(root)]
    roots += [root.rpartition("#")[0] for root in roots if "#" in root]  # a column of a container
    for path in map(Path, roots):
        if path.exists() and path.resolve().is_relative_to(folder.resolve()):
            raise InputError(
                f"{str(folder)!r} is not replaced: {str(path)!r}, from which the result is made, "
                "is inside; give another folder"
            )


@contextmanager
def write_folder(
    folder: Path, *, kind: str, overwrite: bool, inputs: Sequence[str | Path | None] = ()
) -> Iterator[Path]:
    """Yield a folder to write into, which is renamed to `folder` at the end."""
    folder = followed(folder)
    with readable_errors(folder, "use --overwrite or another folder"), lock(folder):
        recover(folder)
        check_free(folder, kind=kind, overwrite=overwrite, inputs=inputs)
        inside = _folder_beside(folder, "new")
        discard(inside)  # left by a killed process
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
    """Create a folder with a run.json that states its kind from the start."""
    folder.mkdir(parents=True, exist_ok=True)
    sign(folder, kind)


def partial_folder(folder: Path) -> Path:
    """Return the folder in which a run that can be resumed works until it is finished."""
    return _folder_beside(folder, "partial")


def check_partial(folder: Path, kind: str) -> None:
    """Refuse to remove the unfinished run of another command, or anything else under that name."""
    if not is_free(folder) and kind_of(folder) != kind:
        raise InputError(_in_the_way_message(folder))


def choose_folder(
    folder: Path, *, kind: str, resume: bool, overwrite: bool, differs: Callable[[Path], str | None]
) -> tuple[Path, bool]:
    """Return the folder to work in, `folder` itself or the one beside, and whether to go on with it.

    Changes nothing. The old result stays until the new one is finished, so with `overwrite` the work is
    done in the folder beside, where `resume` finds it.

    Args:
        folder: where the result is to be.
        kind: of the result.
        resume: continue a run with the same settings.
        overwrite: replace an earlier result.
        differs: returns how the run in a folder differs from this one, None if it does not.
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
    """Rename a finished folder to its final name; the old result is removed only after that."""
    old = _folder_beside(folder, "old")
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
    with suppress(OSError):  # a file is in use: `recover` tries again
        discard(old)


def recover(folder: Path) -> None:
    """Undo or finish a replacement that was interrupted."""
    old = _folder_beside(folder, "old")
    for path in (folder, old, _folder_beside(folder, "new"), partial_folder(folder)):
        trash = path.with_name(path.name + _TRASH)
        if trash.name.startswith(".") and _is_ours(trash):
            _remove(trash)
    if not old.exists():
        return
    if not _is_ours(old):
        raise InputError(_in_the_way_message(old))
    if is_free(folder):
        discard(folder)
        old.rename(folder)
    else:
        discard(old)


def discard(folder: Path) -> None:
    """Remove an output folder of sisod, if it exists."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not _is_ours(folder):
        raise InputError(_in_the_way_message(folder))
    if not is_free(folder):  # a half removed folder must never look like a result
        folder = folder.rename(folder.with_name(folder.name + _TRASH))
    _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder, run.json last: until then it is recognised as an output of sisod."""
    for path in folder.iterdir():
        if path.name != RUN_FILE:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (folder / RUN_FILE).unlink(missing_ok=True)
    folder.rmdir()


def _is_ours(folder: Path) -> bool:
    if folder.is_symlink() or not folder.is_dir():
        return False
    return is_free(folder) or bool(read_run(folder))


def _folder_beside(folder: Path, what: str) -> Path:
    return folder.parent / f".{folder.name}.sisod-{what}"


def _in_the_way_message(path: Path) -> str:
    command = _COMMANDS.get(kind_of(path) or "")
    origin = f"an unfinished run of '{command}'" if command else "not of sisod"
    return f"{str(path)!r} is in the way and is not removed: it is {origin}; move it elsewhere"


def is_url(root: str | Path) -> bool:
    """Tell whether a root is a URL rather than a local folder."""
    return "://" in str(root)
