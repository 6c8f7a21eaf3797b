"""Many methods on many data sets, from folders or a TOML file, scored one after the other.

    metrics = "paper"                        # optional: "paper", "sod", "dis", "all" or a list of keys
    protocol = "default"                     # optional; settings may follow: "default+min_area=0"

    [datasets.MSOD]
    gt = "data/MSOD/mask"

    # optional: labels = true for label maps, class = "3" for one class of class maps or of a COCO file

    [methods.EDN]
    pred = "maps/EDN/{dataset}"              # or a table: pred = { MSOD = "maps/edn-msod" }

Paths are relative to the file.
"""

import dataclasses
import os.path
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from sisod.common.arguments import one_line, short_repr
from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import is_safe_relative_path, is_url
from sisod.data.containers import plain_root
from sisod.data.truths import TruthFormat
from sisod.evaluation.driver import check_request, evaluate_request
from sisod.evaluation.notes import run_notes
from sisod.evaluation.result import Evaluation
from sisod.evaluation.tasks import Folders, Options, Request, make_request
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol

# folder names that say what the folder contains and not which data set it is
_GENERIC = {"mask", "masks", "gt", "gts", "label", "labels"}
_GENERIC |= {"groundtruth", "ground_truth", "ground-truth"}


@dataclass(frozen=True)
class Benchmark:
    """Methods and data sets to be scored, and what a file says of how.

    Attributes:
        folders: by the names of data set and method.
        metrics: as `sisod.evaluate` takes them; None if none are named.
        protocol: name of it; None if none is named.
    """

    folders: Mapping[tuple[str, str], Folders]
    metrics: str | tuple[str, ...] | None = None
    protocol: str | None = None

    def requests(
        self, *, protocol: str | Protocol | None, metrics: MetricChoice, **options: Any
    ) -> dict[tuple[str, str], Request]:
        """Return what to score, with another protocol or other metrics than the file names.

        Args:
            protocol: instead of the one of the benchmark; None for that.
            metrics: the same for the metrics.
            options: the others of `make_request`.
        """
        protocol, metrics = protocol or self.protocol or "default", metrics or self.metrics
        return {
            name: make_request(folders, protocol=protocol, metrics=metrics, **options)
            for name, folders in self.folders.items()
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

    Args:
        paths: folders of predictions, as DIR or NAME=DIR, and that of the ground truths; or a TOML file.
        dataset: name of the data set; by default that of its folder.
        pred_suffix: end of every prediction's name that is not part of the image's.
        gt_suffix: the same for ground truths.
        labels: whether ground truths are label maps.
        classes: to be scored, each as a data set of its own, called like the data set and the class.

    Example:
        >>> list(read_benchmark(["EDN=maps/edn", "maps/icon", "MSOD/mask"]).folders)
        [('MSOD', 'EDN'), ('MSOD', 'icon')]
    """
    if len(paths) == 1 and paths[0].lower().endswith(".toml"):
        if dataset or pred_suffix or gt_suffix or labels or classes is not None:
            raise UsageError(
                "--dataset, --pred-suffix, --gt-suffix, --label-maps, --class and --classes are for "
                "folders; a TOML file says them itself: suffix, labels and class of a data set"
            )
        return _read_file(Path(paths[0]))
    if len(paths) < 2:
        raise UsageError(
            "expected folders of predictions and after them the folder of ground truths, or one TOML "
            f"file; got one folder, {paths[0]!r}"
        )
    name, meaning = dataset or dataset_name(paths[-1]), TruthFormat(labels)
    roots = [
        (method, Folders(root, paths[-1], pred_suffix, gt_suffix, meaning))
        for method, root in map(split_name, paths[:-1])
    ]
    if classes is None:
        return Benchmark(_by_name([((name, method), folders) for method, folders in roots]))
    chosen = [category.strip() for category in classes]
    if "" in chosen or len(set(chosen)) < len(chosen):
        raise UsageError(
            f"classes must be different names or numbers, like 1,2, got {short_repr(','.join(classes))}"
        )
    of_classes = [
        ((f"{name}-{category}", method), folders.of_class(category))
        for category in chosen
        for method, folders in roots
    ]
    return Benchmark(_by_name(of_classes))


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
    r"""Score every method of a benchmark file on every data set that it has maps for.

    Nothing is scored before all folders are paired and all outputs can be written.

    Args:
        file: TOML file of methods and data sets; docs/evaluate.md shows one.
        out: results go to OUT/<dataset>/<method>.
        protocol: instead of the one that the file names.
        metrics: instead of those that the file names.
        jobs: processes; by default one for each core.
        names: only these images, of every data set.
        allow_missing: score what has a prediction instead of raising.
        strict: raise for predictions of another size instead of resizing them.
        resume: go on with an unfinished benchmark; what is finished is kept.
        overwrite: replace earlier results.
        cluster: address of a Dask scheduler.

    Returns:
        The result of each data set and method, in the order of the file.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> root = Path(tempfile.mkdtemp())
        >>> for folder in ("maps", "masks"):
        ...     (root / folder).mkdir()
        ...     np.save(root / folder / "a.npy", np.eye(4, dtype=bool))
        >>> text = '[datasets.D]\ngt = "masks"\n[methods.EDN]\npred = "maps"'
        >>> _ = (root / "bench.toml").write_text(text)
        >>> results = evaluate_benchmark(root / "bench.toml", root / "out", metrics="mae", jobs=1)
        >>> results["D", "EDN"].summary, (root / "out/D/EDN/run.json").exists()
        ({'mae': 0.0}, True)
    """
    requests = read_benchmark([str(file)]).requests(
        protocol=protocol, metrics=metrics, names=names, allow_missing=allow_missing, strict=strict
    )
    options, results = Options(jobs=jobs, resume=resume, overwrite=overwrite, cluster=cluster), {}
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

    Args:
        requests: by the names of data set and method.
        out: folder of all results.
        options: how to score.
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
    """Return the name of a data set: its folder, or the one above if that is called mask or similar.

    Example:
        >>> dataset_name("data/MSOD/mask"), dataset_name("s3://bucket/DUTS.json")
        ('MSOD', 'DUTS')
    """
    root = plain_root(gt_root)
    parts = root.split("://")[1].split("/") if is_url(root) else Path(root).resolve().parts[1:]
    named = [part.removesuffix(".json") for part in parts if part]
    if len(named) > 1 and named[-1].lower() in _GENERIC:
        return named[-2]
    return named[-1] if named else "data"


def split_name(path: str) -> tuple[str, str]:
    """Split NAME=DIR; without a name, the method is called like its folder.

    Example:
        >>> split_name("EDN=maps/a"), split_name("maps/edn")
        (('EDN', 'maps/a'), ('edn', 'maps/edn'))
    """
    name, equals, root = path.partition("=")
    is_name = name and "/" not in name and os.sep not in name
    if equals and is_name and not os.path.exists(path):  # noqa: PTH110  (any text)
        return name, root
    plain = plain_root(path).rstrip("/") if is_url(path) else str(Path(plain_root(path)).resolve())
    return Path(plain).name.removesuffix(".json"), path


def _by_name(folders: Sequence[tuple[tuple[str, str], Folders]]) -> dict[tuple[str, str], Folders]:
    """Return the folders by data set and method; raise if these cannot be the names of folders.

    Names that differ only in case are an error on every system: results are copied between systems, and
    where case makes no difference one would replace the other.
    """
    spelled: dict[str, str] = {}
    taken: set[str] = set()
    for names, _ in folders:
        for what, name in zip(("data set", "method"), names, strict=True):
            if not is_safe_relative_path(name) or "/" in name or name.startswith("."):
                raise InputError(f"{what} name {name!r} cannot name a folder; give it another")
        result = "/".join(names)
        for path in (names[0], result):
            other = spelled.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
            if other != path or path in taken:
                raise InputError(
                    f"{other!r} and {path!r} would share a folder, here or on Windows and macOS; give "
                    "one of them another name, as NAME=DIR"
                )
        taken.add(result)
    return dict(folders)


_Dataset = TypedDict(
    "_Dataset",
    {"gt": str, "suffix": NotRequired[str], "labels": NotRequired[bool], "class": NotRequired[str]},
)


def _read_file(path: Path) -> Benchmark:
    from sisod.common.files import convert, read_toml

    class _Method(TypedDict):
        pred: str | dict[str, str]
        suffix: NotRequired[str]

    class _File(TypedDict):
        metrics: NotRequired[str | tuple[str, ...]]
        protocol: NotRequired[str]
        datasets: dict[str, dict[str, Any]]
        methods: dict[str, dict[str, Any]]

    content = convert(read_toml(path), _File, name=path.name)
    datasets = {
        name: convert(table, _Dataset, name=f"{path.name}: [{one_line(f'datasets.{name}')}]")
        for name, table in content["datasets"].items()
    }
    methods = {
        name: convert(table, _Method, name=f"{path.name}: [{one_line(f'methods.{name}')}]")
        for name, table in content["methods"].items()
    }
    folders = []
    for dataset, truths in datasets.items():
        for method, maps in methods.items():
            pred = maps["pred"]
            if isinstance(pred, str):
                pred = {dataset: pred.replace("{dataset}", dataset)}
            if unknown := pred.keys() - datasets.keys():
                raise InputError(
                    f"{path.name}: {one_line(f'methods.{method}')} names the data set "
                    f"{short_repr(min(unknown))}; expected {one_line(', '.join(sorted(datasets)))}"
                )
            if dataset in pred:
                pred_root, gt_root = (
                    root if is_url(root) else str(path.parent / root)
                    for root in (pred[dataset], truths["gt"])
                )
                one = Folders(
                    pred_root,
                    gt_root,
                    maps.get("suffix", ""),
                    truths.get("suffix", ""),
                    TruthFormat(truths.get("labels", False)),
                )
                one = one.of_class(truths["class"]) if "class" in truths else one
                folders.append(((dataset, method), one))
    if not folders:
        raise InputError(f"{path.name}: no method has predictions for any data set; give some a pred")
    metrics = content.get("metrics")
    if metrics and ":" in ",".join(metrics):
        raise InputError(
            f"{path.name}: metrics names a function, and a file runs no code; give it with --metrics"
        )
    return Benchmark(_by_name(folders), metrics, content.get("protocol"))
