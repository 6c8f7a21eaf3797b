"""What `sisod evaluate` was asked for: folders on the command line, or a TOML file."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from sisod.benchmark_file import BenchmarkFile, Cell, read_benchmark_file
from sisod.errors import InputError

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
        found = read_benchmark_file(Path(paths[0]))
    elif len(paths) < 2:
        raise InputError(
            "expected folders of predictions and then the folder of ground truths, or one TOML file; "
            f"got {paths[0]!r} only"
        )
    else:
        name = dataset or dataset_name(paths[-1])
        cells = [
            Cell(name, method, root, paths[-1], pred_suffix, gt_suffix)
            for method, root in (_named(path) for path in paths[:-1])
        ]
        found = BenchmarkFile(tuple(cells), None, None)
    _check_names(found.cells)
    return found


def dataset_name(gt_root: str) -> str:
    """Name a data set after its folder, or the one above if that is only called mask or the like."""
    parts = [part for part in PurePosixPath(gt_root.split("://")[-1]).parts if part not in ("/", "..")]
    if not parts:
        parts = list(Path(gt_root).resolve().parts)
    if len(parts) > 1 and parts[-1].lower() in _GENERIC:
        return parts[-2]
    return parts[-1]


def _named(path: str) -> tuple[str, str]:
    name, equals, root = path.partition("=")
    if equals and name and "/" not in name and not Path(path).exists():
        return name, root
    return PurePosixPath(path.split("://")[-1]).name or path, path


def _check_names(cells: Sequence[Cell]) -> None:
    seen = set()
    for cell in cells:
        for what, name in (("data set", cell.dataset), ("method", cell.method)):
            if name in ("", ".", "..") or "/" in name or "\0" in name or name.startswith("."):
                raise InputError(f"{what} name {name!r} cannot name a folder; give another, as NAME=DIR")
        if (cell.dataset, cell.method) in seen:
            raise InputError(f"two predictions are called {cell.method!r}; give them names, as NAME=DIR")
        seen.add((cell.dataset, cell.method))
