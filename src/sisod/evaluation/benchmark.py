"""Many methods on many data sets, from folders or a TOML file, scored one after the other."""

import dataclasses
import os.path
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from sisod.common.arguments import check_utf8, short_repr
from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import is_safe_relative_path, is_url
from sisod.data.containers import plain_root
from sisod.data.containers.coco import is_coco
from sisod.evaluation.benchmark_file import Benchmark, read_benchmark_file
from sisod.evaluation.driver import check_request, evaluate_request
from sisod.evaluation.notes import run_notes
from sisod.evaluation.request import Folders, Options, Request
from sisod.evaluation.result import Evaluation
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol

_LONGEST_NAME = 200  # bytes; most file systems take 255, and the work folder's name is longer
_NOT_ON_WINDOWS = re.compile(
    r'.*[<>:"/\\|?*\x00-\x1f]'
    r"|.*[. ]$"  # at the end
    r"|(con|prn|aux|nul|(com|lpt)[0-9¹²³]) *(\.|$)",  # devices, whatever follows the dot
    re.IGNORECASE | re.DOTALL,
)
# folder names that say what the folder contains and not which data set it is
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


def read_benchmark(
    paths: Sequence[str],
    *,
    dataset: str | None = None,
    pred_suffix: str = "",
    gt_suffix: str = "",
    labels: bool = False,
    classes: Sequence[str] | None = None,
) -> Benchmark:
    """Return the benchmark that the positional arguments of `sisod evaluate` describe.

    Every class is a data set of its own, called like the data set and the class.

    Example:
        >>> list(read_benchmark(["EDN=maps/edn", "maps/icon", "MSOD/mask"]).folders)
        [('MSOD', 'EDN'), ('MSOD', 'icon')]
    """
    if len(paths) == 1 and paths[0].lower().endswith(".toml"):
        if dataset or pred_suffix or gt_suffix:
            raise UsageError(
                "--dataset, --pred-suffix and --gt-suffix are for folders; a TOML file says them itself"
            )
        if labels or classes is not None:
            raise UsageError(
                "--label-maps, --class and --classes are for folders; a TOML file says labels = true or "
                "class = in the table of a data set"
            )
        benchmark = read_benchmark_file(Path(paths[0]))
        _check_names(list(benchmark.folders))
        return benchmark
    if len(paths) < 2:
        raise UsageError(
            "expected folders of predictions and after them the folder of ground truths, or one TOML "
            f"file; got one folder, {paths[0]!r}"
        )
    name = dataset or dataset_name(paths[-1])
    methods = [split_name(path) for path in paths[:-1]]
    folders = {
        method: Folders(root, paths[-1], pred_suffix, gt_suffix, labels) for method, root in methods
    }
    if classes is None:
        _check_names([(name, method) for method, _ in methods])
        return Benchmark({(name, method): roots for method, roots in folders.items()})
    chosen = _checked_classes(classes)
    _check_names([(f"{name}-{category}", method) for category in chosen for method, _ in methods])
    return Benchmark(
        {
            (f"{name}-{category}", method): roots.of_class(category)
            for category in chosen
            for method, roots in folders.items()
        }
    )


def _checked_classes(classes: Sequence[str]) -> list[str]:
    chosen = [category.strip() for category in classes]
    for index, category in enumerate(chosen):
        if not category:
            raise UsageError(
                "one of the classes is empty; expected names or numbers with commas, like 1,2"
            )
        if category in chosen[:index]:
            raise UsageError(f"the class {short_repr(category)} is named twice; name it once")
    return chosen


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
        jobs: processes; by default one for each core.
        names: only these images, of every data set.
        allow_missing: score what has a prediction instead of refusing.
        strict: refuse predictions of another size instead of resizing them.
        resume: go on with an unfinished benchmark; what is finished is kept.
        overwrite: replace earlier results.
        cluster: address of a Dask scheduler.

    Returns:
        The result of each data set and method, in the order of the file.
    """
    if not str(file).lower().endswith(".toml"):
        raise UsageError(
            f"file must be a TOML file of methods and data sets, got {short_repr(str(file))}"
        )
    requests = read_benchmark([str(file)]).requests(
        protocol=protocol,
        metrics=metrics,
        names=names,
        allow_missing=allow_missing,
        strict=strict,
    )
    options = Options(jobs=jobs, resume=resume, overwrite=overwrite, cluster=cluster)
    results = {}
    for (dataset, method), result, notes in score_benchmark(requests, Path(out), options):
        for note in notes:
            warnings.warn(f"{method} on {dataset}: {note}", UserWarning, stacklevel=2)
        results[dataset, method] = result
    return results


def score_benchmark(
    requests: Mapping[tuple[str, str], Request], out: Path, options: Options
) -> Iterator[tuple[tuple[str, str], Evaluation, list[str]]]:
    """Score to OUT/<dataset>/<method>; give the names of each, the result and what to warn of.

    All requests are checked before the first is scored.
    """
    plans = {
        name: check_request(request, options, out.joinpath(*name)) for name, request in requests.items()
    }
    for (dataset, method), request in requests.items():
        titled = dataclasses.replace(options, title=f"{method} on {dataset}")
        plan = plans.pop((dataset, method))
        result = evaluate_request(request, titled, out / dataset / method, plan)
        yield (dataset, method), result, run_notes(result.run, request)


def dataset_name(gt_root: str) -> str:
    """Return the name of a data set: its folder, or the one above if that is called mask or similar."""
    gt_root = plain_root(gt_root)
    if is_url(gt_root):
        parts = [part for part in gt_root.split("://")[1].split("/") if part]
    else:
        parts = list(Path(gt_root).resolve().parts[1:])
    parts[-1:] = map(_stem, parts[-1:])
    if len(parts) > 1 and parts[-1].lower() in _GENERIC:
        return parts[-2]
    return parts[-1] if parts else "data"


def split_name(path: str) -> tuple[str, str]:
    """Split NAME=DIR; without a name, the method is called like its folder."""
    name, equals, root = path.partition("=")
    is_name = name and "/" not in name and os.sep not in name
    if equals and is_name and not os.path.exists(path):  # noqa: PTH110  (any text)
        if not root:
            raise UsageError(f"{path!r} names a method but no folder; expected NAME=DIR")
        return name, root
    plain = plain_root(path)
    if is_url(path):
        return _stem(PurePosixPath(plain.split("://")[1]).name or path), path
    return _stem(Path(plain).resolve().name), path


def _stem(name: str) -> str:
    """Return a file name without the extension of COCO files."""
    return name[: -len(".json")] if is_coco(name) else name


def _check_names(names: Sequence[tuple[str, str]], *, windows: bool = sys.platform == "win32") -> None:
    """Refuse names of data sets and methods that cannot be the names of folders."""
    for index, (dataset, method) in enumerate(names):
        for what, name in (("data set", dataset), ("method", method)):
            check_utf8(name, f"{what} name")
            if len(name.encode()) > _LONGEST_NAME:
                raise InputError(f"{what} name {name[:20]!r}... is too long for a folder; shorten it")
            if not is_safe_relative_path(name) or "/" in name or name.startswith("."):
                raise InputError(f"{what} name {name!r} cannot name a folder; give it another")
            if windows and _NOT_ON_WINDOWS.match(name):
                raise InputError(
                    f"{what} name {name!r} cannot name a folder on Windows; give it another"
                )
        if (dataset, method) in names[:index]:
            raise InputError(f"two predictions are called {method!r}; give them names, as NAME=DIR")
    _check_spelling("data sets", [dataset for dataset, _ in names])
    for dataset in dict(names):
        _check_spelling("methods", [method for other, method in names if other == dataset])


def _check_spelling(what: str, names: Sequence[str]) -> None:
    """Refuse names that differ only in upper and lower case, on every system.

    Results are copied between systems; where case makes no difference, one would replace the other.
    """
    spellings: dict[str, str] = {}
    for name in names:
        other = spellings.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
        if other != name:
            raise InputError(
                f"the {what} {other!r} and {name!r} would share a folder on Windows and macOS, where "
                "case makes no difference; give one of them another name"
            )
