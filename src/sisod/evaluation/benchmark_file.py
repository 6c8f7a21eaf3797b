"""A TOML file that names many methods and many data sets.

    metrics = "paper"                        # optional: "paper", "sod", "dis", "all" or a list of keys
    protocol = "default"                     # optional; settings may follow: "default+min_area=0"

    [datasets.MSOD]
    gt = "data/MSOD/mask"

    # optional: labels = true for label maps, class = "3" for one class of class maps or of a COCO file

    [methods.EDN]
    pred = "maps/EDN/{dataset}"              # or a table: pred = { MSOD = "maps/edn-msod" }

Paths are relative to the file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.common.arguments import one_line, short_repr
from sisod.common.exceptions import InputError
from sisod.common.files import read_toml
from sisod.common.output import is_url
from sisod.evaluation.request import Folders, Request, make_request
from sisod.scoring.metrics import METRIC_SETS, MetricChoice
from sisod.scoring.protocols import Protocol

_KNOWN = {
    "": {"metrics", "protocol", "datasets", "methods"},
    "datasets": {"gt", "suffix", "labels", "class"},
    "methods": {"pred", "suffix"},
}


@dataclass(frozen=True)
class Benchmark:
    """Methods and data sets to be scored, and the rules that a file names for them.

    Attributes:
        folders: by the names of data set and method.
        metrics: as `sisod.evaluate` takes them; None if none are named.
        protocol: name of it; None if none is named.
    """

    folders: Mapping[tuple[str, str], Folders]
    metrics: str | tuple[str, ...] | None = None
    protocol: str | None = None

    def requests(
        self,
        *,
        protocol: str | Protocol | None = None,
        metrics: MetricChoice = None,
        names: Sequence[str] | None = None,
        allow_missing: bool = False,
        strict: bool = False,
    ) -> dict[tuple[str, str], Request]:
        """Return a request for each method on each data set; the arguments go before the file."""
        protocol, metrics = protocol or self.protocol or "default", metrics or self.metrics
        return {
            name: make_request(
                folders,
                protocol=protocol,
                metrics=metrics,
                names=names,
                allow_missing=allow_missing,
                strict=strict,
            )
            for name, folders in self.folders.items()
        }


def read_benchmark_file(path: Path) -> Benchmark:
    """Read and check a file of methods and data sets."""
    content = read_toml(path, place=repr(str(path)), name=repr(str(path)))
    _check_keys(path, content, "", "at the top")
    datasets, methods = (_tables(path, content, part) for part in ("datasets", "methods"))
    folders = {
        (dataset, method): _folders(
            Folders(
                pred_root=_relative_to_file(path, pred),
                gt_root=_relative_to_file(path, _text(path, truth, "gt", f"datasets.{dataset}")),
                pred_suffix=_text(path, maps, "suffix", f"methods.{method}", default=""),
                gt_suffix=_text(path, truth, "suffix", f"datasets.{dataset}", default=""),
                labels=_flag(path, truth, "labels", f"datasets.{dataset}"),
            ),
            _category(path, truth, f"datasets.{dataset}"),
        )
        for dataset, truth in datasets.items()
        for method, maps in methods.items()
        if (pred := _pred(path, maps, method, dataset, datasets)) is not None
    }
    if not folders:
        raise InputError(f"{path.name}: no method has predictions for any data set; give some a pred")
    protocol = content.get("protocol")
    if protocol is not None and not isinstance(protocol, str):
        raise InputError(f"{path.name}: protocol must be a name in quotes, got {short_repr(protocol)}")
    return Benchmark(folders, _metrics(path, content.get("metrics")), protocol)


def _folders(roots: Folders, category: str | None) -> Folders:
    return roots if category is None else roots.of_class(category)


def _category(path: Path, table: dict[str, Any], where: str) -> str | None:
    if "class" not in table:
        return None
    category = _text(path, table, "class", where)
    if not category:
        raise InputError(
            f"{path.name}: [{one_line(where)}] class is empty; expected a number of class maps or a "
            "name of a COCO file; leave it out to score all"
        )
    return category


def _flag(path: Path, table: dict[str, Any], key: str, where: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise InputError(
            f"{path.name}: [{one_line(where)}] {key} must be true or false, got {short_repr(value)}"
        )
    return value


def _metrics(path: Path, metrics: Any) -> str | tuple[str, ...] | None:
    if isinstance(metrics, list) and all(isinstance(key, str) for key in metrics):
        metrics = tuple(metrics)
    if metrics is None:
        return None
    if isinstance(metrics, str | tuple):
        if ":" in ",".join(metrics):
            raise InputError(
                f"{path.name}: metrics names a function, and a file runs no code; give it with --metrics"
            )
        return metrics
    sets = ", ".join(f'"{name}"' for name in METRIC_SETS)
    raise InputError(
        f'{path.name}: metrics must be {sets}, "all" or a list of keys, got {short_repr(metrics)}'
    )


def _tables(path: Path, content: dict[str, Any], part: str) -> dict[str, dict[str, Any]]:
    tables = content.get(part)
    if not isinstance(tables, dict) or not tables:
        raise InputError(f"{path.name}: expected at least one [{part}.NAME]")
    for name, table in tables.items():
        title = one_line(f"{part}.{name}")
        if not isinstance(table, dict):
            raise InputError(f"{path.name}: {title} must be a table like [{title}]")
        _check_keys(path, table, part, f"in [{title}]")
    return tables


def _check_keys(path: Path, table: dict[str, Any], part: str, where: str) -> None:
    for key in table:
        if key not in _KNOWN[part]:
            known = ", ".join(sorted(_KNOWN[part]))
            raise InputError(f"{path.name}: unknown key {short_repr(key)} {where}; expected {known}")


def _text(path: Path, table: dict[str, Any], key: str, where: str, *, default: str | None = None) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        got = "which is missing" if value is None else f"got {short_repr(value)}"
        raise InputError(f'{path.name}: [{one_line(where)}] needs {key} = "...", {got}')
    return value


def _pred(
    path: Path, maps: dict[str, Any], method: str, dataset: str, datasets: dict[str, Any]
) -> str | None:
    pred = maps.get("pred")
    if not isinstance(pred, dict):
        return _text(path, maps, "pred", f"methods.{method}").replace("{dataset}", dataset)
    for name in pred:
        if name not in datasets:
            raise InputError(
                f"{path.name}: {one_line(f'methods.{method}')} names the data set {short_repr(name)}; "
                f"expected {one_line(', '.join(sorted(datasets)))}"
            )
    return _text(path, pred, dataset, f"methods.{method}.pred") if dataset in pred else None


def _relative_to_file(path: Path, root: str) -> str:
    return root if is_url(root) else str(path.parent / root)
