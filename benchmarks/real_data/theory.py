"""The theory on real masks and maps: rho against rho', and the decomposition of scores into parts.

`python -m benchmarks.real_data.theory` reads the data sets below `SISOD_DATA`, prints two tables and
writes `theory.json`, `rho.md` and `decomposition.md` to `benchmarks/results`.
"""

import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

import sisod
from benchmarks.timing import RESULTS, markdown, progress
from sisod.common.output import write_atomically
from sisod.data.pairs import files_by_name
from sisod.data.truths import read_prediction, read_truth
from sisod.paper.theory import Shares, decompose, decompose_auc, salient_shares

DATA_SETS = ("DUTS-TR", "DUTS-TE", "ECSSD", "MSOD")
_LEVEL = sisod.PROTOCOLS["default"].gt_level
Numbers = dict[str, float]


def main() -> None:
    """Compute the numbers, print the tables and write them."""
    root = os.environ.get("SISOD_DATA")
    if not root:
        sys.exit(f"SISOD_DATA is unset; set it to the folder that holds {', '.join(DATA_SETS)}")
    numbers: dict[str, dict[str, Numbers]] = {"rho": {}}
    for name in DATA_SETS:
        progress(f"masks of {name}")
        numbers["rho"][name] = measure_rho(Path(root) / name / "mask")
    progress("maps of MSOD")
    numbers["decomposition"] = {"MSOD": measure_decomposition(Path(root) / "MSOD")}
    tables = {
        "rho": rho_table(numbers["rho"]),
        "decomposition": parts_table(numbers["decomposition"]["MSOD"]),
    }
    print("\n\n".join(tables.values()))
    write_atomically(RESULTS / "theory.json", (json.dumps(numbers, indent=2) + "\n").encode())
    for name, table in tables.items():
        write_atomically(RESULTS / f"{name}.md", (table + "\n").encode())


def measure_rho(masks: Path) -> Numbers:
    """Return rho, rho' and the ratio of the bounds, over the masks that have an object."""
    return summary_of_shares(_shares(masks))


def summary_of_shares(shares: Iterable[Shares]) -> Numbers:
    """Return the least shares, their ratio, and how many images violate the paper's inequality."""
    images = list(shares)
    rho = min(image.left for image in images)
    rho_image = min(image.right for image in images)
    return {
        "images": len(images),
        "frames": sum(len(image.frames) for image in images),
        "rho": rho,
        "rho_image": rho_image,
        "sharper": rho / rho_image,
        # the proof needs only the mean over the frames of an image
        "sharper_mean": 4 / rho_image / max(image.dice_lipschitz for image in images),
        "median_sharper": float(np.median([image.left / image.right for image in images])),
        "fails": sum(not image.holds for image in images),
        "fails_strictly": sum(image.left < image.right for image in images),
    }


def measure_decomposition(data_set: Path) -> Numbers:
    """Return how closely scores of the published maps equal the sums over their parts."""
    return measure_frames(data_set) | measure_regions(data_set)


def measure_frames(data_set: Path) -> Numbers:
    """Return both sides of the decomposition into the paper's parts, frames and background."""
    rows = [_by_frames(pred, mask) for pred, mask in _pairs(data_set)]
    column = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    several = column["objects"] > 1
    return {
        "images": len(rows),
        "overlapping": float(column["overlaps"].sum()),
        "mae_disjoint": float(column["mae"][column["overlaps"] == 0].max()),
        "mae_frames": float(column["mae"].max()),
        "f_frames": float(column["f"].max()),
        "auc": float(column["auc"].mean()),
        "auc_frames": float(column["auc_frames"].mean()),
        "pairs_within": float(column["pairs_within"].mean()),
        "least_share": float(np.median(column["least_share"][several])),
        "si_weight": float(np.median(column["si_weight"][several])),
    }


def measure_regions(data_set: Path, *, every: int = 1) -> Numbers:
    """Return the greatest difference of the two sides for Voronoi regions, on every n-th image."""
    rows = [_by_regions(pred, mask) for pred, mask in itertools.islice(_pairs(data_set), 0, None, every)]
    return {key: max(row[key] for row in rows) for key in rows[0]}


def rho_table(datasets: Mapping[str, Numbers]) -> str:
    """Return the table of rho in `docs/theory.md`."""
    head = ("data set", "images", "frames", "rho", "rho'", "rho / rho'", "the same, mean over frames",
            "median of images", "images with rho <= rho'")  # fmt: skip
    rows = [
        [
            name,
            f"{row['images']:.0f}",
            f"{row['frames']:.0f}",
            f"{row['rho']:.4f}",
            f"{row['rho_image']:.5f}",
            f"{row['sharper']:.1f}",
            f"{row['sharper_mean']:.1f}",
            f"{row['median_sharper']:.1f}",
            f"{row['fails']:.0f}",
        ]
        for name, row in datasets.items()
    ]
    return markdown(head, rows)


def parts_table(numbers: Numbers) -> str:
    """Return the table of the decomposition in `docs/theory.md`."""
    rows = [
        ("images", f"{numbers['images']:.0f}"),
        ("images in which frames overlap", f"{numbers['overlapping']:.0f}"),
        ("MAE, greatest difference of the two sides: Voronoi regions", _rounded(numbers["mae_regions"])),
        ("the same: frames and background, no overlap", _rounded(numbers["mae_disjoint"])),
        ("the same: frames and background, all images", _rounded(numbers["mae_frames"])),
        ("F, greatest difference: Voronoi regions", _rounded(numbers["f_regions"])),
        ("the same: frames and background, all images", _rounded(numbers["f_frames"])),
        ("AUC, mean over images", f"{numbers['auc']:.4f}"),
        ("the paper's sum over frames instead, mean", f"{numbers['auc_frames']:.4f}"),
        ("share of pairs that it keeps, mean", f"{numbers['pairs_within']:.4f}"),
        ("sum over all pairs of regions, greatest difference", _rounded(numbers["auc_regions"])),
        ("share of the smallest frame in MAE, median", f"{numbers['least_share']:.4f}"),
        ("weight of a frame in SI-MAE, median", f"{numbers['si_weight']:.4f}"),
    ]
    return markdown(("what", "figure"), rows)


def _rounded(difference: float) -> str:
    """Return a difference as text; rounding errors, which differ between machines, count as 0."""
    return "0 but for rounding" if difference < 1e-12 else f"{difference:.4f}"


def _shares(masks: Path) -> Iterable[Shares]:
    for file in files_by_name(masks).values():
        mask = read_truth(masks, file.path).mask(level=_LEVEL)
        if mask.any():
            yield salient_shares(mask)


def _pairs(data_set: Path) -> Iterator[tuple[NDArray[np.generic], NDArray[np.bool_]]]:
    masks, maps = (files_by_name(data_set / folder) for folder in ("mask", "prediction"))
    for name, file in masks.items():
        mask = read_truth(data_set / "mask", file.path).mask(level=_LEVEL)
        published = read_prediction(data_set / "prediction", maps[name].path)
        # to the mask's size, as `sisod evaluate` does
        yield np.asarray(cv2.resize(published, mask.shape[::-1], interpolation=cv2.INTER_LINEAR)), mask


def _by_frames(pred: NDArray[np.generic], mask: NDArray[np.bool_]) -> Numbers:
    mae, f = (decompose(pred, mask, metric=metric) for metric in ("mae", "f_binary"))
    auc = decompose_auc(pred, mask)
    return {
        "objects": len(mae.shares) - 1,
        "overlaps": float(mae.shares.sum() > 1 + 1e-9),
        "mae": abs(mae.left - mae.right),
        "f": abs(f.left - f.right),
        "auc": auc.left,
        "auc_frames": auc.right,
        "pairs_within": auc.within,
        "least_share": float(mae.shares[:-1].min()),
        "si_weight": float(mae.si_weights[0]),
    }


def _by_regions(pred: NDArray[np.generic], mask: NDArray[np.bool_]) -> Numbers:
    regions = sisod.partition(mask, kind="voronoi")
    mae, f = (decompose(pred, mask, metric=metric, partition=regions) for metric in ("mae", "f_binary"))
    auc = decompose_auc(pred, mask, partition=regions)
    return {
        "mae_regions": abs(mae.left - mae.right),
        "f_regions": abs(f.left - f.right),
        "auc_regions": abs(auc.left - auc.whole),
    }


if __name__ == "__main__":
    main()
