"""Output folders of commands: locked, resumed, replaced at the end, and recovered after a kill.

Every folder that a command writes holds a run.json with the kind of the run, its `config` (what decides
its content) and, once it is finished, digests of its files. A command replaces only results of its own
kind, and resumes only a run of the same kind and config.

.NAME.sisod-partial    the unfinished run, renamed to NAME at the end; kept for --resume
.NAME.sisod-old        the replaced result, between the two renames
.NAME.sisod-lock       see `sisod.common.output.lock`
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import (
    is_temporary,
    json_bytes,
    lock,
    readable_errors,
    remove_temporary,
    resolve_link,
    write_atomically,
)
from sisod.common.version import __version__

RUN_FILE = "run.json"
FORMAT = 1  # of run.json and the files beside it; no other is read
DIGESTS = "sha256"  # field of run.json: name of a file -> hash of its bytes
SCRATCH = ".parts"  # folder inside a run for files that are needed until it is finished
# kind of a run -> the command that writes it
COMMANDS = {
    "ablation": "sisod ablate",
    "calibration": "sisod calibrate",
    "demo": "sisod demo",
    "evaluation": "sisod evaluate",
    "frames": "sisod frames",
    "labels": "sisod train",
    "prediction": "sisod predict",
    "reproduction": "sisod reproduce",
    "scenes": "sisod reproduce",
    "training": "sisod train",
}
_MAY_HOLD = {"training": ("labels", "training"), "demo": tuple(COMMANDS)}  # kind -> kinds inside
_TRASH = "-trash"


class OtherRunError(InputError):
    """There is a run to resume, but with another config."""


@dataclass(eq=False)
class Run:
    """A run that is being written.

    Attributes:
        out: where the result will be.
        path: where it is written: beside `out`, or `out` itself.
        kind: of the run, one of `COMMANDS`.
        config: what decides the result.
        record: content of run.json; of a new run only once it has begun.
        resumed: whether the run was begun earlier.
    """

    out: Path
    path: Path
    kind: str
    config: dict[str, Any]
    record: dict[str, Any] = field(default_factory=dict)
    resumed: bool = False
    is_writer: bool = True

    @property
    def finished(self) -> bool:
        """Whether the run is finished, now or by an earlier process."""
        return bool(self.record.get("finished"))

    def begin(self, **record: Any) -> None:
        """Create the folder with its run.json; a resumed one is only cleared of temporary files."""
        if not self.is_writer:
            return
        if self.resumed:
            remove_temporary(self.path)
            return
        if self.path != self.out:
            discard(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.save(finished=False, **record)

    def save(self, **record: Any) -> None:
        """Add fields to run.json."""
        head = {"format": FORMAT, "sisod": __version__, "kind": self.kind, "config": self.config}
        self.record = head | self.record | record
        if self.is_writer:
            write_atomically(self.path / RUN_FILE, json_bytes(self.record))

    def finish(self, *, digest: Sequence[str] = (), **record: Any) -> None:
        """Add fields to run.json and put the folder in its place.

        Args:
            digest: patterns of files whose hashes run.json holds, so that no others are taken for them.
            record: fields of run.json.
        """
        if self.is_writer:
            paths = sorted(path for pattern in digest for path in self.path.glob(pattern))
            hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
            record |= {DIGESTS: hashes} if digest else {}
        self.save(**record, finished=True)
        if self.is_writer:
            put_in_place(self.path, self.out)
        self.path = self.out


@contextmanager
def open_run(
    out: Path | str,
    *,
    kind: str,
    config: Mapping[str, Any] | None = None,
    resume: bool | None = None,
    overwrite: bool | None = False,
    inputs: Sequence[str | Path | None] = (),
    in_place: bool = False,
    is_writer: bool = True,
) -> Iterator[Run]:
    """Lock an output folder and find the run to begin or to resume; nothing is written before `begin`.

    Args:
        out: where the result is to be.
        kind: of the run, one of `COMMANDS`.
        config: what decides the result, as plain data; a run is resumed only if it is equal.
        resume: go on with an unfinished run, or find a finished one. None for a command that cannot:
            what a failed or killed process leaves is removed.
        overwrite: replace an earlier result when the new one is finished; None without such an option.
        inputs: files or folders that the result is computed from; they must not be inside `out`.
        in_place: write to `out` itself if it is free, for runs that people watch.
        is_writer: False for further processes of the run: they only learn where it is.

    Example:
        >>> import tempfile
        >>> out = Path(tempfile.mkdtemp()) / "result"
        >>> with open_run(out, kind="frames", config={"size": 3}) as run:
        ...     run.begin()
        ...     _ = (run.path / "a.txt").write_text("first")
        ...     run.finish(images=1)
        >>> sorted(path.name for path in out.iterdir()), read_run(out)["images"]
        (['a.txt', 'run.json'], 1)
    """
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite begins again; choose one")
    out = resolve_link(Path(out))
    plain = json.loads(json.dumps(config or {}))
    advice = "make room there or give another folder"
    if resume is not None:
        advice = "what was finished is kept, make room and use --resume"
    with readable_errors(out, advice), lock(out) if is_writer else nullcontext():
        if is_writer:
            recover(out)
        hidden = partial_folder(out)
        run = Run(out, out if in_place and not overwrite else hidden, kind, plain, is_writer=is_writer)
        begun = [path for path in (hidden, out) if resume and not is_free(path)]
        differences = [_difference(path, kind, plain) for path in begun]
        if "" in differences:
            run.path, run.resumed = begun[differences.index("")], True
            run.record = read_run(run.path)
        elif begun:
            raise OtherRunError(differences[0])
        elif is_writer:
            check_free(out, kind=kind, overwrite=overwrite, inputs=inputs, resume=resume)
        try:
            yield run
        finally:
            if resume is None and is_writer and run.record and not run.finished:
                with suppress(OSError):
                    discard(run.path)


def _difference(folder: Path, kind: str, config: dict[str, Any]) -> str:
    """Say why the run in a folder is not the one to resume; empty if it is."""
    record = read_run(folder)
    if record.get("kind") != kind:
        return (
            f"{str(folder)!r} exists and is not a result of '{COMMANDS[kind]}'; "
            "give another folder or remove it yourself"
        )
    if record.get("format") != FORMAT:
        return f"{str(folder)!r} was written by another version of sisod; give another folder"
    before, now = _flat(record.get("config", {})), _flat(config)
    for key in dict.fromkeys((*now, *before)):
        if before.get(key) != now.get(key):
            return (
                f"{str(folder)!r} is another run: {key} was {short_repr(before.get(key))} and is now "
                f"{short_repr(now.get(key))}; use the same settings, begin again with --overwrite, or "
                "give another folder"
            )
    return ""


def _flat(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def check_free(
    folder: Path,
    *,
    kind: str,
    overwrite: bool | None,
    inputs: Sequence[str | Path | None] = (),
    resume: bool | None = None,
) -> None:
    """Raise if a result would be replaced without `overwrite`, or anything that is not such a result.

    Args:
        folder: where the result is to be.
        kind: of the result.
        overwrite: whether an earlier one may be replaced; None if there is no such option.
        inputs: files or folders that the result is computed from; they must not be inside.
        resume: None if runs of this kind cannot be resumed.
    """
    name, others = repr(str(folder)), "give another folder or remove it yourself"
    again = "give another folder" if overwrite is None else "--overwrite to begin again"
    unfinished = f"a run into {name} is unfinished; use --resume to go on with it, or {again}"
    hidden = partial_folder(folder)
    if not is_free(hidden):
        _check_ours(hidden, kind)
        if resume is not None and not overwrite:
            raise InputError(unfinished)
    if is_free(folder):
        return
    kind_there = read_run(folder).get("kind")
    if kind_there != kind:
        state = "exists and is not a result of sisod"
        if kind_there is not None:
            command = COMMANDS.get(kind_there, "sisod")
            state = f"is a result of '{command}' and not of '{COMMANDS[kind]}'"
        raise InputError(f"{name} {state}; it is not replaced, {others}")
    if not overwrite:
        if resume is not None and not read_run(folder).get("finished", True):
            raise InputError(unfinished)
        option = "--resume to go on with it" if overwrite is None else "--overwrite to replace it"
        raise InputError(f"{name} exists already; use {option}, or give another folder")
    for path in sorted(folder.rglob(RUN_FILE)):
        kind_inside = None if path.parent == folder else read_run(path.parent).get("kind")
        if kind_inside is not None and kind_inside not in _MAY_HOLD.get(kind, ()):
            raise InputError(
                f"{name} is not replaced: it holds {str(path.parent)!r}, a result of "
                f"'{COMMANDS.get(kind_inside, 'sisod')}'; move that elsewhere first"
            )
    roots = [str(root) for root in inputs if root is not None and "://" not in str(root)]
    roots += [root.rpartition("#")[0] for root in roots if "#" in root]  # a column of a container
    for path in map(Path, roots):
        if path.exists() and path.resolve().is_relative_to(folder.resolve()):
            raise InputError(
                f"{name} is not replaced: {str(path)!r}, from which the result is made, is inside; "
                "give another folder"
            )


# --------------------------------------------------------------------------------------------- run.json


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of run.json; empty if the folder is not an output of sisod."""
    try:
        record = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) and "sisod" in record else {}


def read_digested(path: Path, digests: Mapping[str, str]) -> bytes:
    """Return the bytes of a file of a run; raise if they are not those that run.json has the hash of."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path.name}: {error.strerror or error}") from error
    if hashlib.sha256(data).hexdigest() != digests.get(path.name):
        raise InputError(
            f"{path.name} is not the file that was saved with {RUN_FILE}: it was changed, or is of "
            "another result"
        )
    return data


# ---------------------------------------------------------------------------------------------- folders


def partial_folder(folder: Path, what: str = "partial") -> Path:
    """Return the folder in which a run works until it is finished."""
    return folder.parent / f".{folder.name}.sisod-{what}"


def is_free(folder: Path) -> bool:
    """Tell whether a folder is missing, or empty except for temporary files of a killed process."""
    if not folder.is_dir():
        return not folder.exists()
    return all(is_temporary(path) for path in folder.iterdir())


def put_in_place(inside: Path, folder: Path) -> None:
    """Rename a finished folder to its final name; the old result is removed only after that."""
    shutil.rmtree(inside / SCRATCH, ignore_errors=True)
    if inside == folder:
        return
    old = partial_folder(folder, "old")
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
    old, hidden = partial_folder(folder, "old"), partial_folder(folder)
    for path in (folder, old, hidden):
        trash = path.with_name(path.name + _TRASH)
        is_folder = trash.name.startswith(".") and trash.is_dir() and not trash.is_symlink()
        if is_folder and (is_free(trash) or read_run(trash)):
            _remove(trash)
    if old.exists():
        if is_free(folder):
            _check_ours(old)
            discard(folder)
            old.rename(folder)
        else:
            discard(old)
    if read_run(hidden).get("finished"):
        put_in_place(hidden, folder)


def discard(folder: Path) -> None:
    """Remove an output folder of sisod, if it exists."""
    if not folder.exists() and not folder.is_symlink():
        return
    _check_ours(folder)
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


def _check_ours(folder: Path, kind: str | None = None) -> None:
    """Raise if a folder is not an output of sisod, or of another kind than is expected."""
    is_folder = folder.is_dir() and not folder.is_symlink()
    there = read_run(folder).get("kind", "")
    if is_folder and (there == kind if kind else is_free(folder) or read_run(folder)):
        return
    command = COMMANDS.get(there)
    origin = f"an unfinished run of '{command}'" if command else "not created by sisod"
    raise InputError(f"refusing to delete {str(folder)!r}: {origin}; move it elsewhere")
