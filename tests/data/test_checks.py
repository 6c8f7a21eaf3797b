"""`sisod check`: each mistake is found in maps that are made wrong, and nothing in good ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.command_line import run
from numpy.typing import NDArray

from sisod.data.checks import check_pairs

Picture = NDArray[Any]
N_IMAGES = 24


def make_pair(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Picture, Picture]:
    """A mask of two rectangles, and a soft, noisy map of it."""
    gt = np.zeros(shape, dtype=np.uint8)
    for size in (14, 6):
        y, x = (rng.integers(1, side - size - 1) for side in shape)
        gt[y : y + size, x : x + size + 4] = 255
    soft = cv2.GaussianBlur(gt.astype(np.float32), (0, 0), 1.5) * 0.9
    return np.clip(soft + rng.uniform(0, 20, shape) + 3, 0, 250).astype(np.uint8), gt


def write_set(
    root: Path, change: Callable[[Picture, Picture], tuple[Picture, Picture]], shape: tuple[int, int]
) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    for name in ("maps", "masks"):
        (root / name).mkdir()
    for index in range(N_IMAGES):
        pred, gt = change(*make_pair(rng, shape))
        cv2.imwrite(str(root / "maps" / f"{index}.png"), pred)
        cv2.imwrite(str(root / "masks" / f"{index}.png"), gt)
    return root / "maps", root / "masks"


CHANGES: dict[str, Callable[[Picture, Picture], tuple[Picture, Picture]]] = {
    "": lambda p, g: (p, g),
    "inverted": lambda p, g: (255 - p, g),
    "swapped": lambda p, g: (g, cv2.resize(p, g.shape[::-1]) // 2 + 40),
    "shifted by +1, -1": lambda p, g: (np.roll(p, (1, -1), axis=(0, 1)), g),
    "transposed": lambda p, g: (np.ascontiguousarray(p.T), g),
    "mirrored": lambda p, g: (np.ascontiguousarray(p[:, ::-1]), g),
    "upside down": lambda p, g: (np.ascontiguousarray(p[::-1]), g),
    "resized": lambda p, g: (cv2.resize(p, (32, 32)), g),
    "thresholded": lambda p, g: ((p > 128).astype(np.uint8) * 255, g),
    "stretched": lambda p, g: (cv2.normalize(p, None, 0, 255, cv2.NORM_MINMAX), g),  # type: ignore[call-overload]
    "0/1": lambda p, g: ((p > 128).astype(np.uint8), g),
    "unusable": lambda p, g: (p, g // 255),
    "another data set": lambda p, g: (p, g),
    "grey": lambda p, g: (p, g // 2 + 10),
    "constant": lambda p, g: (p * 0, g),
    "full": lambda p, g: (p // 4 + 150, g),
    "empty mask": lambda p, g: (p, g * 0),
    "full mask": lambda p, g: (p, g * 0 + 255),
}
NOTES = {"resized", "thresholded", "stretched", "grey", "constant", "full", "empty mask", "full mask"}


@pytest.mark.parametrize("problem", [*CHANGES, "transposed square"])
def test_each_mistake_is_found(problem: str, tmp_path: Path) -> None:
    shape = (48, 48) if problem == "transposed square" else (40, 60)
    problem = problem.removesuffix(" square")
    maps, masks = write_set(tmp_path, CHANGES[problem], shape)
    if problem == "another data set":  # maps of other images
        contents = [(maps / f"{index}.png").read_bytes() for index in range(N_IMAGES)]
        for index in range(N_IMAGES):
            (maps / f"{index}.png").write_bytes(contents[(index + 7) % N_IMAGES])
    findings, n_pairs = check_pairs(maps, masks)
    assert n_pairs == N_IMAGES
    also = {"0/1": {"thresholded"}, "grey": {"empty mask"}}.get(problem, set())
    assert {finding.problem for finding in findings} - also == ({problem} - {""})
    for finding in findings:
        assert str(N_IMAGES) in finding.evidence
        assert finding.remedy
        assert finding.wrong == (finding.problem not in NOTES)


def test_names(tmp_path: Path) -> None:
    maps, masks = write_set(tmp_path, CHANGES[""], (40, 60))
    for index in range(3):
        (maps / f"{index}.png").rename(maps / f"x{index}.png")
    names, extra = check_pairs(maps, masks)[0]
    assert (names.problem, names.wrong) == ("names", True)
    assert names.evidence.startswith(f"3 of {N_IMAGES} ground truths have no prediction (0, 1, ")
    assert (extra.problem, extra.wrong) == ("extra files", False)
    for path in list(maps.iterdir()):
        path.rename(path.with_stem(f"{path.stem}_sal"))
    (finding,), n_pairs = check_pairs(maps, masks)
    assert (finding.problem, n_pairs) == ("names", 0)
    assert "--pred-suffix" in finding.evidence
    assert [one.problem for one in check_pairs(masks, masks)[0]] == ["same files", "thresholded"]


def test_the_command_and_the_level_of_grey_masks(tmp_path: Path) -> None:
    maps, masks = write_set(tmp_path, CHANGES["inverted"], (40, 60))
    shown = run("check", maps, masks)
    assert shown.exit_code == 1
    assert shown.stdout.startswith(f"problem: inverted: {N_IMAGES} of {N_IMAGES} maps are darker")
    assert shown.stdout.endswith(f"{N_IMAGES} pairs looked at: 1 finding\n")
    (record,) = json.loads(run("check", maps, masks, "--format", "json").stdout)
    assert record["problem"] == "inverted"
    (tmp_path / "grey").mkdir()
    maps, masks = write_set(tmp_path / "grey", CHANGES["grey"], (40, 60))
    shown = run("check", maps, masks, "--gt-level", 100)
    assert shown.exit_code == 0
    assert "% from 64 on" in shown.stdout
    assert "empty mask" not in shown.stdout
    out = tmp_path / "out"
    scored = run(
        "evaluate", maps, masks, "--gt-level", 100, "--metrics", "mae", "--out", out, "--jobs", 1
    )
    assert scored.exit_code == 0, scored.stderr
    record = json.loads((out / "grey" / "maps" / "run.json").read_text())
    assert record["protocol"]["name"] == "default+gt_level=100"
    assert run("check", maps, masks, "--gt-level", 0).exit_code == 2
