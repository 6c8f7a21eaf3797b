"""Single settings of a protocol are changed from the command line; what they leave out is counted."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.command_line import error_message, run
from helpers.evaluate_runs import finished, record

import sisod

LINE = "{} of {} components in 'MSOD/mask' are below min_area and not scored; --min-area 0 scores all\n"
# every object that is scored fills its frame
UNDEFINED = "MSOD: SI-AUC undefined on all 70 images\n"


@pytest.fixture
def specks(three_batches: Path) -> Path:
    """Seventy images; every third ground truth is one object of 60 pixels and two specks of 1 and 3."""
    for index, path in enumerate(sorted((three_batches / "MSOD" / "mask").iterdir())):
        mask = np.zeros((24, 32), dtype=np.uint8)
        mask[2:8, 2:12] = 255
        if index % 3 == 0:
            mask[20, 20] = mask[15, 25:28] = 255
        assert cv2.imwrite(str(path), mask)
    return three_batches


N_SPECKS, N_COMPONENTS = 2 * 24, 70 + 2 * 24


# settings


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--min-area", "0.0002", "--connectivity", "8"], "default"),
        (
            ["--normalize", "none", "--connectivity", "4", "--min-area", "12"],
            "default+min_area=12+connectivity=4+normalize=none",
        ),
        (["--protocol", "paper", "--min-area", "0.01"], "paper+min_area=0.01"),
        (["--protocol", "paper+connectivity=4", "--connectivity", "8"], "paper"),
    ],
)
def test_options_equal_the_name(options: list[str], name: str, four_images: Path) -> None:
    finished(*options, "--metrics", "paper")
    saved = sisod.Evaluation.load("out/MSOD/A")
    assert saved.protocol.name == name
    folders = four_images / "A", four_images / "MSOD/mask"
    for protocol in (name, saved.protocol):
        direct = sisod.evaluate(*folders, protocol=protocol, metrics="paper", jobs=1)
        assert (direct.protocol, direct.summary) == (saved.protocol, saved.summary)


COMMANDS = [
    ["evaluate", "A", "MSOD/mask", "--out", "out"],
    ["stats", "MSOD/mask"],
    ["frames", "MSOD/mask", "--out", "out"],
]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--min-area", "x"], "min_area must be an int >= 0 (pixels)"),
        (["--min-area", "-1"], "got '-1'"),
        (["--min-area", "1.5"], "got 1.5"),
        (["--protocol", "official", "--min-area", "0"], "min_area cannot be changed under 'official'"),
        (["--protocol", "default+size=2"], "got '+size=2'"),
        (["--connectivity", "6"], "connectivity must be 4 or 8, got 6"),
    ],
)
def test_values_that_are_refused(options: list[str], text: str, four_images: Path) -> None:
    for command in COMMANDS if "--connectivity" not in options else COMMANDS[:1]:
        assert text in error_message(run(*command, *options), exit_codes=(2,))
    assert not (four_images / "out").exists()


# what is left out


def test_components_left_out_are_counted_and_reported(specks: Path) -> None:
    assert finished("--min-area", "4") == LINE.format(N_SPECKS, N_COMPONENTS) + UNDEFINED
    counts = {key: record()[key] for key in ("objects", "components", "left_out", "kept_below_min_area")}
    assert counts == {"objects": 70, "components": 118, "left_out": 48, "kept_below_min_area": 0}
    assert finished("--min-area", "2", out="two") == LINE.format(24, N_COMPONENTS) + UNDEFINED
    assert finished("--min-area", "0", out="all") == UNDEFINED
    assert (record("all")["left_out"], record("all")["objects"]) == (0, N_COMPONENTS)
    assert finished(out="default") == UNDEFINED  # 0.0002 of the image is one pixel
    assert specks.exists()


def test_the_line_is_printed_once_for_all_methods(specks: Path) -> None:
    expected = LINE.format(N_SPECKS, N_COMPONENTS) + UNDEFINED
    assert finished("--min-area", "4", preds=("A", "B")) == expected
    (specks / "B" / "scene000.png").unlink()
    lines = finished("--min-area", "4", "--allow-missing", preds=("A", "B"), out="other").splitlines()
    assert [line for line in lines if "below min_area" in line] == [
        LINE.format(N_SPECKS, N_COMPONENTS).rstrip(),
        LINE.format(N_SPECKS - 2, N_COMPONENTS - 3).rstrip(),  # an image less
    ]


def test_the_released_code_leaves_out_what_is_under_25_pixels(specks: Path) -> None:
    (specks / "names.txt").write_text("scene000\nscene001\n")
    assert finished("--protocol", "official", "--list", "names.txt") == (
        "2 of 4 components in 'MSOD/mask' are not scored by the rules of the released code\n"
    )
    assert (record()["components"], record()["left_out"]) == (4, 2)


def test_frames_of_the_caller_leave_nothing_out_and_are_never_tiny() -> None:
    gt, speck = np.zeros((2, 100, 100), dtype=bool)
    gt[10:40, 10:40] = gt[80, 80] = speck[10, 10] = True
    for mask, partition, counts in (
        (gt, None, (2, 1, 0)),
        (gt, sisod.partition(gt), (1, 0, 0)),
        (speck, None, (1, 0, 1)),
        (speck, sisod.partition(speck), (1, 0, 0)),
    ):
        evaluator = sisod.Evaluator(metrics="mae")
        evaluator.update(mask, mask, partition=partition)
        run_record = evaluator.result().run
        keys = ("components", "left_out", "kept_below_min_area")
        assert tuple(run_record[key] for key in keys) == counts
