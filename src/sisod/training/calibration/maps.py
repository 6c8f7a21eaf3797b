"""Maps of any origin -> calibrated maps, in 16 bits: fitted on some maps, applied to these or others."""

import json
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common import folders
from sisod.common.errors import InputError, InputWarning, UsageError, counted, shorten_list
from sisod.common.folders import is_url
from sisod.common.output import followed, output_path, write_json, write_png, write_run
from sisod.common.progress import progress_bar
from sisod.data.containers import split_root
from sisod.data.images import read_map, read_mask
from sisod.data.pairs import Pair, files_by_name, pair_files
from sisod.evaluation.driver import stored_calibration
from sisod.networks.calibration import Calibration
from sisod.scoring.arrays import Map, unit_values
from sisod.training.calibration.fit import Objective
from sisod.training.calibration.report import (
    FittedCalibration,
    Named,
    check_limit,
    check_number_of_images,
    fit_images,
)
from sisod.training.calibration.runs import CALIBRATION_FILE, DEFAULT_LIMIT, KIND
from sisod.training.data import LEVEL, choose_by_name

_WHITE = 65535


@dataclass(frozen=True)
class CalibratedMaps:
    """A folder of calibrated maps.

    Attributes:
        out: the folder.
        calibration: that was applied.
        n_maps: how many maps it holds.
        n_levels: how many of the 256 levels of 8-bit maps stay different from each other.
        fitted: the fit; None if a calibration was given.
    """

    out: Path
    calibration: Calibration
    n_maps: int
    n_levels: int
    fitted: FittedCalibration | None = None


def calibrate_maps(
    maps: str | Path,
    gt: str | Path,
    out: str | Path,
    *,
    objective: Objective = "bce",
    limit: int | None = DEFAULT_LIMIT,
    pred_suffix: str = "",
    gt_suffix: str = "",
    overwrite: bool = False,
) -> CalibratedMaps:
    """Fit a calibration on maps that have a ground truth, and write all maps calibrated.

    The ground truths must not be those that the maps are then tested on. To calibrate maps of test
    images, fit on maps of other images and give `apply_to_maps` the result.

    Args:
        maps: folder (or URL) of maps, as for `sisod.evaluate`.
        gt: folder (or URL) of ground truths; names decide the pairs.
        out: folder for the calibrated maps, 16-bit PNG.
        objective: `"bce"` or `"mae"`.
        limit: most images to fit on, chosen by their names alone; None for all.
        pred_suffix: as for `sisod.evaluate`.
        gt_suffix: as for `sisod.evaluate`.
        overwrite: replace an earlier result of `sisod calibrate`.
    """
    check_limit(limit)
    _check_folders(Path(out), maps, gt, overwrite=overwrite)
    pairing = pair_files(maps, gt, pred_suffix=pred_suffix, gt_suffix=gt_suffix, allow_missing=True)
    if missing := pairing.missing:
        warnings.warn(
            f"no map in {str(maps)!r} for {counted(len(missing), 'ground truth')} "
            f"({shorten_list(list(missing))}); fitted without them",
            InputWarning,
            stacklevel=2,
        )
    chosen = choose_by_name(pairing.pairs, limit)
    check_number_of_images(len(chosen))
    fitted = fit_images(_read_pairs(str(maps), str(gt), chosen), objective)
    return _write_maps(fitted.calibration, maps, Path(out), overwrite=overwrite, fitted=fitted)


def apply_to_maps(
    calibration: Calibration, maps: str | Path, out: str | Path, *, overwrite: bool = False
) -> CalibratedMaps:
    """Write all maps of a folder calibrated by two numbers that were fitted on other images.

    Args:
        calibration: as `read_calibration_file` returns it.
        maps: folder (or URL) of maps.
        out: folder for the calibrated maps, 16-bit PNG.
        overwrite: replace an earlier result of `sisod calibrate`.
    """
    _check_folders(Path(out), maps, overwrite=overwrite)
    return _write_maps(calibration, maps, Path(out), overwrite=overwrite)


def read_calibration_file(path: str | Path) -> Calibration:
    """Return the calibration of a calibration.json, which `sisod calibrate` has written."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return Calibration(content["temperature"], content["shift"])
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(
            f"{str(path)!r} is not a {CALIBRATION_FILE} of sisod calibrate; expected JSON with "
            "temperature and shift"
        ) from error


def map_logits(array: Map) -> NDArray[np.float64]:
    """Return the logits of a map; black and white are taken as half a level away from 0 and 1.

    Example:
        >>> map_logits(np.array([[0, 51, 255]], dtype=np.uint8)).round(3).tolist()
        [[-6.232, -1.386, 6.232]]
    """
    half_level = 0.5 / (255 if array.dtype == np.uint8 else _WHITE)
    p = np.clip(unit_values(array, normalize="none"), half_level, 1 - half_level)
    return np.asarray(np.log(p) - np.log1p(-p), dtype=np.float64)


def calibrated_map(array: Map, calibration: Calibration) -> NDArray[np.uint16]:
    """Return a map calibrated, in 16 bits.

    Example:
        >>> grey = np.array([[0, 51, 255]], dtype=np.uint8)
        >>> (calibrated_map(grey, Calibration(shift=-1.0)) / 65535).round(3).tolist()
        [[0.001, 0.084, 0.995]]
    """
    if array.dtype == np.uint8:  # 256 logits instead of one for each pixel
        levels = np.arange(256, dtype=np.uint8)[None]
        return np.asarray(_quantised(map_logits(levels), calibration)[0][array])
    return _quantised(map_logits(array), calibration)


def count_levels(calibration: Calibration) -> int:
    """Return how many of the 256 levels of an 8-bit map stay different from each other in 16 bits.

    Example:
        >>> count_levels(Calibration(shift=-0.5)), count_levels(Calibration(temperature=0.1))
        (256, 124)
    """
    levels = np.arange(256, dtype=np.uint8)[None]
    return len(np.unique(calibrated_map(levels, calibration)))


def _quantised(logits: NDArray[np.float64], calibration: Calibration) -> NDArray[np.uint16]:
    probs = 0.5 * (1 + np.tanh(0.5 * calibration.apply(logits)))
    return np.asarray(np.rint(_WHITE * probs), dtype=np.uint16)


def _read_pairs(maps: str, gt: str, pairs: Sequence[Pair]) -> Iterator[Named]:
    """Yield name, logits and mask of every pair; a map of another size is resized, as by evaluate."""
    with progress_bar("calibrating", len(pairs)) as advance:
        for pair in pairs:
            mask = read_mask(gt, pair.gt.path, level=LEVEL)
            array = read_map(maps, pair.pred.path)
            if array.shape != mask.shape:
                array = np.asarray(cv2.resize(array, mask.shape[::-1]))
            yield pair.name, map_logits(array), mask
            advance(1)


def _check_folders(
    out: Path, maps: str | Path, gt: str | Path | None = None, *, overwrite: bool
) -> None:
    """Refuse calibrated maps, and an output folder that may not be written, before anything slow."""
    for content, root in (("maps", maps), ("ground truths", gt)):
        if root is None or is_url(root):
            continue
        if out.resolve().is_relative_to(Path(split_root(str(root))[0]).resolve()):
            raise UsageError(
                f"the calibrated maps would go into the folder of {content}, {str(root)!r}; give a "
                "folder outside"
            )
    if stored := stored_calibration(str(maps)):
        raise InputError(
            f"the maps in {str(maps)!r} are calibrated already ({Calibration(**stored)}); give the maps "
            "as they were predicted"
        )
    folders.check_free(followed(out), kind=KIND, overwrite=overwrite, inputs=(maps, gt))


def _write_maps(
    calibration: Calibration,
    maps: str | Path,
    out: Path,
    *,
    overwrite: bool,
    fitted: FittedCalibration | None = None,
) -> CalibratedMaps:
    """Write all maps, or none."""
    files = files_by_name(maps)
    if not files:
        raise InputError(f"{str(maps)!r} has no image files; expected maps, as png or the like")
    with (
        folders.write_folder(out, kind=KIND, overwrite=overwrite, inputs=(maps,)) as inside,
        progress_bar("writing", len(files)) as advance,
        ThreadPoolExecutor() as pool,
    ):

        def write(item: tuple[str, Any]) -> None:
            array = read_map(maps, item[1].path)
            write_png(output_path(inside, item[0], ".png"), calibrated_map(array, calibration))

        try:
            for _ in pool.map(write, files.items()):
                advance(1)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        record = calibration.to_json() if fitted is None else fitted.to_json()
        write_json(inside / CALIBRATION_FILE, record)
        source = str(maps) if is_url(maps) else str(Path(maps).resolve())
        content = {"command": "calibrate", "maps": source, "calibration": calibration.to_json()}
        write_run(inside, {**content, "n_maps": len(files)})
    return CalibratedMaps(out, calibration, len(files), count_levels(calibration), fitted)
