"""Saved results below folders, by data set and method, and the image files they were scored from."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import InputError, InputWarning, pluralize, shorten_list
from sisod.data.containers import is_coco
from sisod.data.images import read_colour
from sisod.data.pairs import find_photographs
from sisod.data.storage import StoredFile, is_remote, list_files
from sisod.data.truths import TruthFormat, read_prediction, read_truth
from sisod.evaluation.result import Evaluation
from sisod.scoring.arrays import Map, grey_table, unit_values

Picture = NDArray[np.uint8]
PREDICTIONS, TRUTHS = "predictions", "ground_truths"  # as the record of a result calls their folders


@dataclass(frozen=True, eq=False)
class Result:
    """One method on one data set, as it was saved."""

    dataset: str
    method: str
    evaluation: Evaluation


def load_results(paths: Sequence[Path | str]) -> list[Result]:
    """Load every result in or below the given folders, named after DIR/<dataset>/<method>.

    Args:
        paths: folders that `sisod evaluate` wrote, or folders above them.

    Example:
        >>> import tempfile
        >>> import sisod
        >>> root, evaluator = tempfile.mkdtemp(), sisod.Evaluator(metrics="mae")
        >>> evaluator.update(np.eye(4, dtype=bool), np.eye(4, dtype=bool), name="a")
        >>> evaluator.result().save(f"{root}/MSOD/EDN")
        >>> [(result.dataset, result.method) for result in load_results([root])]
        [('MSOD', 'EDN')]
    """
    return [Result(*name, Evaluation.load(folder)) for name, folder in find_results(paths).items()]


def find_results(paths: Sequence[Path | str]) -> dict[tuple[str, str], Path]:
    """Return the folder of every result in or below the given folders, by data set and method.

    Args:
        paths: folders that `sisod evaluate` wrote, or folders above them.

    Raises:
        InputError: there is no result, or two have the same data set and method.
    """
    by_name: dict[tuple[str, str], Path] = {}
    for path in paths:
        for folder in _result_folders(Path(path)):
            key = (folder.parent.name, folder.name)
            if by_name.setdefault(key, folder) != folder:
                raise InputError(
                    f"two results are called {key[1]!r} on {key[0]!r}: {str(by_name[key])!r} and "
                    f"{str(folder)!r}; rename one of the folders"
                )
    return by_name


def datasets_of(results: Iterable[Result]) -> list[str]:
    """Return the names of the data sets, in the order of the results."""
    return list(dict.fromkeys(result.dataset for result in results))


def methods_of(results: Iterable[Result]) -> list[str]:
    """Return the names of the methods, in the order of the results."""
    return list(dict.fromkeys(result.method for result in results))


def require_metrics(results: Sequence[tuple[str, str, Collection[str]]], keys: Sequence[str]) -> None:
    """Raise if some results do not have metrics, and say which.

    Args:
        results: data set and method ("" if unknown), and the metrics of each.
        keys: the metrics that all of them must have.

    Example:
        >>> require_metrics(  # doctest: +ELLIPSIS
        ...     [("MSOD", "EDN", ["mae"]), ("MSOD", "ICON", ["mae", "s"])], ["mae", "s"]
        ... )
        Traceback (most recent call last):
        sisod.common.exceptions.InputError: 1 of 2 results have no s (MSOD/EDN); evaluate again ...
    """
    missing = [key for key in keys if any(key not in stored for *_, stored in results)]
    if missing:
        without = [result for result in results if any(key not in result[2] for key in missing)]
        names = ["/".join(filter(None, result[:2])) or "the result" for result in without]
        raise InputError(
            f"{len(without)} of {len(results)} results have no {', '.join(missing)} "
            f"({shorten_list(names)}); evaluate again as before, with --metrics {','.join(missing)}, "
            "which adds what is missing"
        )


def _result_folders(path: Path) -> list[Path]:
    root = path.resolve()
    folders = sorted(
        file.parent
        for file in root.rglob("summary.json")
        # an unfinished run is kept under a hidden name
        if (file.parent / "run.json").is_file() and "/." not in f"/{file.relative_to(root).as_posix()}"
    )
    if not folders:
        raise InputError(
            f"no result in or below {str(path)!r}; expected folders that 'sisod evaluate' wrote"
        )
    return [root] if root in folders else folders


def check_photographs(results: Sequence[Result], image_roots: Mapping[str, Path]) -> None:
    """Raise if a folder has no photograph of its data set; warn of images without one.

    Args:
        results: whose images are looked for.
        image_roots: data set -> folder of its photographs.
    """
    for dataset, root in image_roots.items():
        tables = [result.evaluation.images for result in results if result.dataset == dataset]
        names = sorted({name for table in tables for name in table["image"].to_list()})
        photographs = find_photographs(root)
        missing = [name for name in names if name not in photographs]
        found = (
            f"{len(names) - len(missing)} of {len(names)} photographs of {dataset!r} found in "
            f"{str(root)!r}"
        )
        if missing and len(missing) == len(names):
            raise InputError(
                f"{found}: it has {shorten_list(sorted(photographs), most=2) or 'no images'} where "
                f"{shorten_list(names, most=2)} were expected; give the photographs of this data set"
            )
        if missing:
            warnings.warn(f"{found} (not {shorten_list(missing)})", InputWarning, stacklevel=2)


@dataclass(frozen=True, eq=False)
class PixelFiles:
    """The files that one result was scored from, and the photographs if their folder is known.

    A file that has changed since it was scored is not read; `trouble` says so.

    Attributes:
        evaluation: the result, whose record names the folders.
        image_root: folder of the photographs, named like the ground truths.
        fetch: whether files may be read from URLs of other machines that the record names.
    """

    evaluation: Evaluation
    image_root: Path | None = None
    fetch: bool = False
    # what is wrong with a folder is one fact, reported once; not an exception for every picture
    _reasons: dict[str, list[str]] = field(default_factory=lambda: {PREDICTIONS: [], TRUTHS: []})

    @property
    def trouble(self) -> list[str]:
        """Problems so far, one sentence each."""
        return [reason for reasons in self._reasons.values() for reason in reasons]

    def why(self, what: str) -> str:
        """Say why files of a kind, `PREDICTIONS` or `TRUTHS`, are not read."""
        return "; ".join(self._reasons[what])

    def image(self, name: str) -> Picture | None:
        """Return the photograph of an image (BGR), or None if there is none."""
        file = self._images.get(name)
        if file is None or self.image_root is None:
            return None
        return read_colour(self.image_root, file.path)

    def mask(self, name: str) -> NDArray[np.bool_] | None:
        """Return the ground truth, or None if its file is gone or has changed."""
        path = self._files[TRUTHS].get(name)
        if path is None:
            return None
        root = self.evaluation.run["inputs"][TRUTHS]
        return read_truth(root, path, self._meaning).mask(level=self.evaluation.protocol.gt_level)

    def prediction(self, name: str, shape: tuple[int, int]) -> Picture | None:
        """Return the map as it was scored, stretched, in grey values.

        Args:
            name: of the image.
            shape: of the image, to which the map is resized.
        """
        path = self._files[PREDICTIONS].get(name)
        if path is None:
            return None
        inputs = self.evaluation.run["inputs"]
        pred = read_prediction(
            inputs[PREDICTIONS],
            path,
            gt_root=inputs.get(TRUTHS, ""),  # of a result in memory it may be unknown
            meaning=self._meaning,
            class_maps=bool(inputs.get("class_maps")),
        )
        return grey(pred, shape, self.evaluation)

    @cached_property
    def _meaning(self) -> TruthFormat:
        inputs = self.evaluation.run["inputs"]
        return TruthFormat(bool(inputs.get("labels")), str(inputs.get("class", "")))

    @cached_property
    def _images(self) -> dict[str, StoredFile]:
        return {} if self.image_root is None else find_photographs(self.image_root)

    @cached_property
    def _files(self) -> dict[str, dict[str, str]]:
        """Kind of files -> image -> path, for the files that are unchanged since they were scored."""
        return {
            PREDICTIONS: self._unchanged(PREDICTIONS, "prediction"),
            TRUTHS: self._unchanged(TRUTHS, "ground_truth"),
        }

    def _unchanged(self, what: str, column: str) -> dict[str, str]:
        from sisod.data.containers.coco import list_results

        inputs, files = self.evaluation.run.get("inputs", {}), self.evaluation.files
        root, reasons = inputs.get(what), self._reasons[what]
        if root is None or files is None:
            reasons.append("a result made in memory does not say where its maps are")
            return {}
        if is_remote(root) and not self.fetch:
            reasons.append(f"{root!r} is not asked for pictures; use --fetch to allow that")
            return {}
        is_result = what == PREDICTIONS and is_coco(root)
        try:
            found = list_results(root, inputs[TRUTHS]) if is_result else list_files(root)
        except InputError as error:
            reasons.append(str(error))
            return {}
        stamps = {file.path: file.stamp for file in found}
        unchanged: dict[str, str] = {}
        lost: dict[str, list[str]] = {"changed": [], "gone": []}
        for name, path, stamp in files.select("image", column, f"{column}_stamp").iter_rows():
            if stamps.get(path) == stamp:
                unchanged[name] = path
            else:
                lost["changed" if path in stamps else "gone"].append(name)
        noun = "map" if what == PREDICTIONS else "ground truth"
        for state, images in lost.items():
            if images:
                reasons.append(
                    f"{pluralize(len(images), noun)} {state} since the evaluation "
                    f"({shorten_list(images)}), in {root!r}; evaluate again to see more"
                )
        return unchanged


def grey(pred: Map, shape: tuple[int, int], evaluation: Evaluation) -> Picture:
    """Return a map as 8-bit grey values of a shape, stretched as the protocol says.

    Args:
        pred: the map.
        shape: height and width.
        evaluation: the result, whose protocol says whether maps are stretched.
    """
    if pred.shape != shape:
        pred = np.asarray(cv2.resize(pred, shape[::-1], interpolation=cv2.INTER_LINEAR))
    normalize = evaluation.protocol.normalize
    if pred.dtype == np.uint8:  # the same values as below, computed once for each grey value
        table = grey_table(int(pred.min()), int(pred.max()), normalize=normalize)
        return np.asarray(cv2.LUT(pred, np.rint(255 * table).astype(np.uint8)), dtype=np.uint8)
    return np.rint(255 * unit_values(pred, normalize=normalize)).astype(np.uint8)
