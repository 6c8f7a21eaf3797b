"""Saved results found below folders, by data set and method, and the pixels they were scored from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.arrays import Map, unit_values
from sisod.errors import InputError
from sisod.evaluation import Evaluation
from sisod.images import read_colour, read_map, read_mask
from sisod.pairs import files_by_name
from sisod.storage import StoredFile

Picture = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Result:
    """One method on one data set, as it was saved."""

    dataset: str
    method: str
    evaluation: Evaluation


def load_results(paths: Sequence[Path | str]) -> list[Result]:
    """Load every result in or below some folders, named after DIR/<dataset>/<method>."""
    found: dict[tuple[str, str], Path] = {}
    for path in paths:
        for folder in _result_folders(Path(path)):
            key = (folder.parent.name, folder.name)
            if found.setdefault(key, folder) != folder:
                raise InputError(
                    f"two results are called {key[1]!r} on {key[0]!r}: {str(found[key])!r} and "
                    f"{str(folder)!r}; rename one of the folders"
                )
    return [Result(*key, Evaluation.load(folder)) for key, folder in found.items()]


def datasets_of(results: Iterable[Result]) -> list[str]:
    """Return the names of the data sets, in the order they come."""
    return list(dict.fromkeys(result.dataset for result in results))


def methods_of(results: Iterable[Result]) -> list[str]:
    """Return the names of the methods, in the order they come."""
    return list(dict.fromkeys(result.method for result in results))


def _result_folders(path: Path) -> list[Path]:
    if not path.is_dir():
        raise InputError(f"{str(path)!r} is not a folder; expected one that 'sisod evaluate' wrote")
    root = path.resolve()
    if _is_result(root):
        return [root]
    folders = sorted(summary.parent for summary in root.rglob("summary.json"))
    shown = [folder for folder in folders if _is_result(folder) and not _is_hidden(folder, root)]
    if not shown:
        raise InputError(
            f"no result in or below {str(path)!r}; expected folders that 'sisod evaluate' wrote"
        )
    return shown


def _is_result(folder: Path) -> bool:
    return (folder / "summary.json").is_file() and (folder / "run.json").is_file()


def _is_hidden(folder: Path, root: Path) -> bool:
    """Say whether a folder is of an unfinished run, which is kept under a hidden name."""
    return any(part.startswith(".") for part in folder.relative_to(root).parts)


@dataclass(frozen=True, eq=False)
class PixelFiles:
    """The files that one result was scored from, and the photographs if their folder is known.

    Attributes:
        evaluation: whose record names the folders, as they were given then.
        image_root: folder of the photographs, named like the ground truths.
    """

    evaluation: Evaluation
    image_root: Path | None = None
    # an unreadable folder is one fact, told once; not an exception for every picture
    trouble: list[str] = field(default_factory=list)

    def image(self, name: str) -> Picture | None:
        """Return the photograph (BGR), or None if there is none."""
        file = self._images.get(name)
        if file is None or self.image_root is None:
            return None
        return read_colour(self.image_root, file.path)

    def mask(self, name: str) -> NDArray[np.bool_] | None:
        """Return the ground truth, or None if its file is gone."""
        file = self._masks.get(name)
        if file is None:
            return None
        root = self.evaluation.run["inputs"]["ground_truths"]
        return read_mask(root, file.path, level=self.evaluation.protocol.gt_level)

    def prediction(self, name: str, shape: tuple[int, int]) -> Picture | None:
        """Return the map as it was scored, stretched and of the image's shape, in grey values."""
        file = self._predictions.get(name)
        if file is None:
            return None
        pred = read_map(self.evaluation.run["inputs"]["predictions"], file.path)
        return grey(pred, shape, self.evaluation)

    @cached_property
    def _images(self) -> dict[str, StoredFile]:
        return {} if self.image_root is None else files_by_name(self.image_root, all_used=False)

    @cached_property
    def _masks(self) -> dict[str, StoredFile]:
        return self._listed("ground_truths", "gt_suffix")

    @cached_property
    def _predictions(self) -> dict[str, StoredFile]:
        return self._listed("predictions", "pred_suffix")

    def _listed(self, what: str, suffix: str) -> dict[str, StoredFile]:
        inputs = self.evaluation.run.get("inputs", {})
        if what not in inputs:
            self.trouble.append("a result made in memory does not say where its maps are")
            return {}
        try:
            return files_by_name(inputs[what], inputs.get(suffix, ""), all_used=False)
        except InputError as error:
            self.trouble.append(str(error))
            return {}


def grey(pred: Map, shape: tuple[int, int], evaluation: Evaluation) -> Picture:
    """Return a map as 8-bit grey values of a shape, stretched as the protocol says."""
    if pred.shape != shape:
        pred = np.asarray(cv2.resize(pred, shape[::-1], interpolation=cv2.INTER_LINEAR))
    values = unit_values(pred, normalize=evaluation.protocol.normalize)
    return np.rint(255 * values).astype(np.uint8)
