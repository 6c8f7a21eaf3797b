"""What `sisod evaluate` is asked for, folders or a TOML file; the loop over methods and data sets."""

import dataclasses
import os.path
import re
import sys
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sisod.common.arguments import check_utf8, shown
from sisod.common.errors import InputError, UsageError
from sisod.common.folders import is_url
from sisod.common.output import stays_inside
from sisod.data.pairs import Pairing
from sisod.evaluation.benchmark_file import BenchmarkFile, Cell, read_benchmark_file
from sisod.evaluation.driver import Options, Request, check_request, evaluate_to
from sisod.evaluation.result import Evaluation
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol, find_protocol

_LONGEST_NAME = 200  # bytes; most file systems take 255, and the work folder's name is longer
_NOT_ON_WINDOWS = re.compile(
    r'.*[<>:"/\\|?*\x00-\x1f]'
    r"|.*[. ]$"  # at the end
    r"|(con|prn|aux|nul|(com|lpt)[0-9¹²³]) *(\.|$)",  # devices, whatever follows the dot
    re.IGNORECASE | re.DOTALL,
)
# folder names that say what is inside and not which data set it is
_GENERIC = {
    "mask",
    "masks",
    "gt",
    "gts",
    "groundtruth",
    "ground_truth",
    "ground-truth",
    "label",
    "labels",
}


def read_request(
    paths: Sequence[str], *, dataset: str | None = None, pred_suffix: str = "", gt_suffix: str = ""
) -> BenchmarkFile:
    """Return the cells that the positional arguments ask for.

    Example:
        >>> found = read_request(["EDN=maps/edn", "maps/icon", "MSOD/mask"])
        >>> [(cell.dataset, cell.method) for cell in found.cells]
        [('MSOD', 'EDN'), ('MSOD', 'icon')]
    """
    if len(paths) == 1 and paths[0].lower().endswith(".toml"):
        if dataset or pred_suffix or gt_suffix:
            raise UsageError(
                "--dataset, --pred-suffix and --gt-suffix are for folders; a TOML file says them itself"
            )
        found = read_benchmark_file(Path(paths[0]))
    elif len(paths) < 2:
        raise UsageError(
            "expected folders of predictions and after them the folder of ground truths, or one TOML "
            f"file; got one folder, {paths[0]!r}"
        )
    else:
        name = dataset or dataset_name(paths[-1])
        cells = [
            Cell(name, method, root, paths[-1], pred_suffix, gt_suffix)
            for method, root in (named(path) for path in paths[:-1])
        ]
        found = BenchmarkFile(tuple(cells), None, None)
    _check_names(found.cells)
    return found


def evaluate_benchmark(
    file: Path | str,
    out: Path | str,
    *,
    protocol: str | Protocol | None = None,
    metrics: MetricChoice = None,
    jobs: int | None = None,
    names: Sequence[str] | None = None,
    allow_missing: bool = False,
    strict: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    cluster: str | None = None,
) -> dict[tuple[str, str], Evaluation]:
    """Score every method of a benchmark file on every data set that it has maps for.

    Nothing is scored before all folders are paired and all outputs can be written.

    Args:
        file: TOML file of methods and data sets; docs/evaluate.md shows one.
        out: results go to OUT/<dataset>/<method>.
        protocol: instead of the one that the file names.
        metrics: instead of those that the file names.
        jobs: see `sisod.evaluate`, as are the others.
        names: only these images, of every data set.
        allow_missing: score what has a prediction instead of refusing.
        strict: refuse predictions of another size instead of resizing them.
        resume: go on with an unfinished benchmark; what is finished is kept.
        overwrite: replace earlier results.
        cluster: address of a Dask scheduler.

    Returns:
        The result of each data set and method, in the order of the file.
    """
    options = Options(jobs=jobs, resume=resume, overwrite=overwrite, cluster=cluster)
    if not str(file).lower().endswith(".toml"):
        raise UsageError(f"file must be a TOML file of methods and data sets, got {shown(str(file))}")
    runs = plan_benchmark(
        read_request([str(file)]),
        Path(out),
        options,
        protocol=protocol,
        metrics=metrics,
        names=names,
        allow_missing=allow_missing,
        strict=strict,
    )
    results = {}
    for run in runs:
        for note in run.score():
            warnings.warn(f"{run.cell.method} on {run.cell.dataset}: {note}", UserWarning, stacklevel=2)
        results[run.cell.dataset, run.cell.method] = Evaluation.load(run.folder)
    return results


@dataclass(frozen=True)
class BenchmarkRun:
    """One method on one data set that can be scored: its files are paired, its folder is free."""

    cell: Cell
    folder: Path
    request: Request
    options: Options
    pairing: Pairing

    def score(self) -> list[str]:
        """Score it; return what the user should be warned of."""
        return evaluate_to(self.folder, self.request, self.options, pairing=self.pairing)


def plan_benchmark(
    wanted: BenchmarkFile,
    out: Path,
    options: Options,
    *,
    protocol: str | Protocol | None = None,
    metrics: MetricChoice = None,
    names: Sequence[str] | None = None,
    allow_missing: bool = False,
    strict: bool = False,
) -> list[BenchmarkRun]:
    """Check every method on every data set before the first is scored."""
    settled = find_protocol(protocol or wanted.protocol or "default")
    keys = find_scorer(settled, metrics or wanted.metrics).keys
    runs = []
    for cell in wanted.cells:
        request = Request(
            pred_root=cell.pred_root,
            gt_root=cell.gt_root,
            protocol=settled,
            keys=keys,
            pred_suffix=cell.pred_suffix,
            gt_suffix=cell.gt_suffix,
            names=None if names is None else tuple(names),
            allow_missing=allow_missing,
            strict=strict,
        )
        titled = dataclasses.replace(options, title=f"{cell.method} on {cell.dataset}")
        folder = out / cell.dataset / cell.method
        pairing = check_request(folder, request, titled)
        runs.append(BenchmarkRun(cell, folder, request, titled, pairing))
    return runs


def dataset_name(gt_root: str) -> str:
    """Name a data set after its folder, or the one above if that is only called mask or the like."""
    if is_url(gt_root):
        parts = [part for part in gt_root.split("://")[1].split("/") if part]
    else:
        parts = list(Path(gt_root).resolve().parts[1:])
    if len(parts) > 1 and parts[-1].lower() in _GENERIC:
        return parts[-2]
    return parts[-1] if parts else "data"


def named(path: str) -> tuple[str, str]:
    """Split NAME=DIR; without a name, a folder is called by its own."""
    name, equals, root = path.partition("=")
    is_name = name and "/" not in name and os.sep not in name
    if equals and is_name and not os.path.exists(path):  # noqa: PTH110  (any text)
        if not root:
            raise UsageError(f"{path!r} names a method but no folder; expected NAME=DIR")
        return name, root
    if is_url(path):
        return PurePosixPath(path.split("://")[1]).name or path, path
    return Path(path).resolve().name, path


def _check_names(cells: Sequence[Cell], *, windows: bool = sys.platform == "win32") -> None:
    seen = set()
    for cell in cells:
        for what, name in (("data set", cell.dataset), ("method", cell.method)):
            check_utf8(name, f"{what} name")
            if len(name.encode()) > _LONGEST_NAME:
                raise InputError(f"{what} name {name[:20]!r}... is too long for a folder; shorten it")
            if not stays_inside(name) or "/" in name or name.startswith("."):
                raise InputError(f"{what} name {name!r} cannot name a folder; give it another")
            if windows and _NOT_ON_WINDOWS.match(name):
                raise InputError(
                    f"{what} name {name!r} cannot name a folder on Windows; give it another"
                )
        if (cell.dataset, cell.method) in seen:
            raise InputError(f"two predictions are called {cell.method!r}; give them names, as NAME=DIR")
        seen.add((cell.dataset, cell.method))
    _check_spelling("data sets", [cell.dataset for cell in cells])
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        _check_spelling("methods", [cell.method for cell in cells if cell.dataset == dataset])


def _check_spelling(what: str, names: Sequence[str]) -> None:
    """Refuse names that are one folder where upper and lower case are not told apart, so everywhere.

    Results are copied between systems, and on such a disk the second would replace the first.
    """
    spelled: dict[str, str] = {}
    for name in names:
        other = spelled.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
        if other != name:
            raise InputError(
                f"the {what} {other!r} and {name!r} would share a folder on Windows and macOS, where "
                "case makes no difference; give one of them another name"
            )
