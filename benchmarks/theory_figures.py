"""The theory on real masks and maps: rho against rho', and what scores are made of.

`python benchmarks/theory_figures.py` reads the data sets below `SISOD_DATA`, prints two tables and writes
`theory.json`, `rho.md` and `decomposition.md` beside itself.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import cv2
import numpy as np
from timing import markdown, progress

import sisod
from sisod.files import write_whole
from sisod.images import read_map, read_mask
from sisod.pairs import files_by_name
from sisod.theory import Shares, decompose, decompose_auc, salient_shares

_HERE = Path(__file__).parent
DATA_SETS = ("DUTS-TR", "DUTS-TE", "ECSSD", "MSOD")
_LEVEL = sisod.PROTOCOLS["default"].gt_level
Numbers = dict[str, float]


def main() -> None:
    """Measure, print the tables and write them."""
    root = os.environ.get("SISOD_DATA")
    if not root:
        sys.exit("SISOD_DATA is unset: the figures are those of real masks, name their folder with it")
    found: dict[str, dict[str, Numbers]] = {"rho": {}}
    for name in DATA_SETS:
        progress(f"masks of {name}")
        found["rho"][name] = measure_rho(Path(root) / name / "mask")
    progress("maps of MSOD")
    found["decomposition"] = {"MSOD": measure_decomposition(Path(root) / "MSOD")}
    tables = {
        "rho": rho_table(found["rho"]),
        "decomposition": parts_table(found["decomposition"]["MSOD"]),
    }
    print("\n\n".join(tables.values()))
    write_whole(_HERE / "theory.json", (json.dumps(found, indent=2) + "\n").encode())
    for name, table in tables.items():
        write_whole(_HERE / f"{name}.md", (table + "\n").encode())


def measure_rho(masks: Path) -> Numbers:
    """Return rho, rho' and what they make of the bound, over the masks that have an object."""
    return summary_of_shares(_shares(masks))


def summary_of_shares(shares: Iterable[Shares]) -> Numbers:
    """Return the least shares, their ratio, and on how many images the paper's inequality fails."""
    all_shares = list(shares)
    rho = min(one.left for one in all_shares)
    rho_image = min(one.right for one in all_shares)
    return {
        "images": len(all_shares),
        "frames": sum(len(one.frames) for one in all_shares),
        "rho": rho,
        "rho_image": rho_image,
        "sharper": rho / rho_image,
        # what the proof needs of an image is the mean over its frames
        "sharper_mean": 4 / rho_image / max(one.dice_lipschitz for one in all_shares),
        "median_sharper": float(np.median([one.left / one.right for one in all_shares])),
        "fails": sum(not one.holds for one in all_shares),
        "fails_strictly": sum(one.left < one.right for one in all_shares),
    }


def measure_decomposition(data_set: Path) -> Numbers:
    """Return how well scores of the published maps are the sums of their parts'."""
    masks, maps = (files_by_name(data_set / folder) for folder in ("mask", "prediction"))
    rows = [_parts_of(data_set, masks[name].path, maps[name].path) for name in masks]
    column = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    several = column["objects"] > 1
    return {
        "images": len(rows),
        "overlapping": float(column["overlaps"].sum()),
        "mae_regions": float(np.abs(column["mae_regions"]).max()),
        "mae_disjoint": float(np.abs(column["mae_frames"][column["overlaps"] == 0]).max()),
        "mae_frames": float(np.abs(column["mae_frames"]).max()),
        "f_regions": float(np.abs(column["f_regions"]).max()),
        "f_frames": float(np.abs(column["f_frames"]).max()),
        "auc": float(column["auc"].mean()),
        "auc_frames": float(column["auc_frames"].mean()),
        "auc_regions_all": float(np.abs(column["auc_regions_all"]).max()),
        "pairs_within": float(column["pairs_within"].mean()),
        "least_share": float(np.median(column["least_share"][several])),
        "least_si_weight": float(np.median(column["least_si_weight"][several])),
    }


def rho_table(found: Mapping[str, Numbers]) -> str:
    """Return the table of `docs/theory.md`."""
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
        for name, row in found.items()
    ]
    return markdown(head, rows)


def parts_table(found: Numbers) -> str:
    """Return the second table of `docs/theory.md`."""
    rows = [
        ("images", f"{found['images']:.0f}"),
        ("images in which frames overlap", f"{found['overlapping']:.0f}"),
        ("MAE, greatest difference of the two sides: Voronoi regions", _rounded(found["mae_regions"])),
        ("the same: frames and background, no overlap", _rounded(found["mae_disjoint"])),
        ("the same: frames and background, all images", _rounded(found["mae_frames"])),
        ("F, greatest difference: Voronoi regions", _rounded(found["f_regions"])),
        ("the same: frames and background, all images", _rounded(found["f_frames"])),
        ("AUC, mean over images", f"{found['auc']:.4f}"),
        ("the paper's sum over frames instead, mean", f"{found['auc_frames']:.4f}"),
        ("share of pairs that it keeps, mean", f"{found['pairs_within']:.4f}"),
        ("sum over all pairs of regions, greatest difference", _rounded(found["auc_regions_all"])),
        ("share of the smallest frame in MAE, median", f"{found['least_share']:.4f}"),
        ("weight of a frame in SI-MAE, median", f"{found['least_si_weight']:.4f}"),
    ]
    return markdown(("what", "figure"), rows)


def _rounded(difference: float) -> str:
    """A difference as printed; what is rounding is called 0, machines differ in its last digits."""
    return "0 but for rounding" if difference < 1e-12 else f"{difference:.4f}"


def _shares(masks: Path) -> Iterable[Shares]:
    for file in files_by_name(masks).values():
        mask = read_mask(masks, file.path, level=_LEVEL)
        if mask.any():
            yield salient_shares(mask)


def _parts_of(data_set: Path, mask_path: str, map_path: str) -> Numbers:
    mask = read_mask(data_set / "mask", mask_path, level=_LEVEL)
    published = read_map(data_set / "prediction", map_path)
    # to the mask's size, as `sisod evaluate` does
    pred = np.asarray(cv2.resize(published, mask.shape[::-1], interpolation=cv2.INTER_LINEAR))
    regions = sisod.partition(mask, kind="voronoi")
    by_frame, by_region = decompose(pred, mask), decompose(pred, mask, partition=regions)
    f_frame = decompose(pred, mask, metric="f_binary")
    f_region = decompose(pred, mask, metric="f_binary", partition=regions)
    auc, auc_region = decompose_auc(pred, mask), decompose_auc(pred, mask, partition=regions)
    return {
        "objects": len(by_frame.shares) - 1,
        "overlaps": float(by_frame.shares.sum() > 1 + 1e-9),
        "mae_frames": by_frame.left - by_frame.right,
        "mae_regions": by_region.left - by_region.right,
        "f_frames": f_frame.left - f_frame.right,
        "f_regions": f_region.left - f_region.right,
        "auc": auc.left,
        "auc_frames": auc.right,
        "auc_regions_all": auc_region.left - auc_region.whole,
        "pairs_within": auc.within,
        "least_share": float(by_frame.shares[:-1].min()),
        "least_si_weight": float(by_frame.si_weights[0]),
    }


if __name__ == "__main__":
    main()
